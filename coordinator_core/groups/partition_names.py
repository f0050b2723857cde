"""Assigned partitions as Kafka's Admin client prints them: ``topic-partition``, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator_core.cluster.image import TopicImage


def topic_partitions(assigned: Mapping[str, Iterable[int]], topics: TopicImage | None) -> list[str]:
    """Return partitions by topic id as a sorted list of ``topic-partition``.

    A topic id that is not in the image belongs to a deleted topic; brokers leave it out as well. Without an image, or
    where the image is not whole, that is not known: then the id is printed instead of the name.
    """
    named: list[str] = []
    for topic_id, partitions in assigned.items():
        topic = None if topics is None else topics.by_id.get(topic_id)
        if topic is None and topics is not None and topics.is_whole:
            continue
        name = topic_id if topic is None else topic.name
        named.extend(f"{name}-{partition}" for partition in partitions)
    return sorted(named)


def topics_in_doubt(assigned: Iterable[Mapping[str, Iterable[int]]], topics: TopicImage | None) -> list[str]:
    """Return the names of topics in these assignments that may be gone, as not each change of topics is known."""
    if topics is None or topics.is_whole:
        return []
    known = topics.by_id
    return sorted({known[topic_id].name for by_topic in assigned for topic_id in by_topic if topic_id in known})


def unnamed_topics(assigned: Iterable[Mapping[str, Iterable[int]]], topics: TopicImage | None) -> list[str]:
    """Return the topic ids that ``topic_partitions`` prints instead of names in these assignments, sorted."""
    if topics is not None and topics.is_whole:
        return []
    named = {} if topics is None else topics.by_id
    return sorted({topic_id for by_topic in assigned for topic_id in by_topic if topic_id not in named})
