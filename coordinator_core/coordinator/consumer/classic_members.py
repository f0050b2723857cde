"""Members of a consumer group that still speak the classic protocol (KIP-848, online migration).

Generation and member epoch are the same number. REBALANCE_IN_PROGRESS asks a member to join again; each join takes it
one step towards its target, and each sync gives it what it then owns.
"""

from dataclasses import replace

from coordinator_core.coordinator.classic import responses
from coordinator_core.coordinator.classic.join import KNOWN_MEMBER_ID_REQUIRED_VERSION
from coordinator_core.coordinator.config import MigrationPolicy
from coordinator_core.coordinator.consumer import members
from coordinator_core.coordinator.consumer.conversion import can_downgrade_replacing, downgrade_replacing
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.consumer.rebalance import (
    MemberTarget,
    current_target,
    move,
    update_epoch,
    update_target,
)
from coordinator_core.coordinator.consumer.regexes import RegexChange
from coordinator_core.coordinator.consumer.regexes import update as update_regex
from coordinator_core.coordinator.lookup import check_capacity, check_not_fenced, member_of, named_member
from coordinator_core.coordinator.member_timers import expect_heartbeat, expect_join, expect_sync, join_key, sync_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.subscriptions import topic_names
from coordinator_core.errors import DecodeError
from coordinator_core.groups import consumer_protocol
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_core.groups.consumer.state import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerMember,
    ConsumerMemberState,
)
from coordinator_core.record_fields.coordinator_requests import (
    ConsumerGroupHeartbeatTopicPartitions,
    HeartbeatRequest,
    JoinGroupRequest,
    SyncGroupRequest,
)
from coordinator_core.records import Fields


def join(op: Operation, request: Request[JoinGroupRequest], group: LiveConsumerGroup) -> Fields:
    """Serve JoinGroup: the member joins, or takes its next step; a static one that replaces the last consumer
    downgrades the group.
    """
    data = request.data
    group_id, instance_id = data["groupId"], data["groupInstanceId"]
    if op.memory.config.group_consumer_migration_policy is MigrationPolicy.DISABLED:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Cannot join the consumer group {group_id} with the classic protocol because the group migration is "
            "disabled.",
        )
    is_new = not data["memberId"]
    member_id = op.next_text_id() if is_new else data["memberId"]
    check_capacity(group, op.memory.config.group_consumer_max_size, member_id)
    if not _supports(group, data):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Member {member_id}'s protocols are not supported.")
    if is_new and instance_id is None and request.version >= KNOWN_MEMBER_ID_REQUIRED_VERSION:
        return responses.join_group_response(request.version, member_id, ErrorCode.MEMBER_ID_REQUIRED)
    former = group.static_member(instance_id)
    member = _member(op, group, member_id, instance_id, joins=is_new)
    downgrades = former is not None and can_downgrade_replacing(op, group, former)
    subscription = _subscription(data)
    updated = _updated(member, request, subscription)
    names_changed = members.write_changed(op, group_id, member, updated)
    regex_change = update_regex(op, group, member, updated)
    changed = names_changed or regex_change is not RegexChange.NONE
    epoch = update_epoch(op, group, member, updated, bump=changed)
    owned = _owned(op, subscription)
    if former is not None and downgrades:
        rebalances = group.assignment_epoch < epoch.number
        if not rebalances:
            target = MemberTarget(group.assignment_epoch, current_target(group, updated))
            updated = move(op, group, updated, target, owned, subscription_changed=changed)
        downgrade_replacing(op, group, former, updated, rebalances=rebalances)
    else:
        target = update_target(op, group, epoch, member, updated)
        updated = move(op, group, updated, target, owned, subscription_changed=changed)
    op.cancel(join_key(group_id, member_id))
    if not downgrades:
        expect_heartbeat(op, group, member_id, data["sessionTimeoutMs"])
        expect_sync(op, group, member_id, data["rebalanceTimeoutMs"])
    return responses.join_group_response(
        request.version,
        member_id,
        generation=updated.member_epoch or 0,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol=data["protocols"][0]["name"],
    )


def _supports(group: LiveConsumerGroup, data: JoinGroupRequest) -> bool:
    """Whether the member shares a protocol with all classic members."""
    return data["protocolType"] == CONSUMER_PROTOCOL_TYPE and any(
        group.classic_protocols.get(protocol["name"], 0) == group.classic_members for protocol in data["protocols"]
    )


def _member(
    op: Operation, group: LiveConsumerGroup, member_id: str, instance_id: str | None, *, joins: bool
) -> ConsumerMember:
    if instance_id is None:
        return group.log.members.get(member_id) or members.new_member(member_id)
    if joins:
        return members.joining_static(op, group, member_id, instance_id, classic=True)
    return named_member(group, member_id, instance_id)


