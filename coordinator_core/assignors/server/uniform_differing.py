"""``uniform`` for different subscriptions: keep all, assign to the least loaded, then move from most to least loaded.

Reproduces the results of Kafka 4.3.1's UniformHeterogeneousAssignmentBuilder. Members are numbered in the order in
which they are presented; ties in load are decided by that number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coordinator_core.assignors.inputs import GroupSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.assignment_changes import ADDED, REMOVED, AssignmentChanges
from coordinator_core.assignors.server.copied_assignments import CopiedAssignments
from coordinator_core.assignors.server.topic_partitions import missing_topic, partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import uuid_bits
from coordinator_core.java.order import Ints

MAX_ROUNDS = 16
"""Kafka visits all topics at most this many times; near balance is good enough where subscriptions overlap
unusually.
"""


def assign_differing(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """Return the members' partitions; empty if no member subscribes to an existing topic."""
    return _Builder(spec, image).build(profile)


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
