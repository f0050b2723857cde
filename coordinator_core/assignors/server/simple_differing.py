"""``simple`` for different subscriptions: each topic is balanced by itself among its own subscribers.

Reproduces the results of Kafka 4.3.1's SimpleHeterogeneousAssignmentBuilder, which leaves topics without subscribers in
the assignments. Members are numbered as presented.
"""

from __future__ import annotations

import numpy as np

from coordinator_core.assignors.inputs import GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.assignment_changes import AssignmentChanges, ints
from coordinator_core.assignors.server.balance import Balance, OneTopic
from coordinator_core.assignors.server.copied_assignments import CopiedAssignments
from coordinator_core.assignors.server.previous_assignments import PreviousAssignments
from coordinator_core.assignors.server.quotas import assignable, map_capacity, shares
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import UUID
from coordinator_core.java.order import hash_order, int_order


def assign_differing(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """Return the members' partitions; empty if no member subscribes to an existing topic."""
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
