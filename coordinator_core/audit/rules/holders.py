"""In whose hands every partition and task is, kept up record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from coordinator_core.history.holdings import SHARED_ROLES, Held, Resource, Unit

NOTHING: Held = {}


class Holders:
    """The holders of each unit that may have one only; standby and warm-up tasks are not among them.

    ``held`` has what each member has, of any role. ``clashing`` has, for the units that are in several hands, all of
    their holders.
    """

    __slots__ = ("_holders", "clashing", "held")

    def __init__(self, held: Mapping[str, Held]) -> None:
        self.held: dict[str, Held] = {}
        self.clashing: dict[Unit, set[str]] = {}
        self._holders: dict[Resource, dict[int, str]] = {}
        for member_id, units in held.items():
            self.put(member_id, units)

    def put(self, member_id: str, held: Held) -> list[tuple[Unit, str]]:
        """A member has exactly these units now; returns those it took that another one has, with the first of them."""
        before = self.held.get(member_id, NOTHING)
        if held:
            self.held[member_id] = held
        elif before:
            del self.held[member_id]
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
        """Nobody has anything."""
        self.held.clear()
        self.clashing.clear()
        self._holders.clear()

    def has_holder(self, unit: Unit) -> bool:
        """Whether somebody has the unit."""
        resource, partition = unit
        return partition in self._holders.get(resource, ())

    def others(self, unit: Unit, member_id: str) -> list[str]:
        """Who else has the unit."""
        return sorted(self.clashing.get(unit, set()) - {member_id})

    def _release(self, resource: Resource, partitions: AbstractSet[int], member_id: str) -> None:
        holder = self._holders.get(resource)
        if holder is None:
            return
        for partition in partitions:
            holders = self.clashing.get((resource, partition)) if self.clashing else None
            if holders is None:
                holder.pop(partition, None)
                continue
            holders.discard(member_id)
            if len(holders) == 1:
                (holder[partition],) = holders
                del self.clashing[resource, partition]

    def _take(self, resource: Resource, partitions: AbstractSet[int], member_id: str) -> list[tuple[Unit, str]]:
        holder = self._holders.setdefault(resource, {})
        taken = [partition for partition in partitions if holder.setdefault(partition, member_id) != member_id]
        clashes = []
        for partition in sorted(taken):
            holders = self.clashing.setdefault((resource, partition), {holder[partition]})
            clashes.append(((resource, partition), min(holders)))
            holders.add(member_id)
        return clashes


def minus(held: Held, *others: Held) -> Iterator[Unit]:
    """The units of ``held`` that none of the others has."""
    for resource, partitions in held.items():
        rest: AbstractSet[int] = partitions
        for other in others:
            if resource in other:
                rest = rest - other[resource]
        if rest:
            for partition in sorted(rest):
                yield resource, partition


def both(left: Held, right: Held) -> Iterator[Unit]:
    """The units that both have."""
    for resource in left.keys() & right.keys():
        for partition in sorted(left[resource] & right[resource]):
            yield resource, partition


def name(unit: Unit) -> str:
    """A unit as text: ``topic-3``, ``active task 0_3``, ``connector c``, ``task c-0``."""
    (role, what), partition = unit
    if role == "partition":
        return f"{what}-{partition}"
    if role in ("connector", "task"):
        return f"{role} {what}" + ("" if role == "connector" else f"-{partition}")
    return f"{role} task {what}_{partition}"


def names(units: list[Unit], most: int = 3) -> str:
    """Units as text, no more than ``most`` of them."""
    listed = ", ".join(name(unit) for unit in units[:most])
    return listed + (f" and {len(units) - most} more" if len(units) > most else "")
