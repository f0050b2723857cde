"""Copies of previous assignments with edits made to them, in the order in which Java's collections end up.

Kafka's assignors copy a member's assignment (a HashMap of HashSets) before they change it. The coordinator writes the
copy down in its iteration order, and the next assignment starts from that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

from coordinator_core.assignors.java_hash import INTEGER, UUID
from coordinator_core.assignors.java_order import HashMap, copy_capacity, fill, grown, hash_order, int_order, table_size
from coordinator_core.assignors.spec import MemberSpec, Partitions

ADDED, REMOVED = True, False

Edits = list[tuple[str, bool, Sequence[int] | None]]
"""Partitions of a topic added or removed, step by step; None stands for the whole topic (removed only)."""

_NO_TREE = 8


class Turn(Enum):
    """What happened to a topic of the copied map: computeIfAbsent made it or found it, or it was removed."""

    NEW = 1
    FOUND = 2
    GONE = 3


class Copies:
    """Makes the copies.

    ``set_capacity`` is the capacity of the set that a topic new to an assignment gets; ``keep_empty`` leaves a topic
    whose last partition was removed in the assignment, with an empty set.
    """

    def __init__(
        self, jdk: int, *, set_capacity: Callable[[str], int] = lambda topic: 16, keep_empty: bool = False
    ) -> None:
        self._jdk = jdk
        self._set_capacity = set_capacity
        self._keep_empty = keep_empty
        self._orders: dict[tuple[tuple[str, ...], tuple[tuple[Turn, str], ...]], list[str]] = {}

    def all(self, members: Mapping[str, MemberSpec], edits: Mapping[int, Edits]) -> dict[str, Partitions]:
        """The assignments of all members; without an entry in ``edits`` (by number of member) they stay as they are."""
        return {
            member: self.edited(had.previous, edits[index]) if index in edits else had.previous
            for index, (member, had) in enumerate(members.items())
        }

    def edited(self, previous: Partitions, edits: Edits) -> Partitions:
        """The copy of ``previous`` after the edits."""
        sizes = {topic: len(numbers) for topic, numbers in previous.items()}
        logs: dict[str, list[tuple[bool, Sequence[int]]]] = {}
        born: dict[str, None] = {}
        turns: list[tuple[Turn, str]] = []
        for topic, added, numbers in edits:
            if added and topic in sizes and turns and turns[-1][0] is not Turn.FOUND:
                turns.append((Turn.FOUND, topic))
            if topic not in sizes:
                sizes[topic] = 0
                born[topic] = None
                logs[topic] = []
                turns.append((Turn.NEW, topic))
                if numbers is not None and len(numbers) > 1:
                    turns.append((Turn.FOUND, topic))
            if numbers is not None:
                sizes[topic] += len(numbers) if added else -len(numbers)
                logs.setdefault(topic, []).append((added, numbers))
            if numbers is None or not (sizes[topic] or added or self._keep_empty):
                del sizes[topic]
                logs.pop(topic, None)
                born.pop(topic, None)
                turns.append((Turn.GONE, topic))
        sets = {
            topic: self._set((), logs[topic], self._set_capacity(topic))
            if topic in born
            else self._set(previous[topic], logs.get(topic, ()), copy_capacity(len(previous[topic]), self._jdk))
            for topic in sizes
        }
        if len(sets) < 2:
            return sets
        return {topic: sets[topic] for topic in self._topics(previous, turns)}

    def _set(self, copied: Sequence[int], log: Iterable[tuple[bool, Sequence[int]]], capacity: int) -> list[int]:
        live = dict.fromkeys(copied)
        ever = peak = len(live)
        for added, numbers in log:
            if added:
                live.update(dict.fromkeys(numbers))
                ever += len(numbers)
                peak = max(peak, len(live))
            else:
                for number in numbers:
                    del live[number]
        # Numbers below the table's size have a slot of their own, whatever happened before.
        if ever <= _NO_TREE or max(live, default=0) < min(table_size(capacity), 1 << 16):
            return int_order(list(live), grown(capacity, peak))
        if ever == len(live):
            return int_order(list(live), capacity)
        replayed = fill(INTEGER, copied, capacity)
        for added, numbers in log:
            for number in numbers:
                if added:
                    replayed[number] = None
                else:
                    del replayed[number]
        return list(replayed)

    def _topics(self, previous: Partitions, turns: list[tuple[Turn, str]]) -> list[str]:
        """Topics copied by put; then, in turn, new ones by computeIfAbsent, calls for those present, and removals."""
        if not turns:
            return self._cached(tuple(previous), ())
        if not previous and all(turn is not Turn.GONE for turn, _ in turns):
            return self._cached((), tuple(turns))
        topics: HashMap[str, None] = fill(UUID, previous, len(previous))
        for turn, topic in turns:
            if turn is Turn.GONE:
                del topics[topic]
            else:
                topics.compute_if_absent(topic, lambda: None)
        return list(topics)

    def _cached(self, copied: tuple[str, ...], turns: tuple[tuple[Turn, str], ...]) -> list[str]:
        order = self._orders.get((copied, turns))
        if order is None:
            if copied:
                order = hash_order(UUID, copied, len(copied))
            else:
                new = [topic for turn, topic in turns if turn is Turn.NEW]
                order = hash_order(UUID, new, 0, at_head=True, touched=turns[-1][0] is Turn.FOUND)
            self._orders[copied, turns] = order
        return order
