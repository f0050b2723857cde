"""The operation of the coordinator that wrote a target, cut out of its record batch.

One batch can contain several operations, even of one group. The order in which the coordinator writes its records shows
which of them belong to the operation that ends with the target assignment's metadata.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator_core.groups.epoch_records import GroupEpochRecord, MemberRecord, MemberTargetRecord, TargetEpochRecord
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import EPOCH_GROUP_RECORDS, RecordTypes
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupPartitionMetadataRecord,
)
from coordinator_core.record_fields.streams_group import StreamsGroupPartitionMetadataRecord, StreamsGroupTopologyRecord
from coordinator_core.records import AnyRecord, RecordType

KIND_OF_TARGET_EPOCH: Mapping[int, RecordTypes] = {kind.target_epoch: kind for kind in EPOCH_GROUP_RECORDS}
_TOPICS_OF_GROUP: Mapping[GroupType, RecordType] = {
    GroupType.CONSUMER: RecordType.CONSUMER_GROUP_PARTITION_METADATA,
    GroupType.STREAMS: RecordType.STREAMS_GROUP_PARTITION_METADATA,
}
"""The records with which brokers of no metadata hash wrote down the topics of a group."""


@dataclass(slots=True)
class TargetOperation:
    """The records of one operation, by their part in it.

    ``start`` is the index of its first record among those it was cut from. ``member`` is the metadata of the member
    that joins or changes; None if the operation contains none (a heartbeat that changes no metadata, a timer).
    ``replaced`` is the id of the static member that this member replaces. ``copied``: the targets are those of a
    classic group that was converted in this batch.
    """

    kind: RecordTypes
    end: TargetEpochRecord
    start: int
    targets: list[MemberTargetRecord] = field(default_factory=list)
    epoch: GroupEpochRecord | None = None
    partition_metadata: ConsumerGroupPartitionMetadataRecord | StreamsGroupPartitionMetadataRecord | None = None
    topology: StreamsGroupTopologyRecord | None = None
    member: MemberRecord | None = None
    replaced: str | None = None
    copied: bool = False

    @property
    def epoch_number(self) -> int:
        """Return the assignment epoch that the operation ends with."""
        assert self.end.value is not None
        return self.end.value["assignmentEpoch"]


def cut(kind: RecordTypes, end: TargetEpochRecord, before: Sequence[AnyRecord]) -> TargetOperation:
    """Return the operation that ends with the target epoch ``end``; ``before`` are the records of its batch up to
    it.
    """
    # Backwards: the coordinator writes the parts of an operation in one order, and its end is the only sure place.
    cutter = _Cutter(before)
    operation = TargetOperation(kind, end, 0)
    operation.targets = cutter.many(kind.target, value=True)
    legacy = _TOPICS_OF_GROUP.get(kind.group, -1)
    operation.partition_metadata = cutter.one(legacy)
    operation.epoch = cutter.one(kind.epoch, value=True)
    if kind.group is GroupType.STREAMS:
        operation.topology = cutter.one(RecordType.STREAMS_GROUP_TOPOLOGY, value=True)
    # Some releases write it before the epoch, others behind it.
    operation.partition_metadata = operation.partition_metadata or cutter.one(legacy)
    if kind.group is GroupType.CONSUMER:
        cutter.many(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, value=False)
    if operation.epoch is not None and cutter.ends_without_target(kind):
        return TargetOperation(kind, end, len(before) - len(operation.targets), operation.targets)
    conversion = cutter.conversion(kind, with_topology=operation.topology is not None)
    if conversion is not None:
        operation.start, operation.copied = conversion, True
        return operation
    operation.member = cutter.one(kind.member, value=True)
    replacement = cutter.replacement(kind, operation.member)
    if replacement is not None:
        member, operation.replaced = replacement
        operation.member = operation.member or member
    operation.start = cutter.position
    return operation


class _Cutter:
    """Walks back through records."""

    def __init__(self, records: Sequence[AnyRecord]) -> None:
        self.records = records
        self.position = len(records)

    def one(self, record_type: int, *, value: bool | None = None) -> AnyRecord | None:
        """Return the record just before, if it is of this type and, where asked, a value or a tombstone."""
        if self.position and self._is(self.position - 1, record_type, value):
            self.position -= 1
            return self.records[self.position]
        return None

    def many(self, record_type: int, *, value: bool) -> list[AnyRecord]:
        """Return the records just before of this type, in log order."""
        end = self.position
        while self.one(record_type, value=value):
            pass
        return list(self.records[self.position : end])

    def ends_without_target(self, kind: RecordTypes) -> bool:
        """Whether the records just before are of an operation whose last record is a group epoch.

        A member's departure ends so, and a regular expression that was resolved in the background. The next heartbeat
        computes the target, be it in the same batch, or in another one that a dump without batches does not tell apart.
        """
        return self.position > 0 and (
            self._is(self.position - 1, kind.member, False)
            or self._is(self.position - 1, RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, True)
        )

    def conversion(self, kind: RecordTypes, *, with_topology: bool) -> int | None:
        """Where the conversion of a classic group with members begins that the records just before end.

        These are its tombstone and its members, who still speak the classic protocol; not so the first member of a
        group that takes the place of an empty classic one. The members of a streams group do not say which protocol
        they speak. ``with_topology``: the operation has a topology, which a converted group has only later.
        """
        if kind.group is GroupType.SHARE or (kind.group is GroupType.STREAMS and with_topology):
            return None
        index = self.position
        while index and self._is(index - 1, kind.member, True) and self._may_be_classic(kind, index - 1):
            index -= 1
        if index < self.position and index and self._is(index - 1, RecordType.GROUP_METADATA, False):
            return index - 1
        return None

    def replacement(self, kind: RecordTypes, member: MemberRecord | None) -> tuple[MemberRecord, str] | None:
        """Return the static member, and the id of the one that it replaces, whose replacement the records just before
        end: 8T 7T 5T of the old id, 5 7 8 of the new.
        """
        shape = (
            (kind.current, False),
            (kind.target, False),
            (kind.member, False),
            (kind.member, True),
            (kind.target, True),
            (kind.current, True),
        )
        first = self.position - len(shape)
        if first < 0 or not all(self._is(first + i, type_, value) for i, (type_, value) in enumerate(shape)):
            return None
        old: MemberRecord = self.records[first + 2]
        new: MemberRecord = self.records[first + 3]
        if member is not None and member.key["memberId"] != new.key["memberId"]:
            return None
        self.position = first
        return new, old.key["memberId"]

    def _may_be_classic(self, kind: RecordTypes, index: int) -> bool:
        if kind.group is GroupType.STREAMS:
            return True
        member: ConsumerGroupMemberMetadataRecord = self.records[index]
        return member.value is not None and member.value.get("classicMemberMetadata") is not None

    def _is(self, index: int, record_type: int, value: bool | None) -> bool:
        record = self.records[index]
        return record.type == record_type and (value is None or (record.value is not None) is value)
