"""Topics at the end of a log, as histories of groups take them."""

from collections.abc import Mapping

from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.cluster.given_topics import TopicReach

EVERYWHEN = TopicReach(0, 1 << 62, from_start=True)


def at_end(partitions: Mapping[str, int]) -> TopicsAtEnd:
    """Return topics with these numbers of partitions; all that ever happened to them is known."""
    return TopicsAtEnd(partitions, EVERYWHEN)
