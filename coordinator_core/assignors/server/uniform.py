"""Kafka's ``uniform`` assignor (KIP-848): loads differ by at most one partition, and as few partitions as
possible move.

Equal subscriptions: each member keeps up to a quota, the rest is assigned in order. Different ones: keep all, assign to
the least loaded, then move from most to least loaded; members are numbered as presented, which decides ties in load.
Reproduces the results of Kafka 4.3.1's UniformHomogeneousAssignmentBuilder and UniformHeterogeneousAssignmentBuilder.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from coordinator_core.assignors.inputs import Assignment, GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.copied_assignments import (
    ADDED,
    REMOVED,
    AssignmentChanges,
    CopiedAssignments,
    ints,
)
from coordinator_core.assignors.server.topic_partitions import assigned_partitions, missing_topic, partition_count
from coordinator_core.assignors.server.uniform_3_9 import assign_differing_3_9
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import UUID, uuid_bits
from coordinator_core.java.order import Ints, copy_capacity, hash_order

DIFFERING_REPLACED = (4, 0)
"""The release that brought another builder for groups whose subscriptions differ."""


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Spread all subscribed partitions evenly.

    Raises AssignorError (PartitionAssignorException) for a subscribed topic that does not exist.
    """
    if not spec.members:
        return Assignment({})
    if spec.homogeneous:
        return Assignment(assign_equal(spec, image, profile))
    if profile.release < DIFFERING_REPLACED:
        return Assignment(assign_differing_3_9(spec, image))
    return Assignment(_Builder(spec, image).build(profile))


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
    # A copy: dropping a topic adds it to the numbers, and the next member would pass for its subscriber.
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
        # A later member may hold the larger share already, and would have to give it up.
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


MAX_ROUNDS = 16
"""Kafka visits all topics at most this many times; near balance is good enough where subscriptions overlap
unusually.
"""


class _Builder:
    """Loads by member, and by topic its subscribers (ascending) and the owner of each partition (-1: none)."""

    def __init__(self, spec: GroupSpec, image: TopicImage) -> None:
        self.members = list(spec.members.values())
        self.spec = spec
        subscribers: dict[str, list[int]] = {}
        for index, member in enumerate(self.members):
            for topic in member.topics:
                if topic not in subscribers:
                    partition_count(image, topic, missing_topic(topic))
                    subscribers[topic] = []
                subscribers[topic].append(index)
        self.subscribers: dict[str, Ints] = {topic: np.array(who) for topic, who in subscribers.items()}
        self.owners: dict[str, Ints] = {
            topic: np.full(image.by_id[topic].partitions, -1, np.int64) for topic in subscribers
        }
        self.loads: Ints = np.zeros(len(self.members), np.int64)
        self.edits = AssignmentChanges(subscribers)

    def build(self, profile: Profile) -> dict[str, Partitions]:
        """Return the members' partitions; empty if no member subscribes to an existing topic."""
        if not self.owners:
            return {}
        self._keep()
        for topic in self._sorted(self.owners):
            self._hand_out(topic)
        self._balance()
        capacities = {
            topic: -(-len(owners) // len(self.subscribers[topic])) * 4 // 3 + 1 for topic, owners in self.owners.items()
        }
        return CopiedAssignments(self.spec.members, self.edits, profile.jdk, set_capacities=capacities).all()

    def _sorted(self, topics: Sequence[str] | dict[str, Ints]) -> list[str]:
        """Most partitions a subscriber first, then fewest subscribers, then by topic id."""

        def rank(topic: str) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self.subscribers[topic])
            # Topics with the most work for each subscriber first: those after them even out what is left.
            return -(len(self.owners[topic]) / subscribers), subscribers, uuid_bits(topic)

        return sorted(topics, key=rank)

    def _keep(self) -> None:
        """Take over previous partitions of subscribed topics; topics no longer subscribed go."""
        for index, member in enumerate(self.members):
            subscribed = set(member.topics)
            for topic, partitions in member.previous.items():
                if topic not in subscribed:
                    self.edits.drop(index, (topic,))
                    continue
                self.loads[index] += len(partitions)
                owners = self.owners[topic]
                for partition in partitions:
                    if not 0 <= partition < len(owners):
                        raise AssignorError(
                            "ArrayIndexOutOfBoundsException",
                            f"Index {partition} out of bounds for length {len(owners)}",
                        )
                    owners[partition] = index

    def _hand_out(self, topic: str) -> None:
        """Give unowned partitions, in order, to the least loaded subscribers, as water fills a vessel."""
        owners, subscribers = self.owners[topic], self.subscribers[topic]
        unowned = np.flatnonzero(owners < 0)
        if not len(unowned):
            return
        # The least loaded subscriber gets one, again and again. Who that is needs no search: all of the least load, by
        # number, then these and all of the next load, and so on.
        ranked = subscribers[np.argsort(self.loads[subscribers], kind="stable")]
        takers = ranked[_fill(self.loads[ranked], len(unowned))]
        owners[unowned] = takers
        self.loads += np.bincount(takers, minlength=len(self.loads))
        self.edits.put(ADDED, takers, self.edits.numbers[topic], unowned)

    def _balance(self) -> None:
        """Go around the topics until a whole round has moved nothing."""
        topics = self._sorted([topic for topic, who in self.subscribers.items() if len(who) > 1])
        last = None
        for _ in range(MAX_ROUNDS):
            for topic in topics:
                # Once around since the last move: no topic has anything to move.
                if topic == last:
                    return
                if self._balance_topic(topic) or last is None:
                    last = topic

    def _balance_topic(self, topic: str) -> int:
        """Move partitions of one topic from its most to its least loaded subscribers; how many moved."""
        subscribers = self.subscribers[topic]
        loads = self.loads[subscribers]
        if loads.max() - loads.min() <= 1:
            return 0
        # ``by_owner`` has the partitions, those of the first subscriber, then those of the second; ``ends[s]`` is where
        # those of subscriber s end. A giver gives from the back: its highest partition first.
        owners = np.searchsorted(subscribers, self.owners[topic])
        by_owner = np.argsort(owners, kind="stable").tolist()
        held = np.bincount(owners, minlength=len(subscribers))
        moves = _moves(loads.tolist(), np.argsort(loads, kind="stable").tolist(), held.tolist())
        ends = np.cumsum(held).tolist()
        moved: list[int] = []
        for giver, _ in moves:
            ends[giver] -= 1
            moved.append(by_owner[ends[giver]])
        if moved:
            # Shape (moves, 2): giver and taker. Each move is two changes, taken from the one and given to the other.
            both = subscribers[np.array(moves)]
            self.owners[topic][moved] = both[:, 1]
            self.loads += np.bincount(both[:, 1], minlength=len(self.loads))
            self.loads -= np.bincount(both[:, 0], minlength=len(self.loads))
            kinds = [REMOVED, ADDED] * len(moved)
            self.edits.put(kinds, both.ravel(), self.edits.numbers[topic], np.repeat(moved, 2))
        return len(moved)


