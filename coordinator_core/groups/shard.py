"""The state of the coordinator of one log partition: its groups and their offsets, folded from the partition."""

from dataclasses import dataclass, field

from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets, OffsetLog
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations
from coordinator_core.records import COMMIT_TYPES, AnyRecord, Family, RecordType

_HEARTBEATS = frozenset((RecordType.STREAMS_GROUP_MEMBER_METADATA, RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT))


@dataclass(slots=True)
class CoordinatorShard:
    """Groups and offsets of one partition of ``__consumer_offsets``, by group id; or of ``__worker_offsets``.

    ``from_start``: the records are from the start of the partition (compacted or not), so that what they do not show
    does not exist.
    """

    from_start: bool = True
    family: Family = Family.GROUP
    groups: dict[str, Group] = field(default_factory=dict)
    offsets: OffsetLog = field(default_factory=OffsetLog)
    leader_epoch: int | None = None

    def apply(self, record: AnyRecord, producer_id: int | None = None, leader_epoch: int | None = None) -> Violations:
        """Apply the next record in log order; return the violations found.

        ``producer_id`` is given if its batch is transactional. ``leader_epoch`` is that of the batch, None if the dump
        has none: a new one shows that another coordinator loaded the partition and lost what was only in memory.
        """
        if leader_epoch is not None and leader_epoch != self.leader_epoch:
            self.follow(leader_epoch)
        group = self.group(record.group_id)
        if record.type not in COMMIT_TYPES or self.family is not Family.GROUP:
            # Timers write tombstones, too: only a value shows that a member has sent a heartbeat.
            if record.type in _HEARTBEATS and record.value is not None:
                group.reloaded = False
            return group.apply(record)
        self.offsets.apply(record, producer_id)
        if record.value is not None:
            group.commit()
        return NO_VIOLATIONS

    def group(self, group_id: str) -> Group:
        """Return the group of that id; it is made if it was not seen before."""
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = Group(group_id, from_start=self.from_start, family=self.family)
        return group

    def follow(self, leader_epoch: int | None) -> None:
        """Note the leader epoch of the log from here on, None if it is not known."""
        if self.leader_epoch is None:
            self.leader_epoch = leader_epoch
        elif leader_epoch is not None and leader_epoch > self.leader_epoch:
            self.leader_epoch = leader_epoch
            for group in self.groups.values():
                group.reloaded = True

    def lose(self) -> None:
        """Note that records of the partition are missing here: from now on what is not seen may exist nevertheless.

        Among them may be the markers of transactions that were open.
        """
        self.from_start = False
        for group in self.groups.values():
            group.from_start = False
        for producer_id in list(self.offsets.open_transactions):
            # A lost outcome is not taken for a commit: what was pending goes, and what was committed before stays.
            self.end_transaction(producer_id, committed=False)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply a transaction marker of the partition."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def offsets_of(self, group_id: str) -> GroupOffsets:
        """Return the offsets of a group, empty ones if it has none."""
        return self.offsets.groups.get(group_id) or GroupOffsets()
