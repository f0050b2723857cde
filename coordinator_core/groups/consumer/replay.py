"""How records change a consumer group."""

from collections.abc import Callable, Mapping

from coordinator_core.groups.consumer.state import (
    MEMBER_STATES,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroup,
    ConsumerMember,
    ResolvedRegex,
)
from coordinator_core.groups.epochs import (
    apply_group_epoch,
    apply_target_epoch,
    apply_target_partitions,
    assignment_epochs,
    member_of,
    put_current,
    put_metadata,
    remove_current,
    remove_member,
)
from coordinator_core.groups.subscribed_topics import subscribed_topics
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations
from coordinator_core.record_fields.consumer_group import (
    ConsumerGroupCurrentMemberAssignmentRecord,
    ConsumerGroupMemberMetadataClassicMemberMetadata,
    ConsumerGroupMemberMetadataRecord,
    ConsumerGroupPartitionMetadataRecord,
    ConsumerGroupRegularExpressionRecord,
)
from coordinator_core.records import AnyRecord, RecordType


def _member_metadata(state: ConsumerGroup, record: ConsumerGroupMemberMetadataRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_member(state, record)
    member = put_metadata(state, record, value, ConsumerMember)
    member.instance_id = value["instanceId"]
    member.subscribed_topic_names = value["subscribedTopicNames"]
    member.subscribed_topic_regex = value["subscribedTopicRegex"]
    member.rebalance_timeout_ms = value["rebalanceTimeoutMs"]
    member.server_assignor = value["serverAssignor"]
    classic = value.get("classicMemberMetadata")
    member.classic = None if classic is None else _classic_metadata(classic)
    return NO_VIOLATIONS


def _classic_metadata(classic: ConsumerGroupMemberMetadataClassicMemberMetadata) -> ClassicMemberMetadata:
    protocols = tuple(
        ClassicProtocol(protocol["name"], protocol["metadata"]) for protocol in classic["supportedProtocols"]
    )
    return ClassicMemberMetadata(classic["sessionTimeoutMs"], protocols)


def _current_member(state: ConsumerGroup, record: ConsumerGroupCurrentMemberAssignmentRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_current(state, record)
    member = member_of(state, record, ConsumerMember)
    epoch = value["memberEpoch"]
    member.assigned = {
        partition["topicId"]: assignment_epochs(partition, epoch) for partition in value["assignedPartitions"]
    }
    revoking = value["partitionsPendingRevocation"]
    member.pending_revocation = {topic["topicId"]: assignment_epochs(topic, epoch) for topic in revoking}
    return put_current(state, record, member, value, MEMBER_STATES)


def _regex(state: ConsumerGroup, record: ConsumerGroupRegularExpressionRecord) -> Violations:
    """The tombstone is also written for a regex that no member subscribes to any more before it was resolved."""
    value, regex = record.value, record.key["regularExpression"]
    if value is None:
        state.regexes.pop(regex, None)
    else:
        state.regexes[regex] = ResolvedRegex(value["topics"], value["version"], value["timestamp"])
    return NO_VIOLATIONS


def _partition_metadata(state: ConsumerGroup, record: ConsumerGroupPartitionMetadataRecord) -> Violations:
    """Only brokers before 4.1 wrote values; later ones write the tombstone whether there was a value or not."""
    state.subscription_metadata = None if record.value is None else subscribed_topics(record.value)
    return NO_VIOLATIONS


HANDLERS: Mapping[int, Callable[[ConsumerGroup, AnyRecord], Violations]] = {
    RecordType.CONSUMER_GROUP_METADATA: apply_group_epoch,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: _partition_metadata,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: apply_target_epoch,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: apply_target_partitions,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_member,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: _regex,
}
"""Record type to the function that changes the state."""
