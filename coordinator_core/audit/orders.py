"""The orders in which a coordinator may hold a group's members, where its log allows more than one.

The coordinator keeps members in a TimelineHashMap, whose order depends on the history of the map. Loading the partition
again builds the map from what compaction had left at that time: of the records below some offset only the last one of
each member. Neither the time of a reload nor the extent of the compaction before it need be in the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.assignors.java_hash import STRING
from coordinator_core.assignors.java_order import TimelineHashMap

KEPT_CHANGES = 1024
"""How many changes of a group's members are remembered; older reloads cannot be tried."""
MOST_ORDERS = 64
"""How many orders are tried against one target."""


class MemberChange(NamedTuple):
    """A member's metadata record, or its tombstone."""

    offset: int
    member_id: str
    present: bool


class PossibleOrder(NamedTuple):
    """An order of members, and the story that leads to it."""

    members: tuple[str, ...]
    story: str


@dataclass(slots=True)
class MemberOrders:
    """What the log says of the members' map since the group began: changes, and reloads that were seen."""

    changes: list[MemberChange] = field(default_factory=list)
    reloads: list[int] = field(default_factory=list)
    whole: bool = True

    def change(self, offset: int, member_id: str, *, present: bool) -> None:
        """A member's metadata record, or its tombstone."""
        self.changes.append(MemberChange(offset, member_id, present))
        if len(self.changes) > 2 * KEPT_CHANGES:
            del self.changes[:KEPT_CHANGES]
            self.whole = False

    def reload(self, offset: int) -> None:
        """A coordinator loaded the partition; ``offset`` is the first record that it wrote."""
        self.reloads.append(offset)

    def possible(self) -> Iterator[PossibleOrder]:
        """Orders that a reload may have left, those of reloads that were seen first, each order once."""
        if not self.whole:
            return
        seen: set[tuple[str, ...]] = set()
        for reload, compacted in self._moments():
            order = self._order(reload, compacted)
            if order in seen:
                continue
            seen.add(order)
            how = "reload" if reload in self.reloads else "reload that the log does not show"
            yield PossibleOrder(order, f"{how} before offset {reload}, compacted up to offset {compacted}")
            if len(seen) >= MOST_ORDERS:
                return

    def _moments(self) -> Iterator[tuple[int, int]]:
        """Pairs (reload, end of the compacted part) that can make a difference."""
        if not self.changes:
            return
        end = self.changes[-1].offset + 1
        starts = [change.offset for change in self.changes]
        for reload in [*reversed(self.reloads), end, *reversed(starts)]:
            for compacted in [reload, *(start for start in reversed(starts) if start < reload)][:16]:
                yield reload, compacted

    def _order(self, reload: int, compacted: int) -> tuple[str, ...]:
        """The map's order when the log below ``compacted`` was compacted and the partition loaded at ``reload``."""
        last = {change.member_id: change for change in self.changes if change.offset < compacted}
        members: TimelineHashMap[str, None] = TimelineHashMap(STRING)
        for change in self.changes:
            if change.offset < compacted and last[change.member_id] is not change:
                continue
            if change.present:
                members[change.member_id] = None
            else:
                members.pop(change.member_id, None)
        return tuple(members)
