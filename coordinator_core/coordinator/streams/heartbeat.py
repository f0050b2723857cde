"""StreamsGroupHeartbeat (KIP-1071)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import IntEnum

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.lookup import check_capacity, group_of, named_member
from coordinator_core.coordinator.member_timers import expect_heartbeat
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.streams import members, records, task_offsets, validation
from coordinator_core.coordinator.streams.conversion import upgrade
from coordinator_core.coordinator.streams.fence import fence, leave, request_shutdown, streams_response
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.rebalance import (
    TopologyOnTopics,
    delay_first_assignment,
    look_at_topics,
    move,
    update_epoch,
)
from coordinator_core.coordinator.streams.reconcile import OwnedTasks
from coordinator_core.coordinator.streams.targets import has_warmed_up, update_target
from coordinator_core.groups.streams.replay import topology_of
from coordinator_core.groups.streams.state import (
    Endpoint,
    StreamsMember,
    StreamsMemberState,
    Topology,
    by_subtopology,
    task_ids,
)
from coordinator_core.groups.streams.topology import ConfiguredSubtopology, ConfiguredTopology, TopologyProblem
from coordinator_core.record_fields.coordinator_requests import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTopology,
)
from coordinator_core.records import Fields


class Status(IntEnum):
    """What a response tells a member besides its tasks."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


MAX_INT32 = 2**31 - 1
# Looking a member of an enum up by its name is slow in Python 3.11, and this is asked of every heartbeat.
_STABLE = StreamsMemberState.STABLE
_PROBLEMS = {
    TopologyProblem.MISSING_SOURCE_TOPICS: Status.MISSING_SOURCE_TOPICS,
    TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS: Status.INCORRECTLY_PARTITIONED_TOPICS,
    TopologyProblem.MISSING_INTERNAL_TOPICS: Status.MISSING_INTERNAL_TOPICS,
}


@dataclass(slots=True)
class _Step:
    """One heartbeat on its way through the phases ``_admit``, ``_update``, ``_assign`` and ``_answer``.

    ``member`` is the member as the group knows it, ``updated`` the same with the request's metadata, and ``moved`` with
    the tasks that it has now. ``changed``: the group epoch is to be bumped. ``status`` goes into the response.
    """

    op: Operation
    data: StreamsGroupHeartbeatRequest
    group: LiveStreamsGroup
    member: StreamsMember
    updated: StreamsMember
    moved: StreamsMember
    changed: bool = False
    status: list[Fields] = field(default_factory=list)


def handle_heartbeat(op: Operation, request: Request) -> Fields:
    """Serve a heartbeat: a member joins (epoch 0) with its topology, leaves (-1) or stays; it reports its tasks
    and learns which to run.
    """
    kip_1071 = op.memory.profile.is_kip_1071
    data = validation.check_heartbeat(request, kip_1071=kip_1071)
    if data["memberEpoch"] < 0:
        return leave(op, data)
    step = _admit(op, data)
    try:
        validation.check_member_epoch(step.member, data)
    except ApiError as error:
        if not kip_1071:
            raise
        # The document takes a fenced member out of the group at once.
        fence(op, step.group, [step.member])
        refused = {"errorCode": int(error.code), "errorMessage": error.message}
        return streams_response(step.member.member_id, data["memberEpoch"], **refused)
    configuration = _update(step, request)
    _assign(step, configuration)
    return _answer(step, configuration.topology)


def _admit(op: Operation, data: StreamsGroupHeartbeatRequest) -> _Step:
    """Return the group and the member that the request is about, both made where they are new."""
    group = _group(op, data["groupId"], data["topology"], joins=data["memberEpoch"] == 0)
    member = _member(op, group, data["memberId"] or op.next_text_id(), data)
    return _Step(op, data, group, member, member, member)


def _update(step: _Step, request: Request) -> TopologyOnTopics:
    """Write the member's metadata and a first topology; return the topology on the topics that there are."""
    op, data, group = step.op, step.data, step.group
    kip_1071 = op.memory.profile.is_kip_1071
    step.updated = step.moved = members.updated(step.member, request, data)
    step.changed = step.updated != step.member
    if step.changed:
        op.write(*records.member_metadata(group.group_id, step.updated))
    topology = _topology(op, group, data["topology"])
    step.status += _staleness(topology, step.updated)
    configuration = look_at_topics(op, group, topology)
    if configuration.topology.problem is None and not (kip_1071 and step.status):
        # By KIP-1071 a member of an older topology may still run tasks that the newer one does not have.
        validation.check_tasks_exist(configuration.topology, data)
    if kip_1071:
        offsets = task_offsets.from_fields(data["taskOffsets"]), task_offsets.from_fields(data["taskEndOffsets"])
        group.task_offsets.report(step.updated.member_id, step.updated.process_id or "", *offsets)
        step.changed = step.changed or has_warmed_up(op, group, step.updated)
    return configuration


