"""The offsets of a log that a dump contains: what is between two records is known only if no offset is missing."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from coordinator_core.records import GROUP_LOG, LogPosition

OF_4_0: Final = 9
"""SHARE_GROUP_PARTITION_METADATA, which no release has but that of the early access of share groups."""


def ignored_in_words(place: str, record_type: int, first: int, records: int | None = None) -> str:
    """Return in words that a log partition has records of a type that has no schema, the ``first`` at this offset."""
    some = "records" if records is None else "1 record" if records == 1 else f"{records} records"
    whose = "no broker of a release that is known here writes it"
    if record_type == OF_4_0 and place.startswith(GROUP_LOG):
        whose = "only brokers of Kafka 4.0 write it, of the topics that a share group saw (early access)"
    return (
        f"{place} has {some} of type {record_type}, the first at offset {first}: {whose}; a broker that does not know "
        "a type ignores its records, and so does this answer (KIP-915)"
    )


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

    def note(self, partition: int, offset: int, first: int | None = None) -> None:
        """Note one more offset, or all from ``first`` to it; those of a partition are noted in order."""
        firsts, lasts = self._first.setdefault(partition, []), self._last.setdefault(partition, [])
        begin = offset if first is None else first
        if lasts and begin == lasts[-1] + 1:
            lasts[-1] = offset
        else:
            firsts.append(begin)
            lasts.append(offset)

    def bridge(self, partition: int, offset: int) -> None:
        """Note the offsets since the last one that was noted, up to the one before ``offset``: they have no record.

        A live broker does not show the ends of transactions, which take offsets of the log. Where a key has come twice
        compaction has not been, and a broker loses nothing: there nothing else can be missing.
        """
        lasts = self._last.get(partition)
        if lasts:
            lasts[-1] = max(lasts[-1], offset - 1)

    def ranges(self, partition: int) -> Iterator[tuple[int, int]]:
        """Return the ranges of a partition, as (first, last)."""
        return zip(self._first.get(partition, ()), self._last.get(partition, ()), strict=True)

    def newest_ranges(self, partition: int, most: int) -> list[tuple[int, int]]:
        """Return the newest ranges of a partition, at most so many, as (first, last); and forget all others.

        What is forgotten counts as missing: nothing is claimed of it.
        """
        firsts, lasts = self._first.get(partition, []), self._last.get(partition, [])
        del firsts[:-most], lasts[:-most]
        return list(zip(firsts, lasts, strict=True))

    def restore(self, partition: int, ranges: Sequence[tuple[int, int]]) -> None:
        """Take ranges that ``newest_ranges`` gave, of a partition of which nothing was noted."""
        self._first[partition], self._last[partition] = [pair[0] for pair in ranges], [pair[1] for pair in ranges]

    def set_unbroken(self, partition: int, first: int, last: int, *, gap_follows: bool) -> None:
        """Note that from ``first`` to ``last`` no offset of the partition is missing, and forget what was noted before.

        ``gap_follows``: there are later offsets, but not the next one.
        """
        # Any offset but the next one will do: it only shows that the log goes on behind a hole.
        later = [last + 2] if gap_follows else []
        self._first[partition], self._last[partition] = [first, *later], [last, *later]

    def unbroken(self, partition: int, first: int, last: int) -> bool:
        """Whether the dump contains every offset from ``first`` to ``last``."""
        firsts = self._first.get(partition, [])
        # The only range that can have the offset is the last one that begins at it or before.
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

    def cause_of_hole(self, partition: int, first: int, last: int) -> str | None:
        """Return in words what is missing from ``first`` to ``last`` for another reason than compaction."""
        return None


class Hole(NamedTuple):
    """A place of the log of which nothing is known: its last offset, and in words what is missing there."""

    at: LogPosition
    what: str


class ReadableCoverage(Coverage):
    """The offsets whose records about one group can be read: those that the log contains, but for known holes.

    A record that no schema describes is there, and says something of the group that cannot be read here. Records that
    are lost, and that compaction did not remove, may have said anything as well. Only the last hole is kept, as every
    question looks back from the record at hand.
    """

    def __init__(self, log: Coverage, hole: Hole | None = None) -> None:
        """``log`` are the offsets of the log; ``hole`` is the last one that an earlier run knew of."""
        self._log = log
        self.hole = hole

    def lose(self, hole: Hole) -> None:
        """Note a hole, in the order of the log."""
        self.hole = hole

    def unbroken(self, partition: int, first: int, last: int) -> bool:
        """Whether every record from ``first`` to ``last`` is there and can be read."""
        return self._log.unbroken(partition, first, last) and self.cause_of_hole(partition, first, last) is None

    def unbroken_from(self, partition: int, offset: int) -> int:
        """Return the first offset from which every record is there and can be read, up to ``offset``."""
        first = self._log.unbroken_from(partition, offset)
        if self.hole is not None and self.cause_of_hole(partition, first, offset) is not None:
            return self.hole.at.offset + 1
        return first

    def continues(self, partition: int, offset: int) -> bool:
        """Whether nothing is missing right after ``offset``, and no hole came since."""
        is_behind = self.hole is not None and self.hole.at.partition == partition and offset <= self.hole.at.offset
        return not is_behind and self._log.continues(partition, offset)

    def cause_of_hole(self, partition: int, first: int, last: int) -> str | None:
        """Return in words what is missing from ``first`` to ``last``; None: no hole is known there."""
        hole = self.hole
        if hole is None or hole.at.partition != partition or not first <= hole.at.offset <= last:
            return None
        return hole.what


def numbers(noun: str, first: int, last: int) -> str:
    """Return ``epoch 3 was``, or ``epochs 3 to 5 were``."""
    return f"{noun} {first} was" if first == last else f"{noun}s {first} to {last} were"
