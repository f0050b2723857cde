"""A recorded topology on the topics of one time: partition counts of internal topics, tasks, and problems.

Kafka 4.3.1 and KIP-1071. The steps are those of the broker, as each one uses the counts that the step before decided:
source topics must exist; repartition topics without a count of their own take the largest of what flows into them;
copartitioned topics are made equal; changelogs follow their subtopology; internal topics that exist must agree.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from coordinator_core.assignors.inputs import SubtopologyTasks
from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.streams.sources import has_regexes, resolved, without_topics
from coordinator_core.groups.streams.state import CopartitionGroup, InternalTopic, Subtopology, Topology
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import HashMap


class TopologyProblem(Enum):
    """Why a topology is not ready; the first three are statuses of a heartbeat response, the last its error."""

    MISSING_SOURCE_TOPICS = "MISSING_SOURCE_TOPICS"
    INCORRECTLY_PARTITIONED_TOPICS = "INCORRECTLY_PARTITIONED_TOPICS"
    MISSING_INTERNAL_TOPICS = "MISSING_INTERNAL_TOPICS"
    INVALID_TOPOLOGY = "INVALID_TOPOLOGY"


@dataclass(frozen=True, slots=True)
class ConfiguredSubtopology:
    """A subtopology with the partition counts that its internal topics need; ``tasks`` is its number of tasks."""

    tasks: int
    source_topics: tuple[str, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: Mapping[str, InternalTopic]
    state_changelog_topics: Mapping[str, InternalTopic]

    @property
    def sources(self) -> set[str]:
        """The names of all topics that it reads."""
        return {*self.source_topics, *self.repartition_source_topics}


@dataclass(frozen=True, slots=True)
class ConfiguredTopology:
    """The outcome: ready if ``problem`` is None.

    ``subtopologies`` is in the order of their ids, empty if their tasks could not be determined.
    ``missing_internal_topics`` are those that the broker has to create. ``detail`` explains the problem in the broker's
    words.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology]
    missing_internal_topics: Mapping[str, InternalTopic]
    problem: TopologyProblem | None = None
    detail: str = ""

    @property
    def has_tasks(self) -> bool:
        """Whether the tasks of the subtopologies could be determined."""
        return self.problem in (None, TopologyProblem.MISSING_INTERNAL_TOPICS)

    @property
    def tasks(self) -> tuple[SubtopologyTasks, ...]:
        """The subtopologies as assignors take them."""
        return tuple(
            SubtopologyTasks(name, subtopology.tasks, bool(subtopology.state_changelog_topics))
            for name, subtopology in self.subtopologies.items()
        )


class _NotConfigurableError(Exception):
    """Carries a problem out of the steps below."""

    def __init__(self, problem: TopologyProblem, detail: str) -> None:
        self.problem = problem
        self.detail = detail
        super().__init__(detail)


def configure(topology: Topology, topics: TopicImage) -> ConfiguredTopology:
    """Return the topology on these topics; raise nothing: problems are in the outcome."""
    try:
        _require_matches(topology, topics)
        topology = resolved(topology, topics)
        counts = _Counts(topology, topics)
        configured = {
            subtopology.subtopology_id: counts.configured(subtopology)
            for subtopology in sorted(topology.subtopologies, key=lambda subtopology: subtopology.subtopology_id)
        }
        missing = _missing_internal_topics(topology, configured.values(), topics)
    except _NotConfigurableError as failure:
        return ConfiguredTopology(topology.epoch, {}, {}, failure.problem, failure.detail)
    if missing:
        detail = f"Internal topics are missing: {_summary(missing)}"
        return ConfiguredTopology(topology.epoch, configured, missing, TopologyProblem.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, configured, {})


def _require_matches(topology: Topology, topics: TopicImage) -> None:
    """Every source topic regex has to match a topic (KIP-1071); the detail names missing source topics as well."""
    if unmatched := without_topics(topology, topics):
        names = {name for subtopology in topology.subtopologies for name in subtopology.source_topics}
        missing = sorted(name for name in names if name not in topics.by_name)
        detail = f"Source topics {_summary(missing)} are missing. " if missing else ""
        detail += f"Source topic regexes {', '.join(unmatched)} match no topic."
        raise _NotConfigurableError(TopologyProblem.MISSING_SOURCE_TOPICS, detail)


