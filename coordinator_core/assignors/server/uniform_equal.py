"""``uniform`` for equal subscriptions: each member keeps up to a quota, the rest is assigned in order.

Reproduces the results of Kafka 4.3.1's UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from coordinator_core.assignors.inputs import GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.assignment_changes import ADDED, REMOVED, AssignmentChanges, ints
from coordinator_core.assignors.server.copied_assignments import CopiedAssignments
from coordinator_core.assignors.server.topic_partitions import assigned_partitions, missing_topic, partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import UUID
from coordinator_core.java.order import copy_capacity, hash_order

EXTRAS_STICKIER = (4, 0, 1)
"""The release since which members pass on a larger quota that they would need another partition to fill."""

Run = tuple[int, Sequence[int]]
"""Number of a topic, and partitions of it in the order in which they are handed out."""


def assign_equal(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """Return the members' partitions; empty when the members subscribe to no existing topic."""
    first = next(iter(spec.members.values()))
    topics = hash_order(UUID, first.topics, copy_capacity(first.subscribed, profile.jdk))
    if not topics:
        return {}
    counts = [partition_count(image, topic, missing_topic(topic)) for topic in topics]
    edits = AssignmentChanges(topics)
    unassigned = _unassigned(spec, topics, counts)
    unfilled = _keep(spec, sum(counts), unassigned, edits, stickier=profile.release >= EXTRAS_STICKIER)
    _hand_out(unassigned, unfilled, edits)
    return CopiedAssignments(spec.members, edits, profile.jdk).all()


def _unassigned(spec: GroupSpec, topics: Sequence[str], counts: Sequence[int]) -> list[Run]:
    assigned = assigned_partitions(spec)
    runs: list[Run] = []
    for number, (topic, count) in enumerate(zip(topics, counts, strict=True)):
        taken = assigned.get(topic)
        runs.append((number, [p for p in range(count) if p not in taken] if taken else range(count)))
    return runs


def _keep(
    spec: GroupSpec, partitions: int, unassigned: list[Run], edits: AssignmentChanges, *, stickier: bool
) -> list[tuple[int, int]]:
    """Revoke what exceeds quotas or subscriptions; the members below their quota, and what they lack.

    The remainder of the division makes quotas larger by one: for the first members that hold that much already, and
    else for the last ones in line (``stickier``), or simply for the first members.
    """
    quota, extras = divmod(partitions, len(spec.members))
    subscribed = dict(edits.numbers)
    unfilled: list[tuple[int, int]] = []
    for index, had in enumerate(spec.members.values()):
        extra = extras > 0
        room = quota + extra
        for topic, held in had.previous.items():
            if topic not in subscribed:
                edits.drop(index, (topic,))
            elif len(held) <= room:
                room -= len(held)
            else:
                edits.put(REMOVED, index, subscribed[topic], held[room:])
                unassigned.append((subscribed[topic], held[room:]))
                room = 0
        if room and extra and len(spec.members) - index > extras and stickier:
            room -= 1
            extra = False
        extras -= extra
        if room:
            unfilled.append((index, room))
    return unfilled


def _hand_out(unassigned: list[Run], unfilled: list[tuple[int, int]], edits: AssignmentChanges) -> None:
    """Fill the members one after another from the runs. Kafka copies their assignments even if nothing is left."""
    members = ints(index for index, _ in unfilled)
    edits.copied.update(members.tolist())
    takers = np.repeat(members, ints(room for _, room in unfilled))
    topics = np.repeat(ints(topic for topic, _ in unassigned), ints(len(run) for _, run in unassigned))
    partitions = ints(chain.from_iterable(run for _, run in unassigned))
    if len(partitions) > len(takers):
        raise AssignorError("PartitionAssignorException", "Partitions were left unassigned")
    edits.put(ADDED, takers[: len(partitions)], topics, partitions)
