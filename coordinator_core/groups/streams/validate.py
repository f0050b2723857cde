"""What a StreamsGroupHeartbeat has to look like, and what the coordinator refuses (KIP-1071)."""

from __future__ import annotations

from typing import Any

from coordinator_core.groups.config import BrokerConfig
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH, PartitionEpochs, Partitions
from coordinator_core.groups.fields import (
    Shape,
    boolean,
    checked,
    int32,
    int32s,
    int64,
    not_blank,
    string,
    strings,
    struct,
    structs,
)
from coordinator_core.groups.lookup import full, greater_epoch, member_of, smaller_epoch
from coordinator_core.groups.protocol import ApiError, ErrorCode, Request
from coordinator_core.groups.streams.live import LiveStreamsGroup
from coordinator_core.groups.streams.state import StreamsMember
from coordinator_core.groups.streams.topology import ConfiguredTopology
from coordinator_core.records import Fields

_CONFIGS = structs("topicConfigs", string("key"), string("value"), default=[])
_TOPIC = (string("name"), int32("partitions", 0), int32("replicationFactor", 0), _CONFIGS)
_COPARTITION_GROUP = (
    int32s("sourceTopics", []),
    int32s("sourceTopicRegex", []),
    int32s("repartitionSourceTopics", []),
)
_SUBTOPOLOGY = (
    string("subtopologyId"),
    strings("sourceTopics", []),
    strings("sourceTopicRegex", []),
    structs("stateChangelogTopics", *_TOPIC, default=[]),
    strings("repartitionSinkTopics", []),
    structs("repartitionSourceTopics", *_TOPIC, default=[]),
    structs("copartitionGroups", *_COPARTITION_GROUP, default=[]),
)
_TASKS = (string("subtopologyId"), int32s("partitions"))
_OFFSETS = (string("subtopologyId"), int32("partition"), int64("offset"))

HEARTBEAT = Shape(
    string("groupId"),
    string("memberId"),
    int32("memberEpoch"),
    int32("endpointInformationEpoch", -1),
    string("instanceId", None, nullable=True),
    string("rackId", None, nullable=True),
    int32("rebalanceTimeoutMs", -1),
    struct(
        "topology",
        int32("epoch"),
        structs("subtopologies", *_SUBTOPOLOGY, default=[]),
        default=None,
        nullable=True,
    ),
    structs("activeTasks", *_TASKS, default=None, nullable=True),
    structs("standbyTasks", *_TASKS, default=None, nullable=True),
    structs("warmupTasks", *_TASKS, default=None, nullable=True),
    string("processId", None, nullable=True),
    struct("userEndpoint", string("host"), int32("port"), default=None, nullable=True),
    structs("clientTags", string("key"), string("value"), default=None, nullable=True),
    structs("taskOffsets", *_OFFSETS, default=None, nullable=True),
    structs("taskEndOffsets", *_OFFSETS, default=None, nullable=True),
    boolean("shutdownApplication", False),
)
ROLES = ("activeTasks", "standbyTasks", "warmupTasks")
MAX_PORT = 65_535


def heartbeat(request: Request) -> Fields:
    """The data of a StreamsGroupHeartbeat; raises ApiError for what is wrong with it by itself."""
    data = checked(request, HEARTBEAT, range(1))
    _only_supported(data)
    not_blank(data["memberId"], "MemberId can't be empty.")
    not_blank(data["groupId"], "GroupId can't be empty.")
    not_blank(data["instanceId"], "InstanceId can't be empty.")
    not_blank(data["rackId"], "RackId can't be empty.")
    epoch = data["memberEpoch"]
    if epoch == 0:
        _joining(data)
    elif epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        _require(data["instanceId"] is not None, "InstanceId can't be null.")
    _require(
        epoch >= LEAVE_GROUP_STATIC_MEMBER_EPOCH,
        f"MemberEpoch is {epoch}, but must be greater than or equal to -2.",
    )
    given = [data[role] is not None for role in ROLES]
    _require(all(given) or not any(given), "If one task-type is non-null, all must be non-null.")
    _require(epoch == 0 or data["topology"] is None, "Topology can only be provided when (re-)joining.")
    endpoint = data["userEndpoint"]
    _require(endpoint is None or 0 <= endpoint["port"] <= MAX_PORT, "The port of the user endpoint is none.")
    return data


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ApiError(ErrorCode.INVALID_REQUEST, message)


