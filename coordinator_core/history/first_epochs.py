"""Which epoch a group logs first, by the release of its brokers."""

from __future__ import annotations

from coordinator_core.cluster.snapshot_settings import Levels
from coordinator_core.cluster.topic_history import TopicHistory

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
