"""How many commit records a group wrote over time.

The interval follows from the times alone: it is the shortest of ``LENGTHS_MS`` with which there are at most
``MOST_INTERVALS``. Each length divides the next one, so that counts of short intervals add up to those of a longer one.
"""

from __future__ import annotations

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
class CountMemory:
    """All that a fold of commit counts keeps: the records by beginning of interval, and the times (ms; -1: none)."""

    counts: dict[int, int] = field(default_factory=dict)
    length_ms: int = LENGTHS_MS[0]
    first_ms: int = -1
    last_ms: int = -1


class CommitCountFold:
    """Counts commit records by time, in log order. Records without a time are not counted."""

    __slots__ = ("_counts", "_first", "_last", "_length")

    def __init__(self, memory: CountMemory | None = None) -> None:
        """Begin, or go on with the ``memory`` that an earlier fold left."""
        memory = memory or CountMemory()
        self._counts: Counter[int] = Counter(memory.counts)
        self._length, self._first, self._last = memory.length_ms, memory.first_ms, memory.last_ms

    @property
    def memory(self) -> CountMemory:
        """What a later fold needs to go on."""
        return CountMemory(dict(self._counts), self._length, self._first, self._last)

    def feed(self, timestamp_ms: int) -> None:
        """Take in the time (ms) of a commit record."""
        if timestamp_ms < 0:
            return
        if self._first < 0 or timestamp_ms < self._first:
            self._first = timestamp_ms
        self._last = max(self._last, timestamp_ms)
        if self._last // self._length - self._first // self._length >= MOST_INTERVALS:
            self._length = fitting_length(self._first, self._last, self._length)
            self._counts = _added(self._counts.items(), self._length)
        self._counts[timestamp_ms - timestamp_ms % self._length] += 1

    def counts(self) -> list[CommitCount]:
        """Return the intervals with any record, in order."""
        return [CommitCount(since, self._length, self._counts[since]) for since in sorted(self._counts)]


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