def _only_supported(data: Fields) -> None:
    """What KIP-1071 defines and Kafka 4.3.1 does not have yet."""
    _require(data["instanceId"] is None, "Static membership is not yet supported.")
    _require(data["taskOffsets"] is None, "TaskOffsets are not supported yet.")
    _require(data["taskEndOffsets"] is None, "TaskEndOffsets are not supported yet.")
    _require(not data["warmupTasks"], "WarmupTasks are not supported yet.")
    topology = data["topology"]
    if topology is not None:
        regexes = any(subtopology["sourceTopicRegex"] for subtopology in topology["subtopologies"])
        _require(not regexes, "Regular expressions for source topics are not supported yet.")


def _joining(data: Fields) -> None:
    _require(data["rebalanceTimeoutMs"] != -1, "RebalanceTimeoutMs must be provided in first request.")
    for role in ROLES:
        name = role[0].upper() + role[1:]
        _require(data[role] is not None and not data[role], f"{name} must be empty when (re-)joining.")
    topology = data["topology"]
    _require(topology is not None, "Topology must be non-null when (re-)joining.")
    for subtopology in topology["subtopologies"]:
        for topic in subtopology["stateChangelogTopics"]:
            if topic["partitions"] != 0:
                raise ApiError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic['name']} must have an undefined partition count, but it is set to "
                    f"{topic['partitions']}.",
                )


def room(group: LiveStreamsGroup, config: BrokerConfig) -> None:
    """Raises ApiError if the group is full: for a member that comes back as well."""
    if len(group.log.members) >= config.group_streams_max_size:
        raise full("streams", config.group_streams_max_size)


def member_epoch(member: StreamsMember, data: Fields) -> None:
    """Raises ApiError unless the epoch is the member's, or the one before (its answer may have been lost).

    With the epoch before, the member must not own more than it was assigned. Epoch 0 rejoins and is always right.
    """
    epoch, known = data["memberEpoch"], member.member_epoch or 0
    if epoch > known:
        raise greater_epoch("streams", epoch, known)
    if 0 < epoch < known:
        tasks = member.assigned
        held: tuple[Partitions | PartitionEpochs, ...] = (tasks.active, tasks.standby, tasks.warmup)
        if epoch != member.previous_member_epoch or not all(
            _within(data[role], mine) for role, mine in zip(ROLES, held, strict=True)
        ):
            raise smaller_epoch("streams", epoch, known)


def _within(owned: list[dict[str, Any]] | None, assigned: Partitions | PartitionEpochs) -> bool:
    return owned is not None and all(
        partition in assigned.get(each["subtopologyId"], ()) for each in owned for partition in each["partitions"]
    )


def tasks_exist(configured: ConfiguredTopology, data: Fields) -> None:
    """Raises ApiError if the member owns a task that the topology does not have."""
    for role in ROLES:
        for each in data[role] or ():
            subtopology_id = each["subtopologyId"]
            subtopology = configured.subtopologies.get(subtopology_id)
            if subtopology is None:
                message = f"Subtopology {subtopology_id} does not exist in the topology."
                raise ApiError(ErrorCode.INVALID_REQUEST, message)
            for partition in each["partitions"]:
                if not 0 <= partition < subtopology.tasks:
                    raise ApiError(
                        ErrorCode.INVALID_REQUEST,
                        f"Task {partition} for subtopology {subtopology_id} is invalid. Number of tasks for this "
                        f"subtopology: {subtopology.tasks}",
                    )


OFFSET_COMMIT_VERSION = 9
"""Members have to commit by at least this version."""


def offset_commit(
    group: LiveStreamsGroup,
    member_id: str,
    instance_id: str | None,
    epoch: int,
    version: int,
    *,
    transactional: bool,
) -> None:
    """Raises ApiError unless the commit comes from a member at its epoch, or from nobody to an empty group."""
    if epoch < 0 and group.is_empty:
        return
    if transactional and epoch == -1 and not member_id and instance_id is None:
        return
    member = member_of(group.log.members, member_id, group.group_id)
    if not transactional and version < OFFSET_COMMIT_VERSION:
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION,
            "OffsetCommit version 9 or above must be used by members using the streams group protocol",
        )
    _same_epoch(member, epoch)


def offset_fetch(group: LiveStreamsGroup, member_id: str | None, epoch: int) -> None:
    """Raises ApiError unless the fetch comes from a member at its epoch, or does not say from whom."""
    if member_id is not None or epoch >= 0:
        _same_epoch(member_of(group.log.members, member_id or "", group.group_id), epoch)


def _same_epoch(member: StreamsMember, epoch: int) -> None:
    known = member.member_epoch or 0
    if epoch != known:
        raise ApiError(
            ErrorCode.STALE_MEMBER_EPOCH,
            f"The received member epoch {epoch} does not match the expected member epoch {known}.",
        )
