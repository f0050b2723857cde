"""The classic protocol's requests, served by the type of group that there is."""

from coordinator_core.coordinator.classic import leave as leaving
from coordinator_core.coordinator.classic import rebalance, responses, validation
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.classic.join import join
from coordinator_core.coordinator.classic.sync import sync
from coordinator_core.coordinator.consumer import classic_members
from coordinator_core.coordinator.consumer import fence as consumer_fence
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.lookup import leave
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams import classic_members as classic_threads
from coordinator_core.coordinator.streams import fence as streams_fence
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.coordinator_requests import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from coordinator_core.records import Fields


def handle_join_group(op: Operation, request: Request) -> Fields | None:
    """Serve JoinGroup.

    An empty group of another type is replaced by a classic one, except a share group; a consumer group with members
    accepts the member.
    """
    data = checked(request, JoinGroupRequest)
    valid = request.with_data(data)
    group_id, member_id, config = data["groupId"], data["memberId"], op.memory.config
    if not group_id:
        return responses.join_group_response(request.version, member_id, ErrorCode.INVALID_GROUP_ID)
    if not config.group_min_session_timeout_ms <= data["sessionTimeoutMs"] <= config.group_max_session_timeout_ms:
        return responses.join_group_response(request.version, member_id, ErrorCode.INVALID_SESSION_TIMEOUT)
    group = op.memory.live.get(group_id)
    if group is None or isinstance(group, LiveClassicGroup):
        return join(op, valid, group)
    if not group.is_empty or isinstance(group, LiveShareGroup):
        if isinstance(group, LiveConsumerGroup):
            return classic_members.join(op, valid, group)
        if isinstance(group, LiveStreamsGroup) and op.memory.profile.is_kip_1071:
            return classic_threads.join(op, valid, group)
        return responses.join_group_response(request.version, "", ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    # Kafka drops the empty group from memory even where it then refuses the member and writes no tombstones.
    if not member_id:
        op.erase(group)
    op.memory.forget(group_id)
    return join(op, valid, None)


def handle_sync_group(op: Operation, request: Request) -> Fields | None:
    """Serve SyncGroup to a classic group, or to another group that has classic members."""
    valid = request.with_data(checked(request, SyncGroupRequest))
    group_id = valid.data["groupId"]
    if not group_id:
        return responses.sync_group_response(request.version, ErrorCode.INVALID_GROUP_ID)
    group = op.memory.live.get(group_id)
    if group is None or group.is_empty:
        return responses.sync_group_response(request.version, ErrorCode.UNKNOWN_MEMBER_ID)
    if isinstance(group, LiveClassicGroup):
        return sync(op, valid, group)
    if isinstance(group, LiveConsumerGroup):
        return classic_members.sync(op, valid, group)
    if isinstance(group, LiveStreamsGroup) and op.memory.profile.is_kip_1071:
        return classic_threads.sync(op, valid, group)
    return responses.sync_group_response(request.version, ErrorCode.UNKNOWN_MEMBER_ID)


def handle_heartbeat(op: Operation, request: Request) -> Fields:
    """Serve Heartbeat; the response says whether there is a rebalance to join."""
    data = checked(request, HeartbeatRequest)
    group_id, member_id = data["groupId"], data["memberId"]
    if not group_id:
        return responses.heartbeat_response(request.version, ErrorCode.INVALID_GROUP_ID)
    group = op.memory.live.get(group_id)
    if isinstance(group, LiveConsumerGroup):
        return classic_members.handle_heartbeat(op, request, data, group)
    if isinstance(group, LiveStreamsGroup) and op.memory.profile.is_kip_1071:
        return classic_threads.handle_heartbeat(op, request, data, group)
    if not isinstance(group, LiveClassicGroup):
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
    validation.check_member(group, member_id, data["groupInstanceId"])
    if data["generationId"] != group.generation:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    rebalance.expect_member(op, group, group.members[member_id])
    rebalancing = group.state is ClassicGroupState.PREPARING_REBALANCE
    return responses.heartbeat_response(
        request.version, ErrorCode.REBALANCE_IN_PROGRESS if rebalancing else ErrorCode.NONE
    )


def handle_leave_group(op: Operation, request: Request) -> Fields:
    """Serve LeaveGroup of one member or several.

    Raises ApiError for a group that does not exist; a broker answers that with the same error for each member.
    """
    valid = request.with_data(validation.check_leave_group(request))
    group_id = valid.data["groupId"]
    if not group_id:
        return responses.leave_group_response(request.version, [], ErrorCode.INVALID_GROUP_ID)
    group = op.memory.live.get(group_id)
    if isinstance(group, LiveClassicGroup):
        return leaving.leave(op, valid, group)
    if isinstance(group, LiveConsumerGroup):
        return leave(op, valid, group, consumer_fence.fence)
    if isinstance(group, LiveStreamsGroup) and op.memory.profile.is_kip_1071:
        return leave(op, valid, group, streams_fence.fence)
    raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
