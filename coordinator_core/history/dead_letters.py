"""Whether the dead-letter queue of a share group can take records, by the metadata log (KIP-1191)."""

from __future__ import annotations

from typing import Final

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.topic_history import TOPIC_RESOURCE, TopicHistory

QUEUE: Final = "errors.deadletterqueue.topic.name"
"""The setting of a group that names its dead-letter queue."""
IS_QUEUE: Final = "errors.deadletterqueue.group.enable"
"""The setting of a topic that lets share groups write there; it is false by default."""
INTERNAL: Final = "__"


def why_not_queued(topics: TopicHistory | None, group_id: str, time_ms: int) -> str | None:
    """Return why the queue of a group cannot have taken records about a time (ms); None: it can, or it is not known.

    A broker archives them then all the same. It may create the topic at the first record, so the topic may appear
    within ``CLOCK_TOLERANCE_MS``.
    """
    name = None if topics is None else topics.group_config(group_id, QUEUE, time_ms)
    if topics is None or not name:
        return None
    if name.startswith(INTERNAL):
        return f"{QUEUE} names {name}, and no name of a queue begins with {INTERNAL}"
    around = (time_ms - CLOCK_TOLERANCE_MS, time_ms, time_ms + CLOCK_TOLERANCE_MS)
    counts = {topics.partitions_at(name, moment) for moment in around if moment <= topics.last_seen_ms} or {None}
    if counts == {0}:
        return f"{QUEUE} names {name}, and there is no such topic"
    if None in counts or 0 in counts:
        return None
    settings = [topics.config(TOPIC_RESOURCE, name, topics.version_at(moment)).get(IS_QUEUE, "") for moment in around]
    if topics.is_listed or any(value.strip().lower() == "true" for value in settings):
        return None
    return f"{QUEUE} names {name}, and {IS_QUEUE} of this topic is not true"