def _assign(step: _Step, configuration: TopologyOnTopics) -> None:
    """Bump the epoch and compute a target where that is due, and bring the member nearer to its target."""
    op, group, updated = step.op, step.group, step.updated
    epoch = update_epoch(op, group, configuration, bump=step.changed)
    delay_first_assignment(op, group)
    target = update_target(op, group, epoch, configuration.topology, updated)
    if target.delayed_by:
        detail = f"Assignment delayed due to the configured {target.delayed_by}."
        step.status.append(_status(Status.ASSIGNMENT_DELAYED, detail))
    if updated.state != _STABLE or updated.member_epoch != target.epoch:
        step.moved = move(op, group, updated, target.epoch, target.tasks, _owned(step.data))
    expect_heartbeat(op, group, updated.member_id)
    # A thread that sends this heartbeat has changed to the new protocol.
    if group.classic:
        group.classic.pop(updated.member_id, None)
    if step.data["shutdownApplication"]:
        request_shutdown(group, updated.member_id)


def _answer(step: _Step, topology: ConfiguredTopology) -> Fields:
    """Return the response: tasks where they changed or were not acknowledged, endpoints where the member does not know
    them, and the status.
    """
    op, group, moved = step.op, step.group, step.moved
    config = op.memory.group_config(group.group_id)
    fields: Fields = {"heartbeatIntervalMs": config.streams_heartbeat_interval_ms}
    if op.memory.profile.is_kip_1071:
        fields["acceptableRecoveryLag"] = min(config.streams_acceptable_recovery_lag, MAX_INT32)
        fields["taskOffsetIntervalMs"] = config.streams_task_offset_interval_ms
    is_new = step.data["memberEpoch"] == 0 or (moved is not step.member and moved.assigned != step.member.assigned)
    if is_new:
        group.acknowledged.discard(moved.member_id)
    if is_new or (op.memory.profile.is_kip_1071 and not _has_acknowledged(step)):
        fields |= _tasks(moved)
        group.known_endpoints.pop(moved.member_id, None)
        if moved.user_endpoint is not None:
            group.endpoint_epoch += 1
    if group.endpoint_epoch != step.data["endpointInformationEpoch"]:
        fields["partitionsByUserEndpoint"] = _partitions_by_endpoint(group, moved, op.topics)
    # A group that this request creates is in no memory yet: as in Kafka its first response has epoch 0.
    if group.group_id in op.memory.live:
        fields["endpointInformationEpoch"] = group.endpoint_epoch
    op.outcome.effects["creatable_topics"] = _creatable(topology)
    status = [*step.status, *_problems(group, topology)]
    return streams_response(moved.member_id, moved.member_epoch or 0, status=status, **fields)


def _group(
    op: Operation, group_id: str, topology: StreamsGroupHeartbeatTopology | None, *, joins: bool
) -> LiveStreamsGroup:
    """The group; a member that joins makes a new one, also in the place of a classic one without members.

    In KIP-1071 it makes a classic group of Streams with members into a streams group.
    """
    group = op.memory.live.get(group_id)
    if isinstance(group, LiveStreamsGroup):
        return group
    if group is None and not joins:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Streams group {group_id} not found.")
    if group is None:
        return LiveStreamsGroup(group_id)
    if joins and isinstance(group, LiveClassicGroup) and group.is_empty:
        op.erase(group)
        return LiveStreamsGroup(group_id)
    # A member that joins brings its topology: the check of the heartbeat has seen to it.
    if topology is not None and isinstance(group, LiveClassicGroup) and op.memory.profile.is_kip_1071:
        return upgrade(op, group, topology)
    return group_of(op, group_id, LiveStreamsGroup)


def _member(
    op: Operation, group: LiveStreamsGroup, member_id: str, data: StreamsGroupHeartbeatRequest
) -> StreamsMember:
    instance_id = data["instanceId"]
    if data["memberEpoch"] != 0:
        return named_member(group, member_id, instance_id)
    if instance_id is not None:
        if group.static_member(instance_id) is None:
            check_capacity(group, op.memory.config.group_streams_max_size)
        return members.joining_static(op, group, member_id, instance_id, classic=False)
    check_capacity(group, op.memory.config.group_streams_max_size)
    return group.log.members.get(member_id) or members.new_member(member_id)


