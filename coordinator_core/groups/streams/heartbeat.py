"""StreamsGroupHeartbeat (KIP-1071)."""

from __future__ import annotations

from dataclasses import replace
from enum import IntEnum

from coordinator_core.assignors.profiles import KIP_1071
from coordinator_core.assignors.spec import Tasks
from coordinator_core.groups.classic.live import LiveClassicGroup
from coordinator_core.groups.lookup import group_of, member_of
from coordinator_core.groups.operation import Operation
from coordinator_core.groups.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.streams import records, validate
from coordinator_core.groups.streams.endpoints import partitions_by_endpoint
from coordinator_core.groups.streams.fence import expect_heartbeat, leave, request_shutdown, response
from coordinator_core.groups.streams.live import LiveStreamsGroup
from coordinator_core.groups.streams.rebalance import (
    assignment_configs,
    compute_target,
    delay_first_assignment,
    initial_rebalance_key,
    look_at_topics,
    move,
    update_epoch,
)
from coordinator_core.groups.streams.reconcile import OwnedTasks
from coordinator_core.groups.streams.replay import topology_of
from coordinator_core.groups.streams.state import Endpoint, MemberState, StreamsMember, Topology
from coordinator_core.groups.streams.topology import ConfiguredTopology, TopologyProblem
from coordinator_core.records import Fields


class Status(IntEnum):
    """What a member is told beside its tasks."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


_PROBLEMS = {
    TopologyProblem.MISSING_SOURCE_TOPICS: Status.MISSING_SOURCE_TOPICS,
    TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS: Status.INCORRECTLY_PARTITIONED_TOPICS,
    TopologyProblem.MISSING_INTERNAL_TOPICS: Status.MISSING_INTERNAL_TOPICS,
}


def heartbeat(op: Operation, request: Request) -> Fields:
    """A member joins (epoch 0) with its topology, leaves (-1) or lives, reports its tasks and learns which to run."""
    data = validate.heartbeat(request)
    if data["memberEpoch"] < 0:
        return leave(op, data)
    group_id, member_id, joins = data["groupId"], data["memberId"], data["memberEpoch"] == 0
    group = _group(op, group_id, joins=joins)
    if joins:
        validate.room(group, op.memory.config)
        member = group.log.members.get(member_id) or _new_member(member_id)
    else:
        member = member_of(group.log.members, member_id, group_id)
    validate.member_epoch(member, data)
    updated = _updated(member, request, data)
    changed = updated is not member and updated != member
    if changed:
        op.write(*records.member_metadata(group_id, updated))
    topology = _topology(op, group, data["topology"])
    status = _staleness(topology, updated)
    configuration = look_at_topics(op, group, topology)
    if configuration.topology.problem is None and not status:
        # A member of an older topology may still run tasks that the newer one does not have (KIP-1071).
        validate.tasks_exist(configuration.topology, data)
    epoch = update_epoch(op, group, configuration, bump=changed)
    delay_first_assignment(op, group)
    target_epoch, target, delay = _target(op, group, epoch, configuration.topology, updated)
    status += delay
    moved = move(op, group, updated, target_epoch, target, _owned(data))
    expect_heartbeat(op, group_id, member_id)
    if data["shutdownApplication"]:
        request_shutdown(group, member_id)
    fields: Fields = {"heartbeatIntervalMs": op.memory.group_config(group_id).streams_heartbeat_interval_ms}
    if joins or moved.assigned != member.assigned:
        fields |= _tasks(moved)
        if moved.user_endpoint is not None:
            group.endpoint_epoch += 1
    if group.endpoint_epoch != data["endpointInformationEpoch"]:
        fields["partitionsByUserEndpoint"] = partitions_by_endpoint(group, moved, op.topics)
    if group_id in op.memory.live:
        fields["endpointInformationEpoch"] = group.endpoint_epoch
    status += _problems(group, configuration.topology)
    op.outcome.effects["creatable_topics"] = _creatable(configuration.topology)
    return response(member_id, moved.member_epoch or 0, status=status, **fields)


def _group(op: Operation, group_id: str, *, joins: bool) -> LiveStreamsGroup:
    """The group; a member that joins makes a new one, also in the place of a classic one without members."""
    group = op.memory.live.get(group_id)
    if group is None and not joins:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    if group is None:
        return LiveStreamsGroup(group_id)
    if joins and isinstance(group, LiveClassicGroup) and group.is_empty:
        op.erase(group)
        return LiveStreamsGroup(group_id)
    return group_of(op, group_id, LiveStreamsGroup, "streams")


def _new_member(member_id: str) -> StreamsMember:
    return StreamsMember(
        member_id,
        client_id="",
        client_host="",
        member_epoch=0,
        previous_member_epoch=-1,
        state=MemberState.STABLE,
        topology_epoch=-1,
        process_id="",
    )


def _updated(member: StreamsMember, request: Request, data: Fields) -> StreamsMember:
    """The member as its heartbeat describes it; what the heartbeat leaves out stays. The same object if that is all."""
    endpoint, tags, timeout = data["userEndpoint"], data["clientTags"], data["rebalanceTimeoutMs"]
    if (
        endpoint is tags is data["rackId"] is data["topology"] is data["processId"] is None
        and timeout == -1
        and request.client_id == member.client_id
        and request.client_host == member.client_host
    ):
        return member
    return replace(
        member,
        rack_id=member.rack_id if data["rackId"] is None else data["rackId"],
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        topology_epoch=member.topology_epoch if data["topology"] is None else data["topology"]["epoch"],
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=member.process_id if data["processId"] is None else data["processId"],
        client_tags=member.client_tags if tags is None else {each["key"]: each["value"] for each in tags},
        user_endpoint=member.user_endpoint if endpoint is None else Endpoint(endpoint["host"], endpoint["port"]),
    )


def _topology(op: Operation, group: LiveStreamsGroup, given: Fields | None) -> Topology:
    """The group's topology: the first that a member brings. Then Kafka 4.3.1 ignores older ones and allows no newer."""
    known = group.log.topology
    if given is None:
        if known is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The topology is null and the group topology is also null.")
        return known
    if given["epoch"] < 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Topology epoch must be non-negative.")
    ids = [each["subtopologyId"] for each in given["subtopologies"]]
    if len(set(ids)) < len(ids):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Duplicate key among the subtopologies.")
    record = records.topology(group.group_id, given)
    topology = topology_of(record[2] or {})
    if known is None or (op.memory.profile.name == KIP_1071 and _is_update(known, topology)):
        op.write(*record)
        return topology
    if known.epoch <= given["epoch"] and _by_id(known) != _by_id(topology):
        raise ApiError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


