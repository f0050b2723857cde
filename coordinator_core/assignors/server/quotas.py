"""The parts that both builders of the ``simple`` assignor use (KIP-932): shares, and the turns of members.

Reproduces Kafka 4.3.1, its failure included: if the last member below its quota is filled while a partition still needs
more members, it throws NoSuchElementException.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise

import numpy as np

from coordinator_core.assignors.inputs import GroupSpec
from coordinator_core.assignors.server.topic_partitions import missing_topic, partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError


def map_capacity(size: int) -> int:
    """Return the capacity that Kafka's AssignorHelpers requests for a map or set of that size."""
    return (size + 1) * 4 // 3 + 1


def assignable(spec: GroupSpec, image: TopicImage, topic: str) -> list[int]:
    """Return the topic's partitions that may be assigned, ascending.

    Raises:
        AssignorError: there is no such topic.
    """
    partitions = range(partition_count(image, topic, missing_topic(topic)))
    if spec.assignable is None:
        return list(partitions)
    allowed = spec.assignable.get(topic, ())
    return [partition for partition in partitions if partition in allowed]


def shares(members: int, partitions: int) -> tuple[int, list[int]]:
    """Return how many members each partition is to have, and for each member, in order, how many partitions."""
    sharing = -(-members // partitions) if partitions else 0
    precise = sharing * partitions / members
    marks = [math.ceil(precise * index) for index in range(members + 1)]
    return sharing, [after - before for before, after in pairwise(marks)]


class _Turns:
    """The members that lack partitions, in turns, around and around; who has got enough drops out.

    ``room`` counts what members lack, in the order of their turns. ``left`` counts the members that lack something.
    """

    def __init__(self, room: dict[int, int]) -> None:
        self.left = len(room)
        self._room = room
        self._queue = list(room)
        self._at = 0
        self._next_round: list[int] = []
        self._gave = False

    def next(self) -> int | None:
        """Return the member whose turn it is; None after a round in which no member got anything.

        Raise AssignorError where a round is over and no member is left for another one.
        """
        if self._at == len(self._queue):
            if not self._gave:
                return None
            if not self._next_round:
                raise AssignorError("NoSuchElementException", "no member is left to share a partition")
            self._queue, self._next_round, self._at, self._gave = self._next_round, [], 0, False
        member = self._queue[self._at]
        self._at += 1
        return member

    def skip(self, member: int) -> None:
        """Let the member pass: its next turn is in the next round."""
        self._next_round.append(member)

    def give(self, member: int, *, again: bool) -> None:
        """Give the member a partition; ``again``: it has been given this one already, which fills nothing."""
        self._gave = True
        if not again:
            self._room[member] -= 1
        if self._room[member] > 0:
            self._next_round.append(member)
        else:
            self.left -= 1


def hand_out(
    partitions: Iterable[int], holders: Mapping[int, Collection[int]], sharing: int, room: dict[int, int]
) -> tuple[list[int], list[int]]:
    """Assign partitions that lack members to members with room, in turns; return the members and the partitions they
    get.

    ``room`` counts what members lack, in the order of their turns. A member whose turn comes again for a partition that
    it has just been given takes it again, without effect, as in Kafka.

    Raises:
        AssignorError: where Kafka throws.
    """
    if sharing == 1:
        return _one_each(partitions, room)
    partitions = list(partitions)
    if not holders and max(room.values(), default=0) == 1 and len(room) == sharing * len(partitions):
        return list(room), [partition for partition in partitions for _ in range(sharing)]
    takers: list[int] = []
    taken: list[int] = []
    turns = _Turns(room)
    for partition in partitions:
        if not turns.left:
            break
        had = holders.get(partition, ())
        wanted = sharing - len(had)
        given: set[int] = set()
        while wanted > 0 and (member := turns.next()) is not None:
            if member in had:
                turns.skip(member)
                continue
            takers.append(member)
            taken.append(partition)
            turns.give(member, again=member in given)
            given.add(member)
            wanted -= 1
    return takers, taken


def _one_each(partitions: Iterable[int], room: Mapping[int, int]) -> tuple[list[int], list[int]]:
    """The same where each partition wants one member, and thus has none: round after round until no member has room."""
    lacks = np.fromiter(room.values(), np.int64, len(room))
    members = np.repeat(np.fromiter(room, np.int64, len(room)), lacks)
    # Each member stands as often as it has room; ``rounds`` numbers its places 0, 1, 2. Sorted by that number, stably,
    # they are the turns: all members once, then those with more room again.
    rounds = np.arange(len(members)) - np.repeat(np.cumsum(lacks) - lacks, lacks)
    taken = list(partitions)[: len(members)]
    return members[np.argsort(rounds, kind="stable")][: len(taken)].tolist(), taken
