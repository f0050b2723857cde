"""A group's settled moments: who had what when a rebalance had converged, and what had moved since the one before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.audit.findings.group_history import GroupHistory
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import AssignmentRow, MembershipRow, RebalanceRow

Unit = tuple[str, str, int]
"""Role, resource (topic, subtopology, connector) and number."""
SHARED_ROLES = frozenset(("standby", "warmup"))


class ConvergedState(NamedTuple):
    """A moment at which a rebalance had converged.

    ``loads`` has the units of each member, those without any included. ``left_to_others`` counts the units that went
    from a member that stayed to another since the moment before, ``joined`` the members that came, ``previous`` is the
    moment's rebalance (None: the first one).
    """

    rebalance: RebalanceRow
    previous: RebalanceRow | None
    loads: Mapping[str, int]
    joined: int
    left_to_others: int

    @property
    def units(self) -> int:
        """All units that somebody has."""
        return sum(self.loads.values())

    @property
    def spread(self) -> int:
        """Between the most and the least loaded member."""
        return max(self.loads.values(), default=0) - min(self.loads.values(), default=0)

    @property
    def idle(self) -> int:
        """Members with nothing."""
        return sum(1 for load in self.loads.values() if not load)


@dataclass(slots=True)
class _Sweep:
    loads: dict[str, int] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    owners: dict[Unit, str] = field(default_factory=dict)
    given_up: dict[Unit, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def begin(self, unit: Unit, member_id: str) -> None:
        self.loads[member_id] = self.loads.get(member_id, 0) + 1
        self.owners[unit] = member_id

    def end(self, unit: Unit, member_id: str) -> None:
        self.loads[member_id] = self.loads.get(member_id, 0) - 1
        if self.owners.get(unit) == member_id:
            del self.owners[unit]
        self.given_up.setdefault(unit, member_id)

    def present_name(self, member_id: str) -> str:
        while member_id in self.names:
            member_id = self.names[member_id]
        return member_id

    def left_to_others(self) -> int:
        count = 0
        for unit, owner in self.given_up.items():
            before, now = self.present_name(owner), self.owners.get(unit)
            count += now is not None and now != before and before in self.members
        return count


def settled_moments(history: GroupHistory) -> Iterator[ConvergedState]:
    """The moments in order. Standby and warm-up tasks do not count; of classic Kafka Streams groups tasks only.

    A rebalance that only takes away what the next one hands out (KIP-429, KIP-415) settles nothing.
    """
    rows = [row for row in history.assignments if row.kind == "current" and row.role not in SHARED_ROLES]
    if any(row.role == "active" for row in rows):
        rows = [row for row in rows if row.role != "partition"]
    events = sorted(_events(rows, history.memberships), key=lambda event: (event.offset, event.begins))
    halfway = {
        cause.at for row in history.rebalances for cause in row.causes if cause.kind == CauseKind.PARTITIONS_REVOKED
    }
    finished = [row for row in history.rebalances if row.outcome == "converged" and row.at not in halfway]
    finished = [row for row in finished if row.finished is not None]
    finished.sort(key=lambda row: row.at.offset)
    sweep = _Sweep({}, set(), {}, {}, {r.replaces: r.member_id for r in history.memberships if r.replaces is not None})
    done, before, previous = 0, set[str](), None
    for rebalance in finished:
        assert rebalance.finished is not None
        while done < len(events) and events[done].offset <= rebalance.finished.offset:
            _apply(sweep, events[done])
            done += 1
        joined = len(sweep.members - {sweep.present_name(member_id) for member_id in before})
        loads = {member_id: sweep.loads.get(member_id, 0) for member_id in sorted(sweep.members)}
        yield ConvergedState(rebalance, previous, loads, joined, sweep.left_to_others())
        sweep.given_up.clear()
        before, previous = set(sweep.members), rebalance


class _Event(NamedTuple):
    offset: int
    begins: bool
    member_id: str
    unit: Unit | None


def _events(rows: Sequence[AssignmentRow], memberships: Sequence[MembershipRow]) -> Iterator[_Event]:
    for row in rows:
        unit = (row.role, row.resource, row.partition)
        yield _Event(row.since.offset, True, row.member_id, unit)
        if row.until is not None:
            yield _Event(row.until.offset, False, row.member_id, unit)
    for member in memberships:
        yield _Event(member.joined.offset, True, member.member_id, None)
        if member.left is not None:
            yield _Event(member.left.offset, False, member.member_id, None)


def _apply(sweep: _Sweep, event: _Event) -> None:
    if event.unit is not None:
        (sweep.begin if event.begins else sweep.end)(event.unit, event.member_id)
    elif event.begins:
        sweep.members.add(event.member_id)
    else:
        sweep.members.discard(event.member_id)
