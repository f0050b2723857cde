"""The records that a consumer group's coordinator writes (KIP-848), in the fields of Kafka's JSON.

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from coordinator_core.coordinator.record_templates import Unwritten, known, member_key
from coordinator_core.groups.consumer.state import ConsumerMember, ResolvedRegex
from coordinator_core.groups.epochs import PartitionEpochs
from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentTopicPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataClassicMemberMetadata,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
)
from coordinator_core.records import RecordType


def member_metadata(group_id: str, member: ConsumerMember) -> Unwritten[MemberKey, ConsumerGroupMemberMetadataValue]:
    """Return the record of the member's metadata."""
    classic: ConsumerGroupMemberMetadataClassicMemberMetadata | None = None
    if member.classic is not None:
        classic = {
            "sessionTimeoutMs": member.classic.session_timeout_ms,
            "supportedProtocols": [
                {"name": name, "metadata": metadata} for name, metadata in member.classic.supported_protocols
            ],
        }
    value: ConsumerGroupMemberMetadataValue = {
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": known(member.client_id),
        "clientHost": known(member.client_host),
        "subscribedTopicNames": member.subscribed_topic_names,
        "subscribedTopicRegex": member.subscribed_topic_regex,
        "rebalanceTimeoutMs": member.rebalance_timeout_ms,
        "serverAssignor": member.server_assignor,
        "classicMemberMetadata": classic,
    }
    return RecordType.CONSUMER_GROUP_MEMBER_METADATA, member_key(group_id, member.member_id), value


def current_assignment(
    group_id: str, member: ConsumerMember
) -> Unwritten[MemberKey, ConsumerGroupCurrentMemberAssignmentValue]:
    """Return the record of the member's current assignment."""
    value: ConsumerGroupCurrentMemberAssignmentValue = {
        "memberEpoch": known(member.member_epoch),
        "previousMemberEpoch": known(member.previous_member_epoch),
        "state": known(member.state),
        "assignedPartitions": _with_epochs(member.assigned),
        "partitionsPendingRevocation": _with_epochs(member.pending_revocation),
    }
    return RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member.member_id), value


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Unwritten[GroupIdKey, ConsumerGroupMetadataValue]:
    """Return the record of the group epoch and the hash of its topics; a zero hash is left out."""
    value: ConsumerGroupMetadataValue = {"epoch": epoch}
    if metadata_hash:
        value["metadataHash"] = metadata_hash
    return RecordType.CONSUMER_GROUP_METADATA, {"groupId": group_id}, value


def resolved_regex(
    group_id: str, regex: str, resolved: ResolvedRegex | None
) -> Unwritten[ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue]:
    """Return the record of what a regex resolves to; None: its tombstone, as no member subscribes to it any more."""
    value: ConsumerGroupRegularExpressionValue | None = None
    if resolved is not None:
        value = {"topics": resolved.topics, "version": resolved.version, "timestamp": resolved.timestamp}
    key: ConsumerGroupRegularExpressionKey = {"groupId": group_id, "regularExpression": regex}
    return RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, key, value


def partition_metadata_tombstone(group_id: str) -> Unwritten[GroupIdKey, ConsumerGroupPartitionMetadataValue]:
    """Return the tombstone of the record in which brokers before 4.1 kept the group's topics."""
    return RecordType.CONSUMER_GROUP_PARTITION_METADATA, {"groupId": group_id}, None


def _with_epochs(partitions: PartitionEpochs) -> list[ConsumerGroupCurrentMemberAssignmentTopicPartitions]:
    return [
        {"topicId": topic, "partitions": list(epochs), "assignmentEpochs": list(epochs.values())}
        for topic, epochs in partitions.items()
    ]
