"""Who has which partitions and tasks: open intervals, owners, and what a rebalance moves, gives back, leaves idle."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from coordinator_core.records import LogPosition

Resource = tuple[str, str]
"""Role, and what it is a part of: id of a topic (classic: name), of a subtopology, name of a connector."""
Unit = tuple[Resource, int]
"""A partition of a topic, or a task; number -1 is a connector itself."""
Held = Mapping[Resource, AbstractSet[int]]
"""What one member has, as one record says it; no empty sets."""

SHARED_ROLES = frozenset(("standby", "warmup"))
"""Roles in which a unit has no single owner."""


class Since(NamedTuple):
    """How an interval began; ``seen`` is False where it may have begun before the log does."""

    at: LogPosition
    epoch: int | None
    seen: bool


class Interval(NamedTuple):
    """One unit of one member."""

    member_id: str
    resource: Resource
    partition: int
    since: Since


class Changed(NamedTuple):
    """What one record ends of what a member has, and what it begins."""

    member_id: str
    ended: list[tuple[Resource, int, Since]]
    taken: list[Unit]


_NOTHING = Changed("", [], [])


class Holdings:
    """The open intervals of one group, by member."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: dict[str, dict[Resource, dict[int, Since]]] = {}

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> Holdings:
        """Holdings with these intervals open."""
        made = cls()
        for member_id, resource, partition, since in intervals:
            made.members.setdefault(member_id, {}).setdefault(resource, {})[partition] = since
        return made

    def put(self, member_id: str, held: Held, at: LogPosition, epoch: int | None) -> Changed:
        """A member has exactly ``held`` from ``at`` on: what it does not have any more ends, what is new begins."""
        mine = self.members.get(member_id)
        if mine is None:
            if not held:
                return _NOTHING
            mine = self.members[member_id] = {}
        elif mine.keys() == held.keys():
            for resource in held:
                if mine[resource].keys() != held[resource]:
                    break
            else:
                return _NOTHING
        since = Since(at, epoch, True)
        ended: list[tuple[Resource, int, Since]] = []
        taken: list[Unit] = []
        for resource in mine.keys() - held.keys():
            ended += [(resource, partition, begun) for partition, begun in mine.pop(resource).items()]
        for resource, wanted in held.items():
            known = mine.get(resource)
            if known is None:
                mine[resource] = dict.fromkeys(wanted, since)
                taken += [(resource, partition) for partition in wanted]
            elif known.keys() != wanted:
                ended += [(resource, partition, known.pop(partition)) for partition in known.keys() - wanted]
                for partition in wanted - known.keys():
                    known[partition] = since
                    taken.append((resource, partition))
        if not mine:
            del self.members[member_id]
        return Changed(member_id, ended, taken)

    def clear(self, at: LogPosition) -> list[Changed]:
        """Nobody has anything any more."""
        return [self.put(member_id, {}, at, None) for member_id in list(self.members)]

    def doubt(self, member_id: str) -> None:
        """What a member has may have begun before the log shows it."""
        for partitions in self.members.get(member_id, {}).values():
            for partition, since in partitions.items():
                partitions[partition] = since._replace(seen=False)

    def units(self, member_id: str) -> Iterator[Unit]:
        """What a member has."""
        for resource, partitions in self.members.get(member_id, {}).items():
            for partition in partitions:
                yield resource, partition

    def __iter__(self) -> Iterator[Interval]:
        for member_id, mine in self.members.items():
            for resource, partitions in mine.items():
                for partition, since in partitions.items():
                    yield Interval(member_id, resource, partition, since)


class Tally(NamedTuple):
    """Units given up in a rebalance, by what became of them."""

    moved: int
    moved_back: int
    lost: int


@dataclass(slots=True)
class Ownership:
    """Owners of the units that have one owner at most, and what became of the units given up in the open rebalance.

    ``idle`` has the units that nobody owns since one gave them up. ``before`` has, for every unit given up in this
    rebalance, the owner from when it began.
    """

    owners: dict[Unit, str] = field(default_factory=dict)
    idle: dict[Unit, LogPosition] = field(default_factory=dict)
    before: dict[Unit, str] = field(default_factory=dict)
    idle_ms: int = 0
    idle_max_ms: int = 0

    def copy(self) -> Ownership:
        """The same, apart from what becomes of this one."""
        return replace(self, owners={**self.owners}, idle={**self.idle}, before={**self.before})

    def change(self, changes: Sequence[Changed], at: LogPosition) -> None:
        """What records that belong together end, then what they begin."""
        for changed in changes:
            for resource, partition, _ in changed.ended:
                self.release((resource, partition), changed.member_id, at)
        for changed in changes:
            for unit in changed.taken:
                self.take(unit, changed.member_id, at)

    def release(self, unit: Unit, member_id: str, at: LogPosition) -> None:
        """``member_id`` gives up a unit; nothing happens if it was not the owner."""
        if self.owners.get(unit) == member_id:
            del self.owners[unit]
            self.idle[unit] = at
            self.before.setdefault(unit, member_id)

    def take(self, unit: Unit, member_id: str, at: LogPosition) -> None:
        """``member_id`` becomes the owner of a unit."""
        if unit[0][0] in SHARED_ROLES:
            return
        self.owners[unit] = member_id
        since = self.idle.pop(unit, None)
        if since is not None:
            duration = max(at.timestamp_ms - since.timestamp_ms, 0)
            self.idle_ms += duration
            self.idle_max_ms = max(self.idle_max_ms, duration)

    def rename(self, old: str, new: str) -> None:
        """A static member is back under a new member id; what it had was never anybody else's."""
        for unit, owner in self.before.items():
            if owner == old:
                self.before[unit] = new

    def tally(self) -> Tally:
        """The units given up in this rebalance by what became of them so far."""
        moved = back = lost = 0
        for unit, owner in self.before.items():
            now = self.owners.get(unit)
            if now is None:
                lost += 1
            elif now == owner:
                back += 1
            else:
                moved += 1
        return Tally(moved, back, lost)

    def begin(self) -> None:
        """A rebalance begins: what is in flight, from one superseded or given up just now, belongs to it."""
        self.before = {unit: owner for unit, owner in self.before.items() if unit in self.idle}
        self.idle_ms = self.idle_max_ms = 0

    def settle(self, at: LogPosition, members: Container[str]) -> None:
        """A generation is complete: only what it took from members that are still there is in flight."""
        self.before = {u: owner for u, owner in self.before.items() if self.idle.get(u) == at and owner in members}
        self.idle_ms = self.idle_max_ms = 0

    def forget(self, units: Iterable[Unit]) -> None:
        """These units exist no more; nobody lost them."""
        for unit in units:
            self.idle.pop(unit, None)
            self.before.pop(unit, None)

    def clear(self) -> None:
        """All owners, and all that is in flight, are gone."""
        self.owners.clear()
        self.idle.clear()
        self.before.clear()
