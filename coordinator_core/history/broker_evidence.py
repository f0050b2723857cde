"""What the metadata log says of brokers, for epochs: which one a group logs first, by their release, and that clients
of a broker that was down may join again, and wait for it.
"""

from typing import Final

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.snapshot_settings import Levels
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.durations import duration
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import LOG_TOPICS, Family, LogPosition

FIRST_EPOCH = 2
"""The first epoch that a group logs: 2, or 1 by brokers before 4.3."""
LEVEL_OF_4_3 = 30
"""The lowest ``metadata.version`` that brokers of 4.3 support."""


def may_be_first(epoch: int, metadata_hash: int | None, topics: TopicHistory | None, time_ms: int) -> bool:
    """Return whether an epoch that a record of this time opens may be the first of its group.

    Registrations of brokers tell those before 4.3: their epoch 2 is the second one. Brokers before 4.1 write no
    metadata hash (0). Later ones write 0 where none of the group's topics is there: then brokers have to be known as of
    4.3 or later. Groups of Connect workers have no hash (None), and log their epoch 1.
    """
    if epoch < FIRST_EPOCH or metadata_hash is None:
        return epoch < FIRST_EPOCH
    levels = None if topics is None else topics.broker_levels(time_ms)
    is_older = levels is not None and levels.newest is not None and levels.newest < LEVEL_OF_4_3
    shows_release = metadata_hash != 0 or _were_all_of_4_3(topics, levels)
    return epoch == FIRST_EPOCH and shows_release and not is_older


def _were_all_of_4_3(topics: TopicHistory | None, levels: Levels | None) -> bool:
    """Whether the brokers of these levels are of 4.3 or later, and no others are known before or after them."""
    if topics is None or levels is None or levels.oldest is None:
        return False
    return levels.oldest >= LEVEL_OF_4_3 and min(topics.metadata_versions()) >= LEVEL_OF_4_3


RESTART_MS: Final = 60_000
"""How long after the start of a broker a rebalance without a cause may be its consequence."""


def without_blame(
    row: RebalanceRow, end: LogPosition | None, topics: TopicHistory | None, family: Family, leader_epoch: int | None
) -> RebalanceRow:
    """Return the row of a rebalance; if a broker was down within it, it says so and names no member that delayed it.

    Members had to wait for the coordinator: another broker took over as the leader of the log partition, or one started
    again, which may have been it. ``end``: None while it lasts. ``family`` is that of the group's log.
    ``leader_epoch`` is that of the last record; None: the dump has none. Leader epochs tell up to the last record,
    without the clock of another log, that none took over. Where it ended is unknown, so is who was down.
    """
    if row.outcome == "unknown":
        return row._replace(delayed_by=None, broker_away=None)
    if topics is None:
        return row
    after_ms = row.at.timestamp_ms - CLOCK_TOLERANCE_MS
    until_ms = topics.last_seen_ms if end is None else end.timestamp_ms + CLOCK_TOLERANCE_MS
    was_down = bool(topics.brokers.restarts(after_ms, until_ms, complete=topics.complete))
    if end is None or leader_epoch is None:
        was_down |= topics.brokers.is_led_anew(LOG_TOPICS[family], row.at.partition, after_ms, until_ms)
    return row._replace(delayed_by=None, broker_away=True) if was_down else row


def restart_hint(opened: LogPosition, at: LogPosition, topics: TopicHistory | None) -> str | None:
    """Return which broker had started shortly before an epoch that nothing else explains; None: none.

    Clients of a broker that starts again may join again, with nothing to show for it. ``opened``: where the epoch
    before was opened; ``at``: the new one.
    """
    if topics is None:
        return None
    started = topics.brokers.registrations(max(opened.timestamp_ms, at.timestamp_ms - RESTART_MS), at.timestamp_ms)
    if not started:
        return None
    last = started[-1]
    return f"broker {last.broker} had started {duration(at.timestamp_ms - last.at.timestamp_ms)} before"
