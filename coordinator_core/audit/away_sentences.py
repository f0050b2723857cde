"""What the metadata log says of a group's coordinator during a rebalance, and shortly before it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.coordinators_away import FOUND_AGAIN_MS, CoordinatorAway
from coordinator_core.durations import duration
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import LogPosition


def about_absence(row: RebalanceRow, times: Iterable[CoordinatorAway]) -> Iterator[tuple[str, tuple[LogPosition, ...]]]:
    """Yield a sentence for each time over which the group had no coordinator, and the records that prove it: within
    the rebalance, or shortly before it began.
    """
    if row.at.timestamp_ms < 0:
        return
    began_ms = row.at.timestamp_ms if row.began_before_ms < 0 else min(row.began_before_ms, row.at.timestamp_ms)
    end_ms = (row.finished or row.at).timestamp_ms
    for time in times:
        proof = (time.since,) if time.until is None else (time.since, time.until)
        plan = " by plan" if time.is_planned else ""
        gone = f"broker {time.broker} was gone{plan} from {utc(time.since.timestamp_ms)}"
        until = "" if time.until is None else f" until {utc(time.until.timestamp_ms)}"
        if time.overlaps(began_ms, end_ms):
            yield f"The coordinator of the group was away meanwhile: {gone}{until}. No member delayed it then.", proof
        elif time.until_ms is not None and 0 <= began_ms - time.until_ms <= FOUND_AGAIN_MS:
            before = began_ms - time.until_ms
            yield (
                f"The coordinator of the group had been away until {duration(before)} before: {gone}{until}. What "
                f"members did then need not be their own doing.",
                proof,
            )
