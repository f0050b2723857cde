"""The changes that an assignor makes to the assignments of a group's members, as columns, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from coordinator_core.java.order import Ints

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
