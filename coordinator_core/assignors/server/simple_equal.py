"""``simple`` for equal subscriptions: one balance over all partitions of all topics.

Reproduces the results of Kafka 4.3.1's SimpleHomogeneousAssignmentBuilder. Members are numbered as presented.
"""

from __future__ import annotations

import numpy as np

from coordinator_core.assignors.inputs import GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.assignment_changes import AssignmentChanges, ints
from coordinator_core.assignors.server.balance import AllTopics, Balance
from coordinator_core.assignors.server.copied_assignments import CopiedAssignments
from coordinator_core.assignors.server.previous_assignments import PreviousAssignments
from coordinator_core.assignors.server.quotas import assignable, map_capacity, shares
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.order import int_order


def assign_equal(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """Return the members' partitions; empty when the members subscribe to nothing."""
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
