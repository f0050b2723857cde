"""Arrow batches with the columns ``tables.log.DUMPED``, for all sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from jobs.tables.log import DUMPED

SPARK_SCHEMA: Final = StructType(DUMPED)
ARROW_SCHEMA: Final[pa.Schema] = to_arrow_schema(SPARK_SCHEMA)

ROWS_A_BATCH: Final = 10_000
"""As many as Spark puts into an Arrow batch by default."""


def dumped_batch(count: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """Return a batch of ``count`` rows. ``columns`` are arrays, or one value for all rows; missing columns are null."""
    arrays = []
    for field in ARROW_SCHEMA:
        column = columns.get(field.name)
        if isinstance(column, pa.Array):
            arrays.append(column.cast(field.type))
        elif column is None:
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(column, field.type), count))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def dumped_batches(rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of up to ``ROWS_A_BATCH`` rows; columns that a row does not have are null."""
    remaining = iter(rows)
    while some := list(islice(remaining, ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema=ARROW_SCHEMA)
