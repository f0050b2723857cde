"""The form of a StreamsGroupHeartbeat, and what the coordinator refuses (KIP-1071)."""

from collections.abc import Callable
from typing import Final

from coordinator_core.coordinator import lookup
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked, not_blank, require
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups import re2
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH, PartitionEpochs, Partitions
from coordinator_core.groups.streams.state import StreamsMember
from coordinator_core.groups.streams.topology import ConfiguredTopology, subtopology_of_sources
from coordinator_core.record_fields.coordinator_requests import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatTaskIds,
    StreamsGroupHeartbeatTopology,
)

TASK_FIELDS: Final = ("activeTasks", "standbyTasks", "warmupTasks")
MAX_PORT = 65_535


def check_heartbeat(request: Request, *, kip_1071: bool) -> StreamsGroupHeartbeatRequest:
    """Return the data of a StreamsGroupHeartbeat; raises ApiError if it is invalid in itself.

    ``kip_1071``: what the document defines and Kafka 4.3.1 does not have is allowed, and its own rules apply.
    """
    data = checked(request, StreamsGroupHeartbeatRequest)
    epoch = data["memberEpoch"]
    if not kip_1071:
        _only_supported(data)
    if epoch != 0 or not kip_1071 or data["memberId"]:
        not_blank(data, "memberId")
    not_blank(data, "groupId", "instanceId", "rackId")
    if epoch == 0:
        _joining(data)
        require(not kip_1071 or data["rebalanceTimeoutMs"] > 0, "RebalanceTimeoutMs must be larger than zero.")
    elif epoch < 0:
        require(
            epoch >= LEAVE_GROUP_STATIC_MEMBER_EPOCH,
            f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
        )
        is_static = data["instanceId"] is not None or epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH
        require(is_static, "InstanceId can't be null.")
    tasks = data["activeTasks"], data["standbyTasks"], data["warmupTasks"]
    require(None not in tasks or tasks == _NOT_GIVEN, "If one task-type is non-null, all must be non-null.")
    require(epoch == 0 or data["topology"] is None, "Topology can only be provided when (re-)joining.")
    endpoint = data["userEndpoint"]
    require(endpoint is None or 0 <= endpoint["port"] <= MAX_PORT, "The port of the user endpoint is none.")
    if kip_1071 and tasks != _NOT_GIVEN:
        owned = [
            (given["subtopologyId"], number)
            for role in TASK_FIELDS
            for given in data[role] or ()
            for number in given["partitions"]
        ]
        require(len(owned) == len(set(owned)), "ActiveTasks, StandbyTasks and WarmupTasks must be disjoint.")
    return data


_NOT_GIVEN = None, None, None


def _only_supported(data: StreamsGroupHeartbeatRequest) -> None:
    """Raises ApiError for what KIP-1071 defines and Kafka 4.3.1 does not have yet."""
    require(data["instanceId"] is None, "Static membership is not yet supported.")
    require(data["taskOffsets"] is None, "TaskOffsets are not supported yet.")
    require(data["taskEndOffsets"] is None, "TaskEndOffsets are not supported yet.")
    require(not data["warmupTasks"], "WarmupTasks are not supported yet.")
    if data["topology"] is not None:
        regexes = any(subtopology["sourceTopicRegex"] for subtopology in data["topology"]["subtopologies"])
        require(not regexes, "Regular expressions for source topics are not supported yet.")


def _joining(data: StreamsGroupHeartbeatRequest) -> None:
    require(data["rebalanceTimeoutMs"] != -1, "RebalanceTimeoutMs must be provided in first request.")
    for role in TASK_FIELDS:
        tasks, name = data[role], role[0].upper() + role[1:]
        require(tasks is not None and not tasks, f"{name} must be empty when (re-)joining.")
    topology = data["topology"]
    if topology is None:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Topology must be non-null when (re-)joining.")
    for subtopology in topology["subtopologies"]:
        for topic in subtopology["stateChangelogTopics"]:
            if topic["partitions"] != 0:
                raise ApiError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic['name']} must have an undefined partition count, but it is set to "
                    f"{topic['partitions']}.",
                )


def check_member_epoch(member: StreamsMember, data: StreamsGroupHeartbeatRequest) -> None:
    """Raise ApiError unless the epoch is one that the member may have, with the tasks that it then owns."""
    tasks = member.assigned
    held: tuple[Partitions | PartitionEpochs, ...] = (tasks.active, tasks.standby, tasks.warmup)
    lookup.check_member_epoch(
        "streams",
        member,
        data["memberEpoch"],
        lambda: all(map(_within, (data["activeTasks"], data["standbyTasks"], data["warmupTasks"]), held)),
    )


