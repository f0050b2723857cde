"""Assigned partitions as Kafka's Admin client prints them: ``topic-partition``, by name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from coordinator_core.cluster.image import Topic, TopicImage


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


def with_names(topics: TopicImage | None, names: Mapping[str, str]) -> TopicImage | None:
    """Return the image in which these topics, by id, have their names; of a whole one, that image itself.

    The names are those of other records, so that the topics may be gone, and how many partitions they have is not
    known.
    """
    if not names or (topics is not None and topics.is_whole):
        return topics
    known = TopicImage({}, {}) if topics is None else topics
    named = {topic_id: Topic(name, topic_id, 0) for topic_id, name in names.items()}
    return replace(known, by_id={**named, **known.by_id}, is_whole=False)


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
