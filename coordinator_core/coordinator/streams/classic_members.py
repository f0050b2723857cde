"""Threads of a streams group that still speak the classic protocol (KIP-1071, online migration).

Generation and member epoch are the same number. REBALANCE_IN_PROGRESS asks a thread to join again; each join takes it
one step towards its target, and each sync gives it what it then runs.
"""

from collections.abc import Iterable
from dataclasses import replace

from coordinator_core.assignors.inputs import TaskId, Tasks
from coordinator_core.coordinator.classic import responses
from coordinator_core.coordinator.classic.join import KNOWN_MEMBER_ID_REQUIRED_VERSION
from coordinator_core.coordinator.lookup import check_capacity, named_member
from coordinator_core.coordinator.member_timers import expect_heartbeat, expect_join, expect_sync, join_key, sync_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.streams import classic_blobs, members, records
from coordinator_core.coordinator.streams.classic_blobs import ThreadInfo
from coordinator_core.coordinator.streams.group import ClassicThread, LiveStreamsGroup
from coordinator_core.coordinator.streams.rebalance import look_at_topics, move, update_epoch
from coordinator_core.coordinator.streams.reconcile import OwnedTasks, reconcile
from coordinator_core.coordinator.streams.targets import has_warmed_up, update_target
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.streams.state import StreamsMember, StreamsMemberState
from coordinator_core.groups.streams.topology import subtopology_of_sources
from coordinator_core.record_fields.coordinator_requests import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from coordinator_core.records import Fields


def join(op: Operation, request: Request[JoinGroupRequest], group: LiveStreamsGroup) -> Fields:
    """Serve JoinGroup: the thread joins, or takes its next step; if it asks without a member id, it first gets one."""
    data = request.data
    group_id, instance_id, is_new = group.group_id, data["groupInstanceId"], not data["memberId"]
    member_id = op.next_text_id() if is_new else data["memberId"]
    info, topology = _thread_info(data), group.log.topology
    if topology is None:
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"Streams group {group_id} has no topology.")
    member = _member(op, group, member_id, instance_id, joins=is_new)
    if is_new and instance_id is None and request.version >= KNOWN_MEMBER_ID_REQUIRED_VERSION:
        return responses.join_group_response(request.version, member_id, ErrorCode.MEMBER_ID_REQUIRED)
    timeout = data["rebalanceTimeoutMs"]
    updated = replace(
        member,
        instance_id=member.instance_id if instance_id is None else instance_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        topology_epoch=topology.epoch,
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=info.process_id,
        client_tags=info.client_tags,
        user_endpoint=info.endpoint,
    )
    changed = updated != member
    if changed:
        op.write(*records.member_metadata(group_id, updated))
    configuration = look_at_topics(op, group, topology)
    group.task_offsets.report(member_id, info.process_id, info.offsets, None)
    changed = changed or has_warmed_up(op, group, updated)
    epoch = update_epoch(op, group, configuration, bump=changed)
    target = update_target(op, group, epoch, configuration.topology, updated)
    moved = move(op, group, updated, target.epoch, target.tasks, _owned(group, updated, info))
    protocols = tuple((protocol["name"], protocol["metadata"]) for protocol in data["protocols"])
    thread = ClassicThread(data["sessionTimeoutMs"], protocols)
    # No record holds it: it is noted only when the request's records are written.
    op.afterwards.append(lambda: group.classic.update({member_id: thread}))
    op.cancel(join_key(group_id, member_id))
    expect_heartbeat(op, group, member_id, thread.session_timeout_ms)
    expect_sync(op, group, member_id, updated.rebalance_timeout_ms)
    return responses.join_group_response(
        request.version,
        member_id,
        generation=moved.member_epoch or 0,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol=STREAMS_PROTOCOL,
    )


def _thread_info(data: JoinGroupRequest) -> ThreadInfo:
    """The thread as it describes itself; raises ApiError if it is none of Streams."""
    metadata = next(
        (protocol["metadata"] for protocol in data["protocols"] if protocol["name"] == STREAMS_PROTOCOL), None
    )
    if data["protocolType"] == CONSUMER_PROTOCOL_TYPE and metadata is not None:
        try:
            return classic_blobs.thread_info(metadata)
        except DecodeError:
            pass
    raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The member is not a thread of Streams.")


