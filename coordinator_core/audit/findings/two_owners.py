"""Partitions, tasks and connectors that two members had at the same time, although one alone may have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import CONNECTOR_OR_TASK, GroupHistory, counted, first_of
from coordinator_core.durations import duration
from coordinator_core.groups.rules import Rule
from coordinator_core.history.holdings import SHARED_ROLES
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import LogPosition


class TwoOwners(NamedTuple):
    """What one record gave to a second member: the rows of both members for each unit, and until when both had it."""

    at: LogPosition
    units: tuple[tuple[AssignmentRow, AssignmentRow], ...]
    until: LogPosition | None

    def lasted_ms(self, history: GroupHistory) -> int:
        """Return for how long two members had some of it."""
        return (history.now_ms if self.until is None else self.until.timestamp_ms) - self.at.timestamp_ms

    @property
    def listed(self) -> str:
        """Return the names of the units."""
        return first_of([_name(second) for _, second in self.units])

    @property
    def members(self) -> list[str]:
        """Return the ids of all members that had some of it."""
        return sorted({row.member_id for pair in self.units for row in pair})

    @property
    def counted(self) -> str:
        """Return how many units there are, in words."""
        roles = {second.role for _, second in self.units}
        noun = "partition" if roles == {"partition"} else "task" if roles == {"active"} else CONNECTOR_OR_TASK
        return counted(len(self.units), noun)

    @property
    def meaning(self) -> str:
        """Return what it leads to."""
        if {second.role for _, second in self.units} <= {"partition", "active"}:
            return "records that both read in this time are processed twice"
        return "work that both do in this time is done twice"


def _name(row: AssignmentRow) -> str:
    name = row.topic or row.connector or row.resource
    return name if row.role == "connector" else f"{name}-{row.partition}"


def two_owners_of(history: GroupHistory) -> Iterator[TwoOwners]:
    """Yield what was given to a second member, by the record that gave it."""
    broken = {row.at for row in history.violations if row.rule == Rule.ASSIGNED_TO_TWO}
    if not broken:
        return
    by_unit: dict[tuple[str, str, int], list[AssignmentRow]] = defaultdict(list)
    for row in history.assignments:
        if row.kind == "current" and row.role not in SHARED_ROLES:
            by_unit[row.role, row.resource, row.partition].append(row)
    by_position: dict[LogPosition, list[tuple[AssignmentRow, AssignmentRow]]] = defaultdict(list)
    for _, rows in sorted(by_unit.items()):
        for second in rows:
            first = next((row for row in rows if row.member_id != second.member_id and _had(row, second.since)), None)
            if second.since in broken and first is not None:
                by_position[second.since].append((first, second))
    for at, pairs in sorted(by_position.items()):
        ends = [_earlier(first.until, second.until) for first, second in pairs]
        known = [end for end in ends if end is not None]
        yield TwoOwners(at, tuple(pairs), max(known, key=lambda end: end.offset) if len(known) == len(ends) else None)


def _had(row: AssignmentRow, at: LogPosition) -> bool:
    return row.since.offset < at.offset and (row.until is None or row.until.offset > at.offset)


def _earlier(one: LogPosition | None, other: LogPosition | None) -> LogPosition | None:
    ends = [end for end in (one, other) if end is not None]
    return min(ends, key=lambda end: end.offset, default=None)


def two_owners(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each record that gave partitions, tasks or connectors to a second member."""
    for span in two_owners_of(history):
        lasted_ms = max(span.lasted_ms(history), 1)
        names = " and ".join(str(history.client(member_id)) for member_id in span.members)
        how = "have had two owners for at least" if span.until is None else "had two owners for"
        yield history.finding(
            FindingKind.TWO_OWNERS,
            lasted_ms,
            f"{span.counted} {how} {duration(lasted_ms)}: {names} had {span.listed}; {span.meaning}",
            [span.at, *([span.until] if span.until is not None else [])],
            is_open=span.until is None,
        )
