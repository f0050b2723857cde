"""Log partitions in memory, in the place of files."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.batch_format import Damage
from coordinator_core.wire.batches import read_columns
from jobs.sources.log_reader import FIRST_SEGMENT


@dataclass(frozen=True)
class MemoryLog:
    """One log partition."""

    data: bytes
    family: Family = Family.GROUP
    partition: int = 0
    segment: str = FIRST_SEGMENT

    @property
    def topic(self) -> str:
        return LOG_TOPICS[self.family]

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}/{self.segment}"

    @property
    def size(self) -> int:
        return len(self.data)

    @property
    def is_placed(self) -> bool:
        return True

    def parts(self) -> Iterator[pa.RecordBatch | Damage]:
        yield from read_columns(lambda at, size: self.data[at : at + size], len(self.data), name=self.name)
