"""SyncGroup to a classic group."""

from coordinator_core.coordinator.classic import rebalance, responses, validation
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.coordinator_requests import SyncGroupRequest
from coordinator_core.records import Fields


def sync(op: Operation, request: Request[SyncGroupRequest], group: LiveClassicGroup) -> Fields | None:
    """Serve SyncGroup of a classic group: a member asks for its assignment. The leader brings the assignments of
    all members, which ends the rebalance.
    """
    data = request.data
    error = _refusal(group, data)
    if error is None and group.state is ClassicGroupState.PREPARING_REBALANCE:
        error = ErrorCode.REBALANCE_IN_PROGRESS
    if error is not None:
        return responses.sync_group_response(request.version, error)
    member = group.members[data["memberId"]]
    group.pending_sync.discard(member.member_id)
    if not group.pending_sync:
        op.cancel(rebalance.sync_key(group.group_id))
    # The leader was here already: who comes late gets what is in the group.
    if group.state is ClassicGroupState.STABLE:
        return responses.sync_group_response(
            request.version, protocol_type=group.protocol_type, protocol=group.protocol, assignment=member.assignment
        )
    member.awaiting_sync = request
    if group.leader == member.member_id:
        assignments = {assignment["memberId"]: assignment["assignment"] for assignment in data["assignments"]}
        rebalance.write_group(op, group, assignments)
        _hand_out(op, group, assignments)
        group.transition(ClassicGroupState.STABLE, op.now)
    return None


def _refusal(group: LiveClassicGroup, data: SyncGroupRequest) -> ErrorCode | None:
    try:
        validation.check_member(group, data["memberId"], data["groupInstanceId"])
    except ApiError as error:
        return error.code
    if data["generationId"] != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differs(data["protocolType"], group.protocol_type) or _differs(data["protocolName"], group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return None


def _differs(asked: str | None, present: str | None) -> bool:
    return asked is not None and present is not None and asked != present


def _hand_out(op: Operation, group: LiveClassicGroup, assignments: dict[str, bytes]) -> None:
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        request = member.awaiting_sync
        if request is not None:
            member.awaiting_sync = None
            op.complete(
                request,
                responses.sync_group_response(
                    request.version,
                    protocol_type=group.protocol_type,
                    protocol=group.protocol,
                    assignment=member.assignment,
                ),
            )
            # An expiry during the wait was ignored, so the session has to begin again.
            rebalance.expect_member(op, group, member)
