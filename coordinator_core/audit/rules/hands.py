"""In whose hands every partition and task is, kept up record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from coordinator_core.history.holdings import SHARED_ROLES, Held, Unit

NOTHING: Held = {}


class Hands:
    """The holders of each unit that may have one only; standby and warm-up tasks are not among them.

    ``clashing`` has, for the units that are in several hands, all of their holders.
    """

    __slots__ = ("clashing", "held", "holder")

    def __init__(self, held: Mapping[str, Held]) -> None:
        self.held: dict[str, Held] = {}
        self.holder: dict[Unit, str] = {}
        self.clashing: dict[Unit, set[str]] = {}
        for member_id, units in held.items():
            self.put(member_id, units)

    def put(self, member_id: str, held: Held) -> list[tuple[Unit, str]]:
        """A member has exactly these units now; returns those it took that another one has, with the first of them."""
        before = self.held.get(member_id, NOTHING)
        if held:
            self.held[member_id] = held
        else:
            self.held.pop(member_id, None)
        for unit in minus(before, held):
            self._release(unit, member_id)
        return [(unit, other) for unit in minus(held, before) if (other := self._take(unit, member_id)) is not None]

    def clear(self) -> None:
        """Nobody has anything."""
        self.held.clear()
        self.holder.clear()
        self.clashing.clear()

    def others(self, unit: Unit, member_id: str) -> list[str]:
        """Who else has the unit."""
        return sorted(self.clashing.get(unit, set()) - {member_id})

    def _release(self, unit: Unit, member_id: str) -> None:
        holders = self.clashing.get(unit)
        if holders is None:
            self.holder.pop(unit, None)
            return
        holders.discard(member_id)
        if len(holders) == 1:
            (self.holder[unit],) = holders
            del self.clashing[unit]

    def _take(self, unit: Unit, member_id: str) -> str | None:
        if unit[0][0] in SHARED_ROLES:
            return None
        present = self.holder.setdefault(unit, member_id)
        if present == member_id:
            return None
        holders = self.clashing.setdefault(unit, {present})
        other = min(holders)
        holders.add(member_id)
        return other


def minus(held: Held, *others: Held) -> Iterator[Unit]:
    """The units of ``held`` that none of the others has."""
    for resource, partitions in held.items():
        rest: AbstractSet[int] = partitions
        for other in others:
            if resource in other:
                rest = rest - other[resource]
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