class _Counts:
    """Partition counts by topic name: those that exist, else those decided for internal topics."""

    def __init__(self, topology: Topology, topics: TopicImage) -> None:
        self._subtopologies = topology.subtopologies
        self._existing = topics.by_name
        self._decided: dict[str, int] = {}
        self._require_source_topics()
        self._decide_repartition_topics()
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                self._enforce_copartitioning(_copartitioned(subtopology, group))
        for subtopology in self._subtopologies:
            self._decide_changelogs(subtopology)

    def of(self, topic: str) -> int | None:
        """Return the partition count of a topic."""
        existing = self._existing.get(topic)
        return self._decided.get(topic) if existing is None else existing.partitions

    def configured(self, subtopology: Subtopology) -> ConfiguredSubtopology:
        """Return the subtopology with the counts decided for its internal topics."""
        return ConfiguredSubtopology(
            max(self._count(topic) for topic in _sources(subtopology)),
            tuple(sorted(set(subtopology.source_topics))),
            tuple(sorted(set(subtopology.repartition_sink_topics))),
            {topic.name: self._with_count(topic) for topic in subtopology.repartition_source_topics},
            {topic.name: self._with_count(topic) for topic in subtopology.state_changelog_topics},
        )

    def _with_count(self, topic: InternalTopic) -> InternalTopic:
        if topic.partitions:
            return topic
        if topic.name not in self._decided:
            detail = f"Number of partitions must be set for topic {topic.name}"
            raise _NotConfigurableError(TopologyProblem.INVALID_TOPOLOGY, detail)
        return topic._replace(partitions=self._decided[topic.name])

    def _count(self, topic: str) -> int:
        count = self.of(topic)
        if count is None:
            detail = f"Number of partitions is not set for topic: {topic}"
            raise _NotConfigurableError(TopologyProblem.INVALID_TOPOLOGY, detail)
        return count

    def _require_source_topics(self) -> None:
        wanted = {topic for subtopology in self._subtopologies for topic in subtopology.source_topics}
        missing = sorted(topic for topic in wanted if topic not in self._existing)
        if missing:
            detail = f"Source topics {_summary(missing)} are missing."
            raise _NotConfigurableError(TopologyProblem.MISSING_SOURCE_TOPICS, detail)

    def _decide_repartition_topics(self) -> None:
        """Counts flow from sources to sinks, until every sink has one."""
        counts = {topic.name: topic.partitions for topic in self._repartition_topics() if topic.partitions}
        undecided = [(each, sink) for each in self._subtopologies for sink in each.repartition_sink_topics]
        while undecided:
            left = []
            for subtopology, sink in undecided:
                if sink in counts:
                    continue
                inflow = [self._count(topic) for topic in subtopology.source_topics]
                inflow += [counts[t.name] for t in subtopology.repartition_source_topics if t.name in counts]
                if inflow:
                    counts[sink] = max(inflow)
                else:
                    left.append((subtopology, sink))
            # A round that decides nothing leaves the next one nothing new to go by.
            if len(left) == len(undecided):
                detail = (
                    "Failed to compute number of partitions for all repartition topics. "
                    "There may be loops in the topology that cannot be resolved."
                )
                raise _NotConfigurableError(TopologyProblem.INVALID_TOPOLOGY, detail)
            undecided = left
        if any(topic.name not in counts for topic in self._repartition_topics()):
            detail = (
                "Failed to compute number of partitions for all repartition topics, because "
                "a repartition source topic is never used as a sink topic."
            )
            raise _NotConfigurableError(TopologyProblem.INVALID_TOPOLOGY, detail)
        self._decided.update(counts)

    def _repartition_topics(self) -> list[InternalTopic]:
        return [topic for subtopology in self._subtopologies for topic in subtopology.repartition_source_topics]

    def _enforce_copartitioning(self, group: set[str]) -> None:
        """External topics of the group must agree and rule; else counts set by the application; else the largest."""
        if not group:
            return
        # As in the broker, these are of the whole topology: a count outside of the group may decide in it, too.
        fixed = {topic.name for topic in self._repartition_topics() if topic.partitions}
        flexible = {topic.name for topic in self._repartition_topics() if not topic.partitions}
        internal = {topic: self._count(topic) for topic in group & (fixed | flexible)}
        external = {topic: self._count(topic) for topic in group - internal.keys()}
        if external:
            count = _same(external, external)
        elif fixed:
            count = _same({topic: self._count(topic) for topic in fixed}, internal)
        else:
            count = max(internal.values())
        for topic, partitions in internal.items():
            if topic in fixed and partitions != count:
                detail = (
                    f"Number of partitions [{partitions}] of repartition topic [{topic}] "
                    f"doesn't match number of partitions [{count}] of the source topic."
                )
                raise _NotConfigurableError(TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS, detail)
            # Later groups go by this count: a topic may be in several of them.
            self._decided[topic] = count

    def _decide_changelogs(self, subtopology: Subtopology) -> None:
        sources = _sources(subtopology)
        if not sources:
            detail = f"No source topics found for subtopology {subtopology.subtopology_id}"
            raise _NotConfigurableError(TopologyProblem.INVALID_TOPOLOGY, detail)
        count = max(self._count(topic) for topic in sources)
        for topic in subtopology.state_changelog_topics:
            if topic.name not in sources:
                self._decided[topic.name] = count


