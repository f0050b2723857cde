"""The worst rebalance: what a reader should see first."""

from __future__ import annotations

from coordinator_core.history.rows import RebalanceRow

STUCK_MS = 60_000
"""A rebalance that is open for this long comes before all others."""


def badness(row: RebalanceRow) -> tuple[bool, int, int, int]:
    """Return a key by which the worst rebalance is the largest.

    A rebalance that does not end comes first. Then time without an owner counts, then duration, then moves.
    """
    least = row.duration_min_ms or 0
    return row.outcome == "open" and least >= STUCK_MS, row.idle_ms or 0, least, row.units_moved or 0


def because(row: RebalanceRow) -> str:
    """Return what makes it the worst rebalance of its group, in the order of ``badness``."""
    stuck, idle_ms, least, moved = badness(row)
    if stuck:
        return "it had not ended at the end of the log"
    if idle_ms:
        return "partitions or tasks were without an owner for the longest time, added up"
    if least:
        return "it took the longest"
    if moved:
        return "it moved most partitions or tasks"
    return "it is the last one; none took time or moved anything, as far as the log shows"
