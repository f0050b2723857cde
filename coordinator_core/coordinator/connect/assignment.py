"""ConnectGroupPrepareAssignment and ConnectGroupInstallAssignment: a worker computes the target of all workers."""

from dataclasses import replace

from coordinator_core.assignors.connect.selection import breaches
from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.connect import records, validation
from coordinator_core.coordinator.connect.group import Computation, as_fields, from_fields
from coordinator_core.coordinator.connect.heartbeat import assignor_of, computation_key, delay_key, memory_of
from coordinator_core.coordinator.lookup import member_of, wrong_epoch
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.connect.state import ConnectGroup, Work, units
from coordinator_core.record_fields.coordinator_requests import (
    ConnectGroupInstallAssignmentRequest,
    ConnectGroupPrepareAssignmentRequest,
)
from coordinator_core.records import Fields

_OK: Fields = {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None}


def prepare(op: Operation, request: Request) -> Fields:
    """Serve ConnectGroupPrepareAssignment: return the group as the worker needs it for the assignor.

    The answer of the worker is checked against this input.
    """
    data = validation.of_a_member(request, ConnectGroupPrepareAssignmentRequest)
    group, computation = _computing(op, data)
    memory_of(op).computations[data["groupId"]] = replace(
        computation,
        epoch=group.group_epoch or 0,
        workers=tuple(group.members),
        configured=units(group.work),
        prepared=True,
    )
    name = assignor_of(group)
    members = []
    for member_id, member in group.members.items():
        assignor = next(offer for offer in member.assignors if offer.name == name)
        members.append(
            {
                "memberId": member_id,
                "memberEpoch": member.member_epoch or 0,
                "instanceId": member.instance_id,
                "assignor": {"version": assignor.version, "reason": assignor.reason, "metadata": assignor.metadata},
                "connectorsAndTasks": as_fields(units(member.current.work if member.current else Work())),
            }
        )
    return {**_OK, "groupEpoch": group.group_epoch or 0, "assignorName": name, "members": members}


def install(op: Operation, request: Request) -> Fields:
    """Serve ConnectGroupInstallAssignment: install the target that the worker computed if it is valid.

    If the assignor failed, nothing changes.
    """
    data = validation.check_install(request)
    group_id = data["groupId"]
    group, computation = _computing(op, data)
    if not computation.prepared or data["groupEpoch"] != computation.epoch:
        raise ApiError(ErrorCode.INVALID_ASSIGNMENT, "The assignment is not of the group epoch that was prepared.")
    if data["error"]:
        members = [
            records.target_of_worker(member_id, units(current.work), error=data["error"])
            for member_id, member in group.members.items()
            if (current := member.current) is not None
        ]
    else:
        _check(op, group_id, group, computation, data)
        members = [
            records.target_of_worker(
                member["memberId"], from_fields(member["connectorsAndTasks"]), member["version"], member["metadata"]
            )
            for member in data["members"]
            # A worker that left while another one computed has opened a newer epoch: its work is assigned again then.
            if member["memberId"] in group.members
        ]
    op.write(*records.target(group_id, computation.epoch, members))
    op.cancel(computation_key(group_id))
    return dict(_OK)


def _computing(
    op: Operation, data: ConnectGroupPrepareAssignmentRequest | ConnectGroupInstallAssignmentRequest
) -> tuple[ConnectGroup, Computation]:
    memory, group_id, member_id = memory_of(op), data["groupId"], data["memberId"]
    group = memory.group(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    known = member_of(group.members, member_id, group_id).member_epoch or 0
    if data["memberEpoch"] != known:
        raise wrong_epoch("connect", data["memberEpoch"], known)
    computation = memory.computations.get(group_id)
    if computation is None or computation.worker != member_id:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not the one to compute the assignment.")
    return group, computation


def _check(
    op: Operation,
    group_id: str,
    group: ConnectGroup,
    computation: Computation,
    data: ConnectGroupInstallAssignmentRequest,
) -> None:
    """Raises ApiError for an assignment that breaks an invariant; work that waits for its worker need not be in it."""
    target: dict[str, list[ConnectorOrTask]] = {}
    for member in data["members"]:
        target.setdefault(member["memberId"], []).extend(from_fields(member["connectorsAndTasks"]))
    waiting: set[ConnectorOrTask] = set()
    if delay_key(group_id) in op.memory.timers:
        running = {unit for member in group.members.values() if member.current for unit in units(member.current.work)}
        waiting = set(computation.configured) - running
    broken = breaches(computation.workers, computation.configured, target, waiting)
    unknown = [unit for some in target.values() for unit in some if unit not in computation.configured]
    if broken or unknown:
        first = f"{broken[0].invariant}: not {broken[0].unit!r}" if broken else f"{unknown[0]!r} is not configured"
        raise ApiError(ErrorCode.INVALID_ASSIGNMENT, first)
