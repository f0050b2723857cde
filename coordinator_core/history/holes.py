"""Holes of the logs that may have said something of any group of their partition, for a replay that reads by group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator_core.history.coverage import Hole
from coordinator_core.history.grounds import lost_offsets, unreadable_record
from coordinator_core.history.lost_records import Place
from coordinator_core.records import LogPosition


class UnknownOffsets(NamedTuple):
    """Offsets, both included, that are lost, or whose records have keys that cannot be decoded."""

    first: int
    last: int
    is_lost: bool


class Holes:
    """Such offsets, by topic and partition of the log."""

    def __init__(self, unknown: Iterable[tuple[Place, UnknownOffsets]]) -> None:
        """Give them in any order."""
        self._runs: dict[Place, list[UnknownOffsets]] = {}
        for place, run in sorted(unknown):
            self._runs.setdefault(place, []).append(run)
        self._firsts = {place: [run.first for run in runs] for place, runs in self._runs.items()}

    def last_before(self, place: Place, offset: int, time_ms: int) -> Hole | None:
        """Return the last one before a record at that offset and time; None: there is none."""
        firsts = self._firsts.get(place)
        if not firsts:
            return None
        index = bisect_left(firsts, offset) - 1
        if index < 0:
            return None
        first, last, is_lost = self._runs[place][index]
        last = min(last, offset - 1)
        return Hole(
            LogPosition(place[1], last, time_ms), lost_offsets(first, last) if is_lost else unreadable_record(last)
        )


NO_HOLES: Final = Holes(())
