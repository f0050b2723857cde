"""The records that a share group's coordinator writes (KIP-932), in the fields of Kafka's JSON.

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from collections.abc import Mapping

from coordinator_core.coordinator.record_templates import Unwritten, known, listed, member_key
from coordinator_core.groups.share.state import ShareMember, ShareTopic, StatePartitionMetadata
from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey
from coordinator_core.record_fields.share_group import (
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataTopicPartitionsInfo,
    ShareGroupStatePartitionMetadataValue,
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
        "assignedPartitions": listed(member.assigned),
    }
    return RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member.member_id), value


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Unwritten[GroupIdKey, ShareGroupMetadataValue]:
    """Return the record of the group epoch and the hash of its topics."""
    return RecordType.SHARE_GROUP_METADATA, {"groupId": group_id}, {"epoch": epoch, "metadataHash": metadata_hash}


def state_partitions(
    group_id: str, metadata: StatePartitionMetadata
) -> Unwritten[GroupIdKey, ShareGroupStatePartitionMetadataValue]:
    """Return the record that says which share partitions have state, and which get or lose it."""
    value: ShareGroupStatePartitionMetadataValue = {
        "initializingTopics": _topics(metadata.initializing),
        "initializedTopics": _topics(metadata.initialized),
        "deletingTopics": [{"topicId": topic, "topicName": name} for topic, name in metadata.deleting.items()],
    }
    return RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, {"groupId": group_id}, value


def _topics(topics: Mapping[str, ShareTopic]) -> list[ShareGroupStatePartitionMetadataTopicPartitionsInfo]:
    return [
        {"topicId": topic_id, "topicName": topic.name, "partitions": sorted(topic.partitions)}
        for topic_id, topic in topics.items()
    ]
