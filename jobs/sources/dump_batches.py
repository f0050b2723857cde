"""Arrow batches with the columns ``tables.log.DUMPED``, for all sources."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

import pyarrow as pa

from jobs.tables.log import DUMPED
from jobs.tables.table import plain

SCHEMA: Final = plain(DUMPED)

ROWS_A_BATCH: Final = 10_000
"""As many as Spark puts into an Arrow batch by default."""


class LogSource(Protocol):
    """A dump that is read in tasks, by whatever process: this one, others of this machine, or Spark's workers."""

    def partitions(self) -> Sequence[object]:
        """Return the tasks."""

    def size(self, partition: Any) -> int:
        """Return how many bytes a task reads, about."""

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task, with the columns ``SCHEMA``."""


def dumped_batch(count: int, columns: Mapping[str, object]) -> pa.RecordBatch:
    """Return a batch of ``count`` rows. ``columns`` are arrays, or one value for all rows; missing columns are null."""
    arrays = []
    for field in SCHEMA:
        column = columns.get(field.name)
        if isinstance(column, pa.Array):
            arrays.append(column.cast(field.type))
        elif column is None:
            arrays.append(pa.nulls(count, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(column, field.type), count))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def dumped_batches(rows: Iterable[dict[str, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of up to ``ROWS_A_BATCH`` rows; columns that a row does not have are null."""
    remaining = iter(rows)
    while some := list(islice(remaining, ROWS_A_BATCH)):
        yield pa.RecordBatch.from_pylist(some, schema=SCHEMA)
