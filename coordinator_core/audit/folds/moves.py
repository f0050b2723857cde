"""Which assignments begin or end during a rebalance, found without a search through all of a long history."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from coordinator_core.history.rows import AssignmentRow, RebalanceRow


class Moves:
    """Index of the assignments of one log by the offsets at which they begin and end."""

    def __init__(self, rows: Sequence[AssignmentRow]) -> None:
        ends = [(at.offset, index) for index, row in enumerate(rows) for at in (row.since, row.until) if at is not None]
        ends.sort()
        self._rows = rows
        self._offsets = [offset for offset, _ in ends]
        self._indexes = [index for _, index in ends]

    def within(self, rebalance: RebalanceRow) -> list[AssignmentRow]:
        """Return the assignments that begin or end during the rebalance."""
        first = bisect_left(self._offsets, rebalance.at.offset)
        end = len(self._offsets)
        if rebalance.finished is not None:
            end = bisect_right(self._offsets, rebalance.finished.offset)
        return [self._rows[index] for index in sorted(set(self._indexes[first:end]))]
