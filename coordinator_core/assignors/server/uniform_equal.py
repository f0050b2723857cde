"""``uniform`` where all members subscribe to the same topics: keep up to a quota, hand out the rest in order.

Reproduces the results of Kafka 4.3.1's UniformHomogeneousAssignmentBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator_core.assignors.java_hash import UUID
from coordinator_core.assignors.java_order import copy_capacity, hash_order
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.copies import ADDED, REMOVED, Copies, Edits
from coordinator_core.assignors.server.topics import assigned_partitions, missing_topic, partition_count
from coordinator_core.assignors.spec import GroupSpec, Partitions
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError

NOTHING: Sequence[int] = ()

Run = tuple[str, Sequence[int]]
"""Unassigned partitions of one topic, in the order in which they are handed out."""


def assign_equal(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """The members' partitions; empty when the members subscribe to no existing topic."""
    first = next(iter(spec.members.values()))
    topics = hash_order(UUID, first.topics, copy_capacity(first.subscribed, profile.jdk))
    if not topics:
        return {}
    counts = {topic: partition_count(image, topic, missing_topic(topic)) for topic in topics}
    edits: dict[int, Edits] = {}
    unassigned = _unassigned(spec, counts)
    unfilled = _keep(spec, counts, unassigned, edits)
    _hand_out(unassigned, unfilled, edits)
    return Copies(profile.jdk).all(spec.members, edits)


def _unassigned(spec: GroupSpec, counts: dict[str, int]) -> list[Run]:
    assigned = assigned_partitions(spec)
    runs: list[Run] = []
    for topic, count in counts.items():
        taken = assigned.get(topic)
        runs.append((topic, [p for p in range(count) if p not in taken] if taken else range(count)))
    return runs


def _keep(
    spec: GroupSpec, counts: dict[str, int], unassigned: list[Run], edits: dict[int, Edits]
) -> list[tuple[int, int]]:
    """Revoke what exceeds quotas or subscriptions; the members below their quota, and what they lack.

    The remainder of the division makes quotas larger by one: for the first members that hold that much already, and
    else for the last ones in line.
    """
    quota, extras = divmod(sum(counts.values()), len(spec.members))
    unfilled: list[tuple[int, int]] = []
    for index, had in enumerate(spec.members.values()):
        extra = extras > 0
        room = quota + extra
        changes: Edits = []
        for topic, partitions in had.previous.items():
            if topic not in counts:
                changes.append((topic, REMOVED, None))
            elif len(partitions) <= room:
                room -= len(partitions)
            else:
                changes.append((topic, REMOVED, partitions[room:]))
                unassigned.append((topic, partitions[room:]))
                room = 0
        if room and extra and len(spec.members) - index > extras:
            room -= 1
            extra = False
        extras -= extra
        if room:
            unfilled.append((index, room))
        if changes or room:
            edits[index] = changes
    return unfilled


def _hand_out(unassigned: list[Run], unfilled: list[tuple[int, int]], edits: dict[int, Edits]) -> None:
    """Fill the members one after another from the runs."""
    runs = iter(unassigned)
    topic, run, at = "", NOTHING, 0
    for index, room in unfilled:
        changes = edits[index]
        while room:
            while at == len(run):
                at = 0
                topic, run = next(runs, ("", NOTHING))
                if not topic:
                    return
            taken = run[at : at + room]
            at += len(taken)
            room -= len(taken)
            changes.append((topic, ADDED, taken))
    if at < len(run) or any(left for _, left in runs):
        raise AssignorError("PartitionAssignorException", "Partitions were left unassigned")
