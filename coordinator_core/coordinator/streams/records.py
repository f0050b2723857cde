"""The records that a streams group's coordinator writes (KIP-1071), in the fields of Kafka's JSON.

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.assignors.java_hash import utf16
from coordinator_core.coordinator.record_templates import Unwritten, member_key, target_epoch_value, tombstones_of_all
from coordinator_core.groups import record_types
from coordinator_core.groups.epochs import PartitionEpochs
from coordinator_core.groups.streams.state import CurrentTasks, StreamsMember, task_ids
from coordinator_core.records import Fields, RecordType

NOT_VALIDATED = -1
"""The validated topology epoch while no topology is validated."""


def member_metadata(group_id: str, member: StreamsMember) -> Unwritten:
    """The member's metadata."""
    endpoint = member.user_endpoint
    value: Fields = {
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "rebalanceTimeoutMs": member.rebalance_timeout_ms,
        "topologyEpoch": member.topology_epoch,
        "processId": member.process_id,
        "userEndpoint": None if endpoint is None else {"host": endpoint.host, "port": endpoint.port},
        "clientTags": pairs(member.client_tags),
    }
    return RecordType.STREAMS_GROUP_MEMBER_METADATA, member_key(group_id, member.member_id), value


def pairs(values: Mapping[str, str]) -> list[Fields]:
    """A map as records have it, by key."""
    return [{"key": key, "value": values[key]} for key in sorted(values, key=utf16)]


def topology(group_id: str, given: Fields) -> Unwritten:
    """The topology of a heartbeat, of which the record keeps every field."""
    subtopologies = [
        {
            "subtopologyId": each["subtopologyId"],
            "sourceTopics": each["sourceTopics"],
            "sourceTopicRegex": each["sourceTopicRegex"],
            "stateChangelogTopics": [_internal_topic(topic) for topic in each["stateChangelogTopics"]],
            "repartitionSinkTopics": each["repartitionSinkTopics"],
            "repartitionSourceTopics": [_internal_topic(topic) for topic in each["repartitionSourceTopics"]],
            "copartitionGroups": [
                {name: group[name] for name in ("sourceTopics", "sourceTopicRegex", "repartitionSourceTopics")}
                for group in each["copartitionGroups"]
            ],
        }
        for each in sorted(given["subtopologies"], key=lambda each: utf16(each["subtopologyId"]))
    ]
    value: Fields = {"epoch": given["epoch"], "subtopologies": subtopologies}
    return RecordType.STREAMS_GROUP_TOPOLOGY, {"groupId": group_id}, value


def _internal_topic(topic: Fields) -> Fields:
    return {name: topic[name] for name in ("name", "partitions", "replicationFactor")} | {
        "topicConfigs": [{"key": each["key"], "value": each["value"]} for each in topic["topicConfigs"]]
    }


def group_epoch(
    group_id: str, epoch: int, metadata_hash: int, validated_topology_epoch: int, configs: Mapping[str, str]
) -> Unwritten:
    """The group epoch, the hash of its topics, the validated topology and the configurations of the assignment."""
    value: Fields = {"epoch": epoch, "metadataHash": metadata_hash}
    if validated_topology_epoch != NOT_VALIDATED:
        value["validatedTopologyEpoch"] = validated_topology_epoch
    if configs:
        value["lastAssignmentConfigs"] = pairs(configs)
    return RecordType.STREAMS_GROUP_METADATA, {"groupId": group_id}, value


def target_assignment(group_id: str, member_id: str, target: Tasks) -> Unwritten:
    """A member's target assignment."""
    value: Fields = {
        "activeTasks": task_ids(target.active),
        "standbyTasks": task_ids(target.standby),
        "warmupTasks": task_ids(target.warmup),
    }
    return RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, member_key(group_id, member_id), value


def target_epoch(group_id: str, epoch: int, timestamp_ms: int) -> Unwritten:
    """The epoch and time of the target assignment; time 0 is not written."""
    value = target_epoch_value(epoch, timestamp_ms)
    return RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"groupId": group_id}, value


def current_assignment(group_id: str, member: StreamsMember) -> Unwritten:
    """The member's current assignment."""
    value: Fields = {
        "memberEpoch": member.member_epoch,
        "previousMemberEpoch": member.previous_member_epoch,
        "state": member.state,
        **_current(member.assigned, ""),
        **_current(member.pending_revocation, "PendingRevocation"),
    }
    return RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member.member_id), value


def _current(tasks: CurrentTasks, suffix: str) -> Fields:
    return {
        "activeTasks" + suffix: _with_epochs(tasks.active),
        "standbyTasks" + suffix: task_ids(tasks.standby),
        "warmupTasks" + suffix: task_ids(tasks.warmup),
    }


def group_tombstones(group_id: str, members: Sequence[str]) -> list[Unwritten]:
    """The whole group goes, with these members; its topology last."""
    key = {"groupId": group_id}
    return [
        *tombstones_of_all(record_types.STREAMS, group_id, members),
        (RecordType.STREAMS_GROUP_METADATA, key, None),
        (RecordType.STREAMS_GROUP_TOPOLOGY, key, None),
    ]


def _with_epochs(tasks: PartitionEpochs) -> list[Fields]:
    return [
        {
            "subtopologyId": key,
            "partitions": sorted(tasks[key]),
            "assignmentEpochs": [tasks[key][partition] for partition in sorted(tasks[key])],
        }
        for key in sorted(tasks, key=utf16)
    ]
