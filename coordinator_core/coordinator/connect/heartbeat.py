"""ConnectGroupHeartbeat (Connect on KIP-848): workers join, leave, and move from what they run to their targets."""

from collections.abc import Iterable
from dataclasses import replace

from coordinator_core.assignors.connect.selection import select_assignor, select_worker
from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.connect import records, validation
from coordinator_core.coordinator.connect.group import (
    Computation,
    ConnectCoordinatorState,
    WorkFields,
    as_fields,
    from_fields,
)
from coordinator_core.coordinator.lookup import check_released, member_of, wrong_epoch
from coordinator_core.coordinator.member_timers import rebalance_key, session_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.errors import AssignorError
from coordinator_core.groups.connect.describe import worker_ranges
from coordinator_core.groups.connect.replay import offered
from coordinator_core.groups.connect.state import (
    Assignor,
    ConnectGroup,
    ConnectMember,
    Work,
    WorkerAssignment,
    is_classic,
    max_delay_ms,
    unassigned,
    units,
)
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.record_fields.coordinator_requests import ConnectGroupHeartbeatRequest
from coordinator_core.records import Fields

FENCE = "connect worker fenced"
DELAY_OVER = "connect rebalance delay over"
COMPUTATION_EXPIRED = "connect assignment computation expired"


def memory_of(op: Operation) -> ConnectCoordinatorState:
    """Return the memory of a Connect coordinator; raises ApiError in a coordinator of other groups."""
    if not isinstance(op.memory, ConnectCoordinatorState):
        raise ApiError(ErrorCode.INVALID_REQUEST, "This coordinator has no Connect groups.")
    return op.memory


def delay_key(group_id: str) -> str:
    """Return the key of the timer after which the work of workers that left is assigned again."""
    return f"scheduled-rebalance-{group_id}"


def computation_key(group_id: str) -> str:
    """Return the key of the timer within which a worker has to compute the assignment."""
    return f"compute-assignment-{group_id}"


def end_group(op: Operation, group_id: str, group: ConnectGroup) -> None:
    """Write the tombstones of a group, but for those of its workers, and end its timers."""
    op.write_all(records.group_tombstones(group_id, group))
    for key in (delay_key(group_id), computation_key(group_id)):
        op.cancel(key)
    memory_of(op).computations.pop(group_id, None)


def handle_heartbeat(op: Operation, request: Request) -> Fields:
    """Serve a heartbeat: a worker joins (epoch 0), leaves (-1; a static one for a while: -2) or stays; it reports what
    it runs and learns what to run.
    """
    data = validation.check_heartbeat(request)
    group_id, member_id, epoch = data["groupId"], data["memberId"], data["memberEpoch"]
    group = memory_of(op).group(group_id)
    if group is None:
        if epoch != 0:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        group = ConnectGroup()
    if epoch == 0:
        _release_instance(op, group, group_id, member_id, data["instanceId"])
        member = group.members.get(member_id) or ConnectMember(member_id)
    else:
        member = member_of(group.members, member_id, group_id)
    if epoch == LEAVE_GROUP_MEMBER_EPOCH:
        remove(op, group, group_id, member_id)
        return heartbeat_response(epoch)
    if epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        _leave_for_a_while(op, group_id, member, data["instanceId"])
        return heartbeat_response(epoch)
    known = member.member_epoch or 0
    if epoch not in (0, known) and not _lost_its_answer(group, member, data):
        # The document takes a fenced worker out of the group at once.
        remove(op, group, group_id, member_id)
        error = wrong_epoch("connect", epoch, known)
        return heartbeat_response(epoch) | {"errorCode": int(error.code), "errorMessage": error.message}
    return _serve_member(op, request, data, group, member)


