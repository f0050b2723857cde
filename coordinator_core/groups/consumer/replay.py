"""How records change a consumer group."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from coordinator_core.groups.consumer.state import (
    MEMBER_STATES,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroup,
    ConsumerMember,
    ResolvedRegex,
    SubscribedTopic,
)
from coordinator_core.groups.epochs import (
    NO_CURRENT,
    apply_group_epoch,
    apply_target_epoch,
    forget_current,
    put_current,
    put_target,
    remove_member,
    remove_target,
    with_epochs,
)
from coordinator_core.groups.violations import NONE, Rule, Violations, violation
from coordinator_core.records import CoordinatorRecord, Fields, RecordType


def _member(state: ConsumerGroup, record: CoordinatorRecord) -> ConsumerMember:
    member_id = record.key["memberId"]
    member = state.members.get(member_id)
    if member is None:
        member = state.members[member_id] = ConsumerMember(member_id)
    return member


def _member_metadata(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_member(state, record)
    member = _member(state, record)
    member.client_id = value["clientId"]
    member.client_host = value["clientHost"]
    member.rack_id = value["rackId"]
    member.instance_id = value["instanceId"]
    member.subscribed_topic_names = value["subscribedTopicNames"]
    member.subscribed_topic_regex = value["subscribedTopicRegex"]
    member.rebalance_timeout_ms = value["rebalanceTimeoutMs"]
    member.server_assignor = value["serverAssignor"]
    classic = value.get("classicMemberMetadata")
    member.classic = None if classic is None else _classic_metadata(classic)
    return NONE


def _classic_metadata(classic: Fields) -> ClassicMemberMetadata:
    protocols = tuple(ClassicProtocol(each["name"], each["metadata"]) for each in classic["supportedProtocols"])
    return ClassicMemberMetadata(classic["sessionTimeoutMs"], protocols)


def _target_member(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_target(state, record)
    return put_target(state, record, {each["topicId"]: each["partitions"] for each in value["topicPartitions"]})


def _current_member(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    value = record.value
    if value is None:
        gone = forget_current(state, record)
        if gone is None:
            return violation(Rule.TOMBSTONE_WITHOUT_VALUE, record, NO_CURRENT)
        gone.assigned, gone.pending_revocation = {}, {}
        return NONE
    member = _member(state, record)
    epoch = value["memberEpoch"]
    member.assigned = with_epochs(value["assignedPartitions"], "topicId", epoch)
    member.pending_revocation = with_epochs(value["partitionsPendingRevocation"], "topicId", epoch)
    if value["state"] not in MEMBER_STATES:
        put_current(state, record, member, value)
        return violation(Rule.UNKNOWN_MEMBER_STATE, record, f"state {value['state']}")
    return put_current(state, record, member, value)


def _regex(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    """The tombstone is written as well for a regex that nobody subscribes to any more before it was resolved."""
    value, regex = record.value, record.key["regularExpression"]
    if value is None:
        state.regexes.pop(regex, None)
    else:
        state.regexes[regex] = ResolvedRegex(value["topics"], value["version"], value["timestamp"])
    return NONE


def _partition_metadata(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    """Only brokers before 4.1 wrote values; later ones write the tombstone whether there was a value or not."""
    value = record.value
    if value is None:
        state.subscription_metadata = None
        return NONE
    state.subscription_metadata = {
        topic["topicName"]: SubscribedTopic(
            topic["topicId"],
            topic["numPartitions"],
            {each["partition"]: each["racks"] for each in topic["partitionMetadata"]},
        )
        for topic in value["topics"]
    }
    return NONE


def _group_metadata(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    if record.value is None:
        state.regexes.clear()
        state.subscription_metadata = None
    return apply_group_epoch(state, record)


HANDLERS: Mapping[int, Callable[[ConsumerGroup, CoordinatorRecord], Violations]] = {
    RecordType.CONSUMER_GROUP_METADATA: _group_metadata,
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: _partition_metadata,
    RecordType.CONSUMER_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: apply_target_epoch,
    RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: _target_member,
    RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_member,
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: _regex,
}
"""Record type to what it does to the state."""


def apply(state: ConsumerGroup, record: CoordinatorRecord) -> Violations:
    """Changes ``state`` in place by one record of types 3 to 8 or 16; returns the violations seen, raises nothing.

    A record of another type changes nothing.
    """
    handler = HANDLERS.get(record.type)
    if handler is None:
        return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type} in a consumer group")
    return handler(state, record)
