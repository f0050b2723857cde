"""Records that a coordinator is about to write, as far as the groups with epochs (consumer, share, streams) agree."""

from collections.abc import Iterable, Mapping, Sequence

from typing_extensions import TypeVar

from coordinator_core.errors import InputError
from coordinator_core.groups.record_types import RecordTypes
from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupTargetAssignmentMemberTopicPartition,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from coordinator_core.records import RecordType

KeyT = TypeVar("KeyT", default=Mapping[str, object])
ValueT = TypeVar("ValueT", default=Mapping[str, object])

Unwritten = tuple[RecordType, KeyT, ValueT | None]
"""Record type, key and value (None: a tombstone)."""

T = TypeVar("T")


def known(value: T | None) -> T:
    """Return a part of a member that a record needs; raises InputError if the log did not show it."""
    if value is None:
        raise InputError("the log does not show the whole member: replay the group from its first record")
    return value


def member_key(group_id: str, member_id: str) -> MemberKey:
    """Return the key of each record about a member."""
    return {"groupId": group_id, "memberId": member_id}


def member_tombstones(types: RecordTypes, group_id: str, member_id: str) -> list[Unwritten]:
    """Return the tombstones of a member: of its current assignment, its target assignment and its metadata, in
    this order.
    """
    key = member_key(group_id, member_id)
    return [(types.current, key, None), (types.target, key, None), (types.member, key, None)]


def tombstones_of_all(types: RecordTypes, group_id: str, members: Sequence[str]) -> list[Unwritten]:
    """Return the tombstones of all members of a group that is removed: current assignments, targets, target
    metadata, members.
    """
    keys = [member_key(group_id, member_id) for member_id in members]
    return [
        *((types.current, key, None) for key in keys),
        *((types.target, key, None) for key in keys),
        (types.target_epoch, {"groupId": group_id}, None),
        *((types.member, key, None) for key in keys),
    ]


def listed(partitions: Mapping[str, Iterable[int]]) -> list[ConsumerGroupTargetAssignmentMemberTopicPartition]:
    """Return partitions by topic id as records and responses list them."""
    return [{"topicId": topic, "partitions": list(numbers)} for topic, numbers in partitions.items()]


def target_assignment(
    types: RecordTypes, group_id: str, member_id: str, target: Mapping[str, Sequence[int]]
) -> Unwritten[MemberKey, ConsumerGroupTargetAssignmentMemberValue]:
    """Return the record of a member's target assignment of partitions: the same fields in both types of it."""
    return types.target, member_key(group_id, member_id), {"topicPartitions": listed(target)}


def target_epoch(
    types: RecordTypes, group_id: str, epoch: int, timestamp_ms: int
) -> Unwritten[GroupIdKey, ConsumerGroupTargetAssignmentMetadataValue]:
    """Return the record of the epoch and time of the target assignment; time 0 is left out."""
    value: ConsumerGroupTargetAssignmentMetadataValue = {"assignmentEpoch": epoch}
    if timestamp_ms:
        value["assignmentTimestamp"] = timestamp_ms
    return types.target_epoch, {"groupId": group_id}, value
