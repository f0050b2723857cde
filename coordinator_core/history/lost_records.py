"""Offsets whose records are lost, or cannot be decoded: what the log does not say may have been among them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Hole
from coordinator_core.history.grounds import LOST_END, UNREAD_SINCE, lost_offsets, unreadable_record
from coordinator_core.history.rows import (
    AssignmentRow,
    GroupEpochRow,
    MembershipRow,
    RebalanceRow,
    ShareInitializationRow,
    SharePartitionRow,
)
from coordinator_core.history.testimony import AnyRow, lacking
from coordinator_core.records import LOG_TOPICS, Family, LogPosition

Place = tuple[str, int]
"""Topic and partition of a log."""
Offsets = tuple[int, int]
"""The first and the last offset, both included."""


class LogExtent(NamedTuple):
    """What was read of a log partition: how many records, the offset of the last one, and the first offset behind the
    last one without a record.
    """

    records: int
    last: int
    whole_from: int

    @classmethod
    def of(cls, spans: Iterable[Offsets]) -> LogExtent:
        """Return the extent of spans without a gap, which are in order."""
        records, last, whole_from = 0, -1, 0
        for begin, end in spans:
            if begin > last + 1:
                whole_from = begin
            # Spans may overlap where dumps do: what an earlier one had is not counted again.
            records += max(end - max(begin, last + 1) + 1, 0)
            last = max(last, end)
        return cls(records, last, whole_from)


class Unreadable(NamedTuple):
    """The first and the last record of a group that cannot be decoded, and the last that is not of a committed offset.

    Commits that cannot be decoded take nothing from what is known of members and assignments. -1: there is none.
    """

    first: int
    last: int
    last_of_state: int = -1


@dataclass(frozen=True, slots=True)
class LostRecords:
    """Offsets that are lost, and records that cannot be decoded, by topic and partition of the log.

    What compaction removed is not lost: the last record of each key is there. ``unreadable`` are the records of each
    group that no schema describes; ``unplaced`` the first and the last of those whose key does not tell the group.
    ``read``: what was read of logs of groups, where it is known; the history of a group needs its own partition only,
    so that two are equal whatever they have of others.
    """

    ranges: Mapping[Place, Sequence[Offsets]] = field(default_factory=dict)
    unreadable: Mapping[Place, Mapping[str, Unreadable]] = field(default_factory=dict)
    unplaced: Mapping[Place, Offsets] = field(default_factory=dict)
    read: Mapping[Place, LogExtent] = field(default_factory=dict, compare=False)

    def about(self, group_id: str) -> LostRecords:
        """Return what may have said something of one group."""
        of_group = {place: {group_id: known[group_id]} for place, known in self.unreadable.items() if group_id in known}
        return LostRecords(self.ranges, of_group, self.unplaced, self.read)

    def joined(self, other: LostRecords) -> LostRecords:
        """Return what is lost of two logs."""
        return LostRecords(
            {**self.ranges, **other.ranges},
            {**self.unreadable, **other.unreadable},
            {**self.unplaced, **other.unplaced},
            {**self.read, **other.read},
        )

    def last_unplaced(self, place: Place) -> int:
        """Return the offset of the last record of a log partition that may be about any group; -1: there is none."""
        return self.unplaced[place][1] if place in self.unplaced else -1

    def range_since(self, place: Place, offset: int) -> Offsets | None:
        """Return the first offsets that are lost behind a record, be it the end of the log; None: none are."""
        return next((lost for lost in self.ranges.get(place, ()) if lost[1] > offset), None)

    def any_within(self, topic: str, partition: int, first: int, last: int | None) -> bool:
        """Return whether an offset from ``first`` to ``last`` is lost or unreadable; None: to the end of the log."""
        return self.first_within(topic, partition, first, last) is not None

    def first_within(self, topic: str, partition: int, first: int, last: int | None) -> int | None:
        """Return the first offset from ``first`` to ``last`` that is lost or unreadable."""
        found = (begin for begin, end in self._all((topic, partition)) if end >= first)
        return min((max(begin, first) for begin in found if last is None or begin <= last), default=None)

    def last_of(self, place: Place) -> int:
        """Return the last offset of a log partition that is lost or unreadable; -1: none is."""
        return max((end for _, end in self._all(place)), default=-1)

    def _all(self, place: Place) -> Iterator[Offsets]:
        yield from self.ranges.get(place, ())
        yield from ((span.first, span.last) for span in self.unreadable.get(place, {}).values())
        if place in self.unplaced:
            yield self.unplaced[place]

    def as_known(self, row: AnyRow) -> AnyRow | None:
        """Return a row as it is known, None: not at all. What lasts is known to last unless records are lost since.

        A row that has ended is final: what it lacks was found when it was made. A rule that the last operation breaks
        may be kept by the records that are lost.
        """
        if not isinstance(row, LastingRow) or not row.is_open:
            return row
        missing = self._since(row)
        if missing is None:
            return row
        return cast("AnyRow | None", _in_doubt(row, missing))

    def all_known(self, rows: Iterable[AnyRow]) -> Iterator[AnyRow]:
        """Yield these rows as they are known."""
        if not (self.ranges or self.unreadable or self.unplaced):
            return iter(rows)
        return (known for row in rows if (known := self.as_known(row)) is not None)

    def _since(self, row: LastingRow) -> str | None:
        """Return in words what is lost after a row began; None: nothing."""
        at = _begin(row)
        place = (LOG_TOPICS[_family(row)], at.partition)
        if (lost := self.range_since(place, at.offset)) is not None:
            is_end = place in self.read and lost[0] > self.read[place].last
            return LOST_END.format(lost[0]) if is_end else lost_offsets(*lost)
        of_group = self.unreadable.get(place, {}).get(row.group_id)
        last = max(self.last_unplaced(place), -1 if of_group is None else of_group.last_of_state)
        return UNREAD_SINCE.format(last) if last > at.offset else None


NOTHING_LOST = LostRecords()


@dataclass(slots=True)
class UnreadableOffsets:
    """Collects the records of one log partition that cannot be decoded: the first and the last of each group.

    ``unplaced`` are those whose key does not tell the group; None: there is none.
    """

    groups: dict[str, Unreadable] = field(default_factory=dict)
    unplaced: Offsets | None = None

    def note(self, group_id: str | None, offset: int, *, is_commit: bool = False) -> None:
        """Take the next one, in the order of the log; ``group_id`` None: its key cannot be decoded either."""
        if group_id is None:
            self.unplaced = (offset if self.unplaced is None else self.unplaced[0], offset)
            return
        known = self.groups.get(group_id, Unreadable(offset, offset))
        self.groups[group_id] = Unreadable(known.first, offset, known.last_of_state if is_commit else offset)

    @property
    def has_any(self) -> bool:
        """Whether there is one: then what groups are at the end of the partition is not known."""
        return bool(self.groups) or self.unplaced is not None

    @property
    def last_unplaced(self) -> int:
        """The offset of the last one that may be about any group; -1: there is none."""
        return -1 if self.unplaced is None else self.unplaced[1]

    def lost(self, place: Place, gaps: Sequence[Offsets] = ()) -> LostRecords:
        """Return them as what a log partition lacks, beside the offsets that are lost."""
        return LostRecords(
            {place: gaps} if gaps else {},
            {place: self.groups} if self.groups else {},
            {} if self.unplaced is None else {place: self.unplaced},
        )


LastingRow = (
    AssignmentRow
    | GroupEpochRow
    | MembershipRow
    | RebalanceRow
    | ShareInitializationRow
    | SharePartitionRow
    | Violation
)


def _family(row: LastingRow) -> Family:
    """Return the kind of log that the positions of a row are of."""
    if isinstance(row, SharePartitionRow):
        return Family.SHARE
    return Family.CONNECT if getattr(row, "group_type", None) == GroupType.CONNECT else Family.GROUP


_UNTIL_NOW: dict[str, Any] = dict.fromkeys(
    ("units_moved", "units_moved_back", "units_lost", "idle_ms", "idle_max_ms", "delayed_by", "members_behind")
)
"""What a rebalance that lasts says of all its time so far."""


def _in_doubt(row: LastingRow, missing: str) -> LastingRow | None:
    match row:
        case Violation():
            return None
        case GroupEpochRow():
            row = row._replace(state=None)
        case RebalanceRow():
            row = row._replace(outcome="unknown", behind=(), **_UNTIL_NOW)
        case ShareInitializationRow():
            row = row._replace(outcome="unknown")
    return lacking(row, missing)


def _begin(row: LastingRow) -> LogPosition:
    match row:
        case GroupEpochRow():
            return row.opened
        case MembershipRow():
            return row.joined
        case RebalanceRow() | Violation():
            return row.at
    return row.since


class UnknownOffsets(NamedTuple):
    """Offsets, both included, that are lost, or whose records have keys that cannot be decoded."""

    first: int
    last: int
    is_lost: bool


class Holes:
    """Such offsets, by topic and partition of the log."""

    def __init__(self, unknown: Iterable[tuple[Place, UnknownOffsets]]) -> None:
        """Give them in any order."""
        self._runs: dict[Place, list[UnknownOffsets]] = {}
        for place, run in sorted(unknown):
            self._runs.setdefault(place, []).append(run)
        self._firsts = {place: [run.first for run in runs] for place, runs in self._runs.items()}

    def last_before(self, place: Place, offset: int, time_ms: int) -> Hole | None:
        """Return the last one before a record at that offset and time; None: there is none."""
        firsts = self._firsts.get(place)
        if not firsts:
            return None
        index = bisect_left(firsts, offset) - 1
        if index < 0:
            return None
        first, last, is_lost = self._runs[place][index]
        # A run of lost offsets may go on behind the record: what matters is the part before it.
        last = min(last, offset - 1)
        return Hole(
            LogPosition(place[1], last, time_ms), lost_offsets(first, last) if is_lost else unreadable_record(last)
        )


NO_HOLES: Final = Holes(())
