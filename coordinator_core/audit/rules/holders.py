"""Which members have which partitions and tasks, kept up to date record by record."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from coordinator_core.history.holdings import SHARED_ROLES, Held, Resource, UnitOwners, WorkUnit

HOLDS_NOTHING: Held = {}


class Holders:
    """The holders of each unit that only one member may have; standby and warm-up tasks are left out.

    ``held`` has what each member has, in any role. ``clashing`` has all holders of the units that several members have.
    """

    __slots__ = ("_owners", "clashing", "held")

    def __init__(self, held: Mapping[str, Held]) -> None:
        self.held: dict[str, Held] = {}
        self.clashing: dict[WorkUnit, set[str]] = {}
        self._owners = UnitOwners()
        for member_id, units in held.items():
            self.put(member_id, units)

    def put(self, member_id: str, held: Held) -> list[tuple[WorkUnit, str]]:
        """Replace what a member has; return each unit that another member has too, with the first of its holders."""
        before = self.held.get(member_id, HOLDS_NOTHING)
        if held:
            self.held[member_id] = held
            if held == before:  # as with most records: a member reaches another epoch with what it has
                return []
        elif before:
            del self.held[member_id]
        # Only what changes is released and taken: ``held - before`` and ``before - held``, one set operation a topic.
        for resource, partitions in before.items():
            gone = partitions - held[resource] if resource in held else partitions
            if gone:
                self._release(resource, gone, member_id)
        clashes = []
        for resource, partitions in held.items():
            new = partitions - before[resource] if resource in before else partitions
            if new and resource[0] not in SHARED_ROLES:
                clashes += self._take(resource, new, member_id)
        return clashes

    def clear(self) -> None:
        """Forget what all members have."""
        self.held.clear()
        self.clashing.clear()
        self._owners.clear()

    def has_holder(self, unit: WorkUnit) -> bool:
        """Whether a member has the unit."""
        return unit.number in self._owners.get(unit.resource, ())

    def others(self, unit: WorkUnit, member_id: str) -> list[str]:
        """Return the other members that have the unit too."""
        return sorted(self.clashing.get(unit, set()) - {member_id})

    def _release(self, resource: Resource, partitions: AbstractSet[int], member_id: str) -> None:
        self._owners.release(resource, partitions, member_id)
        if not self.clashing:
            return
        for partition in partitions:
            unit = WorkUnit(*resource, partition)
            holders = self.clashing.get(unit)
            if holders is None:
                continue
            holders.discard(member_id)
            # Owners are one for each unit: another one of its holders takes the place of the one that gave it up.
            self._owners.take(resource, (partition,), min(holders))
            if len(holders) == 1:
                del self.clashing[unit]

    def _take(self, resource: Resource, partitions: AbstractSet[int], member_id: str) -> list[tuple[WorkUnit, str]]:
        clashes = []
        for partition, other in sorted(self._owners.take(resource, partitions, member_id)):
            unit = WorkUnit(*resource, partition)
            holders = self.clashing.setdefault(unit, {other})
            clashes.append((unit, min(holders)))
            holders.add(member_id)
        return clashes


def minus(held: Held, *others: Held) -> Iterator[WorkUnit]:
    """Yield the units that ``held`` has and the others do not."""
    for resource, partitions in held.items():
        rest: AbstractSet[int] = partitions
        for other in others:
            if resource in other:
                rest = rest - other[resource]
        if rest:
            for partition in sorted(rest):
                yield WorkUnit(*resource, partition)


def both(left: Held, right: Held) -> Iterator[WorkUnit]:
    """Yield the units that both have."""
    for resource in left.keys() & right.keys():
        for partition in sorted(left[resource] & right[resource]):
            yield WorkUnit(*resource, partition)


def name(unit: WorkUnit) -> str:
    """Return a unit as text: ``topic-3``, ``active task 0_3``, ``connector c``, ``task c-0``."""
    role, subject, partition = unit
    if role == "partition":
        return f"{subject}-{partition}"
    if role in ("connector", "task"):
        return f"{role} {subject}" + ("" if role == "connector" else f"-{partition}")
    return f"{role} task {subject}_{partition}"


def names(units: list[WorkUnit], most: int = 3) -> str:
    """Return units as text, at most ``most`` of them by name."""
    listed = ", ".join(name(unit) for unit in units[:most])
    return listed + (f" and {len(units) - most} more" if len(units) > most else "")
