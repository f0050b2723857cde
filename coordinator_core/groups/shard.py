"""All that the coordinator of one log partition knows: its groups and their offsets, folded from the partition."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets, OffsetLog
from coordinator_core.groups.violations import NONE, Violations
from coordinator_core.records import CoordinatorRecord, RecordType

_COMMITS = frozenset((RecordType.OFFSET_COMMIT, RecordType.LEGACY_OFFSET_COMMIT))


@dataclass(slots=True)
class CoordinatorShard:
    """Groups and offsets of one partition of ``__consumer_offsets``, by group id.

    ``from_start``: the records come from the start of the partition (compacted or not), so that what they do not show
    is not there.
    """

    from_start: bool = True
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: OffsetLog = field(default_factory=OffsetLog)

    def apply(self, record: CoordinatorRecord, producer_id: int | None = None) -> Violations:
        """Applies the next record in log order; ``producer_id`` where its batch is transactional."""
        group_id = record.group_id
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, from_start=self.from_start)
        if record.type not in _COMMITS:
            return group.apply(record)
        self.offsets.apply(record, producer_id)
        if record.value is not None:
            group.commit()
        return NONE

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Applies a transaction marker of the partition."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def offsets_of(self, group_id: str) -> GroupOffsets:
        """The offsets of a group, empty ones if it has none."""
        return self.offsets.groups.get(group_id) or GroupOffsets()
