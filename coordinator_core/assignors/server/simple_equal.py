"""``simple`` where all members subscribe to the same topics: one balance over all partitions of all topics.

Reproduces the results of Kafka 4.3.1's SimpleHomogeneousAssignmentBuilder. Members are numbered as presented,
partitions through all topics.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coordinator_core.assignors.java_hash import INTEGER, TOPIC_ID_PARTITION, uuid_hash
from coordinator_core.assignors.java_order import fill, hash_order, int_order, slot_order
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.copies import ADDED, REMOVED, Copies, Edits
from coordinator_core.assignors.server.held import Held, Ints, ints
from coordinator_core.assignors.server.sharing import assignable, hand_out, map_capacity, shares
from coordinator_core.assignors.spec import GroupSpec, Partitions
from coordinator_core.cluster.image import TopicImage


def assign_equal(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """The members' partitions; empty when the members subscribe to nothing."""
    if not next(iter(spec.members.values())).subscribed:
        return {}
    builder = _Builder(spec, image)
    builder.revoke_unsubscribed()
    builder.revoke_overfilled()
    builder.revoke_overshared()
    builder.hand_out()
    copies = Copies(profile.jdk, keep_empty=True)
    return copies.all(spec.members, builder.edits)


class _Builder:
    """``counts`` holds the members of each partition, ``sizes`` the partitions of each member, as they stand."""

    def __init__(self, spec: GroupSpec, image: TopicImage) -> None:
        self.members = list(spec.members.values())
        self.topics = list(self.members[0].topics)
        numbers = {topic: number for number, topic in enumerate(self.topics)}
        targets = [ints(assignable(spec, image, topic)) for topic in self.topics]
        self.sharing, desired = shares(len(self.members), sum(map(len, targets)))
        self.desired = np.array(desired)
        self.turns = int_order(range(len(self.members)), map_capacity(len(self.members)))
        held = Held.of(self.members, self.turns, numbers)
        widths = np.array([image.by_id[topic].partitions for topic in self.topics], np.int64)
        np.maximum.at(widths, held.topic, held.partition + 1)
        self.bases = np.concatenate(([0], np.cumsum(widths)))
        self.targets = np.concatenate(
            [base + some for base, some in zip(self.bases, targets, strict=False)] or [ints(())]
        )
        self.holders, self.held = held.member, self.bases[held.topic] + held.partition
        self.counts = np.bincount(self.held, minlength=int(self.bases[-1]))
        self.sizes = np.bincount(self.holders, minlength=len(self.members))
        self.lost: dict[int, list[int]] = {}
        # Kafka copies the assignments of members that have their share already, whether it changes them or not.
        copied = np.flatnonzero((self.sizes > 0) & (self.sizes >= self.desired))
        self.edits: dict[int, Edits] = {index: [] for index in copied.tolist()}

    def revoke_unsubscribed(self) -> None:
        subscribed = set(self.topics)
        for index, member in enumerate(self.members):
            if not member.previous.keys() <= subscribed:
                gone = [topic for topic in member.previous if topic not in subscribed]
                self.edits.setdefault(index, []).extend((topic, REMOVED, None) for topic in gone)

    def revoke_overfilled(self) -> None:
        """Members with too many partitions lose those that come first in the order of a set of them."""
        for index in np.flatnonzero(self.sizes > self.desired).tolist():
            mine = self.held[self.holders == index]
            keys = [self._key(number) for number in mine.tolist()]
            for key in hash_order(TOPIC_ID_PARTITION, keys)[: self.sizes[index] - self.desired[index]]:
                self._revoke(index, int(mine[keys.index(key)]))

    def revoke_overshared(self) -> None:
        """Partitions with too many members lose those that come first in the order of a set of them."""
        over = set(np.flatnonzero(self.counts > self.sharing).tolist())
        if not over:
            return
        holders = self._holders(over)
        for number in self._order(self._found(), touched=self._found_again()):
            if number in over:
                order = fill(INTEGER, holders[number])
                for index in self.lost.get(number, ()):
                    del order[index]
                for index in list(order)[: self.counts[number] - self.sharing]:
                    self._revoke(index, number)

    def hand_out(self) -> None:
        """Give the partitions that lack members to members that lack partitions."""
        found = self._found()
        new = self.targets[~np.isin(self.targets, found)]
        touched = self._found_again() if not len(self.targets) else not (len(new) and new[-1] == self.targets[-1])
        order = self._order(np.concatenate((found, new)), touched=touched)
        lacking = [number for number in order if self.counts[number] < self.sharing]
        holders = self._holders({number for number in lacking if self.counts[number]})
        current = {number: set(who).difference(self.lost.get(number, ())) for number, who in holders.items()}
        room = {i: int(self.desired[i] - self.sizes[i]) for i in self.turns if self.sizes[i] < self.desired[i]}
        for index, number in zip(*hand_out(lacking, current, self.sharing, room), strict=True):
            topic, partition = self._key(number)
            self.edits.setdefault(index, []).append((topic, ADDED, (partition,)))

    def _revoke(self, index: int, number: int) -> None:
        topic, partition = self._key(number)
        self.edits.setdefault(index, []).append((topic, REMOVED, (partition,)))
        self.lost.setdefault(number, []).append(index)
        self.counts[number] -= 1
        self.sizes[index] -= 1

    def _key(self, number: int) -> tuple[str, int]:
        topic = int(np.searchsorted(self.bases, number, side="right")) - 1
        return self.topics[topic], number - int(self.bases[topic])

    def _found(self) -> Ints:
        """Partitions that some member held, in the order in which they were first met."""
        numbers, first = np.unique(self.held, return_index=True)
        return numbers[np.argsort(first)]

    def _found_again(self) -> bool:
        """Whether the last partition met had been met before."""
        return len(self.held) > 0 and bool((self.held[:-1] == self.held[-1]).any())

    def _holders(self, numbers: set[int]) -> dict[int, list[int]]:
        """Who held each of these partitions, in the order in which they were met."""
        wanted = np.isin(self.held, list(numbers)) if numbers else np.zeros(len(self.held), bool)
        holders: dict[int, list[int]] = {}
        for number, index in zip(self.held[wanted].tolist(), self.holders[wanted].tolist(), strict=True):
            holders.setdefault(number, []).append(index)
        return holders

    def _order(self, numbers: Ints, *, touched: bool) -> Sequence[int]:
        """The order of a map of partitions into which these came one after another by computeIfAbsent."""
        topic = np.searchsorted(self.bases, numbers, side="right") - 1
        codes = 31 * ints(map(uuid_hash, self.topics))[topic] + numbers - self.bases[topic]
        codes = (codes + (1 << 31)) % (1 << 32) - (1 << 31)
        hashes = codes ^ (codes & 0xFFFF_FFFF) >> 16
        capacity = map_capacity(len(self.targets))
        order = slot_order(hashes, capacity, at_head=True, touched=touched)
        if order is not None:
            return [int(number) for number in numbers[order]]
        by_key = {self._key(number): number for number in numbers.tolist()}
        keys = hash_order(TOPIC_ID_PARTITION, list(by_key), capacity, at_head=True, touched=touched)
        return [by_key[key] for key in keys]
