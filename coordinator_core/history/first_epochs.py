"""Which epoch a group logs first, by the release of its brokers."""

from __future__ import annotations

from coordinator_core.cluster.topic_history import TopicHistory

FIRST_EPOCH = 2
"""The first epoch that a group logs: 2, or 1 by brokers before 4.3."""
LEVEL_OF_4_3 = 30
"""The lowest ``metadata.version`` that brokers of 4.3 support."""


def may_be_first(epoch: int, metadata_hash: int, topics: TopicHistory | None, time_ms: int) -> bool:
    """Return whether an epoch that a record of this time opens may be the first of its group.

    Brokers before 4.1 write no metadata hash (0), and registrations of brokers tell those before 4.3: their epoch 2 is
    the second one.
    """
    if epoch < FIRST_EPOCH:
        return True
    levels = None if topics is None else topics.broker_levels(time_ms)
    is_older = levels is not None and levels.newest is not None and levels.newest < LEVEL_OF_4_3
    return epoch == FIRST_EPOCH and metadata_hash != 0 and not is_older
