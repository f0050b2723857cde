"""How members leave a classic group: by LeaveGroup, or because one of their timers ran out."""

from coordinator_core.coordinator.classic import rebalance, responses, validation
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.coordinator_requests import LeaveGroupMember, LeaveGroupRequest
from coordinator_core.records import Fields


def leave(op: Operation, request: Request[LeaveGroupRequest], group: LiveClassicGroup) -> Fields:
    """Serve LeaveGroup; each member gets its own result. An administrator names static members by instance id alone."""
    answers = [
        responses.leave_group_member(member, _leave_one(op, group, member)) for member in request.data["members"]
    ]
    if any(answer["errorCode"] == ErrorCode.NONE for answer in answers):
        if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE):
            rebalance.rebalance_or_complete(op, group)
        elif group.state is ClassicGroupState.PREPARING_REBALANCE:
            rebalance.maybe_complete_join(op, group)
    return responses.leave_group_response(request.version, answers)


def _leave_one(op: Operation, group: LiveClassicGroup, leaving: LeaveGroupMember) -> ErrorCode:
    member_id, instance_id = leaving["memberId"], leaving["groupInstanceId"]
    if not member_id:
        if instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static_members[instance_id]
    elif member_id not in group.pending_join:
        try:
            validation.check_member(group, member_id, instance_id)
        except ApiError as error:
            return error.code
    op.cancel(rebalance.heartbeat_key(group.group_id, member_id))
    _remove(op, group, member_id)
    return ErrorCode.NONE


def _remove(op: Operation, group: LiveClassicGroup, member_id: str) -> None:
    member = group.members.get(member_id)
    if member is not None:
        rebalance.refuse_join(op, member, "", ErrorCode.UNKNOWN_MEMBER_ID)
    group.remove(member_id)


def _group(op: Operation, group_id: str) -> LiveClassicGroup | None:
    group = op.memory.live.get(group_id)
    return group if isinstance(group, LiveClassicGroup) else None


def heartbeat_expired(op: Operation, group_id: str, member_id: str) -> None:
    """Remove a member without heartbeats, or a member id that was given out and did not join in time."""
    group = _group(op, group_id)
    if group is None:
        return
    pending = member_id in group.pending_join
    member = group.members.get(member_id)
    if not pending and (member is None or member.satisfies_heartbeat):
        return
    _remove(op, group, member_id)
    if group.state in (ClassicGroupState.STABLE, ClassicGroupState.COMPLETING_REBALANCE) and not pending:
        rebalance.rebalance_or_complete(op, group)
    elif group.state is ClassicGroupState.PREPARING_REBALANCE and group.all_joined:
        rebalance.complete_join(op, group)


def join_expired(op: Operation, group_id: str) -> None:
    """End the join phase with the members that joined: the rebalance timeout has passed."""
    group = _group(op, group_id)
    if group is not None:
        rebalance.complete_join(op, group)


def initial_delay_expired(op: Operation, group_id: str, delay_ms: int, remaining_ms: int) -> None:
    """Begin a first rebalance after its delay, or wait longer if a member has joined meanwhile."""
    group = _group(op, group_id)
    if group is not None and not rebalance.extend_initial(op, group, delay_ms, remaining_ms):
        rebalance.complete_join(op, group)


def sync_expired(op: Operation, group_id: str, generation: int) -> None:
    """Remove members that joined but did not send SyncGroup within the rebalance timeout."""
    group = _group(op, group_id)
    if group is None or generation != group.generation or not group.pending_sync:
        return
    # Also when it is stable: the leader's assignment ended the rebalance for the others, and these never fetched
    # theirs.
    if group.state not in (ClassicGroupState.COMPLETING_REBALANCE, ClassicGroupState.STABLE):
        return
    for member_id in list(group.pending_sync):
        group.remove(member_id)
        op.cancel(rebalance.heartbeat_key(group_id, member_id))
    rebalance.prepare(op, group)
