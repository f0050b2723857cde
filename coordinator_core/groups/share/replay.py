"""How records change a share group."""

from collections.abc import Callable, Iterable, Mapping

from coordinator_core.groups.epochs import (
    apply_group_epoch,
    apply_target_epoch,
    apply_target_partitions,
    member_of,
    partitions_of,
    put_current,
    put_metadata,
    remove_current,
    remove_member,
)
from coordinator_core.groups.share.state import (
    MEMBER_STATE_STABLE,
    ShareGroup,
    ShareMember,
    ShareTopic,
    StatePartitionMetadata,
)
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations
from coordinator_core.record_fields.share_group import (
    ShareGroupCurrentMemberAssignmentRecord,
    ShareGroupMemberMetadataRecord,
    ShareGroupStatePartitionMetadataRecord,
    ShareGroupStatePartitionMetadataTopicPartitionsInfo,
)
from coordinator_core.records import AnyRecord, RecordType


def _member_metadata(state: ShareGroup, record: ShareGroupMemberMetadataRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_member(state, record)
    member = put_metadata(state, record, value, ShareMember)
    member.subscribed_topic_names = value["subscribedTopicNames"]
    return NO_VIOLATIONS


def _current_member(state: ShareGroup, record: ShareGroupCurrentMemberAssignmentRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_current(state, record)
    member = member_of(state, record, ShareMember)
    member.assigned = partitions_of(value["assignedPartitions"])
    return put_current(state, record, member, value, (MEMBER_STATE_STABLE,))


def _state_partitions(state: ShareGroup, record: ShareGroupStatePartitionMetadataRecord) -> Violations:
    value = record.value
    if value is None:
        state.state_partitions = None  # the end of a group writes this tombstone, whether there was a value or not
        return NO_VIOLATIONS
    state.state_partitions = StatePartitionMetadata(
        _topics(value["initializingTopics"]),
        _topics(value["initializedTopics"]),
        {topic["topicId"]: topic["topicName"] for topic in value["deletingTopics"]},
    )
    return NO_VIOLATIONS


def _topics(values: Iterable[ShareGroupStatePartitionMetadataTopicPartitionsInfo]) -> dict[str, ShareTopic]:
    return {topic["topicId"]: ShareTopic(topic["topicName"], topic["partitions"]) for topic in values}


HANDLERS: Mapping[int, Callable[[ShareGroup, AnyRecord], Violations]] = {
    RecordType.SHARE_GROUP_METADATA: apply_group_epoch,
    RecordType.SHARE_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: apply_target_epoch,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: apply_target_partitions,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_member,
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: _state_partitions,
}
"""Record type to the function that changes the state."""
