"""What both builders of the ``simple`` assignor are made of (KIP-932): shares, and turns of members to get theirs.

Reproduces Kafka 4.3.1, its failure included: where the last member below its quota is filled while a partition still
wants more members, it throws NoSuchElementException.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

import numpy as np

from coordinator_core.assignors.inputs import GroupSpec
from coordinator_core.assignors.server.topics import missing_topic, partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError


def map_capacity(size: int) -> int:
    """The capacity that Kafka's AssignorHelpers asks for a map or set of that size."""
    return (size + 1) * 4 // 3 + 1


def assignable(spec: GroupSpec, image: TopicImage, topic: str) -> list[int]:
    """The topic's partitions that may be assigned, ascending; raises AssignorError when there is no such topic."""
    partitions = range(partition_count(image, topic, missing_topic(topic)))
    if spec.assignable is None:
        return list(partitions)
    allowed = spec.assignable.get(topic, ())
    return [partition for partition in partitions if partition in allowed]


def shares(members: int, partitions: int) -> tuple[int, list[int]]:
    """How many members each partition is to have, and how many partitions each member, in order of members."""
    sharing = -(-members // partitions) if partitions else 0
    precise = sharing * partitions / members
    marks = [math.ceil(precise * index) for index in range(members + 1)]
    return sharing, [after - before for before, after in pairwise(marks)]


def hand_out(
    partitions: Iterable[int], holders: Mapping[int, Collection[int]], sharing: int, room: dict[int, int]
) -> tuple[list[int], list[int]]:
    """Give partitions that lack members to those with room, around and around: members, and the partitions they get.

    ``room`` counts what members lack, in the order of their turns. A member that comes round again for a partition that
    it has just been given takes it once more, without effect, as in Kafka. Raises AssignorError where Kafka throws.
    """
    if sharing == 1:
        return _one_each(partitions, room)
    takers: list[int] = []
    taken: list[int] = []
    queue, at, gave = list(room), 0, False
    rest: list[int] = []
    left = len(queue)
    for partition in partitions:
        if not left:
            break
        had = holders.get(partition, ())
        wanted = sharing - len(had)
        given: set[int] = set()
        while wanted > 0:
            if at == len(queue):
                if not gave:
                    break
                if not rest:
                    raise AssignorError("NoSuchElementException", "no member is left to share a partition")
                queue, rest, at, gave = rest, [], 0, False
            member = queue[at]
            at += 1
            if member in had:
                rest.append(member)
                continue
            takers.append(member)
            taken.append(partition)
            wanted -= 1
            gave = True
            if member not in given:
                given.add(member)
                room[member] -= 1
            if room[member] > 0:
                rest.append(member)
            else:
                left -= 1
    return takers, taken


def _one_each(partitions: Iterable[int], room: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """The same where each partition wants one member, and thus has none: round after round until nobody has room."""
    lacks = np.fromiter(room.values(), np.int64, len(room))
    members = np.repeat(np.fromiter(room, np.int64, len(room)), lacks)
    rounds = np.arange(len(members)) - np.repeat(np.cumsum(lacks) - lacks, lacks)
    taken = list(partitions)[: len(members)]
    return members[np.argsort(rounds, kind="stable")][: len(taken)].tolist(), taken