def _sources(subtopology: Subtopology) -> list[str]:
    return [*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)]


def _copartitioned(subtopology: Subtopology, group: CopartitionGroup) -> set[str]:
    repartition = [topic.name for topic in subtopology.repartition_source_topics]
    return {*_at(subtopology.source_topics, group.source_topics), *_at(repartition, group.repartition_source_topics)}


def _at(names: list[str], indexes: list[int]) -> list[str]:
    if any(not 0 <= index < len(names) for index in indexes):
        detail = "A copartition group refers to a topic that its subtopology does not have."
        raise _NotConfigurableError(TopologyProblem.INVALID_TOPOLOGY, detail)
    return [names[index] for index in indexes]


def _same(counts: Mapping[str, int], shown: Mapping[str, int]) -> int:
    distinct = set(counts.values())
    if len(distinct) > 1:
        listed = ", ".join(f"{topic}={shown[topic]}" for topic in sorted(shown))
        detail = f"Following topics do not have the same number of partitions: [{{{listed}}}]"
        raise _NotConfigurableError(TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS, detail)
    return distinct.pop()


def required_topics(topology: Topology | None) -> list[str]:
    """Return the topics that the topology reads or needs for itself, by subtopology."""
    return [
        name
        for subtopology in (() if topology is None else topology.subtopologies)
        for name in (
            *subtopology.source_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
            *(topic.name for topic in subtopology.state_changelog_topics),
        )
    ]


def subtopology_of_sources(topology: Topology, configured: ConfiguredTopology | None) -> dict[str, str]:
    """Return by topic name the subtopology that reads it; regexes are resolved on the topics of that time."""
    by_topic = {
        name: subtopology.subtopology_id
        for subtopology in topology.subtopologies
        for name in (*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics))
    }
    if has_regexes(topology) and configured is not None:
        matched = {name: key for key, each in configured.subtopologies.items() for name in each.source_topics}
        return matched | by_topic
    return by_topic


def _missing_internal_topics(
    topology: Topology, subtopologies: Iterable[ConfiguredSubtopology], topics: TopicImage
) -> dict[str, InternalTopic]:
    """Those of the internal topics that do not exist; they are checked and named in the order of the broker's sets."""
    internal: HashMap[str, InternalTopic] = HashMap(STRING)
    for subtopology in subtopologies:
        internal.update(subtopology.repartition_source_topics)
        internal.update(subtopology.state_changelog_topics)
    required = HashMap[str, None](STRING)
    required.update(dict.fromkeys(required_topics(topology)))
    for name in required:
        existing, expected = topics.by_name.get(name), internal.get(name)
        if existing is None or expected is None:
            continue
        if existing.partitions != expected.partitions:
            detail = (
                f"Existing topic {name} has different number of partitions: "
                f"expected {expected.partitions}, found {existing.partitions}"
            )
            raise _NotConfigurableError(TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS, detail)
        del internal[name]
    return dict(internal)


def _summary(names: Iterable[str]) -> str:
    """The first three names and how many more there are, as the broker words it."""
    names = list(names)
    more = f" and {len(names) - 3} additional topics" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