def _serve_member(
    op: Operation, request: Request, data: ConnectGroupHeartbeatRequest, group: ConnectGroup, member: ConnectMember
) -> Fields:
    """Take in what a worker reports that joins or stays, and return what it has to do."""
    memory = memory_of(op)
    group_id, member_id, epoch, known = data["groupId"], data["memberId"], data["memberEpoch"], member.member_epoch or 0
    given = data["clientAssignors"]
    assignors = member.assignors if given is None else [offered(assignor) for assignor in given]
    group_epoch = update_worker(op, request, group, group_id, member, assignors, data["instanceId"])
    if data["rebalanceTimeoutMs"] > 0:
        memory.rebalance_timeouts[group_id, member_id] = data["rebalanceTimeoutMs"]
    op.arm(session_key(group_id, member_id), memory.session_timeout_ms, FENCE, group_id, member_id)
    answer = heartbeat_response(known, memory.heartbeat_interval_ms)
    if epoch == 0 and known:
        # A worker that comes back runs nothing.
        op.write(*records.current(group_id, member_id, 0, ()))
        return answer | {"memberEpoch": 0}
    if member.current is None:
        return answer
    answer |= reconcile(op, group, group_id, member, data["connectorsAndTasks"])
    if epoch not in (0, known) and answer["assignment"] is None:
        answer["assignment"] = _assignment(set(units(member.current.work)), *_of_assignor(member.current))
    if group_epoch > (group.assignment_epoch or 0) and member_id in group.members and _computes(op, group, data):
        answer["errorCode"] = int(ErrorCode.COMPUTE_ASSIGNMENT)
    return answer


def _leave_for_a_while(op: Operation, group_id: str, member: ConnectMember, instance_id: str | None) -> None:
    """Keep the place and the work of a static worker until its session ends: it comes back with its instance id."""
    if instance_id is None or member.instance_id != instance_id:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    runs = member.current or WorkerAssignment(Work())
    assignment = units(runs.work), *_of_assignor(runs)
    op.write(*records.current(group_id, member.member_id, LEAVE_GROUP_STATIC_MEMBER_EPOCH, *assignment))
    op.cancel(rebalance_key(group_id, member.member_id))


def _release_instance(
    op: Operation, group: ConnectGroup, group_id: str, member_id: str, instance_id: str | None
) -> None:
    """Remove the worker that had the instance id and has left for a while; raise ApiError if it has not left.

    A worker's member id is its address, and the target names workers by it: who comes from another address joins, which
    opens an epoch, and what its predecessor ran waits for it.
    """
    if instance_id is None:
        return
    for holder in group.members.values():
        if holder.instance_id == instance_id and holder.member_id != member_id:
            check_released(holder, member_id, instance_id)
            _take_out(op, group, group_id, holder.member_id)
            return


def _lost_its_answer(group: ConnectGroup, member: ConnectMember, data: ConnectGroupHeartbeatRequest) -> bool:
    """Whether an old epoch may come from a worker that did not receive its newer one.

    The worker must not run more than its target: then it can receive its newer epoch again.
    """
    runs, target = data["connectorsAndTasks"], group.targets.get(member.member_id)
    if runs is None or target is None or not 0 < data["memberEpoch"] < (member.member_epoch or 0):
        return False
    return set(from_fields(runs)) <= set(units(target.work))


def heartbeat_response(epoch: int, interval_ms: int = 0) -> Fields:
    """Return a ConnectGroupHeartbeat response."""
    return {
        "throttleTimeMs": 0,
        "errorCode": 0,
        "errorMessage": None,
        "memberEpoch": epoch,
        "heartbeatIntervalMs": interval_ms,
        "assignment": None,
    }


def update_worker(
    op: Operation,
    request: Request,
    group: ConnectGroup,
    group_id: str,
    member: ConnectMember,
    assignors: list[Assignor],
    instance_id: str | None,
) -> int:
    """Write what changed about the worker; return the group epoch after it. Raises ApiError for unsupported
    assignors.
    """
    epoch = group.group_epoch or 0
    instance_id = member.instance_id if instance_id is None else instance_id
    if (member.client_id, member.client_host, member.instance_id, member.assignors) == (
        request.client_id,
        request.client_host,
        instance_id,
        assignors,
    ):
        return epoch
    check_assignors(group, member.member_id, assignors)
    value = records.metadata(epoch + 1, instance_id, request.client_id, request.client_host, assignors)
    op.write(*records.worker(group_id, member.member_id, value))
    op.write(*records.group_epoch(group_id, epoch + 1))
    if member.current is None:
        op.write(*records.current(group_id, member.member_id, 0, ()))
    return epoch + 1