def _topology(op: Operation, group: LiveStreamsGroup, given: StreamsGroupHeartbeatTopology | None) -> Topology:
    """The group's topology: the first that a member brings. Then Kafka 4.3.1 ignores older ones and allows no newer."""
    known, kip_1071 = group.log.topology, op.memory.profile.is_kip_1071
    if given is None:
        if known is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "The topology is null and the group topology is also null.")
        return known
    if kip_1071 and (known is None or given["epoch"] > known.epoch):
        validation.check_topology(given)
    if given["epoch"] < 0:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Topology epoch must be non-negative.")
    ids = [subtopology["subtopologyId"] for subtopology in given["subtopologies"]]
    if len(set(ids)) < len(ids):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Duplicate key among the subtopologies.")
    value = records.topology_value(given)
    topology = topology_of(value)
    if known is None or (kip_1071 and _is_update(known, topology)):
        op.write(*records.topology(group.group_id, value))
        return topology
    is_same = (known.epoch, by_subtopology(known)) == (topology.epoch, by_subtopology(topology))
    if known.epoch <= given["epoch"] and not is_same:
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
    if topology.epoch == known.epoch and by_subtopology(known) != by_subtopology(topology):
        raise ApiError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY_EPOCH,
            f"The topology is not that of the group, and its topology epoch is not bumped from {known.epoch}.",
        )
    return topology.epoch > known.epoch


def _owned(data: StreamsGroupHeartbeatRequest) -> OwnedTasks:
    if data["activeTasks"] is None:
        return None
    active, standby, warmup = (
        {tasks["subtopologyId"]: tasks["partitions"] for tasks in data[role] or ()} for role in validation.TASK_FIELDS
    )
    return active, standby, warmup


def _has_acknowledged(step: _Step) -> bool:
    """Whether the member has reported the tasks that it was given: until then, the answer that had them may be lost.

    Releases send tasks once, and call the group stable without them (KIP-1071, section Response Schema).
    """
    heard, member_id, owned = step.group.acknowledged, step.moved.member_id, _owned(step.data)
    if owned is not None and [task_ids(tasks) for tasks in owned] == [*_tasks(step.moved).values()]:
        heard.add(member_id)
    return member_id in heard


def _tasks(member: StreamsMember) -> Fields:
    held = member.assigned
    return {
        "activeTasks": task_ids(held.active),
        "standbyTasks": task_ids(held.standby),
        "warmupTasks": task_ids(held.warmup),
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


def _partitions_by_endpoint(group: LiveStreamsGroup, updated: StreamsMember, topics: TopicImage) -> list[Fields]:
    """Return for each member with an endpoint the input partitions of its active and of its standby tasks.

    As in Kafka a member whose endpoint just changed, and nothing else, is still listed with the old one.

    Raises ApiError where Kafka fails: with an endpoint, and a topology whose tasks are not known.
    """
    former = group.static_member(updated.instance_id) or updated
    gone = updated.member_id, former.member_id
    members = [member for member_id, member in group.log.members.items() if member_id not in gone]
    return [
        _known_endpoint(group, member, member.user_endpoint, topics)
        for member in (*members, updated)
        if member.user_endpoint is not None
    ]


def _known_endpoint(group: LiveStreamsGroup, member: StreamsMember, endpoint: Endpoint, topics: TopicImage) -> Fields:
    known = group.known_endpoints.get(member.member_id)
    if known is None:
        if group.configured is None or not group.configured.has_tasks:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "No value present")
        known = group.known_endpoints[member.member_id] = {
            "userEndpoint": {"host": endpoint.host, "port": endpoint.port},
            "activePartitions": _partitions(group, member.assigned.active, topics),
            "standbyPartitions": _partitions(group, member.assigned.standby, topics),
        }
    return known


def _partitions(group: LiveStreamsGroup, tasks: Mapping[str, Collection[int]], topics: TopicImage) -> list[Fields]:
    return [
        {"topic": topic, "partitions": _of_topic(topic, numbers, topics)}
        for subtopology_id, numbers in tasks.items()
        for topic in _subtopology(group, subtopology_id).sources
    ]


def _subtopology(group: LiveStreamsGroup, subtopology_id: str) -> ConfiguredSubtopology:
    subtopologies = {} if group.configured is None else group.configured.subtopologies
    if subtopology_id not in subtopologies:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Subtopology {subtopology_id} is not configured.")
    return subtopologies[subtopology_id]


def _of_topic(topic: str, tasks: Collection[int], topics: TopicImage) -> list[int]:
    """As many of the task numbers as the topic has partitions; Kafka takes the numbers themselves as they are."""
    known = topics.by_name.get(topic)
    if known is None:
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Topic {topic} not found in metadata image")
    return sorted(tasks)[: known.partitions] if known.partitions < len(tasks) else list(tasks)
