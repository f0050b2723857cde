"""The changes that an assignor makes to the assignments of a group's members, as columns, and copies of previous
assignments with such changes, in the order that Java's collections have in the end.

Kafka's assignors copy a member's assignment (a HashMap of HashSets) before they change it. The coordinator writes the
copy in its iteration order, and the next assignment starts from that. Copies without changes, and assignments made from
nothing, are ordered for all members at once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain, pairwise, repeat
from typing import NamedTuple

import numpy as np

from coordinator_core.assignors.inputs import MemberSpec, Partitions
from coordinator_core.java.hash_codes import INTEGER, UUID, spread, uuid_hash
from coordinator_core.java.order import (
    DEFAULT_CAPACITY,
    TREEIFY_THRESHOLD,
    Ints,
    copy_capacity,
    fill,
    grouped_order,
    grown,
    hash_order,
    int_order,
    table_size,
)

Column = int | Sequence[int] | Ints

ADDED, REMOVED, DROPPED = 0, 1, 2
"""Kinds of change: a partition added or removed; a whole topic removed (its partition means nothing)."""


def ints(numbers: Iterable[int]) -> Ints:
    """Return the numbers as an array."""
    return np.fromiter(numbers, np.int64)


class Columns(NamedTuple):
    """One row per change; members are numbered as presented, topics as in ``AssignmentChanges.topics``."""

    kind: Ints
    member: Ints
    topic: Ints
    partition: Ints


class AssignmentChanges:
    """The changes of all members.

    ``copied`` holds members whose assignment Kafka copies even though it changes nothing in it.
    """

    def __init__(self, topics: Iterable[str] = ()) -> None:
        self.topics = list(topics)
        self.numbers = {topic: number for number, topic in enumerate(self.topics)}
        self.copied: set[int] = set()
        self._chunks: list[tuple[Column, ...]] = []

    def __len__(self) -> int:
        """Return the number of changes."""
        return sum(map(_rows_of, self._chunks))

    def put(self, kind: int | Sequence[int], member: Column, topic: Column, partition: Column) -> None:
        """Add changes, one after another; a single number stands for a column of it."""
        self._chunks.append((kind, member, topic, partition))

    def drop(self, member: int, topics: Iterable[str]) -> None:
        """Remove whole topics from a member's assignment; they may be topics that the group does not know."""
        for topic in topics:
            if topic not in self.numbers:
                self.numbers[topic] = len(self.topics)
                self.topics.append(topic)
            self.put(DROPPED, member, self.numbers[topic], -1)

    def columns(self) -> Columns:
        """Return all changes so far."""
        none = np.empty(0, np.int64)
        chunks = (
            tuple(map(np.atleast_1d, np.broadcast_arrays(*(np.asarray(column, np.int64) for column in chunk))))
            for chunk in self._chunks
        )
        return Columns(*(np.concatenate(column) for column in zip((none,) * 4, *chunks, strict=True)))

    def rows_by_member(self) -> dict[int, list[tuple[int, int, int]]]:
        """Return the changes (kind, topic, partition) of each member that has any, in order."""
        rows: dict[int, list[tuple[int, int, int]]] = {}
        for chunk in self._chunks:
            size = _rows_of(chunk)
            columns = (column.tolist() if isinstance(column, np.ndarray) else column for column in chunk)
            repeated = (repeat(column, size) if isinstance(column, int) else column for column in columns)
            for kind, member, topic, partition in zip(*repeated, strict=True):
                rows.setdefault(member, []).append((kind, topic, partition))
        return rows


def _rows_of(chunk: tuple[Column, ...]) -> int:
    return next((len(column) for column in chunk if not isinstance(column, int)), 1)


def by_member(columns: Columns, members: Iterable[int]) -> Iterator[tuple[int, list[tuple[int, int, int]]]]:
    """Yield the changes (kind, topic, partition) of each of these members, in order."""
    order = np.argsort(columns.member, kind="stable")
    kind, member, topic, partition = (column[order] for column in columns)
    for index in members:
        start, end = np.searchsorted(member, (index, index + 1)).tolist()
        rows = slice(start, end)
        yield index, list(zip(kind[rows].tolist(), topic[rows].tolist(), partition[rows].tolist(), strict=True))


Change = tuple[int, str, int]
"""Kind, topic, partition."""


class Turn(Enum):
    """One operation on the copied map: computeIfAbsent makes or finds a topic, or a topic is removed."""

    NEW = 1
    FOUND = 2
    GONE = 3


def copy_capacities(sizes: Ints, jdk: int) -> Ints:
    """Return ``copy_capacity`` of many sizes."""
    most = int(sizes.max(initial=0))
    return np.array([copy_capacity(size, jdk) for size in range(most + 1)], np.int64)[sizes]


