"""The offsets of a log that a dump contains: what is between two records is known only if no offset is missing."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping


class Coverage:
    """Ranges of offsets without a gap, by log partition.

    Compaction, retention and dumps that stop and start again leave gaps. A dump made by a consumer has more of them, as
    control records take offsets too.
    """

    def __init__(self, ranges: Mapping[int, Iterable[tuple[int, int]]]) -> None:
        """``ranges`` has, by log partition, (first, last) offsets, both included, in any order."""
        self._first: dict[int, list[int]] = {}
        self._last: dict[int, list[int]] = {}
        for partition, spans in ranges.items():
            firsts: list[int] = []
            lasts: list[int] = []
            for first, last in sorted(spans):
                if lasts and first <= lasts[-1] + 1:
                    lasts[-1] = max(lasts[-1], last)
                else:
                    firsts.append(first)
                    lasts.append(last)
            self._first[partition], self._last[partition] = firsts, lasts

    def note(self, partition: int, offset: int) -> None:
        """Note one more offset; those of a partition are noted in order."""
        firsts, lasts = self._first.setdefault(partition, []), self._last.setdefault(partition, [])
        if lasts and offset == lasts[-1] + 1:
            lasts[-1] = offset
        else:
            firsts.append(offset)
            lasts.append(offset)

    def set_unbroken(self, partition: int, first: int, last: int, *, gap_follows: bool) -> None:
        """Note that from ``first`` to ``last`` no offset of the partition is missing, and forget what was noted before.

        ``gap_follows``: there are later offsets, but not the next one.
        """
        later = [last + 2] if gap_follows else []
        self._first[partition], self._last[partition] = [first, *later], [last, *later]

    def unbroken(self, partition: int, first: int, last: int) -> bool:
        """Whether the dump contains every offset from ``first`` to ``last``."""
        firsts = self._first.get(partition, [])
        index = bisect_right(firsts, first) - 1
        return index >= 0 and last <= self._last[partition][index]

    def unbroken_from(self, partition: int, offset: int) -> int:
        """Return the first offset from which none is missing up to ``offset``; if it is missing itself, ``offset``."""
        firsts = self._first.get(partition, [])
        index = bisect_right(firsts, offset) - 1
        return firsts[index] if index >= 0 and offset <= self._last[partition][index] else offset

    def continues(self, partition: int, offset: int) -> bool:
        """Whether nothing is missing right after ``offset``: the dump contains the next one, or the log ends there."""
        lasts = self._last.get(partition)
        if not lasts:
            return False
        return offset >= lasts[-1] or self.unbroken(partition, offset, offset + 1)
