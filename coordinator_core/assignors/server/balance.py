"""Revoking and handing out shared partitions: the steps of both builders of the ``simple`` assignor (KIP-932)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coordinator_core.assignors.server.assignment_changes import ADDED, REMOVED, AssignmentChanges, ints
from coordinator_core.assignors.server.quotas import hand_out, map_capacity
from coordinator_core.java.hash_codes import INTEGER, TOPIC_ID_PARTITION, uuid_hash
from coordinator_core.java.order import DEFAULT_CAPACITY, Ints, fill, hash_order, slot_order


class OneTopic:
    """How Kafka's maps identify the partitions of one topic: by their numbers."""

    def __init__(self, topic: int) -> None:
        self.topic = topic

    def hashes(self, numbers: Ints) -> Ints:
        """Return HashMap's secondary hashes of the keys."""
        return numbers ^ numbers >> 16

    def order(self, numbers: Ints, capacity: int = DEFAULT_CAPACITY, **how: bool) -> list[int]:
        """Return the numbers in the order of a HashMap of their keys; see ``hash_order``."""
        return hash_order(INTEGER, numbers.tolist(), capacity, **how)

    def parts(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of the topics, and the partitions."""
        return np.full_like(numbers, self.topic), numbers


class AllTopics:
    """How Kafka's maps identify the partitions of many topics: by topic id and partition.

    Here all partitions are numbered in one sequence, those of topic t from ``bases[t]`` on.
    """

    def __init__(self, topics: Sequence[str], bases: Ints) -> None:
        self.topics = topics
        self.bases = bases
        self._codes = ints(map(uuid_hash, topics))

    def hashes(self, numbers: Ints) -> Ints:
        """Return HashMap's secondary hashes of the keys."""
        topic, partition = self.parts(numbers)
        # Java's int overflows: the sum is brought back to 32 bits with a sign. HashMap then mixes the upper half,
        # shifted without a sign, into the lower.
        codes = (31 * self._codes[topic] + partition + (1 << 31)) % (1 << 32) - (1 << 31)
        return codes ^ (codes & 0xFFFF_FFFF) >> 16

    def order(self, numbers: Ints, capacity: int = DEFAULT_CAPACITY, **how: bool) -> list[int]:
        """Return the numbers in the order of a HashMap of their keys; see ``hash_order``."""
        topic, partition = self.parts(numbers)
        names = [self.topics[number] for number in topic.tolist()]
        by_key = dict(zip(zip(names, partition.tolist(), strict=True), numbers.tolist(), strict=True))
        keys = hash_order(TOPIC_ID_PARTITION, list(by_key), capacity, **how)
        return [by_key[key] for key in keys]

    def parts(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the numbers of the topics, and the partitions."""
        topic = np.searchsorted(self.bases, numbers, side="right") - 1
        return topic, numbers - self.bases[topic]


@dataclass(eq=False)
class Balance:
    """Partitions and the members that share them.

    ``held`` and ``holders`` say which member had what, row by row in the order in which Kafka reads it; ``desired`` is
    how many partitions each member is to have, ``sharing`` how many members each of the ``targets`` is to have.
    """

    keys: OneTopic | AllTopics
    targets: Ints
    held: Ints
    holders: Ints
    desired: Ints
    sharing: int
    edits: AssignmentChanges

    def __post_init__(self) -> None:
        width = int(max(self.held.max(initial=-1), self.targets.max(initial=-1))) + 1
        self.counts = np.bincount(self.held, minlength=width)
        self.sizes = np.bincount(self.holders, minlength=len(self.desired))
        self.lost: dict[int, list[int]] = {}

    def revoke_overfilled(self) -> None:
        """Revoke partitions from members with too many: those that are first in the order of a set of them."""
        over = np.flatnonzero(self.sizes > self.desired)
        if not len(over):
            return
        by_holder = np.argsort(self.holders, kind="stable")
        holders = self.holders[by_holder]
        for index in over.tolist():
            start, end = np.searchsorted(holders, (index, index + 1))
            excess = int(self.sizes[index] - self.desired[index])
            order = self.keys.order(self.held[by_holder[start:end]])
            self._revoke([index] * excess, order[:excess])

    def revoke_overshared(self) -> None:
        """Revoke partitions with too many members from those members that are first in the order of a set of them."""
        over = np.flatnonzero(self.counts > self.sharing)
        if not len(over):
            return
        holders = self._holders(over)
        met = self._order(self.held)
        for number in met[self.counts[met] > self.sharing].tolist():
            order = fill(INTEGER, holders[number])
            for index in self.lost.get(number, ()):
                del order[index]
            first = list(order)[: int(self.counts[number]) - self.sharing]
            self._revoke(first, [number] * len(first))

    def hand_out(self, turns: Sequence[int]) -> None:
        """Assign partitions that lack members to members that lack partitions, in these turns."""
        order = self._order(np.concatenate((self.held, self.targets)))
        lacking = order[self.counts[order] < self.sharing]
        holders = self._holders(lacking[self.counts[lacking] > 0])
        current = {number: set(who).difference(self.lost.get(number, ())) for number, who in holders.items()}
        lacks = (self.desired - self.sizes).tolist()
        room = {index: lacks[index] for index in turns if lacks[index] > 0}
        members, numbers = hand_out(lacking.tolist(), current, self.sharing, room)
        self.edits.put(ADDED, members, *self.keys.parts(np.array(numbers, np.int64)))

    def _revoke(self, members: list[int], numbers: list[int]) -> None:
        self.edits.put(REMOVED, members, *self.keys.parts(np.array(numbers, np.int64)))
        for index, number in zip(members, numbers, strict=True):
            self.lost.setdefault(number, []).append(index)
            self.counts[number] -= 1
            self.sizes[index] -= 1

    def _holders(self, numbers: Ints) -> dict[int, list[int]]:
        """Who held each of these partitions, in the order in which they were met."""
        wanted = np.zeros(len(self.counts), bool)
        wanted[numbers] = True
        rows = np.flatnonzero(wanted[self.held])
        holders: dict[int, list[int]] = {}
        for number, index in zip(self.held[rows].tolist(), self.holders[rows].tolist(), strict=True):
            holders.setdefault(number, []).append(index)
        return holders

    def _order(self, calls: Ints) -> Ints:
        """The order of Kafka's map of partitions after these calls of computeIfAbsent."""
        if not len(calls):
            return calls
        # A map orders keys by bucket, and within one by the time of the first call. A call for a key that is there
        # counts, too, if it comes last: a full table doubles at it (``touched``).
        met = np.sort(np.unique(calls, return_index=True)[1])
        capacity = map_capacity(len(self.targets))
        touched = int(met[-1]) != len(calls) - 1
        order = slot_order(self.keys.hashes(calls[met]), capacity, at_head=True, touched=touched)
        if order is None:
            return ints(self.keys.order(calls[met], capacity, at_head=True, touched=touched))
        in_order: Ints = calls[met][order]
        return in_order
