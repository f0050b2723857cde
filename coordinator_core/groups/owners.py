"""The owners of the partitions of a topic, in groups of every type."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.groups.classic.protocols import assigned_partitions
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember
from coordinator_core.groups.group import Group, GroupType
from coordinator_core.groups.share.state import ShareGroup, ShareMember
from coordinator_core.groups.streams.state import StreamsGroup, StreamsMember, Topology


class Owner(NamedTuple):
    """A member that has a partition, and in which role.

    ``role``: assigned or revoking; in a streams group active, standby or warmup, also with ``revoking`` before it.
    """

    group_id: str
    type: GroupType | None
    topic: str
    partition: int
    member_id: str
    instance_id: str | None
    client_id: str | None
    host: str | None
    role: str


Member = ClassicMember | ConsumerMember | ShareMember | StreamsMember


class _Holding(NamedTuple):
    """A member and the partitions of the topic that it holds in a role."""

    member: Member
    partitions: Iterable[int]
    role: str


def owners(groups: Iterable[Group], topics: TopicImage | None, topic: str, partition: int | None = None) -> list[Owner]:
    """Return the owners of a topic's partitions, by partition and group; several are normal, one in each group and
    role.

    Groups with epochs record topic ids: without ``topics`` they are matched only if ``topic`` is an id itself. A
    classic group's owners are those of its last completed rebalance.
    """
    known = None if topics is None else topics.by_name.get(topic)
    found = []
    for group in groups:
        for holding in _holdings(group, topic, known):
            member = holding.member
            found += [
                Owner(
                    group.group_id,
                    group.type,
                    topic,
                    each,
                    member.member_id,
                    getattr(member, "instance_id", None),
                    member.client_id,
                    member.client_host,
                    holding.role,
                )
                for each in holding.partitions
                if partition is None or each == partition
            ]
    return sorted(found, key=lambda owner: (owner.partition, owner.group_id, owner.role, owner.member_id))


def _holdings(group: Group, topic: str, known: Topic | None) -> Iterator[_Holding]:
    """What the group's members hold of the topic. ``known`` is None where the topic's id is ``topic`` itself."""
    state = group.state
    topic_id = topic if known is None else known.id
    if isinstance(state, ClassicGroup):
        return _held_in_classic(state, topic)
    if isinstance(state, ConsumerGroup):
        return _held_in_consumer(state, topic_id)
    if isinstance(state, ShareGroup):
        return _held_in_share(state, topic_id)
    if isinstance(state, StreamsGroup):
        return _held_in_streams(state, topic, sys.maxsize if known is None else known.partitions)
    return iter(())


def _held_in_classic(group: ClassicGroup, topic: str) -> Iterator[_Holding]:
    for member in group.members.values():
        held = assigned_partitions(member.assignment) or []
        yield _Holding(member, [each.partition for each in held if each.topic == topic], "assigned")


def _held_in_consumer(group: ConsumerGroup, topic_id: str) -> Iterator[_Holding]:
    for member in group.members.values():
        yield _Holding(member, member.assigned.get(topic_id, ()), "assigned")
        yield _Holding(member, member.pending_revocation.get(topic_id, ()), "revoking")


def _held_in_share(group: ShareGroup, topic_id: str) -> Iterator[_Holding]:
    for member in group.members.values():
        yield _Holding(member, member.assigned.get(topic_id, ()), "assigned")


def _held_in_streams(group: StreamsGroup, topic: str, partitions: int) -> Iterator[_Holding]:
    """The tasks of the subtopologies that read the topic, as far as it has ``partitions`` for them."""
    readers = _readers(group.topology, topic)
    for member in group.members.values():
        for prefix, tasks in (("", member.assigned), ("revoking ", member.pending_revocation)):
            for role, held in (("active", tasks.active), ("standby", tasks.standby), ("warmup", tasks.warmup)):
                for subtopology_id in readers & held.keys():
                    numbers = [each for each in held[subtopology_id] if each < partitions]
                    yield _Holding(member, numbers, prefix + role)


def _readers(topology: Topology | None, topic: str) -> set[str]:
    """The subtopologies that read the topic; their task n has its partition n."""
    if topology is None:
        return set()
    return {
        each.subtopology_id
        for each in topology.subtopologies
        if topic in each.source_topics or topic in (source.name for source in each.repartition_source_topics)
    }
