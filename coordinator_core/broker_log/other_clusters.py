"""Files of brokers' application logs that are of another cluster, although groups of it have the same names.

The ids of members are unique. A file that names members of these groups, none of which is in the coordinator's log, is
of another cluster, or of a time that the log does not have: its epochs and generations are other ones.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.messages import UUID

NAMING: Final = frozenset(
    (
        EventKind.MEMBER_LEFT,
        EventKind.MEMBER_EXPIRED,
        EventKind.MEMBER_TIMED_OUT,
        EventKind.MEMBER_FENCED,
        EventKind.REBALANCE_BEGAN,
        EventKind.GENERATION_ASSIGNED,
    )
)
"""Lines that name members that are in the log, or were: those of clients that never joined are not."""
LEAST: Final = 2
"""So many members a file names before it is judged: one may have come and gone between two generations."""
NAMED: Final = re.compile(UUID)


def marks_of(member: str | None) -> set[str]:
    """Return what tells a member from all others: the UUID in its id, or the id itself if it has none."""
    return set(NAMED.findall(member or "")) or ({member} if member else set())


def of_other_clusters(
    events: Iterable[BrokerEvent], members_of: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, int]]:
    """Yield the files that are of another cluster, each with the number of members that it names.

    ``members_of`` has the ids of all members that a group has in the coordinator's log; lines about other groups do not
    count.
    """
    known = {group: {mark for member in members for mark in marks_of(member)} for group, members in members_of.items()}
    named: defaultdict[str, set[str]] = defaultdict(set)
    fitting: set[str] = set()
    for event in events:
        if event.kind not in NAMING or not (own := known.get(event.group_id or "")):
            continue
        marks = marks_of(event.member_id) or set(NAMED.findall(event.reason or ""))
        named[event.file] |= marks
        if marks & own:
            fitting.add(event.file)
    for file, marks in named.items():
        if file not in fitting and len(marks) >= LEAST:
            yield file, len(marks)