def _fill(loads: Ints, count: int) -> Ints:
    """Positions of ascending ``loads`` that get one each of ``count`` items, always the first of the least loaded."""
    rounds: list[Ints] = []
    level = int(loads[0])
    while count:
        # The first ``width`` have this load or less: with one more each they reach the next level.
        width = min(int(np.searchsorted(loads, level, side="right")), count)
        rounds.append(np.arange(width))
        count -= width
        level += 1
    return np.concatenate(rounds)


def _moves(loads: list[int], ranked: list[int], held: list[int]) -> list[tuple[int, int]]:
    """(giver, taker) of one topic's subscribers, until the ranges of the most and least loaded differ by at most one.

    ``ranked`` has the subscribers by load, ascending; ``held`` counts the topic's partitions that each has. All three
    change as partitions move.
    """
    moves: list[tuple[int, int]] = []
    takers = _takers(loads, ranked)
    for giver, most_level in _givers(loads, ranked, held):
        taker, least_level = next(takers)
        if most_level - least_level <= 1:
            break
        held[giver] -= 1
        loads[giver] -= 1
        loads[taker] += 1
        moves.append((giver, taker))
    return moves


def _takers(loads: list[int], ranked: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the least loaded in turn, with their load: their range grows from the front of ``ranked``, level by level.

    The caller gives one to each member that is yielded.
    """
    end, level = 0, loads[ranked[0]] - 1
    while True:
        level += 1
        while end < len(ranked) and loads[ranked[end]] == level:
            end += 1
        for taker in ranked[:end]:
            yield taker, level


def _givers(loads: list[int], ranked: list[int], held: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the most loaded in turn, with their load: their range grows from the back of ``ranked``, level by level.

    The caller takes one from each member that is yielded. A member that has no partition
    of the topic left to give is swapped to the end of
    the range and cut off; it is over when all are.
    """
    start = end = len(ranked)
    level = loads[ranked[-1]] + 1
    while end:
        level = loads[ranked[start - 1]] if start == end else level - 1
        while start and loads[ranked[start - 1]] == level:
            start -= 1
        for at in range(end - 1, start - 1, -1):
            giver = ranked[at]
            if held[giver]:
                yield giver, level
            else:
                end -= 1
                ranked[at], ranked[end] = ranked[end], giver
