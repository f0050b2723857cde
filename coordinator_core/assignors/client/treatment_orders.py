"""The order in which the older sticky algorithm treats partitions: it decides who gets what is free, and what moves.

Source: Kafka 2.4.1 ``AbstractStickyAssignor.sortPartitions``; other clients descend from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

from coordinator_core.assignors.client.claimed_partitions import ClaimedPartitions
from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.java.hash_codes import STRING, TOPIC_PARTITION
from coordinator_core.java.order import hash_order

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
    ``sorted`` by topic and number, or as claimed; ``from_end``: the last one first.
    """

    rest: RestOrder
    former_by_hash: bool = False
    sorted: bool = False
    from_end: bool = False

    def of(self, view: LeaderView, claims: ClaimedPartitions, topics: Sequence[str]) -> list[int] | None:
        """Return all partitions in this order; None: they come by number of subscribers, topic and number."""
        if not (claims.equal and claims.any):
            return None
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
