"""Responses of the classic protocol, with the fields of the request's version (Kafka's message definitions)."""

from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.record_fields.coordinator_requests import LeaveGroupMember
from coordinator_core.records import Fields


def join_group_response(
    version: int,
    member_id: str,
    error: ErrorCode = ErrorCode.NONE,
    *,
    generation: int = -1,
    protocol_type: str | None = None,
    protocol: str | None = "",
    leader: str | None = "",
    skip_assignment: bool = False,
    members: list[Fields] | None = None,
) -> Fields:
    """Return a JoinGroup response; a null protocol is the coordinator's own, which is sent as "" before version 7."""
    response: Fields = {"throttleTimeMs": 0, "errorCode": int(error), "generationId": generation}
    if version >= 7:
        response["protocolType"] = protocol_type
    response["protocolName"] = protocol
    response["leader"] = leader
    if version >= 9:
        response["skipAssignment"] = skip_assignment
    response["memberId"] = member_id
    response["members"] = members or []
    return response


def join_group_member(version: int, member_id: str, instance_id: str | None, metadata: bytes) -> Fields:
    """Return one of the members in the leader's response."""
    if version >= 5:
        return {"memberId": member_id, "groupInstanceId": instance_id, "metadata": metadata}
    return {"memberId": member_id, "metadata": metadata}


def sync_group_response(
    version: int,
    error: ErrorCode = ErrorCode.NONE,
    *,
    protocol_type: str | None = None,
    protocol: str | None = None,
    assignment: bytes = b"",
) -> Fields:
    """Return a SyncGroup response."""
    response = heartbeat_response(version, error)
    if version >= 5:
        response["protocolType"] = protocol_type
        response["protocolName"] = protocol
    response["assignment"] = assignment
    return response


def heartbeat_response(version: int, error: ErrorCode = ErrorCode.NONE) -> Fields:
    """Return a Heartbeat response."""
    return {"throttleTimeMs": 0, "errorCode": int(error)} if version >= 1 else {"errorCode": int(error)}


def leave_group_response(version: int, members: list[Fields], error: ErrorCode = ErrorCode.NONE) -> Fields:
    """Return a LeaveGroup response; before version 3 it has the result of the one member in the request."""
    response = heartbeat_response(version, error)
    if version >= 3:
        response["members"] = members
    elif members and not error:
        response["errorCode"] = members[0]["errorCode"]
    return response


def leave_group_member(member: LeaveGroupMember, error: ErrorCode = ErrorCode.NONE) -> Fields:
    """Return the result of one member of a LeaveGroup request."""
    return {"memberId": member["memberId"], "groupInstanceId": member["groupInstanceId"], "errorCode": int(error)}
