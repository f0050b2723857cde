"""The records that a streams group's coordinator writes (KIP-1071), in the fields of Kafka's JSON.

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from collections.abc import Iterable, Mapping

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.coordinator.record_templates import Unwritten, known, member_key
from coordinator_core.groups.epochs import PartitionEpochs
from coordinator_core.groups.streams.state import StreamsMember, task_ids
from coordinator_core.java.hash_codes import utf16
from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey
from coordinator_core.record_fields.coordinator_requests import (
    StreamsGroupHeartbeatTopicInfo,
    StreamsGroupHeartbeatTopology,
)
from coordinator_core.record_fields.streams_group import (
    StreamsGroupCurrentMemberAssignmentTaskIds,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKeyValue,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTopologySubtopology,
    StreamsGroupTopologyTopicInfo,
    StreamsGroupTopologyValue,
)
from coordinator_core.records import RecordType

NOT_VALIDATED = -1
"""The validated topology epoch while no topology is validated."""


def member_metadata(group_id: str, member: StreamsMember) -> Unwritten[MemberKey, StreamsGroupMemberMetadataValue]:
    """Return the record of the member's metadata."""
    endpoint = member.user_endpoint
    value: StreamsGroupMemberMetadataValue = {
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": known(member.client_id),
        "clientHost": known(member.client_host),
        "rebalanceTimeoutMs": member.rebalance_timeout_ms,
        "topologyEpoch": known(member.topology_epoch),
        "processId": known(member.process_id),
        "userEndpoint": None if endpoint is None else {"host": endpoint.host, "port": endpoint.port},
        "clientTags": pairs(member.client_tags),
    }
    return RecordType.STREAMS_GROUP_MEMBER_METADATA, member_key(group_id, member.member_id), value


def pairs(values: Mapping[str, str]) -> list[StreamsGroupMemberMetadataKeyValue]:
    """Return a map as a list of keys and values, as records have it."""
    return [{"key": key, "value": values[key]} for key in sorted(values, key=utf16)]


def topology_value(given: StreamsGroupHeartbeatTopology) -> StreamsGroupTopologyValue:
    """Return the record value for the topology of a heartbeat, with all its fields."""
    subtopologies: list[StreamsGroupTopologySubtopology] = [
        {
            "subtopologyId": subtopology["subtopologyId"],
            "sourceTopics": subtopology["sourceTopics"],
            "sourceTopicRegex": subtopology["sourceTopicRegex"],
            "stateChangelogTopics": [_internal_topic(topic) for topic in subtopology["stateChangelogTopics"]],
            "repartitionSinkTopics": subtopology["repartitionSinkTopics"],
            "repartitionSourceTopics": [_internal_topic(topic) for topic in subtopology["repartitionSourceTopics"]],
            "copartitionGroups": [
                {
                    "sourceTopics": group["sourceTopics"],
                    "sourceTopicRegex": group["sourceTopicRegex"],
                    "repartitionSourceTopics": group["repartitionSourceTopics"],
                }
                for group in subtopology["copartitionGroups"]
            ],
        }
        for subtopology in sorted(given["subtopologies"], key=lambda subtopology: utf16(subtopology["subtopologyId"]))
    ]
    return {"epoch": given["epoch"], "subtopologies": subtopologies}


def _internal_topic(topic: StreamsGroupHeartbeatTopicInfo) -> StreamsGroupTopologyTopicInfo:
    return {
        "name": topic["name"],
        "partitions": topic["partitions"],
        "replicationFactor": topic["replicationFactor"],
        "topicConfigs": [{"key": config["key"], "value": config["value"]} for config in topic["topicConfigs"]],
    }


def topology(group_id: str, value: StreamsGroupTopologyValue) -> Unwritten[GroupIdKey, StreamsGroupTopologyValue]:
    """Return the record of the group's topology."""
    return RecordType.STREAMS_GROUP_TOPOLOGY, {"groupId": group_id}, value


def group_epoch(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> Unwritten[GroupIdKey, StreamsGroupMetadataValue]:
    """Return the record of the group epoch, the hash of its topics, the validated topology and the assignment's
    configurations.
    """
    value: StreamsGroupMetadataValue = {"epoch": epoch, "metadataHash": metadata_hash}
    if validated_topology_epoch != NOT_VALIDATED:
        value["validatedTopologyEpoch"] = validated_topology_epoch
    if configs:
        value["lastAssignmentConfigs"] = pairs(configs)
    return RecordType.STREAMS_GROUP_METADATA, {"groupId": group_id}, value


def target_assignment(
    group_id: str, member_id: str, target: Tasks
) -> Unwritten[MemberKey, StreamsGroupTargetAssignmentMemberValue]:
    """Return the record of a member's target assignment."""
    value: StreamsGroupTargetAssignmentMemberValue = {
        "activeTasks": task_ids(target.active),
        "standbyTasks": task_ids(target.standby),
        "warmupTasks": task_ids(target.warmup),
    }
    return RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, member_key(group_id, member_id), value


def current_assignment(
    group_id: str, member: StreamsMember
) -> Unwritten[MemberKey, StreamsGroupCurrentMemberAssignmentValue]:
    """Return the record of the member's current assignment."""
    assigned, revoking = member.assigned, member.pending_revocation
    value: StreamsGroupCurrentMemberAssignmentValue = {
        "memberEpoch": known(member.member_epoch),
        "previousMemberEpoch": known(member.previous_member_epoch),
        "state": known(member.state),
        "activeTasks": _with_epochs(assigned.active),
        "standbyTasks": _without_epochs(assigned.standby),
        "warmupTasks": _without_epochs(assigned.warmup),
        "activeTasksPendingRevocation": _with_epochs(revoking.active),
        "standbyTasksPendingRevocation": _without_epochs(revoking.standby),
        "warmupTasksPendingRevocation": _without_epochs(revoking.warmup),
    }
    return RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member.member_id), value


def _without_epochs(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupCurrentMemberAssignmentTaskIds]:
    return [{"subtopologyId": ids["subtopologyId"], "partitions": ids["partitions"]} for ids in task_ids(tasks)]


def _with_epochs(tasks: PartitionEpochs) -> list[StreamsGroupCurrentMemberAssignmentTaskIds]:
    return [
        {
            "subtopologyId": key,
            "partitions": sorted(tasks[key]),
            "assignmentEpochs": [tasks[key][partition] for partition in sorted(tasks[key])],
        }
        for key in sorted(tasks, key=utf16)
    ]
