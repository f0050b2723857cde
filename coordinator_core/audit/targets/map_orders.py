"""The orders in which a coordinator may have a group's members in memory, where its log allows more than one.

The coordinator keeps members in a TimelineHashMap, whose order depends on the history of the map. A coordinator that
loads the partition builds the map from what compaction had left at that time: of the records below some offset only the
last one of each key. Without compaction a reload changes nothing. Neither the time of a reload nor the extent of the
compaction before it has to be in the log.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.java.hash_codes import STRING, spread
from coordinator_core.java.order import DEFAULT_CAPACITY, TimelineHashMap, grown, timeline_slot
from coordinator_core.records import LogPosition

KEPT_CHANGES = 512
"""The newest changes of a group's members are kept one by one, at least this many; of older ones only the last of
each key.
"""
MOST_ORDERS = 64
"""At most this many orders are tried against one target."""
MOST_COMPACTIONS = 512
"""At most this many ends of the compacted part of a log are tried."""
MINIMUM_CAPACITY = 2
"""The smallest capacity of Kafka's TimelineHashMap."""
AS_SEEN = "members in the order of the log"

MemberMap = TimelineHashMap[str, None]


class MemberChange(NamedTuple):
    """A member's metadata record (else its current assignment), or its tombstone (``present`` False)."""

    offset: int
    timestamp_ms: int
    member_id: str
    metadata: bool
    present: bool


class Reload(NamedTuple):
    """Evidence that a coordinator loaded the partition before the record at ``offset``."""

    offset: int
    evidence: str


class PossibleOrder(NamedTuple):
    """The members' map as it may have been, and what explains it (``fitted``)."""

    members: MemberMap
    fitted: str


@dataclass(slots=True)
class MemberOrders:
    """What the log shows about the members' map since the group began: changes, and new leaders of the partition.

    ``folded``: of older changes only the last of each key is left, the first ``front`` changes. ``story`` explains the
    order that is followed.
    """

    changes: list[MemberChange] = field(default_factory=list)
    leaders: list[Reload] = field(default_factory=list)
    folded: bool = False
    front: int = 0
    story: str = AS_SEEN

    def change(self, at: LogPosition, member_id: str, *, metadata: bool, present: bool) -> None:
        """Take in a member's metadata or current assignment record, or its tombstone."""
        self.changes.append(MemberChange(at.offset, at.timestamp_ms, member_id, metadata, present))
        # As many as stay have to come first: otherwise all members of a large group would be gone over too often.
        if len(self.changes) > self.front + max(2 * KEPT_CHANGES, self.front):
            older = [change for change in _compacted(self.changes[:-KEPT_CHANGES]) if change.present]
            self.changes[:-KEPT_CHANGES] = older
            self.folded, self.front = True, len(older)

    def written(self, member_id: str) -> int | None:
        """Return the offset of the member's last metadata record; None: no longer kept."""
        own = (change.offset for change in reversed(self.changes) if change.metadata and change.member_id == member_id)
        return next(own, None)

    def new_leader(self, epoch: int, offset: int) -> None:
        """Take in that a coordinator of a new leader epoch loaded the partition; ``offset`` is the first record
        that it wrote.
        """
        self.leaders.append(Reload(offset, f"leader epoch {epoch}"))

    def possible(self, registrations: Iterable[tuple[int, LogPosition]]) -> Iterator[PossibleOrder]:
        """Yield orders that a reload may have left, first those of reloads with evidence, each order once.

        ``registrations`` are broker starts, with their positions in the metadata log.
        """
        reloads = sorted([*self.leaders, *self._after(registrations)], reverse=True)
        seen: set[tuple[str, ...]] = set()
        if not self.folded:
            members = self._map(0)
            seen.add(tuple(members))
            yield PossibleOrder(members, AS_SEEN)
        for compacted in self._compactions(reloads):
            members = self._map(compacted)
            order = tuple(members)
            if order in seen:
                continue
            seen.add(order)
            evident = next((reload for reload in reversed(reloads) if reload.offset >= compacted), None)
            how = "a reload that the log does not show"
            if evident is not None:
                how = f"a reload before offset {evident.offset} ({evident.evidence})"
            yield PossibleOrder(members, f"{how}, compacted up to offset {compacted}")
            if len(seen) >= MOST_ORDERS:
                return

    def _after(self, registrations: Iterable[tuple[int, LogPosition]]) -> Iterator[Reload]:
        """The reloads that broker starts hint at: each before the first change after it."""
        for broker, at in registrations:
            later = next((change for change in self.changes if change.timestamp_ms >= at.timestamp_ms), None)
            if later is not None:
                yield Reload(later.offset, f"broker {broker} registered at {at.partition}:{at.offset} of the metadata")

    def _compactions(self, reloads: list[Reload]) -> Iterator[int]:
        """Ends of a compacted part that can make a difference, those before a known reload first."""
        ends = [change.offset + 1 for change in self.changes]
        known = reloads[0].offset if reloads else 0
        likely = [end for end in reversed(ends) if end <= known]
        others = [end for end in reversed(ends) if end > known]
        yield from (likely + others)[:MOST_COMPACTIONS]

    def _map(self, compacted: int) -> MemberMap:
        """The map when the log below ``compacted`` was compacted and loaded thereafter."""
        split = next((i for i, later in enumerate(self.changes) if later.offset >= compacted), len(self.changes))
        members: MemberMap = TimelineHashMap(STRING)
        for change in (*_compacted(self.changes[:split]), *self.changes[split:]):
            # For a current assignment, be it a tombstone, Kafka puts the member again: that can make the map grow.
            if change.present or (not change.metadata and change.member_id in members):
                members[change.member_id] = None
            elif change.metadata:
                members.pop(change.member_id, None)
        return members


def can_matter(members: Sequence[str]) -> bool:
    """Whether the history of a map of these members can change the order in which an assignor receives them.

    It can only exchange members that share a slot of the map at its smallest possible capacity, and then a slot of the
    HashMap that is filled from it.
    """
    least = MINIMUM_CAPACITY
    # Kafka multiplies with its load factor where it would have to divide: a table holds 4/3 of its slots.
    while len(members) * 3 > least * 4:
        least *= 2
    mask = grown(DEFAULT_CAPACITY, len(members)) - 1
    hashes = map(STRING.hash_code, members)
    slots = {(timeline_slot(hashed, least), spread(hashed) & mask) for hashed in hashes}
    return len(slots) < len(members)


def _compacted(changes: list[MemberChange]) -> list[MemberChange]:
    """The last change of each key, in the order of the log."""
    last = {(change.member_id, change.metadata): change for change in changes}
    return [change for change in changes if last[change.member_id, change.metadata] is change]