def _member(
    op: Operation, group: LiveStreamsGroup, member_id: str, instance_id: str | None, *, joins: bool
) -> StreamsMember:
    known = group.log.members.get(member_id)
    if known is None and group.static_member(instance_id) is None:
        check_capacity(group, op.memory.config.group_streams_max_size)
    if instance_id is None:
        return known or members.new_member(member_id)
    if joins:
        return members.joining_static(op, group, member_id, instance_id, classic=True)
    return named_member(group, member_id, instance_id)


def _owned(group: LiveStreamsGroup, member: StreamsMember, info: ThreadInfo) -> OwnedTasks:
    """What the thread still has: active tasks by its partitions, warm-ups among the standbys.

    Newer threads do not say which standbys they have: what they were told to give up is gone once they join again.
    """
    subtopologies = {}
    if group.log.topology is not None:
        subtopologies = subtopology_of_sources(group.log.topology, group.configured)
    active = _by_subtopology((subtopologies[topic], number) for topic, number in info.owned if topic in subtopologies)
    if info.standby is None:
        return active, member.assigned.standby, member.assigned.warmup
    copies = _by_subtopology(info.standby)
    return active, copies, copies


def _by_subtopology(tasks: Iterable[TaskId]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for subtopology_id, partition in sorted(set(tasks)):
        numbers.setdefault(subtopology_id, []).append(partition)
    return numbers


def sync(op: Operation, request: Request[SyncGroupRequest], group: LiveStreamsGroup) -> Fields:
    """Serve SyncGroup: the thread learns what it runs; raises ApiError if it has to join again first."""
    data = request.data
    group_id = group.group_id
    member, thread = _classic_member(group, data["memberId"], data["groupInstanceId"], data["generationId"])
    if (data["protocolType"] or CONSUMER_PROTOCOL_TYPE, data["protocolName"] or STREAMS_PROTOCOL) != (
        CONSUMER_PROTOCOL_TYPE,
        STREAMS_PROTOCOL,
    ):
        raise ApiError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "The protocol is not that of the join response.")
    # A member with tasks to give up has joined already; it goes on from there.
    if group.assignment_epoch > (member.member_epoch or 0) and member.state != StreamsMemberState.UNREVOKED_TASKS:
        expect_join(op, group, member.member_id, member.rebalance_timeout_ms)
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    held = member.assigned
    tasks = Tasks({key: list(numbers) for key, numbers in held.active.items()}, held.standby, held.warmup)
    metadata = dict(thread.protocols)[STREAMS_PROTOCOL]
    assignment = classic_blobs.assignment(tasks, group.configured, op.topics, metadata, op.now)
    op.cancel(sync_key(group_id, member.member_id))
    expect_heartbeat(op, group, member.member_id, thread.session_timeout_ms)
    return responses.sync_group_response(
        request.version, protocol_type=CONSUMER_PROTOCOL_TYPE, protocol=STREAMS_PROTOCOL, assignment=assignment
    )


def handle_heartbeat(op: Operation, request: Request, data: HeartbeatRequest, group: LiveStreamsGroup) -> Fields:
    """Serve Heartbeat: the thread is asked to join again if that would assign or revoke something."""
    member, thread = _classic_member(group, data["memberId"], data["groupInstanceId"], data["generationId"])
    expect_heartbeat(op, group, member.member_id, thread.session_timeout_ms)
    error = ErrorCode.NONE
    if _should_join(group, member):
        error = ErrorCode.REBALANCE_IN_PROGRESS
        expect_join(op, group, member.member_id, member.rebalance_timeout_ms)
    return responses.heartbeat_response(request.version, error)


def _should_join(group: LiveStreamsGroup, member: StreamsMember) -> bool:
    if (member.member_epoch or 0) < group.assignment_epoch or member.state == StreamsMemberState.UNREVOKED_TASKS:
        return True
    if member.state != StreamsMemberState.UNRELEASED_TASKS:
        return False
    target = group.target(member.member_id)
    return reconcile(group, member, group.assignment_epoch, target, None).assigned != member.assigned


def _classic_member(
    group: LiveStreamsGroup, member_id: str, instance_id: str | None, generation: int
) -> tuple[StreamsMember, ClassicThread]:
    member = named_member(group, member_id, instance_id)
    thread = group.classic.get(member_id)
    if thread is None:
        # A new coordinator does not know a thread of the classic protocol until the thread joins again.
        raise ApiError(ErrorCode.REBALANCE_IN_PROGRESS)
    if generation != (member.member_epoch or 0):
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return member, thread
