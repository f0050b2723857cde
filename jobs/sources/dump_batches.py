"""Arrow batches with the columns ``tables.log.DUMPED``, from what the sources read."""

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


def dumped_batch(count: int, columns: Mapping[str, Any]) -> pa.RecordBatch:
    """A batch of ``count`` rows from some of the columns: arrays, or one value for all rows; the others are null."""
    arrays = []
    for field in ARROW_SCHEMA:
        given = columns.get(field.name)
        if isinstance(given, pa.Array):
            arrays.append(given.cast(field.type))
        elif given is None:
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(given, field.type), count))
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)


def dumped_batches(rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Batches of rows that come one by one; columns that no row names are null."""
    remaining = iter(rows)
    while some := list(islice(remaining, ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema=ARROW_SCHEMA)
