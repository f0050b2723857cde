"""The owners of each partition or task over time."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from coordinator_core.history.rows import AssignmentRow
from jobs.report.data import OwnedUnit, OwnerSpell

MOST_UNITS = 120
MOST_OWNERS = 2400
"""Number of owners of all listed partitions or tasks together."""

DIGITS = re.compile(r"(\d+)")


def owned_units(rows: Iterable[AssignmentRow]) -> tuple[Sequence[OwnedUnit], int]:
    """Return the partitions or tasks that changed owner most, by name, and the number of all with an owner.

    Targets do not count: they say what was to be owned.
    """
    by_unit: defaultdict[str, list[AssignmentRow]] = defaultdict(list)
    for row in rows:
        if row.kind == "current":
            by_unit[unit_name(row)].append(row)
    chosen = sorted(by_unit, key=lambda name: (-len(by_unit[name]), _natural(name)))[:MOST_UNITS]
    most = MOST_OWNERS // max(1, len(chosen))
    return [_unit(name, by_unit[name], most) for name in sorted(chosen, key=_natural)], len(by_unit)


def _unit(name: str, rows: list[AssignmentRow], most: int) -> OwnedUnit:
    rows.sort(key=lambda row: (row.since.timestamp_ms, row.since.offset, row.member_id))
    owners = (
        OwnerSpell(row.member_id, row.since, None if row.until is None else row.until.timestamp_ms)
        for row in rows[-most:]
    )
    return OwnedUnit(name, tuple(owners), max(0, len(rows) - most))


def unit_name(row: AssignmentRow) -> str:
    """Return the name of a partition, task or connector, with its role unless it is the owner of a partition."""
    name = row.topic or row.connector or row.subtopology or row.resource
    prefix = "" if row.role == "partition" else f"{row.role} "
    return f"{prefix}{name}" if row.role == "connector" else f"{prefix}{name} {row.partition}"


def _natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by their value.

    A number is its count of digits, then its digits: a hostile name has more of them than Python reads as an integer.
    """
    parts = DIGITS.split(name)
    texts, numbers = parts[::2], (digits.lstrip("0") for digits in (*parts[1::2], ""))
    return [key for text, number in zip(texts, numbers, strict=True) for key in ((0, text), (len(number), number))]
