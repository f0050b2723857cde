"""What a group shares out: partitions, tasks and connectors, and who owns each of those that have one owner."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple, TypeVar

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

    @classmethod
    def of_list(cls, listed: Iterable[tuple[str, str, dict[int, str]]]) -> UnitOwners:
        """Return the owners that ``units_to_list`` listed."""
        return cls(units_of_list(listed))

    def copy(self) -> UnitOwners:
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
