"""Workers of a Connect group on KIP-848 that still speak the classic protocol (Connect on KIP-848, migration).

Generation and member epoch are the same number. A worker is told to rejoin by REBALANCE_IN_PROGRESS, only if there is
something for it to do. Each JoinGroup reports what it runs and takes it one step towards its target; each SyncGroup
says what to stop, or what to start. It never leads: targets are computed by workers that speak the new protocol.
"""

from collections.abc import Iterable, Iterator

from coordinator_core.assignors.connect.work import CONNECTOR, ConnectorOrTask, worker
from coordinator_core.coordinator.classic import responses
from coordinator_core.coordinator.classic.join import KNOWN_MEMBER_ID_REQUIRED_VERSION
from coordinator_core.coordinator.classic.validation import check_leave_group
from coordinator_core.coordinator.connect import heartbeat
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState, as_fields
from coordinator_core.coordinator.lookup import member_of
from coordinator_core.coordinator.member_timers import session_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.connect.state import (
    CLASSIC_VERSION,
    Assignor,
    ConnectGroup,
    ConnectMember,
    Work,
    is_classic,
    units,
)
from coordinator_core.record_fields.coordinator_requests import (
    HeartbeatRequest,
    JoinGroupProtocol,
    JoinGroupRequest,
    SyncGroupRequest,
)
from coordinator_core.record_fields.embedded import ConnectProtocolMetadata
from coordinator_core.records import Fields
from coordinator_core.wire.embedded import Blob, blob_of, decode_subscription, encode_blob

PROTOCOL_VERSIONS = {"default": 0, "compatible": 1, "sessioned": 2}
"""Connect's protocols and the highest version of metadata that each knows (KIP-415, KIP-507)."""