def _is_update(known: Topology, topology: Topology) -> bool:
    """Whether a joining member brings the next topology; raises ApiError unless it brings that or the known one."""
    if topology.epoch < known.epoch:
        raise ApiError(
            ErrorCode.STREAMS_TOPOLOGY_FENCED,
            f"The topology epoch {topology.epoch} is behind the group's topology epoch {known.epoch}.",
        )
    if topology.epoch > known.epoch + 1:
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
            f"The topology epoch {topology.epoch} is not the one after the group's topology epoch {known.epoch}.",
        )
    if topology.epoch == known.epoch and _by_id(known) != _by_id(topology):
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
            f"The topology is not that of the group, and its topology epoch is not bumped from {known.epoch}.",
        )
    return topology.epoch > known.epoch


def _by_id(topology: Topology) -> tuple[int, dict[str, object]]:
    return topology.epoch, {each.subtopology_id: each for each in topology.subtopologies}


def _target(
    op: Operation, group: LiveStreamsGroup, epoch: int, topology: ConfiguredTopology, member: StreamsMember
) -> tuple[int, Tasks, list[Fields]]:
    """The newest target's epoch, the member's part of it, and what the member is told of a delay."""
    if group.assignment_epoch >= epoch:
        return group.assignment_epoch, group.target(member.member_id), []
    interval = op.memory.group_config(group.group_id).streams_assignment_interval_ms
    if initial_rebalance_key(group.group_id) in op.memory.timers:
        detail = "Assignment delayed due to the configured initial rebalance delay."
        return group.assignment_epoch, Tasks(), [_status(Status.ASSIGNMENT_DELAYED, detail)]
    if not group.may_compute_target(op.now, interval):
        detail = "Assignment delayed due to the configured assignment interval."
        delay = [_status(Status.ASSIGNMENT_DELAYED, detail)]
        return group.assignment_epoch, group.target(member.member_id), delay
    targets = compute_target(op, group, epoch, topology, assignment_configs(op, group.group_id), member)
    return epoch, targets.get(member.member_id, Tasks()), []


def _owned(data: Fields) -> OwnedTasks:
    if data["activeTasks"] is None:
        return None
    active, standby, warmup = (
        {each["subtopologyId"]: each["partitions"] for each in data[role]} for role in validate.ROLES
    )
    return active, standby, warmup


def _tasks(member: StreamsMember) -> Fields:
    held = member.assigned
    return {
        "activeTasks": records.task_ids(held.active),
        "standbyTasks": records.task_ids(held.standby),
        "warmupTasks": records.task_ids(held.warmup),
    }


def _status(status: Status, detail: str) -> Fields:
    return {"statusCode": int(status), "statusDetail": detail}


def _staleness(topology: Topology, member: StreamsMember) -> list[Fields]:
    epoch = member.topology_epoch
    if epoch is None or epoch >= topology.epoch:
        return []
    detail = f"The member's topology epoch {epoch} is behind the group's topology epoch {topology.epoch}."
    return [_status(Status.STALE_TOPOLOGY, detail)]


def _problems(group: LiveStreamsGroup, topology: ConfiguredTopology) -> list[Fields]:
    status = []
    if topology.problem is not None:
        status.append(_status(_PROBLEMS[topology.problem], topology.detail))
    if group.shutdown_member is not None:
        detail = (
            f"Streams group member {group.shutdown_member} encountered a fatal error and requested a shutdown for the "
            "entire application."
        )
        status.append(_status(Status.SHUTDOWN_APPLICATION, detail))
    return status


def _creatable(topology: ConfiguredTopology) -> list[Fields]:
    """The internal topics that the broker creates now, as CreateTopics has them."""
    return [
        {
            "name": topic.name,
            "numPartitions": topic.partitions,
            "replicationFactor": topic.replication_factor or -1,
            "assignments": [],
            "configs": [{"name": name, "value": value} for name, value in topic.configs.items()],
        }
        for topic in topology.missing_internal_topics.values()
    ]
