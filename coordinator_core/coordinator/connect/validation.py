"""The form of requests of Connect groups (Connect on KIP-848)."""

from typing import TypeVar

from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked, not_blank, require
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.record_fields.coordinator_requests import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupPrepareAssignmentRequest,
)

_MAX_INT16 = 2**15 - 1
_MAX_TASK = 127

OfMember = TypeVar(
    "OfMember", ConnectGroupHeartbeatRequest, ConnectGroupPrepareAssignmentRequest, ConnectGroupInstallAssignmentRequest
)


def check_heartbeat(request: Request) -> ConnectGroupHeartbeatRequest:
    """Return the data of a ConnectGroupHeartbeat; raises ApiError if it is invalid in itself."""
    data = of_a_member(request, ConnectGroupHeartbeatRequest, LEAVE_GROUP_STATIC_MEMBER_EPOCH)
    not_blank(data, "instanceId")
    if data["memberEpoch"] == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        require(data["instanceId"] is not None, "InstanceId can't be null.")
    if data["serverAssignor"] is not None:
        require(not data["clientAssignors"], "ServerAssignor and ClientAssignors cannot be used together.")
        message = f"ServerAssignor {data['serverAssignor']} is not supported."
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    if data["memberEpoch"] == 0:
        require(data["rebalanceTimeoutMs"] > 0, "RebalanceTimeoutMs must be provided in first request.")
        require(bool(data["clientAssignors"]), "ClientAssignors must be provided in first request.")
    for assignor in data["clientAssignors"] or ():
        not_blank(assignor, "name", of="Assignor.")
        low, high = assignor["minimumVersion"], assignor["maximumVersion"]
        require(low >= -1, "Assignor.MinimumVersion is invalid.")
        require(max(low, 0) <= high <= _MAX_INT16, "Assignor.MaximumVersion is invalid.")
        require(low <= assignor["version"] <= high, "Assignor.Version is invalid.")
        require(-128 <= assignor["reason"] < 128, "Assignor.Reason is invalid.")
    return data


def check_install(request: Request) -> ConnectGroupInstallAssignmentRequest:
    """Return the data of a ConnectGroupInstallAssignment; raises ApiError if it is invalid in itself."""
    data = of_a_member(request, ConnectGroupInstallAssignmentRequest)
    versions = all(0 <= member["version"] <= _MAX_INT16 for member in data["members"])
    require(versions and -128 <= data["error"] < 128, "Version or Error is invalid.")
    for member in data["members"]:
        require(
            not (member["partitions"] and member["connectorsAndTasks"]),
            "Partitions and ConnectorsAndTasks cannot be used together.",
        )
        for work in member["connectorsAndTasks"]:
            require(all(0 <= task["taskId"] <= _MAX_TASK for task in work["tasks"]), "TaskId is invalid.")
    return data


def of_a_member(request: Request, fields: type[OfMember], lowest_epoch: int = 0) -> OfMember:
    """Return the data of a request of a member; raises ApiError if group, member or epoch is invalid in itself."""
    data = checked(request, fields)
    not_blank(data, "groupId", "memberId")
    require(data["memberEpoch"] >= lowest_epoch, "MemberEpoch is invalid.")
    return data
