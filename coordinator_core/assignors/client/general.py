"""Sticky assignment in general: fill up the least loaded, then move partitions while that balances.

Kafka has it where subscriptions differ, its releases before 2.6 and other clients always. Source: Kafka 4.3.1
``AbstractStickyAssignor.GeneralAssignmentBuilder``; what others do otherwise is data: see ``sticky``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from coordinator_core.assignors.client.claimed_partitions import ClaimedPartitions
from coordinator_core.assignors.client.constrained import unassigned
from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.assignors.client.member_loads import MemberLoads
from coordinator_core.assignors.client.partition_movements import PartitionMovements
from coordinator_core.assignors.client.racks import Racks
from coordinator_core.assignors.client.treatment_orders import TreatmentOrder
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import int32


@dataclass(frozen=True, slots=True)
class GeneralRules:
    """How an algorithm of this kind differs from that of Kafka 3.5 and later.

    ``order``: all partitions in another order where all subscribe to the same. ``moves_by_hash``: a partition that is
    moved back is the first of a HashSet, else the first that moved. ``substitutes``: one that somebody else has by now
    is swapped for the one that was wanted (kafka-python). ``fails``: it fails where it looks up a member whose work is
    settled, as Kafka's does. ``by_one``: a difference of one partition does not count as balance yet.
    """

    order: TreatmentOrder | None = None
    moves_by_hash: bool = True
    substitutes: bool = False
    fails: bool = True
    by_one: bool = False


class GeneralAssignment:
    """Works on ``work[m]``, the partitions of member m.

    Members whose work cannot change are settled before the others are balanced. If members claim partitions that do not
    exist, Kafka assigns partitions twice and fails in some cases; ``_unsound`` then takes its slow path, which does the
    same.
    """

    def __init__(
        self, view: LeaderView, racks: Racks, by_racks: bool, claims: ClaimedPartitions, rules: GeneralRules
    ) -> None:
        self.view = view
        self.rules = rules
        self.partitions = view.partitions
        self.racks = racks
        self.by_racks = by_racks
        self.former = claims.former
        self.work = claims.owned
        self.subscribers: list[list[int]] = [[] for _ in view.partitions.topics]
        for m in view.order:
            for topic in view.subscribed[m]:
                self.subscribers[topic].append(m)
        self.loads = MemberLoads(view, racks, self.subscribers)
        self.movements = PartitionMovements(view.partitions, by_hash=rules.moves_by_hash)
        self.must_revoke = False
        self._unsound = view.partitions.any_missing
        self._balanced: bool | None = None

    def build(self, order: Sequence[int] | None = None) -> None:
        """Assign everything; raises AssignorError where Kafka's class fails.

        ``order`` has all partitions as they are treated; None: by number of subscribers, topic and number.
        """
        self._keep_owned()
        everything = self._by_subscribers(range(self.partitions.total)) if order is None else order
        kept = self._by_subscribers(partition for held in self.work for partition in held)
        initial = not kept
        if order is None:
            free = unassigned(everything, kept)
        else:
            taken = {*kept}
            free = [partition for partition in everything if partition not in taken]
        self._assign(free)
        self._balance(everything, free, initial)

    def _keep_owned(self) -> None:
        for m, held in enumerate(self.work):
            subscribed = set(self.view.subscribed[m])
            kept = [
                partition
                for partition in held
                if self.partitions.topic_of[partition] in subscribed
                and not (self.by_racks and self.racks.mismatch(m, partition))
            ]
            self.must_revoke |= len(kept) < len(held)
            self.work[m] = kept
            self.loads.size[m] = len(kept)
            for partition in kept:
                if partition < self.partitions.total:
                    self.loads.owner[partition] = m

    def _by_subscribers(self, partitions: Iterable[int]) -> list[int]:
        """In the order of the topics' numbers of subscribers, topics and partitions."""
        topic_of, number_of = self.partitions.topic_of, self.partitions.number_of
        popularity = [len(members) for members in self.subscribers]
        return sorted(partitions, key=lambda p: (popularity[topic_of[p]], topic_of[p], number_of[p]))

    def _assign(self, free: Sequence[int]) -> None:
        """Give each partition to its lightest subscriber, those first that have one in their racks."""
        left: Sequence[int] = free
        topic_of = self.partitions.topic_of
        if self.by_racks:
            left = []
            for partition in free:
                m = self.loads.lightest_near(topic_of[partition], partition)
                if m is None:
                    left.append(partition)
                else:
                    self._give(partition, m)
        for partition in left:
            m = self.loads.lightest(topic_of[partition])
            if m is not None:
                self._give(partition, m)

    def _give(self, partition: int, m: int) -> None:
        self.work[m].append(partition)
        self.loads.give(partition, m)

    def _balance(self, everything: Sequence[int], free: Sequence[int], initial: bool) -> None:
        topic_of = self.partitions.topic_of
        shared = [len(members) > 1 for members in self.subscribers]
        everything = [partition for partition in everything if shared[topic_of[partition]]]
        free = [partition for partition in free if shared[topic_of[partition]]]
        self.loads.settle(
            [
                m
                for m, held in enumerate(self.work)
                if len(held) >= self.loads.most[m] and not any(shared[topic_of[partition]] for partition in held)
            ]
        )
        before = [list(held) for held in self.work]
        spread_before = int32(self.loads.spread())
        if not self.must_revoke:
            self._move_while_uneven(free)
        moved = self._move_while_uneven(everything)
        if moved and not initial and int32(self.loads.spread()) >= spread_before:
            self.work = before

    def _move_while_uneven(self, partitions: Sequence[int]) -> bool:
        """Move partitions to lighter members until balanced or no more can move; whether any moved."""
        moved_any = False
        while True:
            moved = False
            for partition in partitions:
                if self._is_balanced():
                    break
                to = self._better_owner(partition)
                if to is not None:
                    self._move(partition, to)
                    moved = True
            moved_any |= moved
            if not moved:
                return moved_any

    def _better_owner(self, partition: int) -> int | None:
        """The former owner if it has at least two partitions fewer, else the lightest subscriber if it has."""
        size = self.loads.size
        owner = int(self.loads.owner[partition])
        self._require_active(owner)
        former = self.former.get(partition)
        if former is not None and self.rules.fails:
            self._require_active(former)
        if former is not None and self.loads.active[former] and size[owner] > size[former] + 1:
            return former
        if self._unsound and not self._finds_lighter(partition, owner):
            return None
        lightest = self.loads.lightest(self.partitions.topic_of[partition])
        return lightest if lightest is not None and size[owner] > size[lightest] + 1 else None

    def _move(self, wanted: int, to: int) -> None:
        wanted_from = int(self.loads.owner[wanted])
        partition = self.movements.instead_of(wanted, wanted_from, to)
        owner = int(self.loads.owner[partition])
        if self.rules.substitutes and owner != wanted_from:
            self._hand_over(wanted, wanted_from, owner)
        self._hand_over(partition, owner, to)

    def _hand_over(self, partition: int, owner: int, to: int) -> None:
        self.movements.record(partition, owner, to)
        self.work[owner].remove(partition)
        self.loads.size[owner] -= 1
        self._give(partition, to)
        self._balanced = None

    def _is_balanced(self) -> bool:
        if self._balanced is None:
            if not self.loads.active.any():
                if not self.rules.fails:
                    return True
                raise AssignorError("NoSuchElementException", "no member left to balance")
            self._balanced = self.loads.even() or (
                self._none_can_gain_unsound() if self._unsound else self.loads.none_can_gain(by_one=self.rules.by_one)
            )
        return self._balanced

    # What follows is only for claims to partitions that do not exist: Kafka then looks up members that it has settled.

    def _require_active(self, m: int) -> None:
        if m < 0 or not self.loads.active[m]:
            raise AssignorError("NullPointerException", "a member looked up among those to balance is not there")

    def _none_can_gain_unsound(self) -> bool:
        size, active = self.loads.size, self.loads.active
        holder = {partition: m for m in self.view.order if active[m] for partition in self.work[m]}
        for m in sorted(active.nonzero()[0].tolist(), key=lambda m: (size[m], m)):
            if size[m] == self.loads.most[m]:
                continue
            held = set(self.work[m])
            for topic in self.view.subscribed[m]:
                for partition in self.partitions.of_topic(topic):
                    if partition not in held:
                        other = holder.get(partition, -1)
                        self._require_active(other)
                        if size[m] + 1 < size[other]:
                            return False
        return True

    def _finds_lighter(self, partition: int, owner: int) -> bool:
        for m in self._candidates(partition, owner):
            self._require_active(m)
            if self.loads.size[owner] > self.loads.size[m] + 1:
                return True
        return False

    def _candidates(self, partition: int, owner: int) -> Iterator[int]:
        """The topic's subscribers in the order in which Kafka looks at them: first those in the owner's racks."""
        subscribers = self.subscribers[self.partitions.topic_of[partition]]
        if self.by_racks:
            racks = self.racks.of_partition[partition]
            if self.racks.of_member[owner] & racks:
                yield from (m for m in subscribers if self.racks.of_member[m] & racks)
        yield from subscribers
