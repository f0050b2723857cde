"""Holding periods: the intervals over which a member owned the same set of partitions or tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import LogPosition
from jobs.formatting import number_ranges
from jobs.report.data import Spell

MOST_SPELLS = 200
"""Number of last holding periods that are kept for one member."""
LONGEST_TEXT = 400
"""Maximum number of characters that list what a member owned."""


def spells_of_members(rows: Iterable[AssignmentRow]) -> Mapping[str, Sequence[Spell]]:
    """Return the holding periods by member id, in log order, from current assignments; targets do not count."""
    by_member: defaultdict[str, list[AssignmentRow]] = defaultdict(list)
    for row in rows:
        if row.kind == "current":
            by_member[row.member_id].append(row)
    return {member_id: _spells(own)[-MOST_SPELLS:] for member_id, own in by_member.items()}


def _spells(rows: list[AssignmentRow]) -> list[Spell]:
    begins: defaultdict[LogPosition, list[AssignmentRow]] = defaultdict(list)
    ends: defaultdict[LogPosition, list[AssignmentRow]] = defaultdict(list)
    for row in rows:
        begins[row.since].append(row)
        if row.until is not None:
            ends[row.until].append(row)
    # By offset: times within one log may run backwards.
    moments = sorted(begins.keys() | ends.keys(), key=attrgetter("offset"))
    spells: list[Spell] = []
    held: dict[int, AssignmentRow] = {}
    for moment, following in zip(moments, [*moments[1:], None], strict=True):
        for row in ends[moment]:
            held.pop(id(row), None)
        held.update((id(row), row) for row in begins[moment])
        if held:
            until = None if following is None else following.timestamp_ms
            spells.append(Spell(moment, until, len(held), _text(held.values())))
    return spells


def _text(rows: Iterable[AssignmentRow]) -> str:
    """Return what is owned, by role and resource: ``orders 0-3,7; standby 0_1``."""
    numbers: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for row in rows:
        name = row.topic or row.connector or row.subtopology or row.resource
        # Tasks are written as Kafka does: subtopology 0, partition 1 is task 0_1.
        numbers[row.role, name, "_" if row.subtopology and not row.topic else " "].append(row.partition)
    parts = []
    for (role, name, joint), held in sorted(numbers.items()):
        prefix = "" if role == "partition" else f"{role} "
        parts.append(f"{prefix}{name}" if role == "connector" else f"{prefix}{name}{joint}{number_ranges(held)}")
    text = "; ".join(parts)
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
