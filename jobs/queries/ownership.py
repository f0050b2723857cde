"""Which intervals of ownership belong to a topic or connector, and which of them hold at a moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordinator_core.groups.group import Group
from coordinator_core.groups.owners import Owner
from coordinator_core.groups.streams.sources import readers
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import LogPosition
from jobs.queries.interface import AsOf, OwnedBy


def owned_by(name: str, groups: Iterable[Group]) -> OwnedBy:
    """Return the selection for a topic or connector; ``groups`` have the topologies that say which tasks read it."""
    reading = {
        group.group_id: frozenset(readers(group.state.topology, name))
        for group in groups
        if isinstance(group.state, StreamsGroup)
    }
    return OwnedBy(name, {group_id: found for group_id, found in reading.items() if found})


def interval_of(owner: Owner, rows: Iterable[AssignmentRow], moment: AsOf) -> AssignmentRow | None:
    """Return the interval in which the owner has the partition at the moment; None if the history has none.

    ``rows`` are those of ``OwnedBy``. A member that is asked to give up a partition has it until it did.
    """
    partition = -1 if owner.partition is None else owner.partition
    role = owner.role.removeprefix("revoking ")
    found = [
        row
        for row in rows
        if (row.group_id, row.member_id, row.partition) == (owner.group_id, owner.member_id, partition)
        and row.role == ("partition" if role in ("assigned", "revoking") else role)
        and _has_begun(row.since, moment)
        and not (row.until is not None and _has_begun(row.until, moment))
    ]
    return max(found, key=lambda row: row.since.offset, default=None)


def _has_begun(at: LogPosition, moment: AsOf) -> bool:
    """Return whether the record lies before the moment."""
    if moment.time_ms is not None:
        return at.timestamp_ms <= moment.time_ms
    end = moment.offsets.get(at.partition)
    return end is None or at.offset < end


def in_order(rows: Iterable[AssignmentRow]) -> Iterator[AssignmentRow]:
    """Yield intervals by partition, then by the time at which they begin."""
    yield from sorted(rows, key=lambda row: (row.partition, row.since.timestamp_ms, row.group_id, row.since.offset))
