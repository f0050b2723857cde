"""The largest counts that a log is believed: a record of a few bytes can claim 2^31 partitions, and they are assigned
one by one.
"""

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_core.assignors.inputs import (
    ClassicGroupSpec,
    ConnectGroupSpec,
    GroupSpec,
    GroupSpecs,
    MemberSpec,
    StreamsGroupSpec,
)
from coordinator_core.cluster.image import MOST_PARTITIONS, TopicImage

FEW = 10_000
"""Counts up to this one cost little, and are believed without evidence."""

UNITS_PER_RECORDED = 64
"""How many partitions and tasks a group may have to assign for each one that its records list."""


class PlausibleCounts(NamedTuple):
    """The most partitions of a topic, tasks of a connector, and partitions or tasks of a group.

    Kafka has no such limits in its formats. The defaults are far above what clusters have.
    """

    partitions_of_topic: int = MOST_PARTITIONS
    tasks_of_connector: int = 10_000
    units_of_group: int = 1_000_000

    def topic_problem(self, topic: str, partitions: int) -> str | None:
        """Return what is wrong with a topic's number of partitions; None if nothing is."""
        if 0 <= partitions <= self.partitions_of_topic:
            return None
        return f"topic {topic} has {partitions} partitions, plausible are 0 to {self.partitions_of_topic}"

    def connector_problem(self, connector: str, tasks: int) -> str | None:
        """Return what is wrong with a connector's number of tasks; None if nothing is."""
        if 0 <= tasks <= self.tasks_of_connector:
            return None
        return f"connector {connector} has {tasks} tasks, plausible are 0 to {self.tasks_of_connector}"

    def problem(self, spec: GroupSpecs, image: TopicImage, recorded: int | None = None) -> str | None:
        """Return why this group cannot be meant; None: it can.

        ``recorded`` is how many partitions and tasks the records of its assignment list. A group that has far more to
        assign is one that only a number in its log makes large.
        """
        # Before anything is assigned: the numbers alone would take memory and time.
        total = 0
        for problem, count in self._counts(spec, image):
            if problem is not None:
                return problem
            total += count
        if total > self.units_of_group:
            return f"the group has {total} partitions or tasks, plausible are up to {self.units_of_group}"
        if recorded is not None and total > max(FEW, UNITS_PER_RECORDED * recorded):
            return f"the group has {total} partitions or tasks, and its assignment lists {recorded}"
        return None

    def _counts(self, spec: GroupSpecs, image: TopicImage) -> Iterator[tuple[str | None, int]]:
        """Yield, for each topic, subtopology or connector, what is wrong with its count, and the count."""
        if isinstance(spec, ConnectGroupSpec):
            for name, tasks in spec.connectors.items():
                yield self.connector_problem(name, tasks), tasks
        elif isinstance(spec, StreamsGroupSpec):
            for subtopology in spec.subtopologies:
                yield self.topic_problem(f"read by subtopology {subtopology.id}", subtopology.tasks), subtopology.tasks
        elif isinstance(spec, GroupSpec):
            ids = {topic_id for member in spec.members.values() for topic_id in member.topics}
            for topic in (image.by_id[topic_id] for topic_id in ids if topic_id in image.by_id):
                yield self.topic_problem(topic.name, topic.partitions), topic.partitions
            for member_id, member in spec.members.items():
                yield self._previous_problem(member_id, member), 0
        else:
            assert isinstance(spec, ClassicGroupSpec)
            names = {name for member in spec.members.values() for name in member.topics}
            for topic in (image.by_name[name] for name in names if name in image.by_name):
                yield self.topic_problem(topic.name, topic.partitions), topic.partitions

    def _previous_problem(self, member_id: str, member: MemberSpec) -> str | None:
        bounds = [bound for numbers in member.previous.values() if numbers for bound in (min(numbers), max(numbers))]
        wrong = next((number for number in bounds if not 0 <= number < self.partitions_of_topic), None)
        if wrong is None:
            return None
        return f"member {member_id} had partition {wrong}, plausible are 0 to {self.partitions_of_topic - 1}"
