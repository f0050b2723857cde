"""Assigned partitions as Kafka's Admin client prints them: ``topic-partition``, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator_core.cluster.image import TopicImage


def topic_partitions(assigned: Mapping[str, Iterable[int]], topics: TopicImage | None) -> list[str]:
    """Return partitions by topic id as a sorted list of ``topic-partition``.

    A topic id that the image does not hold is of a topic that was deleted, which brokers leave out as well. Without an
    image nothing can be named: then the id stands in the place of the name.
    """
    named: list[str] = []
    for topic_id, partitions in assigned.items():
        topic = None if topics is None else topics.by_id.get(topic_id)
        if topic is None and topics is not None:
            continue
        name = topic_id if topic is None else topic.name
        named.extend(f"{name}-{partition}" for partition in partitions)
    return sorted(named)
