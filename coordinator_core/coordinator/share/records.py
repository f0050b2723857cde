"""The records that a share group's coordinator writes (KIP-932), in the fields of Kafka's JSON.

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator_core.coordinator.record_templates import Unwritten, member_key, target_epoch_value, tombstones_of_all
from coordinator_core.groups import record_types
from coordinator_core.groups.share.state import ShareMember, ShareTopic, StatePartitionMetadata
from coordinator_core.records import Fields, RecordType


def member_metadata(group_id: str, member: ShareMember) -> Unwritten:
    """The member's metadata."""
    value: Fields = {
        "rackId": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "subscribedTopicNames": member.subscribed_topic_names,
    }
    return RecordType.SHARE_GROUP_MEMBER_METADATA, member_key(group_id, member.member_id), value


def current_assignment(group_id: str, member: ShareMember) -> Unwritten:
    """The member's current assignment."""
    value: Fields = {
        "memberEpoch": member.member_epoch,
        "previousMemberEpoch": member.previous_member_epoch,
        "state": member.state,
        "assignedPartitions": _partitions(member.assigned),
    }
    return RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member.member_id), value


def target_assignment(group_id: str, member_id: str, target: Mapping[str, Sequence[int]]) -> Unwritten:
    """A member's target assignment."""
    key = member_key(group_id, member_id)
    return RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, key, {"topicPartitions": _partitions(target)}


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Unwritten:
    """The epoch and time of the target assignment; time 0 is not written."""
    value = target_epoch_value(epoch, timestamp_ms)
    return RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, {"groupId": group_id}, value


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Unwritten:
    """The group epoch and the hash of its topics."""
    return RecordType.SHARE_GROUP_METADATA, {"groupId": group_id}, {"epoch": epoch, "metadataHash": metadata_hash}


def state_partitions(group_id: str, metadata: StatePartitionMetadata) -> Unwritten:
    """Which share partitions have state, get it or lose it."""
    value: Fields = {
        "initializingTopics": _topics(metadata.initializing),
        "initializedTopics": _topics(metadata.initialized),
        "deletingTopics": [{"topicId": topic, "topicName": name} for topic, name in metadata.deleting.items()],
    }
    return RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, {"groupId": group_id}, value


def group_tombstones(group_id: str, members: Sequence[str]) -> list[Unwritten]:
    """The whole group goes, with these members."""
    key = {"groupId": group_id}
    return [
        *tombstones_of_all(record_types.SHARE, group_id, members),
        (RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, key, None),
        (RecordType.SHARE_GROUP_METADATA, key, None),
    ]


def _partitions(partitions: Mapping[str, Sequence[int]]) -> list[Fields]:
    return [{"topicId": topic, "partitions": list(numbers)} for topic, numbers in partitions.items()]


def _topics(topics: Mapping[str, ShareTopic]) -> list[Fields]:
    return [
        {"topicId": topic_id, "topicName": topic.name, "partitions": sorted(topic.partitions)}
        for topic_id, topic in topics.items()
    ]