def join_group(op: Operation, request: Request) -> Fields:
    """Serve JoinGroup: the worker joins, or reports what it runs and takes its next step."""
    data = checked(request, JoinGroupRequest)
    memory, group = _group(op, data["groupId"])
    group_id, member_id = data["groupId"], data["memberId"]
    if data["protocolType"] != CONNECT_PROTOCOL_TYPE or not data["protocols"]:
        return responses.join_group_response(request.version, member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not member_id:
        member_id = op.next_text_id()
        if request.version >= KNOWN_MEMBER_ID_REQUIRED_VERSION:
            return responses.join_group_response(request.version, member_id, ErrorCode.MEMBER_ID_REQUIRED)
    member = group.members.get(member_id) or ConnectMember(member_id)
    memory.session_timeouts[group_id, member_id] = data["sessionTimeoutMs"]
    if data["rebalanceTimeoutMs"] > 0:
        memory.rebalance_timeouts[group_id, member_id] = data["rebalanceTimeoutMs"]
    assignors = assignors_of((protocol["name"], protocol["metadata"]) for protocol in data["protocols"])
    heartbeat.update_worker(op, request, group, group_id, member, assignors, data["groupInstanceId"])
    reported = memory.reported[group_id, member_id] = _reported(data["protocols"][0])
    _expect(op, memory, group_id, member_id)
    epoch = member.member_epoch or 0
    if member.current is not None:
        step = heartbeat.reconcile(op, group, group_id, member, as_fields(reported))
        epoch = step.get("memberEpoch", epoch)
    return responses.join_group_response(
        request.version,
        member_id,
        generation=epoch,
        protocol_type=CONNECT_PROTOCOL_TYPE,
        protocol=heartbeat.assignor_of(group) if group.members else data["protocols"][0]["name"],
    )


def sync_group(op: Operation, request: Request) -> Fields:
    """Serve SyncGroup: what the worker is to stop, or to start, since it reported what it runs."""
    data = checked(request, SyncGroupRequest)
    memory, group = _group(op, data["groupId"])
    group_id, member_id = data["groupId"], data["memberId"]
    member = member_of(group.members, member_id, group_id)
    if data["generationId"] != (member.member_epoch or 0):
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    reported = memory.reported.get((group_id, member_id))
    if reported is None:
        # This coordinator was not told what the worker runs: it has to say so again.
        return responses.sync_group_response(request.version, ErrorCode.REBALANCE_IN_PROGRESS)
    _expect(op, memory, group_id, member_id)
    name = heartbeat.assignor_of(group)
    return responses.sync_group_response(
        request.version,
        protocol_type=CONNECT_PROTOCOL_TYPE,
        protocol=name,
        assignment=_assignment(group, member, name, set(reported)),
    )


def handle_heartbeat(op: Operation, request: Request) -> Fields:
    """Serve Heartbeat: a sign of life, answered by whether the worker has a step to take."""
    data = checked(request, HeartbeatRequest)
    memory, group = _group(op, data["groupId"])
    member = member_of(group.members, data["memberId"], data["groupId"])
    if data["generationId"] != (member.member_epoch or 0):
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    _expect(op, memory, data["groupId"], data["memberId"])
    rebalances = heartbeat.has_a_step(group, member)
    return responses.heartbeat_response(
        request.version, ErrorCode.REBALANCE_IN_PROGRESS if rebalances else ErrorCode.NONE
    )


def leave_group(op: Operation, request: Request) -> Fields:
    """Serve LeaveGroup of one worker or several, one after the other."""
    data = check_leave_group(request)
    memory, group = _group(op, data["groupId"])
    answers = []
    # Counted here: the group itself has its next epoch only after the request, when its records are applied.
    epoch = group.group_epoch or 0
    for member in data["members"]:
        known = member["memberId"] in group.members
        if known:
            epoch += 1
            heartbeat.remove(op, group, data["groupId"], member["memberId"], epoch)
            memory.forget_worker(data["groupId"], member["memberId"])
        answers.append(responses.leave_group_member(member, ErrorCode.NONE if known else ErrorCode.UNKNOWN_MEMBER_ID))
    return responses.leave_group_response(request.version, answers)


def assignors_of(protocols: Iterable[tuple[str, bytes]]) -> list[Assignor]:
    """Return the protocols of a worker as assignors; their version says that the worker speaks the classic protocol.

    The metadata is without what the worker runs: that changes with each step, and opens no epoch.
    """
    return [
        Assignor(name, CLASSIC_VERSION, PROTOCOL_VERSIONS.get(name, 0), 0, CLASSIC_VERSION, _lasting(name, metadata))
        for name, metadata in protocols
    ]


def protocols_of(member: ConnectMember) -> Iterator[tuple[str, bytes]]:
    """Yield the protocols of a worker with their metadata, as the worker itself sends them."""
    running = set(units(member.current.work if member.current else Work()))
    for assignor in member.assignors:
        version, known = PROTOCOL_VERSIONS.get(assignor.name, 0), _metadata(assignor.name, assignor.metadata)
        if known is None or not version:
            yield assignor.name, assignor.metadata
            continue
        allocation = written_assignment(assignor.metadata, assignor.name, "", running)
        fields = {"url": known.fields["url"], "configOffset": known.fields["configOffset"], "allocation": allocation}
        yield assignor.name, encode_blob("ConnectProtocolMetadata", version, fields)


def _lasting(protocol: str, metadata: bytes) -> bytes:
    known = _metadata(protocol, metadata)
    if known is None:
        return metadata
    fields = {"url": known.fields["url"], "configOffset": known.fields["configOffset"]}
    return encode_blob("ConnectProtocolMetadata", 0, fields)


def written_assignment(
    metadata: bytes,
    protocol: str,
    leader: str,
    starts: Iterable[ConnectorOrTask],
    stops: Iterable[ConnectorOrTask] = (),
) -> bytes:
    """Return an assignment in the bytes of the classic protocol, as a leader would write it."""
    version = PROTOCOL_VERSIONS.get(protocol, 0)
    known = _metadata(protocol, metadata)
    fields: dict[str, object] = {
        "error": 0,
        "leader": leader,
        "leaderUrl": "",
        "configOffset": -1 if known is None else worker(known).config_offset,
        "assignment": _listed(starts),
    }
    if version:
        fields |= {"revoked": _listed(stops), "delay": 0}
    return encode_blob("ConnectProtocolAssignment", version, fields)


def _assignment(group: ConnectGroup, member: ConnectMember, protocol: str, reported: set[ConnectorOrTask]) -> bytes:
    target = group.targets.get(member.member_id)
    runs = set(units(member.current.work if member.current else Work()))
    wanted = runs if group.assignment_epoch is None else set(units(target.work if target else Work()))
    has = runs & wanted
    starts, stops = has - reported, reported - has
    metadata = next((assignor.metadata for assignor in member.assignors if assignor.name == protocol), b"")
    leader = next((worker_id for worker_id, other in group.members.items() if not is_classic(other)), "")
    # An eager worker has stopped all before it joined: it is told everything, not only what is new.
    return written_assignment(metadata, protocol, leader, starts if PROTOCOL_VERSIONS.get(protocol) else has, stops)


def _listed(some: Iterable[ConnectorOrTask]) -> list[Fields]:
    """By connector: the numbers of its tasks, and that of the connector itself."""
    listed: dict[str, list[int]] = {}
    for unit in sorted(some, key=lambda unit: (unit, CONNECTOR) if isinstance(unit, str) else unit):
        name, number = (unit, CONNECTOR) if isinstance(unit, str) else unit
        listed.setdefault(name, []).append(number)
    return [{"connector": name, "tasks": numbers} for name, numbers in listed.items()]


def _reported(protocol: JoinGroupProtocol) -> tuple[ConnectorOrTask, ...]:
    """What the worker runs as it joins; eager workers stop everything before."""
    known = _metadata(protocol["name"], protocol["metadata"])
    if known is None:
        return ()
    running = worker(known)
    return (*running.connectors, *running.tasks)


def _metadata(protocol: str, data: bytes) -> Blob[ConnectProtocolMetadata] | None:
    try:
        return blob_of(ConnectProtocolMetadata, decode_subscription(CONNECT_PROTOCOL_TYPE, protocol, data))
    except DecodeError:
        return None


def _group(op: Operation, group_id: str) -> tuple[ConnectCoordinatorState, ConnectGroup]:
    memory = heartbeat.memory_of(op)
    group = memory.group(group_id)
    if group is None or not group.members:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID, f"Group {group_id} not found.")
    return memory, group


def _expect(op: Operation, memory: ConnectCoordinatorState, group_id: str, member_id: str) -> None:
    timeout = memory.session_timeouts.get((group_id, member_id), memory.session_timeout_ms)
    op.arm(session_key(group_id, member_id), timeout, heartbeat.FENCE, group_id, member_id)
