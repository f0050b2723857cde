"""What a log partition and its segments are to those who read them, wherever they are stored."""

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from coordinator_core.records import Family
from coordinator_core.wire.batch_format import Damage


class LogPlaced(Protocol):
    """What tells which log partition it is, or is of."""

    @property
    def topic(self) -> str:
        """The topic of the log; empty if it is not known."""

    @property
    def partition(self) -> int:
        """The partition of the log."""

    @property
    def family(self) -> Family:
        """The kind of log, which determines its record types."""

    @property
    def is_placed(self) -> bool:
        """Whether partition and offsets are those of the log: a text may not have them."""


class LogPart(LogPlaced, Protocol):
    """A log partition or one of its segments, wherever it is stored."""

    @property
    def name(self) -> str:
        """The name used in messages."""

    @property
    def segment(self) -> str:
        """The name of its first segment."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    def parts(self) -> Iterator[pa.RecordBatch | Damage]:
        """Yield its records as Arrow batches with the columns ``LOG_COLUMNS``, and its damaged byte ranges."""