def edited(
    previous: Partitions, changes: Iterable[Change], jdk: int, set_capacities: Mapping[str, int], *, keep_empty: bool
) -> Partitions:
    """Return the copy of ``previous`` after the changes; see ``CopiedAssignments`` for the other arguments."""
    sizes = {topic: len(numbers) for topic, numbers in previous.items()}
    logs: dict[str, list[tuple[bool, int]]] = {}
    born: set[str] = set()
    turns: list[tuple[Turn, str]] = []
    for kind, topic, number in changes:
        if kind == ADDED:
            turns.append((Turn.FOUND if topic in sizes else Turn.NEW, topic))
            if topic not in sizes:
                sizes[topic] = 0
                born.add(topic)
        if kind != DROPPED:
            sizes[topic] += 1 if kind == ADDED else -1
            logs.setdefault(topic, []).append((kind == ADDED, number))
        if kind == DROPPED or not (sizes[topic] or keep_empty):
            del sizes[topic]
            logs.pop(topic, None)
            born.discard(topic)
            turns.append((Turn.GONE, topic))
    sets: dict[str, Sequence[int]] = {}
    for topic in sizes:
        copied: Sequence[int] = () if topic in born else previous[topic]
        capacity = set_capacities.get(topic, DEFAULT_CAPACITY) if topic in born else copy_capacity(len(copied), jdk)
        sets[topic] = _edited_set(copied, logs.get(topic, ()), capacity)
    if len(sets) < 2:
        return sets
    return {topic: sets[topic] for topic in _topics(previous, turns)}


def _topics(previous: Partitions, turns: Sequence[tuple[Turn, str]]) -> Iterable[str]:
    """Topics copied by put, then the turns."""
    # Nothing came or went: the order is that of the copy, which a map's buckets give at once.
    if all(turn is Turn.FOUND for turn, _ in turns):
        return hash_order(UUID, list(previous), len(previous))
    topics = fill(UUID, previous, len(previous))
    for turn, topic in turns:
        if turn is Turn.GONE:
            del topics[topic]
        else:
            topics.compute_if_absent(topic, lambda: None)
    return topics


def _edited_set(copied: Sequence[int], log: Sequence[tuple[bool, int]], capacity: int) -> list[int]:
    """Numbers copied by put, then added and removed."""
    live = dict.fromkeys(copied)
    ever = peak = len(live)
    for added, number in log:
        if added:
            live[number] = None
            ever += 1
            peak = max(peak, len(live))
        else:
            del live[number]
    # Numbers below the table's size have a slot of their own, whatever happened before.
    if ever <= TREEIFY_THRESHOLD or max(live, default=0) < min(table_size(capacity), 1 << 16):
        return int_order(list(live), grown(capacity, peak))
    replayed = fill(INTEGER, copied, capacity)
    for added, number in log:
        if added:
            replayed[number] = None
        else:
            del replayed[number]
    return list(replayed)


FEW = 120
"""Up to so many changes are made one member after another: columns cost as much as that before their first row."""


