"""Groups that are made again and again under new names, as each start of a console consumer makes one.

Each leaves records of its group and its offsets in the coordinator's log until these expire, however short it read. No
group's own history shows that there are others: this finding is of the cluster.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, make_finding
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.durations import duration
from coordinator_core.records import LogPosition

VARIES: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{12,}|\d+", re.I)
"""The part of a name that is another one each time: a UUID, a long hexadecimal number, or a number."""


class GroupStay(NamedTuple):
    """A group that had members, and has none any more."""

    group_id: Annotated[str, "the group"]
    joined: Annotated[LogPosition, "the record of its first member"]
    left_ms: Annotated[int, "when its last member went"]


def group_stays(history: GroupHistory) -> Iterator[GroupStay]:
    """Yield over which time a group had members, if none is left."""
    gone = [row.left for row in history.memberships if row.left is not None]
    if gone and len(gone) == len(history.memberships):
        first = min((row.joined for row in history.memberships), key=lambda at: (at.timestamp_ms, at.offset))
        yield GroupStay(history.group_id, first, max(at.timestamp_ms for at in gone))


def short_lived(stays: Iterable[GroupStay], limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each set of groups whose names differ in a number alone and that had members for a short
    time, where there are many.
    """
    by_name: dict[str, list[GroupStay]] = defaultdict(list)
    for stay in stays:
        name = VARIES.sub("N", stay.group_id)
        if name != stay.group_id and 0 <= stay.joined.timestamp_ms >= stay.left_ms - limits.short_lived_ms:
            by_name[name].append(stay)
    for name, alike in sorted(by_name.items()):
        if len(alike) < limits.short_lived_groups:
            continue
        alike.sort(key=lambda stay: (stay.joined.timestamp_ms, stay.group_id))
        longest = max(stay.left_ms - stay.joined.timestamp_ms for stay in alike)
        yield make_finding(
            FindingKind.SHORT_LIVED_GROUPS,
            len(alike),
            limits.short_lived_groups,
            f"{len(alike)} groups named {name}, from {alike[0].group_id} to {alike[-1].group_id}, had members once, "
            f"for at most {duration(longest)}, and have none now: each start of a client makes a new group",
            [alike[0].joined, alike[-1].joined],
            subject=name,
            since_ms=alike[0].joined.timestamp_ms,
            until_ms=max(stay.left_ms for stay in alike),
            complete=True,
        )