def _subscription(data: JoinGroupRequest) -> consumer_protocol.EmbeddedSubscription:
    try:
        return consumer_protocol.subscription(data["protocols"][0]["metadata"])
    except DecodeError:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Malformed embedded consumer protocol in subscription deserialization."
        ) from None


def _updated(
    member: ConsumerMember, request: Request[JoinGroupRequest], subscription: consumer_protocol.EmbeddedSubscription
) -> ConsumerMember:
    data = request.data
    timeout, instance_id = data["rebalanceTimeoutMs"], data["groupInstanceId"]
    return replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rack_id=subscription.rack_id or member.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        subscribed_topic_names=topic_names(subscription.topics),
        subscribed_topic_regex="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMemberMetadata(
            data["sessionTimeoutMs"],
            tuple(ClassicProtocol(protocol["name"], protocol["metadata"]) for protocol in data["protocols"]),
        ),
    )


def _owned(
    op: Operation, subscription: consumer_protocol.EmbeddedSubscription
) -> list[ConsumerGroupHeartbeatTopicPartitions]:
    return [
        {"topicId": op.topics.by_name[topic].id, "partitions": partitions}
        for topic, partitions in subscription.owned
        if topic in op.topics.by_name
    ]


def sync(op: Operation, request: Request[SyncGroupRequest], group: LiveConsumerGroup) -> Fields:
    """Serve SyncGroup: the member learns what it owns; raises ApiError if it has to join again first."""
    data = request.data
    group_id, member_id = group.group_id, data["memberId"]
    member = _classic_member(group, member_id, data["groupInstanceId"])
    classic = _same_generation(member, data["generationId"])
    protocol_type, protocol = data["protocolType"], data["protocolName"]
    joined = classic.supported_protocols[0]
    if protocol_type is not None and protocol_type != CONSUMER_PROTOCOL_TYPE:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol type {protocol_type} from member {member_id} request is not equal to the group protocol "
            f"type {CONSUMER_PROTOCOL_TYPE}.",
        )
    if protocol is not None and protocol != joined.name:
        raise ApiError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol name {protocol} from member {member_id} request is not equal to the protocol name "
            f"{joined.name} returned in the join response.",
        )
    # A member with partitions to give up has joined already; it goes on from there.
    if group.assignment_epoch > (member.member_epoch or 0) and member.state != ConsumerMemberState.UNREVOKED_PARTITIONS:
        expect_join(op, group, member.member_id, member.rebalance_timeout_ms)
        raise ApiError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {group_id} and member {member_id} should rejoin to catch up.",
        )
    try:
        assignment = consumer_protocol.assignment(member.assigned, op.topics, joined.metadata)
    except DecodeError:
        raise ApiError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "Malformed embedded consumer protocol in version deserialization."
        ) from None
    op.cancel(sync_key(group_id, member_id))
    expect_heartbeat(op, group, member_id, classic.session_timeout_ms)
    return responses.sync_group_response(
        request.version, protocol_type=protocol_type, protocol=protocol, assignment=assignment
    )


def handle_heartbeat(op: Operation, request: Request, data: HeartbeatRequest, group: LiveConsumerGroup) -> Fields:
    """Serve Heartbeat: the member is asked to join again if that would assign or revoke something."""
    member_id = data["memberId"]
    member = _classic_member(group, member_id, data["groupInstanceId"])
    classic = _same_generation(member, data["generationId"])
    expect_heartbeat(op, group, member_id, classic.session_timeout_ms)
    error = ErrorCode.NONE
    if _should_join(group, member):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        expect_join(op, group, member.member_id, member.rebalance_timeout_ms)
    return responses.heartbeat_response(request.version, error)


def _should_join(group: LiveConsumerGroup, member: ConsumerMember) -> bool:
    if (member.member_epoch or 0) < group.assignment_epoch or member.state == ConsumerMemberState.UNREVOKED_PARTITIONS:
        return True
    # Asked once all are free: with each partition that comes free it would join once more.
    return member.state == ConsumerMemberState.UNRELEASED_PARTITIONS and all(
        partition in member.assigned.get(topic, ()) or group.is_free(topic, partition)
        for topic, partitions in group.log.targets.get(member.member_id, {}).items()
        for partition in partitions
    )


def _classic_member(group: LiveConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    if instance_id is None:
        member = member_of(group.log.members, member_id, group.group_id)
    else:
        holder = group.static_member(instance_id)
        if holder is None:
            raise ApiError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"Member with instance id {instance_id} is not a member of group {group.group_id}.",
            )
        check_not_fenced(holder, member_id, instance_id)
        member = holder
    if member.classic is None:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol.")
    return member


def _same_generation(member: ConsumerMember, generation: int) -> ClassicMemberMetadata:
    if member.classic is None or (member.member_epoch or 0) != generation:
        raise ApiError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch {member.member_epoch} of member "
            f"{member.member_id}.",
        )
    return member.classic
