"""The commits of a group over time: how many records it wrote; and some of those of each partition, so that a page
knows what was committed about a moment.

The interval of counts follows from the times alone: it is the shortest of ``LENGTHS_MS`` with which there are at most
``MOST_INTERVALS``. Each length divides the next one, so that counts of short intervals add up to those of a longer one.

Of each interval of a partition's trail the first and the last commit are kept: between the last one of an interval and
the first one of the next nothing was committed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple

MOST_INTERVALS: Final = 120
"""A chart of commits over time has at most this many bars."""
HOUR_MS: Final = 3_600_000
LENGTHS_MS: Final = (
    *(seconds * 1_000 for seconds in (1, 5, 15, 60, 300, 900)),
    *(hours * HOUR_MS for hours in (1, 3, 12, 24, 7 * 24, 28 * 24, 364 * 24, 3640 * 24)),
)


class CommitCount(NamedTuple):
    """Commit records of a group in one interval of time."""

    since_ms: Annotated[int, "begin of the interval"]
    length_ms: Annotated[int, "length of the interval"]
    records: Annotated[int, "commit records written in it, whatever became of their transactions; no tombstones"]


@dataclass(slots=True)
class CommitCountFold:
    """Counts commit records by time, in log order: the records by beginning of interval, and the times (ms; -1: none).
    Records without a time are not counted.
    """

    counts: dict[int, int] = field(default_factory=dict)
    length_ms: int = LENGTHS_MS[0]
    first_ms: int = -1
    last_ms: int = -1

    def feed(self, timestamp_ms: int) -> None:
        """Take in the time (ms) of a commit record."""
        if timestamp_ms < 0:
            return
        if self.first_ms < 0 or timestamp_ms < self.first_ms:
            self.first_ms = timestamp_ms
        self.last_ms = max(self.last_ms, timestamp_ms)
        if self.last_ms // self.length_ms - self.first_ms // self.length_ms >= MOST_INTERVALS:
            # Each length divides the next one, so that the counts so far only have to be added up.
            self.length_ms = fitting_length(self.first_ms, self.last_ms, self.length_ms)
            self.counts = dict(_added(self.counts.items(), self.length_ms))
        begin_ms = timestamp_ms - timestamp_ms % self.length_ms
        self.counts[begin_ms] = self.counts.get(begin_ms, 0) + 1

    def rows(self) -> list[CommitCount]:
        """Return the intervals with any record, in order."""
        return [CommitCount(since, self.length_ms, self.counts[since]) for since in sorted(self.counts)]


def fitting_length(first_ms: int, last_ms: int, shortest_ms: int = 0) -> int:
    """Return the shortest length, of at least ``shortest_ms``, with which at most MOST_INTERVALS hold both times."""
    lengths = [length_ms for length_ms in LENGTHS_MS if length_ms >= shortest_ms]
    fitting = (length for length in lengths if last_ms // length - first_ms // length < MOST_INTERVALS)
    return next(fitting, lengths[-1])


def coarsened(counts: Sequence[CommitCount], length_ms: int) -> tuple[CommitCount, ...]:
    """Return the counts in intervals of ``length_ms``, a multiple of all their lengths."""
    added = _added(((count.since_ms, count.records) for count in counts), length_ms)
    return tuple(CommitCount(since, length_ms, added[since]) for since in sorted(added))


def _added(counts: Iterable[tuple[int, int]], length_ms: int) -> Counter[int]:
    added: Counter[int] = Counter()
    for since, records in counts:
        added[since - since % length_ms] += records
    return added


MOST_TRAIL_INTERVALS: Final = 60
TRAIL_LENGTHS_MS: Final = tuple(length_ms for length_ms in LENGTHS_MS if length_ms <= HOUR_MS)
"""Over a longer time than ``MOST_TRAIL_INTERVALS`` of the last of these, only the end is kept."""


class CommitPoint(NamedTuple):
    """A commit or a tombstone that holds from ``time_ms`` on; ``offset`` None: a tombstone.

    ``at`` is the log offset of its record; ``number`` counts those of the partition, so that one without a gap to the
    number before follows it.
    """

    time_ms: int
    at: int
    offset: int | None
    number: int


class CommitTrail(NamedTuple):
    """The points of one partition, in order."""

    topic: str
    partition: int
    log_partition: int
    points: tuple[CommitPoint, ...]


@dataclass(slots=True)
class TrailFold:
    """Keeps the points of one partition, as many as there are intervals in a bounded number.

    The last of ``points`` is the first one of the interval up to ``until_ms``; ``newest`` is the last one of it so far.
    Most commits only take the place of that one.
    """

    points: list[CommitPoint] = field(default_factory=list)
    length_ms: int = TRAIL_LENGTHS_MS[0]
    until_ms: int = -1
    newest_ms: int = 0
    newest_at: int = -1
    newest_offset: int | None = None

    def add(self, time_ms: int, at: int, offset: int | None, number: int) -> None:
        """Take in the next commit or tombstone that holds. Times never go back; one without a time has no place."""
        if time_ms < 0:
            return
        time_ms = max(time_ms, self.newest_ms)
        if time_ms >= self.until_ms:
            # What was the newest so far is the last one of its interval: it stays.
            self.points = self.all(number - 1)
            self.points.append(CommitPoint(time_ms, at, offset, number))
            if len(self.points) > 2 * MOST_TRAIL_INTERVALS:
                longer = next((length_ms for length_ms in TRAIL_LENGTHS_MS if length_ms > self.length_ms), None)
                since_ms = begin_of_trail(self.points[-1].time_ms, self.length_ms) if longer is None else 0
                self.length_ms = longer or self.length_ms
                self.points = thinned(self.points, self.length_ms, since_ms)
            self.until_ms = time_ms - time_ms % self.length_ms + self.length_ms
        self.newest_ms, self.newest_at, self.newest_offset = time_ms, at, offset

    def all(self, number: int) -> list[CommitPoint]:
        """Return the points, where ``number`` is that of the newest one."""
        if not self.points or self.newest_at == self.points[-1].at:
            return self.points
        return [*self.points, CommitPoint(self.newest_ms, self.newest_at, self.newest_offset, number)]


def trail_length(first_ms: int, last_ms: int) -> int:
    """Return the length (ms) of the intervals between two times."""
    fitting = (each for each in TRAIL_LENGTHS_MS if last_ms // each - first_ms // each < MOST_TRAIL_INTERVALS)
    return next(fitting, TRAIL_LENGTHS_MS[-1])


def begin_of_trail(last_ms: int, length_ms: int) -> int:
    """Return the begin (ms) of the first interval that is kept, where the last one has ``last_ms``."""
    return (last_ms // length_ms - MOST_TRAIL_INTERVALS + 1) * length_ms


def thinned(points: Iterable[CommitPoint], length_ms: int, since_ms: int) -> list[CommitPoint]:
    """Return the first and the last of these points in each interval from ``since_ms`` on."""
    there = [point for point in points if point.time_ms >= since_ms]
    places = [point.time_ms // length_ms for point in there]
    around = zip(there, [None, *places], places, [*places[1:], None], strict=False)
    # Both neighbours in the same interval: neither the first nor the last of it.
    return [point for point, before, own, after in around if not before == own == after]
