"""A group's converged states: who had what after each rebalance, and what had moved since the state before."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.grounds import UNREAD_ASSIGNMENT
from coordinator_core.history.holdings import SHARED_ROLES, WorkUnit
from coordinator_core.history.rows import REACHED_NOT_READY, RebalanceRow
from coordinator_core.records import LogPosition

TASK_ROLES = frozenset(("active",))
"""Roles of the units that count in groups of Kafka Streams, where some member has such a unit."""
UNIT_ROLES = frozenset(("partition", "connector", "task"))
"""Roles of the units that count in all other groups."""


class ConvergedState(NamedTuple):
    """What each member had when a rebalance had converged.

    ``previous`` is the rebalance of the converged state before (None: this is the first one). ``loads`` has the number
    of units of each member, 0 included. Since the state before, ``joined`` members joined, and ``left_to_others`` units
    moved from a member that stayed to another one. ``topics`` are those of which partitions were assigned.
    ``copies`` has the members with standby or warm-up tasks;
    ``warming_up``: some task was still to move to the process that restores its state (KIP-441, KIP-1071).
    """

    rebalance: RebalanceRow
    previous: RebalanceRow | None
    loads: Mapping[str, int]
    joined: int
    left_to_others: int
    copies: frozenset[str] = frozenset()
    warming_up: bool = False
    topics: frozenset[str] = frozenset()

    @property
    def units(self) -> int:
        """Return the number of units that the members have together."""
        return sum(self.loads.values())

    @property
    def spread(self) -> int:
        """Return the difference between the most and the least loaded member, in units."""
        return max(self.loads.values(), default=0) - min(self.loads.values(), default=0)

    @property
    def empty_members(self) -> list[str]:
        """Return the members without a unit; one that keeps copies of state has work."""
        return [member_id for member_id, load in self.loads.items() if not load and member_id not in self.copies]


@dataclass(slots=True)
class _Sweep:
    """The group as of one offset of its log.

    ``loads`` counts the units of each member, ``owners`` has the member of each unit. ``given_up`` has, by unit, the
    member that first gave it up since the last converged state. ``successors`` has, by member id, the static member
    that has taken its place so far. ``copies`` counts standby and warm-up tasks by member, ``warmups`` all warm-up
    tasks.
    """

    successors: dict[str, str] = field(default_factory=dict)
    loads: Counter[str] = field(default_factory=Counter)
    members: set[str] = field(default_factory=set)
    owners: dict[WorkUnit, str] = field(default_factory=dict)
    given_up: dict[WorkUnit, str] = field(default_factory=dict)
    copies: Counter[str] = field(default_factory=Counter)
    topics: Counter[str] = field(default_factory=Counter)
    warmups: int = 0

    def present_name(self, member_id: str) -> str:
        while member_id in self.successors:
            member_id = self.successors[member_id]
        return member_id

    def left_to_others(self) -> int:
        count = 0
        for unit, owner in self.given_up.items():
            before, now = self.present_name(owner), self.owners.get(unit)
            count += now is not None and now != before and before in self.members
        return count

    def begin(self, member_id: str, unit: WorkUnit, topic: str | None) -> None:
        self.topics[topic or ""] += 1
        self.loads[member_id] += 1
        self.owners[unit] = member_id

    def end(self, member_id: str, unit: WorkUnit, topic: str | None) -> None:
        self.topics[topic or ""] -= 1
        self.loads[member_id] -= 1
        # Where a log shows two owners at a time, the unit is the later one's already.
        if self.owners.get(unit) == member_id:
            del self.owners[unit]
        self.given_up.setdefault(unit, member_id)

    def change_copies(self, member_id: str, role: str, change: int) -> None:
        self.copies[member_id] += change
        self.warmups += change if role == "warmup" else 0

    def join(self, member_id: str, replaces: str | None) -> None:
        """A member joins the group; a static one may take the place of another."""
        self.members.add(member_id)
        if replaces is not None:
            self.successors[replaces] = member_id
        self.successors.pop(member_id, None)  # two processes may take turns, and nobody follows one who is here


class _Event(NamedTuple):
    """What happens to the group with a record; at one offset, what ends comes before what begins."""

    offset: int
    begins: bool
    apply: Callable[[], None]


def converged_states(history: GroupHistory) -> Iterator[ConvergedState]:
    """Yield the converged states in order. Standby and warm-up tasks do not count as load.

    In Kafka Streams tasks count, not the partitions that a classic group also has. A rebalance that only takes away
    what the next one hands out (KIP-429, KIP-415) does not produce a converged state. A share group has none, as its
    members share each partition: of a group that was of several types, only the times as the others count. Nor does a
    generation of which an assignment cannot be read.
    """
    sweep = _Sweep()
    # At one offset what ends comes first: a unit that one record moves has its new owner afterwards.
    events = sorted(_events(history, sweep), key=lambda event: (event.offset, event.begins))
    done, before, previous = 0, set[str](), None
    for finished, rebalance in _converged(history):
        while done < len(events) and events[done].offset <= finished.offset:
            events[done].apply()
            done += 1
        # A static member that came back under another id has not joined: it stands for the one before.
        joined = len(sweep.members - {sweep.present_name(member_id) for member_id in before})
        loads = {member_id: sweep.loads[member_id] for member_id in sorted(sweep.members)}
        copies = frozenset(member_id for member_id, count in sweep.copies.items() if count)
        left = sweep.left_to_others()
        topics = frozenset(topic for topic, count in sweep.topics.items() if topic and count > 0)
        yield ConvergedState(rebalance, previous, loads, joined, left, copies, sweep.warmups > 0, topics)
        sweep.given_up.clear()
        before, previous = set(sweep.members), rebalance


def _converged(history: GroupHistory) -> list[tuple[LogPosition, RebalanceRow]]:
    """The rebalances that converged, each with where it did, without those that only took units away."""
    halfway = {
        cause.at for row in history.rebalances for cause in row.causes if cause.kind == CauseKind.PARTITIONS_REVOKED
    }
    converged = [
        (row.finished, row)
        for row in history.rebalances
        if row.outcome in ("converged", REACHED_NOT_READY)
        and row.finished is not None
        and row.at not in halfway
        and row.group_type != GroupType.SHARE
        and row.missing != UNREAD_ASSIGNMENT
    ]
    return sorted(converged, key=lambda entry: entry[1].at.offset)


def _events(history: GroupHistory, sweep: _Sweep) -> Iterator[_Event]:
    rows = [row for row in history.assignments if row.kind == "current" and row.group_type != GroupType.SHARE]
    counted = TASK_ROLES if any(row.role in TASK_ROLES for row in rows) else UNIT_ROLES
    for row in rows:
        if row.role in counted:
            topic = row.topic if row.role == "partition" else None
            had = row.member_id, WorkUnit(row.role, row.resource, row.partition), topic
            yield _Event(row.since.offset, True, partial(sweep.begin, *had))
            if row.until is not None:
                yield _Event(row.until.offset, False, partial(sweep.end, *had))
        elif row.role in SHARED_ROLES:
            yield _Event(row.since.offset, False, partial(sweep.change_copies, row.member_id, row.role, 1))
            if row.until is not None:
                yield _Event(row.until.offset, False, partial(sweep.change_copies, row.member_id, row.role, -1))
    for member in (row for row in history.memberships if row.group_type != GroupType.SHARE):
        yield _Event(member.joined.offset, True, partial(sweep.join, member.member_id, member.replaces))
        if member.left is not None:
            yield _Event(member.left.offset, False, partial(sweep.members.discard, member.member_id))
