"""Source topics that a topology names by regular expressions (KIP-1071), resolved on the topics of that time."""

from collections.abc import Collection

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups import re2
from coordinator_core.groups.streams.state import CopartitionGroup, Subtopology, Topology


def has_regexes(topology: Topology) -> bool:
    """Whether new topics may become source topics."""
    return any(subtopology.source_topic_regex for subtopology in topology.subtopologies)


def resolved(topology: Topology, topics: TopicImage) -> Topology:
    """Return the topology with the topics that its regexes match among its source topics, and without regexes.

    The topology's own internal topics are never among them.
    """
    if not has_regexes(topology):
        return topology
    internal = _internal(topology)
    names = sorted(name for name in topics.by_name if name not in internal)
    return topology._replace(subtopologies=[_resolved(subtopology, names) for subtopology in topology.subtopologies])


def topic_names(topology: Topology | None, known: TopicHistory | None) -> set[str]:
    """Return the names of the topics of a topology through time: sources, repartition topics and changelogs.

    A regular expression stands for every topic of ``known`` that it matches, whenever the topic existed.
    """
    return named_topics(topology) | matched_topics(topology, known)


def named_topics(topology: Topology | None) -> set[str]:
    """Return the topics that the topology has by name: sources, repartition topics and changelogs."""
    if topology is None:
        return set()
    return _internal(topology) | {name for subtopology in topology.subtopologies for name in subtopology.source_topics}


def matched_topics(topology: Topology | None, known: TopicHistory | None) -> set[str]:
    """Return the topics of ``known`` that are source topics by a regular expression, whenever they existed."""
    if topology is None or known is None:
        return set()
    regexes = {regex for subtopology in topology.subtopologies for regex in subtopology.source_topic_regex}
    matched = {name for regex in regexes for name in known.names_matching(regex, re2.matching)}
    return matched - _internal(topology)


def sources_of(topology: Topology, subtopology: Subtopology, known: Collection[str]) -> list[str]:
    """Return the source topics of a subtopology, without repartition topics; ``known`` are the topics that exist."""
    matched = [name for regex in subtopology.source_topic_regex for name in re2.matching(regex, known)]
    if not matched:
        return subtopology.source_topics
    internal = _internal(topology)
    return list(dict.fromkeys((*subtopology.source_topics, *(name for name in matched if name not in internal))))


def readers(topology: Topology | None, topic: str) -> set[str]:
    """Return the subtopologies that read the topic, by name or by a regular expression; their task n has its
    partition n.
    """
    if topology is None:
        return set()
    return {
        subtopology.subtopology_id
        for subtopology in topology.subtopologies
        if topic in sources_of(topology, subtopology, [topic])
        or topic in (source.name for source in subtopology.repartition_source_topics)
    }


def only_readers(topology: Topology | None, topic: str) -> set[str]:
    """Return the subtopologies that read the topic and no other: they have a task for each of its partitions, and no
    further one.
    """
    return {
        subtopology.subtopology_id
        for subtopology in (() if topology is None else topology.subtopologies)
        if not subtopology.source_topic_regex
        and {*subtopology.source_topics, *(source.name for source in subtopology.repartition_source_topics)} == {topic}
    }


def _internal(topology: Topology) -> set[str]:
    return {
        topic.name
        for subtopology in topology.subtopologies
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics)
    }


def without_topics(topology: Topology, topics: TopicImage) -> list[str]:
    """Return the regexes that match no topic."""
    names = list(topics.by_name)
    regexes = sorted({regex for subtopology in topology.subtopologies for regex in subtopology.source_topic_regex})
    return [regex for regex in regexes if not re2.matching(regex, names)]


def _resolved(subtopology: Subtopology, names: list[str]) -> Subtopology:
    matches = [re2.matching(regex, names) for regex in subtopology.source_topic_regex]
    sources = list(dict.fromkeys((*subtopology.source_topics, *(name for some in matches for name in some))))
    # Copartition groups name topics by their places in the lists of a subtopology: what a regex matches gets one, too.
    at = {name: index for index, name in enumerate(sources)}
    groups = [
        CopartitionGroup(
            [
                *group.source_topics,
                *(
                    at[name]
                    for index in group.source_topic_regex
                    if 0 <= index < len(matches)
                    for name in matches[index]
                ),
            ],
            [],
            group.repartition_source_topics,
        )
        for group in subtopology.copartition_groups
    ]
    return subtopology._replace(source_topics=sources, source_topic_regex=[], copartition_groups=groups)
