"""The records that a share group's coordinator writes (KIP-932), in the fields of Kafka's JSON.

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator_core.coordinator.record_templates import MemberKey, Unwritten, known, member_key, tombstones_of_all
from coordinator_core.groups import record_types
from coordinator_core.groups.share.state import ShareMember, ShareTopic, StatePartitionMetadata
from coordinator_core.record_fields.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataTopicPartitionsInfo,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberTopicPartition,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from coordinator_core.records import RecordType


def member_metadata(group_id: str, member: ShareMember) -> Unwritten[MemberKey, ShareGroupMemberMetadataValue]:
    """Return the record of the member's metadata."""
    value: ShareGroupMemberMetadataValue = {
        "rackId": member.rack_id,
        "clientId": known(member.client_id),
        "clientHost": known(member.client_host),
        "subscribedTopicNames": member.subscribed_topic_names,
    }
    return RecordType.SHARE_GROUP_MEMBER_METADATA, member_key(group_id, member.member_id), value


def current_assignment(
    group_id: str, member: ShareMember
) -> Unwritten[MemberKey, ShareGroupCurrentMemberAssignmentValue]:
    """Return the record of the member's current assignment."""
    value: ShareGroupCurrentMemberAssignmentValue = {
        "memberEpoch": known(member.member_epoch),
        "previousMemberEpoch": known(member.previous_member_epoch),
        "state": known(member.state),
        "assignedPartitions": _partitions(member.assigned),
    }
    return RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member.member_id), value


def target_assignment(
    group_id: str, member_id: str, target: Mapping[str, Sequence[int]]
) -> Unwritten[MemberKey, ShareGroupTargetAssignmentMemberValue]:
    """Return the record of a member's target assignment."""
    key = member_key(group_id, member_id)
    return RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, key, {"topicPartitions": _partitions(target)}


def target_epoch(
    group_id: str, epoch: int, timestamp_ms: int
) -> Unwritten[ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue]:
    """Return the record of the epoch and time of the target assignment; time 0 is left out."""
    value: ShareGroupTargetAssignmentMetadataValue = {"assignmentEpoch": epoch}
    if timestamp_ms:
        value["assignmentTimestamp"] = timestamp_ms
    return RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, {"groupId": group_id}, value


def group_epoch(
    group_id: str, epoch: int, metadata_hash: int
) -> Unwritten[ShareGroupMetadataKey, ShareGroupMetadataValue]:
    """Return the record of the group epoch and the hash of its topics."""
    return RecordType.SHARE_GROUP_METADATA, {"groupId": group_id}, {"epoch": epoch, "metadataHash": metadata_hash}


def state_partitions(
    group_id: str, metadata: StatePartitionMetadata
) -> Unwritten[ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue]:
    """Return the record that says which share partitions have state, and which get or lose it."""
    value: ShareGroupStatePartitionMetadataValue = {
        "initializingTopics": _topics(metadata.initializing),
        "initializedTopics": _topics(metadata.initialized),
        "deletingTopics": [{"topicId": topic, "topicName": name} for topic, name in metadata.deleting.items()],
    }
    return RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, {"groupId": group_id}, value


def group_tombstones(group_id: str, members: Sequence[str]) -> list[Unwritten]:
    """Return the tombstones of the whole group with these members."""
    key: ShareGroupMetadataKey = {"groupId": group_id}
    return [
        *tombstones_of_all(record_types.SHARE_RECORDS, group_id, members),
        (RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, key, None),
        (RecordType.SHARE_GROUP_METADATA, key, None),
    ]


def _partitions(partitions: Mapping[str, Sequence[int]]) -> list[ShareGroupTargetAssignmentMemberTopicPartition]:
    return [{"topicId": topic, "partitions": list(numbers)} for topic, numbers in partitions.items()]


def _topics(topics: Mapping[str, ShareTopic]) -> list[ShareGroupStatePartitionMetadataTopicPartitionsInfo]:
    return [
        {"topicId": topic_id, "topicName": topic.name, "partitions": sorted(topic.partitions)}
        for topic_id, topic in topics.items()
    ]
