"""Kafka's ``simple`` assignor for share groups (KIP-932): each partition gets enough members that all members
have work.

Reproduces the results of Kafka 4.3.1's SimpleHomogeneousAssignmentBuilder, for equal subscriptions, and
SimpleHeterogeneousAssignmentBuilder, which leaves topics without subscribers in the assignments. Members are numbered
as presented.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import NamedTuple

import numpy as np

from coordinator_core.assignors.inputs import Assignment, GroupSpec, MemberSpec, Partitions
from coordinator_core.assignors.profiles import Profile, require_reproduced
from coordinator_core.assignors.server.assignment_changes import AssignmentChanges, ints
from coordinator_core.assignors.server.balance import AllTopics, Balance, OneTopic
from coordinator_core.assignors.server.copied_assignments import CopiedAssignments
from coordinator_core.assignors.server.quotas import assignable, map_capacity, shares
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import UUID
from coordinator_core.java.order import Ints, hash_order, int_order


class PreviousAssignments(NamedTuple):
    """Previous assignments of many members as flat arrays.

    One row for each partition that a member has: number of the member, number of the topic, and the partition. Rows are
    in the order of members, each member's in the order of its assignment.
    """

    member: Ints
    topic: Ints
    partition: Ints

    @classmethod
    def of(cls, members: Sequence[MemberSpec], order: Iterable[int], topics: Mapping[str, int]) -> PreviousAssignments:
        """Return the rows of members in that order; partitions of other topics are left out."""
        order = list(order)
        previous = [members[index].previous for index in order]
        sets = list(chain.from_iterable(had.values() for had in previous))
        lengths = ints(map(len, sets))
        partition = ints(chain.from_iterable(sets))
        topic = ints(map(topics.get, chain.from_iterable(previous), repeat(-1)))
        member = np.repeat(np.array(order, np.int64), ints(map(len, previous)))
        member, topic = np.repeat(member, lengths), np.repeat(topic, lengths)
        known = topic >= 0
        return cls(member[known], topic[known], partition[known])

    def bases(self, widths: Iterable[int]) -> Ints:
        """Return where each topic's partitions begin if all are numbered in one sequence; ``widths`` counts
        existing ones.
        """
        wide = ints(widths)
        np.maximum.at(wide, self.topic, self.partition + 1)
        return np.concatenate((ints((0,)), np.cumsum(wide)))

    def by_topic(self, topics: int) -> list[Ints]:
        """Return the rows of each topic, in order."""
        order = np.argsort(self.topic, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.topic, minlength=topics))[:-1])


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Share the assignable partitions of subscribed topics among the members.

    Raises:
        AssignorError: a subscribed topic does not exist (PartitionAssignorException), or Kafka's class fails too
            (NoSuchElementException, see ``quotas``).
        InputError: the release has another algorithm.
    """
    require_reproduced(profile, "simple")
    if not spec.members:
        return Assignment({})
    builder = _assign_equal if spec.homogeneous else _assign_differing
    return Assignment(builder(spec, image, profile))


def _assign_equal(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """One balance over all partitions of all topics; empty when the members subscribe to nothing."""
    members = list(spec.members.values())
    if not members[0].subscribed:
        return {}
    topics = members[0].topics
    targets = [ints(assignable(spec, image, topic)) for topic in topics]
    sharing, shared = shares(len(members), sum(map(len, targets)))
    desired = np.array(shared)
    edits = AssignmentChanges(topics)
    turns = int_order(range(len(members)), map_capacity(len(members)))
    held = PreviousAssignments.of(members, turns, edits.numbers)
    sizes = np.bincount(held.member, minlength=len(members))
    # Kafka copies the assignments of members that have their share already, whether it changes them or not.
    edits.copied.update(np.flatnonzero((sizes > 0) & (sizes >= desired)).tolist())
    subscribed = set(topics)
    for index, member in enumerate(members):
        if not member.previous.keys() <= subscribed:
            edits.drop(index, [topic for topic in member.previous if topic not in subscribed])
    bases = held.bases(image.by_id[topic].partitions for topic in topics)
    numbered = [base + some for base, some in zip(bases.tolist(), targets, strict=False)]
    balance = Balance(
        AllTopics(topics, bases),
        np.concatenate((ints(()), *numbered)),
        bases[held.topic] + held.partition,
        held.member,
        desired,
        sharing,
        edits,
    )
    balance.revoke_overfilled()
    balance.revoke_overshared()
    balance.hand_out(turns)
    return CopiedAssignments(spec.members, edits, profile.jdk, keep_empty=True).all()


def _assign_differing(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """Each topic is balanced by itself among its subscribers; empty if no member subscribes to an existing topic."""
    members = list(spec.members.values())
    subscribers: dict[str, list[int]] = {}
    for index, member in enumerate(members):
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(index)
    if not subscribers:
        return {}
    topics = hash_order(UUID, list(subscribers))
    targets = [ints(assignable(spec, image, topic)) for topic in topics]
    edits = AssignmentChanges(topics)
    held = PreviousAssignments.of(members, int_order(range(len(members)), map_capacity(len(members))), edits.numbers)
    rows = held.by_topic(len(topics))
    for number, topic in enumerate(topics):
        sharing, shared = shares(len(subscribers[topic]), len(targets[number]))
        desired = np.zeros(len(members), np.int64)
        desired[subscribers[topic]] = shared
        row = rows[number]
        balance = Balance(
            OneTopic(number), targets[number], held.partition[row], held.member[row], desired, sharing, edits
        )
        balance.revoke_overfilled()
        balance.revoke_overshared()
        balance.hand_out(int_order(subscribers[topic], map_capacity(len(members))))
    return CopiedAssignments(spec.members, edits, profile.jdk, keep_empty=True).all()
