"""One member's copied assignment with any changes, in the order that Java's collections have in the end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum

import numpy as np

from coordinator_core.assignors.inputs import Partitions
from coordinator_core.assignors.server.assignment_changes import ADDED, DROPPED
from coordinator_core.java.hash_codes import INTEGER, UUID
from coordinator_core.java.order import (
    DEFAULT_CAPACITY,
    TREEIFY_THRESHOLD,
    Ints,
    copy_capacity,
    fill,
    grown,
    hash_order,
    int_order,
    table_size,
)

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
