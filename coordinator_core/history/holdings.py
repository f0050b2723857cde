"""What members have: open intervals, owners, and what a rebalance moves, gives back or leaves without an owner.

A group shares out units: partitions, tasks and connectors. Some have one owner, which ``UnitOwners`` knows.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import Annotated, NamedTuple, TypeVar

from coordinator_core.history.grounds import NO_TIMES, TOPICS_IN_DOUBT
from coordinator_core.records import LogPosition, elapsed_ms
from coordinator_core.state_json import StoredAs

T = TypeVar("T")

Resource = tuple[str, str]
"""Role, and what it is a part of: id of a topic (classic: name), of a subtopology, name of a connector."""
Held = Mapping[Resource, AbstractSet[int]]
"""What one member has, as one record says it; no empty sets."""
OfUnits = dict[Resource, dict[int, T]]
"""Something of every unit: by resource, then by number."""


def units_to_list(units: OfUnits[T]) -> list[tuple[str, str, dict[int, T]]]:
    """Return something of every unit in the order of the units, which is the same however they came."""
    return [(*resource, dict(sorted(units[resource].items()))) for resource in sorted(units)]


def units_of_list(listed: Iterable[tuple[str, str, dict[int, T]]]) -> OfUnits[T]:
    """Return what ``units_to_list`` listed."""
    return {(role, name): numbers for role, name, numbers in listed}


SHARED_ROLES = frozenset(("standby", "warmup"))
"""Roles in which a unit has no single owner."""


class WorkUnit(NamedTuple):
    """One partition of a topic, one task, or one connector.

    ``role`` is partition, active, standby, warmup, connector or task; it is empty where only partitions, or only
    connectors and tasks, can be meant. ``name`` is a topic (name or id, as the context has it), a subtopology or a
    connector. ``number`` is that of the partition or task, -1 for a connector itself.
    """

    role: str
    name: str
    number: int

    @property
    def resource(self) -> Resource:
        """The topic, subtopology or connector in that role."""
        return self.role, self.name


class UnitOwners(OfUnits[str]):
    """The owner of each unit that can have one only: a dict by resource, then by number."""

    def copy(self) -> "UnitOwners":
        """Return the same owners, to be changed apart from these."""
        return UnitOwners({resource: {**numbers} for resource, numbers in self.items()})

    def release(self, resource: Resource, numbers: Iterable[int], member_id: str) -> list[int]:
        """Leave units without an owner; return those. Nothing happens to units that the member does not own."""
        owners = self.get(resource)
        if not owners:
            return []
        released = [number for number in numbers if owners.get(number) == member_id]
        for number in released:
            del owners[number]
        return released

    def take(self, resource: Resource, numbers: Iterable[int], member_id: str) -> list[tuple[int, str]]:
        """Make the member the owner of units; return those that another member owned until now, with that member."""
        owners = self.setdefault(resource, {})
        taken = []
        for number in numbers:
            before = owners.get(number)
            if before is not None and before != member_id:
                taken.append((number, before))
            owners[number] = member_id
        return taken


Since = tuple[LogPosition, int | None, bool]
"""How an interval began: where, in which epoch, and whether the log shows it (False: it may have begun before the
log).
"""


class Interval(NamedTuple):
    """One unit of one member since a record."""

    member_id: str
    resource: Resource
    partition: int
    since: LogPosition
    epoch: int | None
    seen: bool


class Changed(NamedTuple):
    """What one record ends and begins of what a member has, both by resource."""

    member_id: str
    ended: list[tuple[Resource, dict[int, Since]]]
    taken: list[tuple[Resource, list[int]]]


_NOTHING = Changed("", [], [])


class Holdings:
    """The open intervals of one group, by member."""

    __slots__ = ("members",)

    def __init__(self) -> None:
        self.members: dict[str, dict[Resource, dict[int, Since]]] = {}

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> "Holdings":
        """Return holdings with these intervals open."""
        made = cls()
        for member_id, resource, partition, since, epoch, seen in intervals:
            made.members.setdefault(member_id, {}).setdefault(resource, {})[partition] = (since, epoch, seen)
        return made

    def put(self, member_id: str, held: Held, at: LogPosition, epoch: int | None, *, seen: bool = True) -> Changed:
        """Set what a member has from ``at`` on: what it no longer has ends, what is new begins; return both.

        Unless its beginning is ``seen``, it may have begun before.
        """
        units = self.members.get(member_id)
        if units is None:
            if not held:
                return _NOTHING
            units = self.members[member_id] = {}
        since = (at, epoch, seen)
        ended: list[tuple[Resource, dict[int, Since]]] = []
        taken: list[tuple[Resource, list[int]]] = []
        for resource, wanted in held.items():
            known = units.get(resource)
            if known is None:
                units[resource] = dict.fromkeys(wanted, since)
                taken.append((resource, [*wanted]))
            elif known.keys() != wanted:
                # Only differences cost: most records of a large group repeat most of what its members have.
                gone, new = known.keys() - wanted, wanted - known.keys()
                if gone:
                    ended.append((resource, {partition: known.pop(partition) for partition in gone}))
                if new:
                    known.update(dict.fromkeys(new, since))
                    taken.append((resource, [*new]))
        if len(units) > len(held):
            ended += [(resource, units.pop(resource)) for resource in [*units] if resource not in held]
            if not units:
                del self.members[member_id]
        return Changed(member_id, ended, taken) if ended or taken else _NOTHING

    def clear(self, at: LogPosition) -> list[Changed]:
        """End everything that members have; return what ends."""
        return [self.put(member_id, {}, at, None) for member_id in list(self.members)]

    def doubt(self, member_id: str) -> None:
        """Note that what a member has may have begun before the log shows it."""
        for partitions in self.members.get(member_id, {}).values():
            for partition, (at, epoch, _) in partitions.items():
                partitions[partition] = (at, epoch, False)

    def units(self, member_id: str) -> Iterator[tuple[WorkUnit, Since]]:
        """Yield what a member has, with how its interval began."""
        for resource, partitions in self.members.get(member_id, {}).items():
            for partition, since in partitions.items():
                yield WorkUnit(*resource, partition), since

    def __iter__(self) -> Iterator[Interval]:
        for member_id, units in self.members.items():
            for resource, partitions in units.items():
                for partition, since in partitions.items():
                    yield Interval(member_id, resource, partition, *since)


class Wanted(NamedTuple):
    """How many partitions a group is to read of a topic: 0 where it was deleted or is no longer subscribed.

    ``partitions`` is None where it is not known whether the topic is there; ``may_be_unsubscribed``: then it may be one
    that the group no longer subscribes to, too.
    """

    partitions: int | None
    may_be_unsubscribed: bool = False


def no_times(at: LogPosition) -> str | None:
    """Return what is not known about an epoch that a record without a time opens; None: it has a time."""
    return NO_TIMES if at.timestamp_ms < 0 else None


class Tally(NamedTuple):
    """Units given up in a rebalance, by what happened to them, and how long (ms) they had no owner.

    None: not known, as some of them may have gone with their topics, or the group may have unsubscribed from them for a
    time, or they are of another topic by now: then they did not move. Where one is not known, those behind it are not.
    """

    moved: int | None
    moved_back: int | None
    lost: int | None
    idle_ms: int | None
    idle_max_ms: int | None

    @property
    def missing(self) -> str | None:
        """What it takes to know all counts and times, in words; None: they are known."""
        if self.lost is None:
            return TOPICS_IN_DOUBT
        return NO_TIMES if self.idle_ms is None else None


ALL, ALL_BUT_TIMES, MOVES, NONE = 5, 3, 2, 0
"""So many figures of a tally are known: all; those without the times; of units that have an owner again; none."""

_NAMES = list[tuple[str, str, dict[int, str]]]
_STORED_OWNERS = StoredAs(_NAMES, units_to_list, lambda listed: UnitOwners(units_of_list(listed)))
_STORED_NAMES = StoredAs(_NAMES, units_to_list, units_of_list)
_STORED_POSITIONS = StoredAs(list[tuple[str, str, dict[int, LogPosition]]], units_to_list, units_of_list)


@dataclass(slots=True)
class Ownership:
    """Owners of the units that have at most one owner, and what happened to units given up in the open rebalance.

    ``idle`` has the units without an owner since a member gave them up, which ``last`` names. ``before`` has, for every
    unit given up in this rebalance, its owner at the beginning. ``replaced`` has static members by their former member
    ids: units that pass from the former id to the new one are not given up. ``in_doubt`` are topics with idle
    partitions that may no longer have been there, with whether the group may have unsubscribed from them, too.
    ``known`` is how many figures of the tally are known by what has an owner again: it may have been idle for another
    time, or be of another topic of that name.
    """

    owners: Annotated[UnitOwners, _STORED_OWNERS] = field(default_factory=UnitOwners)
    idle: Annotated[OfUnits[LogPosition], _STORED_POSITIONS] = field(default_factory=dict)
    last: Annotated[OfUnits[str], _STORED_NAMES] = field(default_factory=dict)
    before: Annotated[OfUnits[str], _STORED_NAMES] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    idle_ms: int = 0
    idle_max_ms: int = 0
    in_doubt: dict[str, bool] = field(default_factory=dict)
    known: int = ALL

    def copy(self) -> "Ownership":
        """Return a copy that can be changed without changing this one."""
        owners, idle, before = self.owners.copy(), _copy(self.idle), _copy(self.before)
        last, replaced, in_doubt = _copy(self.last), {**self.replaced}, {**self.in_doubt}
        return replace(self, owners=owners, idle=idle, last=last, before=before, replaced=replaced, in_doubt=in_doubt)

    def change(self, changes: Sequence[Changed], at: LogPosition, *, by_name: bool = False) -> None:
        """Apply what records that belong together end, then what they begin.

        ``by_name``: a topic that is known by its name may be another one by now. One that is known by its id was there
        all the time, if its partitions have an owner again; the group may have come back to it.
        """
        # What moves to another member is given up only if its former owner still has it then: so all ends come first.
        for changed in changes:
            for resource, gone in changed.ended:
                self._release(resource, gone, changed.member_id, at)
        for changed in changes:
            for resource, new in changed.taken:
                if resource[0] not in SHARED_ROLES:
                    were_idle = self._take(resource, new, changed.member_id, at)
                    topic = resource[1]
                    if topic in self.in_doubt and (by_name or self.in_doubt[topic]):
                        self.known = min(self.known, NONE if by_name and were_idle else MOVES)

    def _release(self, resource: Resource, partitions: Iterable[int], member_id: str, at: LogPosition) -> None:
        """``member_id`` gives up partitions; nothing happens to those of which it was not the owner."""
        released = self.owners.release(resource, partitions, member_id)
        if released:
            idle, before = self.idle.setdefault(resource, {}), self.before.setdefault(resource, {})
            last = self.last.setdefault(resource, {})
            for partition in released:
                idle[partition], last[partition] = at, member_id
                # The first owner of this rebalance counts: a unit may pass through several hands, and come back.
                before.setdefault(partition, member_id)

    def _take(self, resource: Resource, partitions: list[int], member_id: str, at: LogPosition) -> bool:
        """``member_id`` becomes the owner of partitions; return whether one of them had none before this record."""
        self.owners.take(resource, partitions, member_id)
        were_idle = False
        idle = self.idle.get(resource)
        if idle:
            for partition in partitions:
                since = idle.pop(partition, None)
                if since is not None:
                    self._was_idle(since, at)
                    were_idle |= since != at
        return were_idle

    def go_on(self, members: Container[str], at: LogPosition) -> None:
        """These members go on with what they had until an operation of this time, which converts their group: they
        have not given it up.
        """
        for resource, idle in self.idle.items():
            last, before = self.last.get(resource, {}), self.before.get(resource, {})
            ended_now = [number for number, since in idle.items() if since.timestamp_ms == at.timestamp_ms >= 0]
            for number in ended_now:
                if (owner := last.get(number)) in members:
                    self.owners.take(resource, [number], last[number])
                    del idle[number]
                    if before.get(number) == owner:
                        del before[number]

    def _was_idle(self, since: LogPosition, until: LogPosition) -> None:
        lasted_ms = elapsed_ms(since.timestamp_ms, until.timestamp_ms)
        if lasted_ms is None:
            self.known = min(self.known, ALL_BUT_TIMES)
            return
        self.idle_ms += max(lasted_ms, 0)
        self.idle_max_ms = max(self.idle_max_ms, lasted_ms)

    def were_stopped(self, before: Mapping[Resource, AbstractSet[int]], lasted_ms: int | None) -> None:
        """Count the units that had an owner before and have one now, and that all owners gave up in between for at
        least ``lasted_ms`` (None: it is not known), as eager members do before they join.
        """
        stopped = sum(len(numbers & self.owners.get(resource, {}).keys()) for resource, numbers in before.items())
        if lasted_ms is None:
            self.known = min(self.known, ALL_BUT_TIMES if stopped else ALL)
            return
        self.idle_ms += stopped * lasted_ms
        self.idle_max_ms = max(self.idle_max_ms, lasted_ms if stopped else 0)

    def rename(self, former: str, member_id: str) -> None:
        """A static member goes on under another member id."""
        self.replaced[former] = member_id
        self.replaced.pop(member_id, None)  # two processes may take turns, and nobody follows one who is here

    def _owner_before(self, owner: str) -> str:
        """Under which member id the owner of then goes now."""
        while owner in self.replaced:
            owner = self.replaced[owner]
        return owner

    def tally(self) -> Tally:
        """Return the counts of units given up in this rebalance, by what happened to them so far."""
        moved = back = lost = 0
        known = self.known
        for resource, before in self.before.items():
            owners = self.owners.get(resource, {})
            may_be_unsubscribed = self.in_doubt.get(resource[1], False)
            for partition, owner in before.items():
                now = owners.get(partition)
                if now is None:
                    lost += 1
                    known = min(known, MOVES if resource[1] in self.in_doubt else ALL)
                    continue
                known = NONE if may_be_unsubscribed else known
                if now == owner:
                    back += 1
                elif not self.replaced or now != self._owner_before(owner):
                    moved += 1
        # What becomes doubtful first stands last: what is known is always a beginning of them.
        figures = (moved, back, lost, self.idle_ms, self.idle_max_ms)
        return Tally(*figures[:known], *(None,) * (ALL - known))

    def end(self, at: LogPosition) -> None:
        """End the rebalance, and no other one continues it: units without an owner now were idle until ``at``."""
        for resource, before in self.before.items():
            idle = self.idle.get(resource, {})
            for partition in before.keys() & idle.keys():
                self._was_idle(idle[partition], at)

    def forget(self, wanted: Callable[[str], Wanted]) -> None:
        """Drop idle partitions that the group no longer wants, and note the topics of which that is not known.

        ``wanted`` returns what it wants of a topic, by its id, in classic groups by its name.
        """
        for resource, before in self.before.items():
            idle = self.idle.get(resource)
            if idle and resource[0] == "partition":
                gone = before.keys() & idle.keys()
                if gone:
                    topic = resource[1]
                    count, may_be_unsubscribed = wanted(topic)
                    if count is None:
                        self.in_doubt[topic] = may_be_unsubscribed or self.in_doubt.get(topic, False)
                        continue
                    if count and not self.in_doubt.get(topic):
                        self.in_doubt.pop(topic, None)  # it was there all the time
                    for partition in gone:
                        if partition >= count:
                            del before[partition], idle[partition]

    def seen(self, resource: Resource) -> int:
        """How many units of a resource have an owner, or had one that was seen to give them up."""
        return len(self.owners.get(resource, ())) + len(self.idle.get(resource, ()))

    def forget_released(self) -> None:
        """Records may be missing: what members gave up may be with others by now."""
        self.idle.clear()
        self.before.clear()

    def forget_idle(self) -> None:
        """Drop all units without an owner: they no longer exist."""
        for resource, before in self.before.items():
            idle = self.idle.pop(resource, {})
            for partition in before.keys() & idle.keys():
                del before[partition]

    def begin(self) -> None:
        """Begin a rebalance: units that were given up just now, or in a rebalance that it supersedes, belong to it."""
        kept: OfUnits[str] = {}
        for resource, before in self.before.items():
            idle = self.idle.get(resource)
            if idle:
                kept[resource] = {partition: before[partition] for partition in before.keys() & idle.keys()}
        self._keep(kept)

    def settle(self, at: LogPosition, members: Container[str]) -> None:
        """Complete a generation: only units that it took from members that are still in the group are in flight."""
        kept: OfUnits[str] = {}
        for resource, before in self.before.items():
            idle = self.idle.get(resource, {})
            kept[resource] = {
                partition: owner
                for partition, owner in before.items()
                if idle.get(partition) == at and self._owner_before(owner) in members
            }
        self._keep(kept)

    def _keep(self, kept: OfUnits[str]) -> None:
        self.before = kept
        if self.replaced and not any(kept.values()):
            self.replaced.clear()
        self.idle_ms, self.idle_max_ms, self.known = 0, 0, ALL
        still_idle = {resource[1] for resource, partitions in self.idle.items() if partitions}
        self.in_doubt = {topic: doubt for topic, doubt in self.in_doubt.items() if topic in still_idle}

    def clear(self) -> None:
        """Forget all owners, and all units in flight."""
        for of_units in (self.owners, self.idle, self.last, self.before, self.replaced, self.in_doubt):
            of_units.clear()
        self.idle_ms, self.idle_max_ms, self.known = 0, 0, ALL


def _copy(of_units: OfUnits[T]) -> OfUnits[T]:
    return {resource: {**partitions} for resource, partitions in of_units.items()}