def check_assignors(group: ConnectGroup, member_id: str, assignors: list[Assignor]) -> None:
    """Check that all workers support a common assignor, in versions that overlap with those of every other worker."""
    others = {worker: other.assignors for worker, other in group.members.items() if worker != member_id}
    offered = {each: [assignor.name for assignor in some] for each, some in (*others.items(), (member_id, assignors))}
    try:
        name = select_assignor(offered)
    except AssignorError as error:
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, error.message) from error
    own_versions = next(assignor for assignor in assignors if assignor.name == name)
    for other, some in others.items():
        other_versions = next(assignor for assignor in some if assignor.name == name)
        if (
            own_versions.maximum_version < other_versions.minimum_version
            or other_versions.maximum_version < own_versions.minimum_version
        ):
            raise ApiError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f"The versions of assignor {name} of member {member_id} do not overlap with those of member {other}.",
            )


def _computes(op: Operation, group: ConnectGroup, data: ConnectGroupHeartbeatRequest) -> bool:
    """Whether this worker is the one to compute the next target; one is chosen where there is none."""
    memory, group_id = memory_of(op), data["groupId"]
    computation = memory.computations.get(group_id)
    if (
        computation is None
        or computation.late
        or computation.epoch <= (group.assignment_epoch or 0)
        or computation.worker not in group.members
    ):
        worker = _chosen(group, computation)
        computation = memory.computations[group_id] = Computation(worker, group.group_epoch or 0)
        timeout = memory.rebalance_timeout_ms(group_id, worker)
        op.arm(computation_key(group_id), timeout, COMPUTATION_EXPIRED, group_id)
    member_id: str = data["memberId"]
    return computation.worker == member_id


def _chosen(group: ConnectGroup, former: Computation | None) -> str:
    """The worker that computed last does it again; not if it did not in time and another one can."""
    ranges = worker_ranges(group, assignor_of(group))
    try:
        able = [worker_id for worker_id, member in group.members.items() if not is_classic(member)]
        worker = select_worker(ranges, None if former is None else former.worker, able)
        if former is not None and former.late and worker == former.worker:
            able = [candidate for candidate in able if ranges[candidate].covers(ranges[worker]) and candidate != worker]
            worker = able[0] if able else worker
    except AssignorError as error:
        raise ApiError(ErrorCode.FATAL, error.message) from error
    return worker


def assignor_of(group: ConnectGroup) -> str:
    """Return the assignor that all workers support; raises ApiError if there is none."""
    try:
        return select_assignor({worker: [a.name for a in member.assignors] for worker, member in group.members.items()})
    except AssignorError as error:
        raise ApiError(ErrorCode.UNSUPPORTED_ASSIGNOR, error.message) from error


