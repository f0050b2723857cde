"""The round robin assignors of consumers: partitions and members in order, one each; who does not subscribe is skipped.

Source: Kafka 4.3.1 ``RoundRobinAssignor``. What other clients do otherwise is data: see ``clients``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.client.member_orders import MemberOrder, last_runs, static_first
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError

PartitionOrder = Callable[[LeaderView, ClassicGroupSpec], Iterable[int]]
"""The partitions that are dealt, in order."""


def by_topic(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """All partitions by topic and number."""
    return range(view.partitions.total)


def by_text(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """All partitions by the text topic-number, so that 10 comes before 2 (sarama)."""
    names = view.partitions.names()
    return sorted(range(view.partitions.total), key=lambda p: f"{names[p][0]}-{names[p][1]}")


def of_leader(view: LeaderView, spec: ClassicGroupSpec) -> Iterable[int]:
    """The partitions of the topics to which the leader subscribes, in the order of its list (kafkajs, platformatic)."""
    leader = spec.members.get(spec.leader) or next(iter(spec.members.values()))
    index = view.partitions.index
    topics = [index[name] for name in dict.fromkeys(leader.topics) if name in index]
    return [partition for topic in topics for partition in view.partitions.of_topic(topic)]


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """A round robin assignor.

    ``members`` and ``partitions`` are the orders in which it deals. ``last_runs``: members are lost as kafka-python
    loses them. ``restarts``: it begins with the first member for each topic. ``to_anyone``: members get partitions to
    which they do not subscribe. ``fails_on_skip``: it fails where a member would have to be skipped.
    """

    members: MemberOrder = static_first
    partitions: PartitionOrder = by_topic
    last_runs: bool = False
    restarts: bool = False
    to_anyone: bool = False
    fails_on_skip: bool = False

    def __call__(self, spec: ClassicGroupSpec, image: TopicImage) -> Assignment[Sequence[TopicPartition]]:
        """Assign a classic group round robin; raises AssignorError where the client's own code fails."""
        if not spec.members:
            raise AssignorError("IllegalArgumentException", "CircularIterator can only be used on non-empty lists")
        view = LeaderView(spec.members, image)
        circle = self.members(view, view.order)
        if self.last_runs:
            circle = last_runs(view, circle, {*circle})
        subscribed = [set(view.subscribed[m]) for m in circle]
        work: list[list[int]] = [[] for _ in view.members]
        turn, before = 0, -1
        for partition in self.partitions(view, spec):
            topic = view.partitions.topic_of[partition]
            if self.restarts and topic != before:
                turn, before = 0, topic
            skipped = 0
            while topic not in subscribed[turn] and not self.to_anyone:
                turn, skipped = (turn + 1) % len(circle), skipped + 1
                if self.fails_on_skip or skipped == len(circle):
                    raise AssignorError("KeyError", f"no member to give {view.partitions.topics[topic]} to")
            work[circle[turn]].append(partition)
            turn = (turn + 1) % len(circle)
        return Assignment(view.result(work))
