"""The form of requests of the classic protocol, and what the coordinator refuses at once."""

from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.coordinator_requests import LeaveGroupMember, LeaveGroupRequest


def check_leave_group(request: Request) -> LeaveGroupRequest:
    """Return the data of a LeaveGroup request; before version 3 it names only one member. Raises ApiError if it
    is invalid.
    """
    data = checked(request, LeaveGroupRequest)
    if request.version < 3:
        leaving: LeaveGroupMember = {"memberId": data["memberId"], "groupInstanceId": None, "reason": None}
        return {"groupId": data["groupId"], "memberId": data["memberId"], "members": [leaving]}
    return data


def check_member(group: LiveClassicGroup, member_id: str, instance_id: str | None) -> None:
    """Raise ApiError unless this is a member, and the one that holds the instance id if one is given."""
    if instance_id is not None:
        holder = group.static_members.get(instance_id)
        if holder is None:
            raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
        if holder != member_id:
            raise ApiError(ErrorCode.FENCED_INSTANCE_ID)
    if member_id not in group.members:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)


def check_offset_commit(
    group: LiveClassicGroup, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
) -> None:
    """Raise ApiError unless the commit is of a member of this generation, or without a member in an empty group."""
    empty = group.state is ClassicGroupState.EMPTY
    if generation < 0 and empty:
        return
    if generation >= 0 or member_id or instance_id is not None:
        check_member(group, member_id, instance_id)
        if generation != group.generation:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    elif not transactional and not empty:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    if not transactional and group.state is ClassicGroupState.COMPLETING_REBALANCE:
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
