"""Kafka's ``simple`` assignor for share groups (KIP-932): each partition gets enough members that all members
have work.

Reproduces the results of Kafka 4.3.1's SimpleHomogeneousAssignmentBuilder, for equal subscriptions, and
SimpleHeterogeneousAssignmentBuilder, which leaves topics without subscribers in the assignments. Members are numbered
as presented. Its failure is reproduced, too: if the last member below its quota is filled while a partition still needs
more members, it throws NoSuchElementException.
"""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise, repeat
from typing import NamedTuple

import numpy as np

from coordinator_core.assignors.inputs import Assignment, GroupSpec, MemberSpec, Partitions
from coordinator_core.assignors.profiles import Profile, require_reproduced
from coordinator_core.assignors.server.copied_assignments import (
    ADDED,
    REMOVED,
    AssignmentChanges,
    CopiedAssignments,
    ints,
)
from coordinator_core.assignors.server.topic_partitions import missing_topic, partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import INTEGER, TOPIC_ID_PARTITION, UUID, uuid_hash
from coordinator_core.java.order import DEFAULT_CAPACITY, Ints, fill, hash_order, int_order, slot_order


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
        # Members may hold partitions that are no target any more: the arrays have a place for both.
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
        # Who has just lost a partition does not hold it any more, and may get it again.
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
        # A flag for each partition finds all wanted rows in one pass, and leaves them in the order in which they were
        # met.
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
    # ceil(members / partitions): with fewer, some member would share none.
    sharing = -(-members // partitions) if partitions else 0
    precise = sharing * partitions / members
    # Rounded marks and not rounded shares: the shares then add up to all that is to be given.
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
    # The usual new group: each member lacks one, so that the turns go once through all of them.
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


class PreviousAssignments(NamedTuple):
    """Previous assignments of many members as flat arrays.

    One row for each partition that a member has: number of the member, number of the topic, and the partition. Rows are
    in the order of members, each member's in the order of its assignment.
    """

    member: Ints
    topic: Ints
    partition: Ints

    @classmethod
    def of(
        cls, members: Sequence[MemberSpec], order: Iterable[int], topics: Mapping[str, int]
    ) -> "PreviousAssignments":
        """Return the rows of members in that order; partitions of other topics are left out."""
        order = list(order)
        previous = [members[index].previous for index in order]
        sets = list(chain.from_iterable(had.values() for had in previous))
        lengths = ints(map(len, sets))
        partition = ints(chain.from_iterable(sets))
        topic = ints(map(topics.get, chain.from_iterable(previous), repeat(-1)))
        member = np.repeat(np.array(order, np.int64), ints(map(len, previous)))
        member, topic = np.repeat(member, lengths), np.repeat(topic, lengths)
        known = topic >= 0
        return cls(member[known], topic[known], partition[known])

    def bases(self, widths: Iterable[int]) -> Ints:
        """Return where each topic's partitions begin if all are numbered in one sequence; ``widths`` counts
        existing ones.
        """
        wide = ints(widths)
        # Partitions that a topic had before it was made again with fewer get numbers of their own, too.
        np.maximum.at(wide, self.topic, self.partition + 1)
        return np.concatenate((ints((0,)), np.cumsum(wide)))

    def by_topic(self, topics: int) -> list[Ints]:
        """Return the rows of each topic, in order."""
        order = np.argsort(self.topic, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.topic, minlength=topics))[:-1])


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Share the assignable partitions of subscribed topics among the members.

    Raises:
        AssignorError: a subscribed topic does not exist (PartitionAssignorException), or Kafka's class fails too
            (NoSuchElementException, see ``quotas``).
        InputError: the release has another algorithm.
    """
    require_reproduced(profile, "simple")
    if not spec.members:
        return Assignment({})
    builder = _assign_equal if spec.homogeneous else _assign_differing
    return Assignment(builder(spec, image, profile))


def _assign_equal(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """One balance over all partitions of all topics; empty when the members subscribe to nothing."""
    members = list(spec.members.values())
    if not members[0].subscribed:
        return {}
    topics = members[0].topics
    targets = [ints(assignable(spec, image, topic)) for topic in topics]
    sharing, shared = shares(len(members), sum(map(len, targets)))
    desired = np.array(shared)
    edits = AssignmentChanges(topics)
    # Members are keys of a HashMap of ints in Kafka: their turns are its buckets, not their ids.
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


def _assign_differing(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """Each topic is balanced by itself among its subscribers; empty if no member subscribes to an existing topic."""
    members = list(spec.members.values())
    subscribers: dict[str, list[int]] = {}
    for index, member in enumerate(members):
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(index)
    if not subscribers:
        return {}
    topics = hash_order(UUID, list(subscribers))
    targets = [ints(assignable(spec, image, topic)) for topic in topics]
    edits = AssignmentChanges(topics)
    held = PreviousAssignments.of(members, int_order(range(len(members)), map_capacity(len(members))), edits.numbers)
    rows = held.by_topic(len(topics))
    for number, topic in enumerate(topics):
        sharing, shared = shares(len(subscribers[topic]), len(targets[number]))
        desired = np.zeros(len(members), np.int64)
        desired[subscribers[topic]] = shared
        row = rows[number]
        balance = Balance(
            OneTopic(number), targets[number], held.partition[row], held.member[row], desired, sharing, edits
        )
        balance.revoke_overfilled()
        balance.revoke_overshared()
        balance.hand_out(int_order(subscribers[topic], map_capacity(len(members))))
    return CopiedAssignments(spec.members, edits, profile.jdk, keep_empty=True).all()
