"""The worst rebalance: what a reader should see first."""

from typing import Final

from coordinator_core.history.rows import RebalanceRow

STUCK_MS = 60_000
"""A rebalance that is open for this long comes before all others."""

THEN: Final = ("idle_ms", "duration_min_ms", "units_moved")
"""What counts of the others, the first most: time without an owner, then duration, then moves."""

IN_SQL: Final = ", ".join(
    (
        f"CASE WHEN r.outcome = 'open' AND r.duration_min_ms >= {STUCK_MS} THEN 1 ELSE 0 END DESC",
        *(f"coalesce(r.{name}, 0) DESC" for name in THEN),
    )
)
"""``badness`` as the order of a query for rebalances ``r``, the worst first."""


def badness(row: RebalanceRow) -> tuple[int, ...]:
    """Return a key by which the worst rebalance is the largest: one that does not end, then by ``THEN``."""
    return row.outcome == "open" and (row.duration_min_ms or 0) >= STUCK_MS, *(getattr(row, name) or 0 for name in THEN)


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
