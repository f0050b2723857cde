"""The iteration orders of Java's collections, which decide results of Kafka's assignors.

``HashMap`` and ``TimelineHashMap`` keep their tables step by step and can be changed. ``hash_order`` returns the order
of a HashMap that was only filled, from the keys alone.

Sources: java.util.HashMap, HashSet and PriorityQueue (Java SE 17 and 21), org.apache.kafka.timeline.TimelineHashMap.
"""

from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from coordinator_core.java.hash_codes import INTEGER, KeyType, spread, spreads
from coordinator_core.java.tree import UNTREEIFY_THRESHOLD, TreeBin

K = TypeVar("K")
V = TypeVar("V")
Ints = np.ndarray[Any, np.dtype[np.int64]]

DEFAULT_CAPACITY = 16
TREEIFY_THRESHOLD = 8
MIN_TREEIFY_CAPACITY = 64


def table_size(capacity: int) -> int:
    """Return the power of two that HashMap makes of a requested capacity."""
    return 1 if capacity <= 1 else 1 << (capacity - 1).bit_length()


def threshold(capacity: int) -> int:
    """Return how many keys a table of this size holds before HashMap doubles it."""
    return capacity * 3 // 4


def copy_capacity(size: int, jdk: int) -> int:
    """Return the capacity that ``new HashSet<>(collection)`` asks for; the rule changed in JDK 19."""
    if jdk >= 19:
        return -(-max(size, 12) * 4 // 3)
    return max(size * 4 // 3 + 1, 16)


class HashMap(MutableMapping[K, V], Generic[K, V]):
    """java.util.HashMap: iterates in Java's order.

    ``m[key] = value`` is put; ``compute_if_absent`` differs from it in where a new key lands and when the table grows.
    """

    __slots__ = ("_buckets", "_capacity", "_type", "_values")

    def __init__(self, key_type: KeyType[K], capacity: int = DEFAULT_CAPACITY) -> None:
        self._type = key_type
        self._capacity = table_size(capacity)
        self._buckets: dict[int, list[K] | TreeBin[K]] = {}
        self._values: dict[K, V] = {}

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        for slot in sorted(self._buckets):
            yield from self._buckets[slot]

    def __setitem__(self, key: K, value: V) -> None:
        new = key not in self._values
        if new:
            self._add(key, at_head=False)
        self._values[key] = value
        if new and len(self._values) > threshold(self._capacity):
            self._double()

    def compute_if_absent(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of the key; if there is none, make it and insert it at the head of its bucket."""
        # As in Java before the key is looked up: a full table grows even if the key is there.
        if len(self._values) > threshold(self._capacity):
            self._double()
        if key not in self._values:
            self._add(key, at_head=True)
            self._values[key] = make()
        return self._values[key]

    def __delitem__(self, key: K) -> None:
        self.remove(key)

    def remove(self, key: K, *, by_iterator: bool = False) -> V:
        """Remove a key; raises KeyError when it is absent. Iterators leave the shape of tree bins alone."""
        value = self._values.pop(key)
        slot = self._slot(key)
        bucket = self._buckets[slot]
        if isinstance(bucket, list):
            bucket.remove(key)
        elif not bucket.discard(key, by_iterator=by_iterator):
            bucket = self._buckets[slot] = list(bucket)
        if not bucket:
            del self._buckets[slot]
        return value

    def _slot(self, key: K) -> int:
        return spread(self._type.hash_code(key)) & self._capacity - 1

    def _add(self, key: K, *, at_head: bool) -> None:
        slot = self._slot(key)
        bucket = self._buckets.setdefault(slot, [])
        if isinstance(bucket, TreeBin):
            bucket.add(key)
            return
        bucket.insert(0 if at_head else len(bucket), key)
        # put and computeIfAbsent count the keys of a bucket differently: the ninth key makes a tree, or the eighth.
        if len(bucket) > TREEIFY_THRESHOLD or (at_head and len(bucket) == TREEIFY_THRESHOLD):
            # Java takes collisions in a small table for a lack of slots, and doubles it instead.
            if self._capacity < MIN_TREEIFY_CAPACITY:
                self._double()
            else:
                self._buckets[slot] = TreeBin(self._type, bucket)

    def _double(self) -> None:
        self._capacity *= 2
        old, self._buckets = self._buckets, {}
        for bucket in old.values():
            halves: dict[int, list[K]] = {}
            for key in bucket:
                halves.setdefault(self._slot(key), []).append(key)
            for slot, keys in halves.items():
                if isinstance(bucket, list) or len(keys) <= UNTREEIFY_THRESHOLD:
                    self._buckets[slot] = keys
                # A tree that moves as a whole keeps its shape; two halves are trees made anew from their chains.
                elif len(halves) == 1:
                    self._buckets[slot] = bucket
                else:
                    self._buckets[slot] = TreeBin(self._type, keys)


class TimelineHashMap(MutableMapping[K, V], Generic[K, V]):
    """org.apache.kafka.timeline.TimelineHashMap, which holds the coordinator's own state.

    Its order depends on its history: load a partition of the log again and it can differ.
    """

    __slots__ = ("_slots", "_type", "_values")

    def __init__(self, key_type: KeyType[K], expected_size: int = 0) -> None:
        self._type = key_type
        self._slots: list[list[K] | None] = [None] * max(2, table_size(-(-expected_size * 4 // 3)))
        self._values: dict[K, V] = {}

    @property
    def capacity(self) -> int:
        """The size of the table: with it and its items in order the map can be built again, see ``restored``."""
        return len(self._slots)

    @classmethod
    def restored(cls, key_type: KeyType[K], capacity: int, items: Iterable[tuple[K, V]]) -> "TimelineHashMap[K, V]":
        """Return a map of that capacity that iterates in the order of ``items``, which are those of another map
        of that capacity.
        """
        restored = cls(key_type, capacity * 3 // 4)
        # A slot is walked from its newest key on: keys that are put in from behind come out in the order of ``items``.
        for key, value in reversed(list(items)):
            restored._add(key)
            restored._values[key] = value
        return restored

    def __getitem__(self, key: K) -> V:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        for slot in self._slots:
            if slot:
                yield from reversed(slot)

    def __setitem__(self, key: K, value: V) -> None:
        # Kafka compares (size + 1) * 0.75 with the number of slots: a table takes a third more keys than it has slots.
        if (len(self._values) + 1) * 3 > len(self._slots) * 4:
            old, self._slots = self._slots, [None] * (2 * len(self._slots))
            for slot in old:
                for moved in slot or ():
                    self._add(moved)
        if key not in self._values:
            self._add(key)
        self._values[key] = value

    def __delitem__(self, key: K) -> None:
        del self._values[key]
        slot = self._slots[self._slot(key)]
        if slot:
            slot.remove(key)

    def _slot(self, key: K) -> int:
        return timeline_slot(self._type.hash_code(key), len(self._slots))

    def _add(self, key: K) -> None:
        at = self._slot(key)
        slot = self._slots[at]
        if slot is None:
            self._slots[at] = [key]
        else:
            slot.append(key)


def timeline_slot(hash_code: int, capacity: int) -> int:
    """Return a TimelineHashMap's slot: top bits of the hash code times 2^64 / the golden ratio (multiplicative
    hashing).
    """
    return (hash_code * 0x9E37_79B9_7F4A_7C15 & 0xFFFF_FFFF_FFFF_FFFF) >> 65 - capacity.bit_length()


def grown(capacity: int, size: int) -> int:
    """Return the table size of a HashMap of that initial capacity once ``size`` keys have been put into it."""
    capacity = table_size(capacity)
    while size > threshold(capacity):
        capacity *= 2
    return capacity


def hash_order(
    key_type: KeyType[K],
    keys: Sequence[K],
    capacity: int = DEFAULT_CAPACITY,
    *,
    at_head: bool = False,
    touched: bool = False,
) -> list[K]:
    """Return the order of a HashMap of that initial capacity into which distinct keys were put one after another.

    ``at_head``: they were added by computeIfAbsent, which doubles a full table only when it is called again;
    ``touched``: it was called again, for an existing key.
    """
    if len(keys) < 2:
        return list(keys)
    if len(keys) < TREEIFY_THRESHOLD:  # no bucket can be a tree: a stable sort by bucket is the order
        mask = grown(capacity, len(keys) - (at_head and not touched)) - 1
        hash_code = key_type.hash_code
        return sorted(reversed(keys) if at_head else keys, key=lambda key: spread(hash_code(key)) & mask)
    order = slot_order(spreads(key_type, keys), capacity, at_head=at_head, touched=touched)
    if order is None:
        filled = fill(key_type, keys, capacity, at_head=at_head)
        if touched:
            filled.compute_if_absent(keys[0], lambda: None)
        return list(filled)
    return [keys[index] for index in order.tolist()]


def slot_order(
    hashes: Ints, capacity: int = DEFAULT_CAPACITY, *, at_head: bool = False, touched: bool = False
) -> np.ndarray[Any, np.dtype[np.intp]] | None:
    """Return indices of secondary hashes in HashMap's order, or None if a bucket became a tree on the way."""
    size = len(hashes)
    to_hold = size - (at_head and not touched)
    capacity = table_size(capacity)
    longest = TREEIFY_THRESHOLD - at_head
    while True:
        # The key that fills the table still lands in it; computeIfAbsent doubles only before the next one.
        held = min(size, threshold(capacity) + 1)
        if held > longest and np.bincount(hashes[:held] & capacity - 1).max() > longest:
            return None
        if to_hold <= threshold(capacity):
            break
        capacity *= 2
    slots = hashes & capacity - 1
    if at_head:  # a new key comes first in its bucket: the same sort from behind
        return (size - 1 - np.argsort(slots[::-1], kind="stable")).astype(np.intp)
    return np.argsort(slots, kind="stable")


def grouped_order(
    group: Ints, hashes: Ints, capacity: Ints, to_hold: Ints, *, at_head: bool = False
) -> tuple[Ints, set[int]]:
    """Return the orders of many HashMaps at once: indices of all keys, group by group, each group in HashMap's order.

    ``group`` and ``hashes`` have one entry per key, in the order of insertion; ``capacity`` (as asked for) and
    ``to_hold`` have one entry per group. ``to_hold`` is how many keys the table must hold without growing: all of them,
    or one less if the last one was added by computeIfAbsent. The second result has the groups that may have a tree:
    they must be ordered by themselves.
    """
    tables = 1 << np.ceil(np.log2(np.maximum(capacity, 1))).astype(np.int64)
    first = np.maximum(tables, DEFAULT_CAPACITY)
    while (small := to_hold > tables * 3 // 4).any():
        tables[small] *= 2
    # Tables below the default capacity double before they can hold a tree's worth of keys.
    bucket = group * int(first.max(initial=1)) + (hashes & first[group] - 1)
    longest = TREEIFY_THRESHOLD - at_head
    crowded: set[int] = set()
    if len(group) and np.bincount(group).max() > longest:
        buckets, count = np.unique(bucket, return_counts=True)
        crowded = set((buckets[count > longest] // int(first.max())).tolist())
    slots = hashes & tables[group] - 1
    if at_head:
        return len(group) - 1 - np.lexsort((slots[::-1], group[::-1])), crowded
    # The last key of lexsort counts first: by group, then by slot, and in a slot in the order of insertion.
    return np.lexsort((slots, group)), crowded


def fill(
    key_type: KeyType[K], keys: Iterable[K], capacity: int = DEFAULT_CAPACITY, *, at_head: bool = False
) -> HashMap[K, None]:
    """Return a HashMap into which the keys were put one after another (``at_head``: by computeIfAbsent)."""
    filled: HashMap[K, None] = HashMap(key_type, capacity)
    for key in keys:
        if at_head:
            filled.compute_if_absent(key, lambda: None)
        else:
            filled[key] = None
    return filled


def int_order(numbers: Sequence[int], capacity: int = DEFAULT_CAPACITY) -> list[int]:
    """Return the order of a ``HashSet<Integer>`` of that initial capacity to which distinct numbers were added."""
    table = grown(capacity, len(numbers))
    # Below 2^16 the secondary hash of a number is the number.
    if max(numbers, default=0) < min(table, 1 << 16):  # each number is its own bucket
        return sorted(numbers)
    if len(numbers) <= TREEIFY_THRESHOLD:
        mask = table - 1
        return sorted(numbers, key=lambda number: (number ^ number >> 16) & mask)
    return hash_order(INTEGER, numbers, capacity)


def copied_order(key_type: KeyType[K], keys: Sequence[K], jdk: int) -> list[K]:
    """Return the order of ``new HashSet<>(list)``; keys that are repeated count only for its capacity."""
    return hash_order(key_type, list(dict.fromkeys(keys)), copy_capacity(len(keys), jdk))
