"""Some of the commits of a partition, spread over time, so that a page knows what was committed about a moment.

Of each interval of time the first and the last commit are kept: between the last one of an interval and the first one
of the next nothing was committed. Intervals have one of ``LENGTHS_MS``, of which each divides the next.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coordinator_core.audit.folds.commit_counts import HOUR_MS, LENGTHS_MS

MOST_INTERVALS: Final = 60
TRAIL_LENGTHS_MS: Final = tuple(length_ms for length_ms in LENGTHS_MS if length_ms <= HOUR_MS)
"""Over a longer time than ``MOST_INTERVALS`` of the last of these, only the end is kept."""


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
        if 0 <= time_ms < self.newest_ms:
            time_ms = self.newest_ms
        if time_ms >= self.until_ms and time_ms >= 0:
            self.points = [*self.all(number - 1), CommitPoint(time_ms, at, offset, number)]
            if len(self.points) > 2 * MOST_INTERVALS:
                self._thin()
            self.until_ms = time_ms - time_ms % self.length_ms + self.length_ms
        if time_ms >= 0:
            self.newest_ms, self.newest_at, self.newest_offset = time_ms, at, offset

    def all(self, number: int) -> list[CommitPoint]:
        """Return the points, where ``number`` is that of the newest one."""
        if not self.points or self.newest_at == self.points[-1].at:
            return self.points
        return [*self.points, CommitPoint(self.newest_ms, self.newest_at, self.newest_offset, number)]

    def _thin(self) -> None:
        longer = next((length_ms for length_ms in TRAIL_LENGTHS_MS if length_ms > self.length_ms), None)
        since_ms = begin_of_trail(self.points[-1].time_ms, self.length_ms) if longer is None else 0
        self.length_ms = longer or self.length_ms
        self.points = thinned(self.points, self.length_ms, since_ms)


def trail_length(first_ms: int, last_ms: int) -> int:
    """Return the length (ms) of the intervals between two times."""
    fitting = (each for each in TRAIL_LENGTHS_MS if last_ms // each - first_ms // each < MOST_INTERVALS)
    return next(fitting, TRAIL_LENGTHS_MS[-1])


def begin_of_trail(last_ms: int, length_ms: int) -> int:
    """Return the begin (ms) of the first interval that is kept, where the last one has ``last_ms``."""
    return (last_ms // length_ms - MOST_INTERVALS + 1) * length_ms


def thinned(points: Iterable[CommitPoint], length_ms: int, since_ms: int) -> list[CommitPoint]:
    """Return the first and the last of these points in each interval from ``since_ms`` on."""
    there = [point for point in points if point.time_ms >= since_ms]
    places = [point.time_ms // length_ms for point in there]
    around = zip(there, [None, *places], places, [*places[1:], None], strict=False)
    return [point for point, before, own, after in around if not before == own == after]
