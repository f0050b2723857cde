"""Sticky assignment in general: fill up the least loaded, then move partitions while that balances.

Kafka has it where subscriptions differ, its releases before 2.6 and other clients always. Source: Kafka 4.3.1
``AbstractStickyAssignor.GeneralAssignmentBuilder`` and ``PartitionMovements``, and 2.4.1 ``sortPartitions`` for the
order in which the older algorithm treats partitions; what others do otherwise is data: see ``sticky``.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import accumulate, chain

import numpy as np

from coordinator_core.assignors.client.claimed_partitions import ClaimedPartitions
from coordinator_core.assignors.client.constrained import unassigned
from coordinator_core.assignors.client.leader_view import LeaderView, PartitionIds, TopicPartition
from coordinator_core.assignors.client.racks import Racks
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import STRING, TOPIC_PARTITION, int32
from coordinator_core.java.order import HashMap, Ints, hash_order

RestOrder = Callable[[LeaderView, Sequence[str]], Iterable[int]]
"""All partitions, in the order in which those come that nobody has; the leader's own order of topics."""


def by_hash(view: LeaderView, topics: Sequence[str]) -> Iterable[int]:
    """In the order of a HashMap (Kafka)."""
    names = hash_order(STRING, list(view.partitions.topics))
    index, of = view.partitions.index, view.partitions.of
    keys = [(name, number) for name in names for number in range(view.partitions.counts[index[name]])]
    return [of(index[name], number) for name, number in hash_order(TOPIC_PARTITION, keys)]


def by_number(view: LeaderView, topics: Sequence[str]) -> Iterable[int]:
    """By topic and number (kafka-python, aiokafka)."""
    return range(view.partitions.total)


def newest_first(view: LeaderView, topics: Sequence[str]) -> Iterable[int]:
    """From the last partition of the last topic of the leader's metadata on (librdkafka)."""
    index = view.partitions.index
    known = dict.fromkeys(name for name in (*topics, *view.partitions.topics) if name in index)
    return [p for name in reversed(known) for p in reversed(view.partitions.of_topic(index[name]))]


@dataclass(frozen=True, slots=True)
class TreatmentOrder:
    """How one client orders partitions where all members subscribe to the same topics and some own partitions.

    From the member with the most, one partition at a time, then the ``rest``. Of a member's partitions come first those
    that another had before (``former_by_hash``: in the order of a HashMap, else in that of its list), then the others:
    ``sorted`` by topic and number, or as claimed; ``from_end``: the last one first. ``all_known``: a topic that the
    leader knows and nobody subscribes to counts as a difference (kafka-python, aiokafka).
    """

    rest: RestOrder
    former_by_hash: bool = False
    sorted: bool = False
    from_end: bool = False
    all_known: bool = False

    def of(self, view: LeaderView, claims: ClaimedPartitions, topics: Sequence[str]) -> list[int] | None:
        """Return all partitions in this order; None: they come by number of subscribers, topic and number."""
        knows_others = self.all_known and not view.partitions.index.keys() >= {*topics}
        if knows_others or not (claims.equal and claims.any):
            return None
        # Counts are negative, so that the member with most left is on top; queue[len(queue) + count] is its next
        # partition.
        # Kafka polls the last of a set ordered by size and id: of equals the last by id, hence -m.
        left = [(-len(held), -m, self._queue(view, claims, held)) for m, held in enumerate(claims.owned) if held]
        heapify(left)
        first: list[int] = []
        while left and left[0][0]:
            count, m, queue = left[0]
            first.append(queue[len(queue) + count])
            heapreplace(left, (count + 1, m, queue))
        taken = {*first}
        return [*first, *(partition for partition in self.rest(view, topics) if partition not in taken)]

    def _queue(self, view: LeaderView, claims: ClaimedPartitions, held: Sequence[int]) -> list[int]:
        listed = sorted(held) if self.sorted else list(held)
        former = [partition for partition in listed if partition in claims.former]
        if former and self.former_by_hash:
            names = [view.partitions.name(partition) for partition in claims.former]
            rank = {name: at for at, name in enumerate(hash_order(TOPIC_PARTITION, names))}
            former.sort(key=lambda partition: rank[view.partitions.name(partition)])
        others = [partition for partition in listed if partition not in claims.former]
        return former + (others[::-1] if self.from_end else others)


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
        # One flat array has the topics of all choosers; ``_chosen_from`` is where those of each begin.
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
        # argmin takes the first of equals, and members ascend by id: that is how Kafka breaks the tie.
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


Pair = tuple[int, int]
"""The member that had the partition at first, and the one that has it now."""


class PartitionMovements:
    """Moves so far: by partition, and by topic and pair of members."""

    def __init__(self, partitions: PartitionIds, *, by_hash: bool = True) -> None:
        """Begin without moves; ``by_hash``: of several partitions the first of a HashSet counts, else the oldest."""
        self._partitions = partitions
        self._by_hash = by_hash
        self._moves: dict[int, Pair] = {}
        self._by_topic: dict[int, dict[Pair, MutableMapping[TopicPartition, None]]] = {}

    def instead_of(self, partition: int, owner: int, new_owner: int) -> int:
        """Return the partition to move instead: one of the topic that went from the new owner to the old one, if there
        is one.

        If the partition has moved before, its first owner counts as the old owner. The returned partition may thus
        belong to another member than ``owner``.
        """
        moved = self._by_topic.get(self._partitions.topic_of[partition])
        if moved is None:
            return partition
        first_owner = self._moves[partition][0] if partition in self._moves else owner
        back = moved.get((new_owner, first_owner))
        if back is None:
            return partition
        name, number = next(iter(back))
        return self._partitions.of(self._partitions.index[name], number)

    def record(self, partition: int, owner: int, new_owner: int) -> None:
        """Note that the partition moves."""
        earlier = self._moves.pop(partition, None)
        if earlier is None:
            self._add(partition, (owner, new_owner))
            return
        topic = self._partitions.topic_of[partition]
        moved = self._by_topic[topic]
        del moved[earlier][self._partitions.name(partition)]
        if not moved[earlier]:
            del moved[earlier]
        if not moved:
            del self._by_topic[topic]
        # Back with its first owner it has not moved at all.
        if earlier[0] != new_owner:
            self._add(partition, (earlier[0], new_owner))

    def _add(self, partition: int, pair: Pair) -> None:
        self._moves[partition] = pair
        moved = self._by_topic.setdefault(self._partitions.topic_of[partition], {})
        if pair not in moved:
            moved[pair] = HashMap(TOPIC_PARTITION) if self._by_hash else {}
        moved[pair][self._partitions.name(partition)] = None


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
        # What has one subscriber can go nowhere else.
        everything = [partition for partition in everything if shared[topic_of[partition]]]
        free = [partition for partition in free if shared[topic_of[partition]]]
        # A member that owns all it could is settled with it, unless another may take some of that.
        self.loads.settle(
            [
                m
                for m, held in enumerate(self.work)
                if len(held) >= self.loads.most[m] and not any(shared[topic_of[partition]] for partition in held)
            ]
        )
        # Kafka takes the moves back where they did not make the sum of differences smaller: sticky is better than
        # equally uneven.
        before = [list(held) for held in self.work]
        # Java's int, which overflows in large groups: Kafka compares the overflown numbers.
        spread_before = int32(self.loads.spread())
        # First only what nobody owned is moved, which costs no member anything.
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