class CopiedAssignments:
    """Makes the copies.

    ``set_capacities`` are those of the sets of topics that are new to an assignment. ``keep_empty`` keeps a topic whose
    last partition was removed in the assignment, with an empty set.
    """

    def __init__(
        self,
        members: Mapping[str, MemberSpec],
        edits: AssignmentChanges,
        jdk: int,
        *,
        set_capacities: Mapping[str, int] | None = None,
        keep_empty: bool = False,
    ) -> None:
        self._members = members
        self._edits = edits
        self._jdk = jdk
        self._set_capacities = set_capacities or {}
        self._keep_empty = keep_empty
        self._result = [had.previous for had in members.values()]

    def all(self) -> dict[str, Partitions]:
        """Return the assignments of all members; those without changes stay as they are."""
        if len(self._edits) + len(self._edits.copied) <= FEW:
            rows = self._edits.rows_by_member()
            for index in rows.keys() | self._edits.copied:
                self._edit(index, rows.get(index, ()))
        else:
            self._in_columns()
        return dict(zip(self._members, self._result, strict=True))

    def _edit(self, index: int, rows: Iterable[tuple[int, int, int]]) -> None:
        """One member; ``rows`` are its changes: kind, topic, partition."""
        changes = [(kind, self._edits.topics[topic], partition) for kind, topic, partition in rows]
        self._result[index] = edited(
            self._result[index], changes, self._jdk, self._set_capacities, keep_empty=self._keep_empty
        )

    def _in_columns(self) -> None:
        columns = self._edits.columns()
        had_some = np.fromiter(map(bool, self._result), bool, len(self._result))
        touched = np.zeros(len(self._result), bool)
        touched[columns.member] = True
        # Columns serve members that begin with nothing and only get partitions. Where something is removed, or given
        # twice, the order depends on the steps between, so these members are made one by one.
        one_by_one = touched & had_some
        one_by_one[columns.member[columns.kind != ADDED]] = True
        one_by_one[_given_twice(columns)] = True
        self._copy([index for index in self._edits.copied if not touched[index]])
        self._make(Columns(*(column[~one_by_one[columns.member]] for column in columns)))
        for index, rows in by_member(columns, np.flatnonzero(one_by_one).tolist()):
            self._edit(index, rows)

    def _copy(self, members: list[int]) -> None:
        """Copies without edits: topics and partitions put one after another."""
        previous = [self._result[index] for index in members]
        sets = list(chain.from_iterable(had.values() for had in previous))
        lengths = ints(map(len, sets))
        topics = list(chain.from_iterable(previous))
        sizes = ints(map(len, previous))
        numbers = _sets(ints(chain.from_iterable(sets)), lengths, copy_capacities(lengths, self._jdk), sets)
        self._put(members, np.repeat(np.arange(len(members)), sizes), topics, numbers, sizes, sizes, at_head=False)

    def _make(self, columns: Columns) -> None:
        """Assignments made from nothing: each partition by computeIfAbsent of its topic, and then added to its set."""
        width = len(self._edits.topics)
        # One pair for each topic of each member, as one number. ``first`` is the row where the pair is met, ``pair``
        # that of each row. np.unique sorts pairs by number; ``met`` puts them in the order in which they were met.
        pairs, first, pair = np.unique(columns.member * width + columns.topic, return_index=True, return_inverse=True)
        met = np.argsort(first)
        rank = np.empty(len(met), np.int64)
        rank[met] = np.arange(len(met))
        own_set = rank[pair]
        lengths = np.bincount(own_set, minlength=len(met))
        topic = pairs[met] % max(width, 1)
        capacities = ints(self._set_capacities.get(name, DEFAULT_CAPACITY) for name in self._edits.topics)[topic]
        numbers = _sets(columns.partition[np.argsort(own_set, kind="stable")], lengths, capacities)
        members, group = np.unique(pairs[met] // max(width, 1), return_inverse=True)
        # A table that is full doubles when computeIfAbsent is called again, be it for a topic that is there.
        last_call, last_new = np.zeros(len(members), np.int64), np.zeros(len(members), np.int64)
        last_call[np.searchsorted(members, columns.member)] = np.arange(len(columns.member))
        last_new[group] = first[met]
        sizes = np.bincount(group, minlength=len(members))
        topics = [self._edits.topics[number] for number in topic.tolist()]
        to_hold = sizes - (last_call == last_new)
        self._put(members.tolist(), group, topics, numbers, np.zeros_like(sizes), to_hold, at_head=True)

    def _put(
        self,
        members: Sequence[int],
        group: Ints,
        topics: Sequence[str],
        numbers: Sequence[Sequence[int]],
        capacity: Ints,
        to_hold: Ints,
        *,
        at_head: bool,
    ) -> None:
        """Order the topics (``group``: of which of the members) by their maps, and set the members' results."""
        hashes = {topic: spread(uuid_hash(topic)) for topic in set(topics)}
        order, crowded = grouped_order(group, ints(map(hashes.__getitem__, topics)), capacity, to_hold, at_head=at_head)
        keys = [topics[index] for index in order.tolist()]
        values = [numbers[index] for index in order.tolist()]
        ends = [0, *np.cumsum(np.bincount(group, minlength=len(members))).tolist()]
        for index, (start, end) in zip(members, pairwise(ends), strict=True):
            self._result[index] = dict(zip(keys[start:end], values[start:end], strict=True))
        by_group = np.argsort(group, kind="stable") if crowded else group
        for number in crowded:
            entries = by_group[ends[number] : ends[number + 1]].tolist()
            sets = {topics[index]: numbers[index] for index in entries}
            touched = at_head and int(to_hold[number]) == len(entries)
            names = hash_order(UUID, list(sets), int(capacity[number]), at_head=at_head, touched=touched)
            self._result[members[number]] = {name: sets[name] for name in names}


def _given_twice(columns: Columns) -> Ints:
    """Members that are given some partition of a topic more than once."""
    width = int(columns.partition.max(initial=0)) + 1
    topics = int(columns.topic.max(initial=0)) + 1
    keys = np.sort((columns.member * topics + columns.topic) * width + columns.partition)
    # Sorted, equal numbers are neighbours; the division takes topic and partition off again.
    twice: Ints = keys[1:][keys[1:] == keys[:-1]] // (topics * width)
    return twice


def _sets(
    numbers: Ints, lengths: Ints, capacities: Ints, given: Sequence[Sequence[int]] = ()
) -> Sequence[Sequence[int]]:
    """Sets of those lengths and initial capacities, made of successive numbers, each in HashSet's order.

    ``given`` are the same numbers as sequences, which are returned as they are if they are in that order already.
    """
    group = np.repeat(np.arange(len(lengths)), lengths)
    order, crowded = grouped_order(group, numbers ^ numbers >> 16, capacities, lengths)
    if given and not crowded and (order[1:] > order[:-1]).all():
        return given
    ends = [0, *np.cumsum(lengths).tolist()]
    ordered = numbers[order].tolist()
    sets = [ordered[start:end] for start, end in pairwise(ends)]
    for number in crowded:
        sets[number] = int_order(numbers[ends[number] : ends[number + 1]].tolist(), int(capacities[number]))
    return sets
