"""How records change a share group."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coordinator_core.groups.epochs import (
    NO_CURRENT,
    apply_group_epoch,
    apply_target_epoch,
    forget_current,
    put_current,
    put_target,
    remove_member,
    remove_target,
)
from coordinator_core.groups.share.state import (
    MEMBER_STATE_STABLE,
    ShareGroup,
    ShareMember,
    ShareTopic,
    StatePartitionMetadata,
)
from coordinator_core.groups.violations import NONE, Rule, Violations, violation
from coordinator_core.records import CoordinatorRecord, Fields, RecordType


def _member(state: ShareGroup, record: CoordinatorRecord) -> ShareMember:
    member_id = record.key["memberId"]
    member = state.members.get(member_id)
    if member is None:
        member = state.members[member_id] = ShareMember(member_id)
    return member


def _member_metadata(state: ShareGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_member(state, record)
    member = _member(state, record)
    member.client_id = value["clientId"]
    member.client_host = value["clientHost"]
    member.rack_id = value["rackId"]
    member.subscribed_topic_names = value["subscribedTopicNames"]
    return NONE


def _target_member(state: ShareGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_target(state, record)
    return put_target(state, record, {each["topicId"]: each["partitions"] for each in value["topicPartitions"]})


def _current_member(state: ShareGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        gone = forget_current(state, record)
        if gone is None:
            return violation(Rule.TOMBSTONE_WITHOUT_VALUE, record, NO_CURRENT)
        gone.assigned = {}
        return NONE
    member = _member(state, record)
    member.assigned = {each["topicId"]: each["partitions"] for each in value["assignedPartitions"]}
    seen = put_current(state, record, member, value)
    if member.state != MEMBER_STATE_STABLE:
        return violation(Rule.UNKNOWN_MEMBER_STATE, record, f"state {member.state}")
    return seen


def _state_partitions(state: ShareGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        existed = state.state_partitions is not None
        state.state_partitions = None
        return NONE if existed else violation(Rule.TOMBSTONE_WITHOUT_VALUE, record, "no share partition state")
    state.state_partitions = StatePartitionMetadata(
        _topics(value["initializingTopics"]),
        _topics(value["initializedTopics"]),
        {topic["topicId"]: topic["topicName"] for topic in value["deletingTopics"]},
    )
    return NONE


def _topics(values: list[Fields]) -> dict[str, ShareTopic]:
    return {topic["topicId"]: ShareTopic(topic["topicName"], topic["partitions"]) for topic in values}


def _group_metadata(state: ShareGroup, record: CoordinatorRecord) -> Violations:
    if record.value is None:
        state.state_partitions = None
    return apply_group_epoch(state, record)


HANDLERS: Mapping[int, Callable[[ShareGroup, CoordinatorRecord], Violations]] = {
    RecordType.SHARE_GROUP_METADATA: _group_metadata,
    RecordType.SHARE_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: apply_target_epoch,
    RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: _target_member,
    RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_member,
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: _state_partitions,
}
"""Record type to what it does to the state."""


def apply(state: ShareGroup, record: CoordinatorRecord) -> Violations:
    """Changes ``state`` in place by one record of types 10 to 15; returns the violations seen, raises nothing.

    A record of another type changes nothing.
    """
    handler = HANDLERS.get(record.type)
    if handler is None:
        return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type} in a share group")
    return handler(state, record)