def _within(owned: list[StreamsGroupHeartbeatTaskIds] | None, assigned: Partitions | PartitionEpochs) -> bool:
    return owned is not None and all(
        partition in assigned.get(tasks["subtopologyId"], ()) for tasks in owned for partition in tasks["partitions"]
    )


def check_tasks_exist(configured: ConfiguredTopology, data: StreamsGroupHeartbeatRequest) -> None:
    """Raise ApiError if the member owns a task that the topology does not have."""
    for role in TASK_FIELDS:
        for given in data[role] or ():
            subtopology_id = given["subtopologyId"]
            subtopology = configured.subtopologies.get(subtopology_id)
            if subtopology is None:
                message = f"Subtopology {subtopology_id} does not exist in the topology."
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
            for partition in given["partitions"]:
                if not 0 <= partition < subtopology.tasks:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST,
                        f"Task {partition} for subtopology {subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {subtopology.tasks}",
                    )


def check_topology(given: StreamsGroupHeartbeatTopology) -> None:
    """Raise ApiError for a new topology that breaks one of the document's rules (KIP-1071, request validation)."""
    subtopologies = given["subtopologies"]
    sources = {name for subtopology in subtopologies for name in subtopology["sourceTopics"]}
    sinks = {name for subtopology in subtopologies for name in subtopology["repartitionSinkTopics"]}
    repartition = {topic["name"] for subtopology in subtopologies for topic in subtopology["repartitionSourceTopics"]}
    changelogs = {topic["name"] for subtopology in subtopologies for topic in subtopology["stateChangelogTopics"]}
    ids = [subtopology["subtopologyId"] for subtopology in subtopologies]
    _require_topology(given["epoch"] >= 0, "The topology epoch must not be negative.")
    _require_topology(len(set(ids)) == len(ids), "A subtopology id is there twice.")
    for name in sorted(repartition & (sources | changelogs)):
        _require_topology(False, f"Repartition source topic {name} is a source or changelog topic as well.")
    for name in sorted(changelogs & (sources | sinks)):
        _require_topology(False, f"Changelog topic {name} is a source or repartition sink topic as well.")
    for subtopology in subtopologies:
        elsewhere = {
            name for other in subtopologies if other is not subtopology for name in other["repartitionSinkTopics"]
        }
        for topic in subtopology["repartitionSourceTopics"]:
            name = topic["name"]
            _require_topology(name in elsewhere, f"No other subtopology writes to repartition source topic {name}.")
        for regex in subtopology["sourceTopicRegex"]:
            wrong = re2.error_in(regex)
            _require_topology(wrong is None, f"Source topic regex {regex} is invalid: {wrong}.")
        for group in subtopology["copartitionGroups"]:
            for field in ("sourceTopics", "sourceTopicRegex", "repartitionSourceTopics"):
                valid = all(0 <= index < len(subtopology[field]) for index in group[field])
                subtopology_id = subtopology["subtopologyId"]
                message = f"A copartition group of subtopology {subtopology_id} names a topic that is not there."
                _require_topology(valid, message)


def _require_topology(condition: bool, message: str) -> None:
    if not condition:
        raise ApiError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def check_offset_commit(
    group: LiveStreamsGroup, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
) -> Callable[[str, str, int], None] | None:
    """Raise ApiError unless the commit is of a member at one of its epochs, or without a member in an empty group.

    An older epoch is valid for tasks that were assigned no later than it (KIP-1251): the returned function checks each
    partition by topic name, topic id and number. None: all are valid.
    """
    members, stale = group.log.members, ErrorCode.STALE_MEMBER_EPOCH
    member = lookup.committing(group, members, member_id, instance_id, epoch, version, transactional=transactional)
    if member is None:
        return None
    if group.log.topology is None:
        raise ApiError(stale, "Topology is not available for offset commit validation.")
    subtopologies = subtopology_of_sources(group.log.topology, group.configured)

    def check(topic: str, _: str, partition: int) -> None:
        subtopology_id = subtopologies.get(topic)
        if subtopology_id is None:
            raise ApiError(stale, f"Topic {topic} is not in the topology.")
        assigned = member.assigned.active.get(subtopology_id, {}).get(partition)
        if assigned is None:
            # What a member has to give up is its own until it says that it has.
            assigned = member.pending_revocation.active.get(subtopology_id, {}).get(partition)
        lookup.check_assignment_epoch(stale, f"task {subtopology_id}-{partition}", "member epoch", epoch, assigned)

    return check
