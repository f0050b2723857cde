"""How many partitions each member of a sticky group has, and which subscriber of a topic has the fewest."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np

from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.assignors.client.racks import Racks
from coordinator_core.java.order import Ints


class MemberLoads:
    """``size[m]`` counts the partitions of member m; ``most[m]`` those it could have; ``active[m]`` is false once its
    work is settled. ``owner[p]`` is the member that partition p was last given to (-1: none).
    """

    def __init__(self, view: LeaderView, racks: Racks, subscribers: Sequence[Sequence[int]]) -> None:
        members, topics = len(view.members), len(view.partitions.topics)
        self.size: Ints = np.zeros(members, np.int64)
        self.active = np.ones(members, np.bool_)
        self.owner: Ints = np.full(view.partitions.total, -1, np.int64)
        counts = view.partitions.counts
        self.most: Ints = np.array(
            [
                view.partitions.total if len(subscribed) == topics else sum(counts[topic] for topic in subscribed)
                for subscribed in view.subscribed
            ],
            np.int64,
        )
        self._racks = racks
        self._subscribers: list[Ints] = [np.unique(np.array(members, np.int64)) for members in subscribers]
        self._near: dict[tuple[int, int], Ints] = {}
        self._first = np.array(view.partitions.first[:-1], np.int64)
        self._choosers = np.array([m for m, subscribed in enumerate(view.subscribed) if subscribed], np.int64)
        chosen = [view.subscribed[m] for m in self._choosers]
        self._chosen = np.array(list(chain.from_iterable(chosen)), np.int64)
        self._chosen_from = np.array(list(accumulate((len(each) for each in chosen[:-1]), initial=0)), np.int64)

    def give(self, partition: int, m: int) -> None:
        """Count the partition for the member."""
        self.owner[partition] = m
        self.size[m] += 1

    def lightest(self, topic: int) -> int | None:
        """Return the active subscriber with the fewest partitions, the first by member id among equals."""
        return self._lightest(self._subscribers[topic])

    def lightest_near(self, topic: int, partition: int) -> int | None:
        """Return the same as ``lightest``, among the members whose rack matches the partition."""
        key = topic, self._racks.of_partition[partition]
        near = self._near.get(key)
        if near is None:
            near = self._near[key] = np.array(
                [m for m in self._subscribers[topic] if not self._racks.mismatch(m, partition)], np.int64
            )
        return self._lightest(near)

    def _lightest(self, members: Ints) -> int | None:
        return int(members[self.size[members].argmin()]) if len(members) else None

    def settle(self, members: Sequence[int]) -> None:
        """Leave these members out from now on: their work is final."""
        if not members:
            return
        self.active[members] = False
        self._subscribers = [subscribers[self.active[subscribers]] for subscribers in self._subscribers]

    def even(self) -> bool:
        """Whether no two active members differ by more than one partition."""
        sizes = self.size[self.active]
        return bool(sizes.min() >= sizes.max() - 1)

    def none_can_gain(self, *, by_one: bool = False) -> bool:
        """Whether no member could take a partition from one that has at least two more (``by_one``: one more); each
        partition owned once.
        """
        # The largest owner of each topic, then the largest among the topics of each subscriber: a member gains only
        # from an owner with at least two partitions more. ``reduceat`` takes the maximum of each stretch of a flat
        # array.
        largest_owner = np.maximum.reduceat(self.size[self.owner], self._first)
        reachable = np.maximum.reduceat(largest_owner[self._chosen], self._chosen_from)
        m = self._choosers
        gains = self.active[m] & (self.size[m] != self.most[m]) & (self.size[m] + (not by_one) < reachable)
        return not gains.any()

    def spread(self) -> int:
        """Return the sum of the differences between all pairs of active members: 0 is perfect balance."""
        sizes = np.sort(self.size[self.active])
        n = len(sizes)
        # In ascending order, the i-th size is subtracted n - 1 - i times and added i times over all pairs: no n x n
        # table.
        return int((sizes * (2 * np.arange(n) - n + 1)).sum())
