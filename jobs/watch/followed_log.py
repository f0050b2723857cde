"""One log partition of a log that is still written: how far it was read, and what it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from zlib import crc32

from coordinator_core.audit.folds.partition_folds import PartitionFolds
from coordinator_core.history.lost_records import NOTHING_LOST, LostRecords
from jobs.sources.log_reader import LogRow
from jobs.watch.followed_group import FollowedGroup
from jobs.watch.new_rows import LogPlace

MOST_KEYS: Final = 1 << 20
"""So many keys are kept until one comes again, which in a log that was not compacted is soon."""
MOST_LOST: Final = 100
"""So many ranges of lost offsets are kept of a partition, the newest; the oldest one takes in those before it."""


class LastRow(NamedTuple):
    """What tells a record of a log from one of another log at the same offset."""

    offset: int
    timestamp_ms: int
    checksum: int

    @classmethod
    def of(cls, row: LogRow) -> "LastRow":
        """Return it for a row."""
        return cls(row.offset, row.timestamp, crc32(row.value or b"", crc32(row.key)))


NO_ROW: Final = LastRow(-1, 0, 0)


class Reached(NamedTuple):
    """How far a partition was read: ``last`` is its last row, ``from_start`` whether it was read from its beginning."""

    last: LastRow
    from_start: bool


@dataclass(slots=True)
class FollowedLog:
    """A log partition as far as it was read, and its groups. ``lost`` are ranges of offsets, the bounds included.

    ``keys`` are the hashes of the keys that were read, until one came again: compaction has not been there, nor behind
    it, and ``is_compacted_here`` is no longer True.
    """

    place: LogPlace
    from_start: bool
    folds: PartitionFolds[FollowedGroup]
    last: LastRow = NO_ROW
    last_ms: int = 0
    lost: list[tuple[int, int]] = field(default_factory=list)
    keys: set[int] = field(default_factory=set)
    is_compacted_here: bool = True

    @property
    def end(self) -> int:
        """The offset behind the last row."""
        return self.last.offset + 1

    def read(self, rows: Sequence[LogRow]) -> None:
        """Note that these rows were read; there is at least one."""
        self.last = LastRow.of(rows[-1])
        self.last_ms = max(self.last_ms, *(row.timestamp for row in rows))

    def note_key(self, key: bytes) -> None:
        """Note the key of the next record."""
        if self.is_compacted_here and len(self.keys) < MOST_KEYS:
            number = hash(key)
            self.is_compacted_here = number not in self.keys
            self.keys.add(number)
            if not self.is_compacted_here:
                # One repeat is all that was asked for: the keys of a large log need not stay in memory.
                self.keys.clear()

    def lose(self, first: int, last: int) -> None:
        """Note lost offsets."""
        self.lost.append((first, last))
        if len(self.lost) > MOST_LOST:
            # Too much is called lost rather than too little: what lies between the two is in doubt from then on.
            self.lost[:2] = [(self.lost[0][0], self.lost[1][1])]

    def lose_missing(self, rows: Sequence[LogRow]) -> None:
        """Note the offsets before and between the next rows that have none, in a log that brokers do not compact."""
        end = self.end
        for row in rows:
            if row.offset > end:
                self.lose(end, row.offset - 1)
            end = row.offset + 1

    @property
    def lost_records(self) -> LostRecords:
        """What the partition lacks."""
        return self.folds.unreadable.lost((self.place.topic, self.place.partition), self.lost)

    @property
    def is_whole(self) -> bool:
        """Whether it was read from its beginning and lacks nothing but what compaction removed."""
        return self.from_start and self.lost_records == NOTHING_LOST


def other_log(place: LogPlace, offset: int, cause: str) -> str:
    """Return why a watch cannot go on in a partition of which it has read up to an offset."""
    return (
        f"{place}: {cause}, and the watch had read it up to offset {offset}: it is the log of another cluster, or has "
        "lost records; without the state file the watch begins again"
    )