def reconcile(
    op: Operation, group: ConnectGroup, group_id: str, member: ConnectMember, reported: Iterable[WorkFields] | None
) -> Fields:
    """Take the worker's next step to its target: first it stops what is not in the target, then it starts what no
    other worker runs.

    ``reported`` is what the worker runs, None if that did not change since it said so. Return what it is told: member
    epoch and assignment, where there is something to tell.
    """
    if group.assignment_epoch is None:
        return {}
    target = group.targets.get(member.member_id) or WorkerAssignment(Work())
    known = member.member_epoch or 0
    if member.current is not None and member.current.work == target.work and known == group.assignment_epoch:
        op.cancel(rebalance_key(group_id, member.member_id))
        return {}
    wanted = set(units(target.work))
    runs = set(units(member.current.work if member.current else Work()))
    stop = runs - wanted
    if stop and (reported is None or stop.intersection(from_fields(reported))):
        key = rebalance_key(group_id, member.member_id)
        # Its time to stop work began with the first request: heartbeats in between do not prolong it.
        if key not in op.memory.timers:
            timeout = memory_of(op).rebalance_timeout_ms(group_id, member.member_id)
            op.arm(key, timeout, FENCE, group_id, member.member_id)
        return {"assignment": _assignment(runs & wanted, *_of_assignor(target))}
    op.cancel(rebalance_key(group_id, member.member_id))
    if wanted == runs and known == group.assignment_epoch:
        return {}
    moved = wanted - _taken_by_others(group, member)
    if moved == runs and moved != wanted:
        # Nothing of what it is to get is free yet; it stays at its epoch until something is.
        return {}
    op.write(*records.current(group_id, member.member_id, group.assignment_epoch, moved, *_of_assignor(target)))
    return {"memberEpoch": group.assignment_epoch, "assignment": _assignment(moved, *_of_assignor(target))}


def has_a_step(group: ConnectGroup, member: ConnectMember) -> bool:
    """Whether the worker has something to stop or to start now, or has to learn a newer epoch."""
    if group.assignment_epoch is None:
        return False
    target = group.targets.get(member.member_id)
    wanted = set(units(target.work if target else Work()))
    runs = set(units(member.current.work if member.current else Work()))
    if wanted == runs:
        return (member.member_epoch or 0) != group.assignment_epoch
    return bool(runs - wanted) or wanted - _taken_by_others(group, member) != runs


def _taken_by_others(group: ConnectGroup, member: ConnectMember) -> set[ConnectorOrTask]:
    others = (other for other in group.members.values() if other is not member and other.current is not None)
    return {unit for other in others if other.current is not None for unit in units(other.current.work)}


def _of_assignor(assignment: WorkerAssignment) -> tuple[int, bytes, int]:
    return assignment.version, assignment.metadata, assignment.error


def _assignment(some: set[ConnectorOrTask], version: int, metadata: bytes, error: int) -> Fields:
    return {"error": error, "connectorsAndTasks": as_fields(some), "version": version, "metadata": metadata}


def remove(op: Operation, group: ConnectGroup, group_id: str, member_id: str, epoch: int | None = None) -> None:
    """Remove the worker, which opens ``epoch`` (None: the next)."""
    _take_out(op, group, group_id, member_id)
    op.write(*records.group_epoch(group_id, (group.group_epoch or 0) + 1 if epoch is None else epoch))


def _take_out(op: Operation, group: ConnectGroup, group_id: str, member_id: str) -> None:
    """Drop the worker; if the group is configured so, what it ran waits for its return."""
    member = group.members[member_id]
    op.write_all(records.worker_tombstones(group_id, member_id))
    op.cancel(session_key(group_id, member_id))
    op.cancel(rebalance_key(group_id, member_id))
    delay = max_delay_ms(group)
    if (
        delay
        and member.current is not None
        and units(member.current.work)
        # One delay for all that leave: a second one does not prolong the wait for the first.
        and delay_key(group_id) not in op.memory.timers
    ):
        op.arm(delay_key(group_id), delay, DELAY_OVER, group_id)


def member_expired(op: Operation, group_id: str, member_id: str) -> None:
    """Remove a worker whose session ended, or that did not stop its revoked work in time."""
    group = memory_of(op).group(group_id)
    if group is not None and member_id in group.members:
        remove(op, group, group_id, member_id)


def delay_over(op: Operation, group_id: str) -> None:
    """Assign the work that waited for a worker, unless one has returned for it."""
    group = memory_of(op).group(group_id)
    if group is not None and group.members and unassigned(group):
        op.write(*records.group_epoch(group_id, (group.group_epoch or 0) + 1))


def computation_expired(op: Operation, group_id: str) -> None:
    """Note that the worker did not compute in time: the next heartbeat chooses another one, if one can."""
    computations = memory_of(op).computations
    if group_id in computations:
        computations[group_id] = replace(computations[group_id], late=True)
