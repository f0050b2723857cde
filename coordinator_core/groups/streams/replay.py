"""How records change a streams group."""

from collections.abc import Callable, Iterable, Mapping

from coordinator_core.groups.epochs import (
    Partitions,
    apply_group_epoch,
    apply_target_epoch,
    assignment_epochs,
    member_of,
    put_current,
    put_metadata,
    put_target,
    remove_current,
    remove_member,
    remove_target,
)
from coordinator_core.groups.streams.state import (
    MEMBER_STATES,
    NO_DESCRIPTION,
    CopartitionGroup,
    CurrentTasks,
    Endpoint,
    InternalTopic,
    StreamsGroup,
    StreamsMember,
    Subtopology,
    TargetTasks,
    Topology,
)
from coordinator_core.groups.subscribed_topics import subscribed_topics
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations
from coordinator_core.record_fields.streams_group import (
    StreamsGroupCurrentMemberAssignmentRecord,
    StreamsGroupCurrentMemberAssignmentTaskIds,
    StreamsGroupMemberMetadataKeyValue,
    StreamsGroupMemberMetadataRecord,
    StreamsGroupMetadataLastAssignmentConfig,
    StreamsGroupMetadataRecord,
    StreamsGroupPartitionMetadataRecord,
    StreamsGroupTargetAssignmentMemberRecord,
    StreamsGroupTargetAssignmentMemberTaskIds,
    StreamsGroupTopologyRecord,
    StreamsGroupTopologySubtopology,
    StreamsGroupTopologyTopicConfig,
    StreamsGroupTopologyTopicInfo,
    StreamsGroupTopologyValue,
)
from coordinator_core.records import AnyRecord, RecordType

_Pair = StreamsGroupMemberMetadataKeyValue | StreamsGroupMetadataLastAssignmentConfig | StreamsGroupTopologyTopicConfig
_CurrentTasks = list[StreamsGroupCurrentMemberAssignmentTaskIds]
_TaskIds = StreamsGroupTargetAssignmentMemberTaskIds | StreamsGroupCurrentMemberAssignmentTaskIds


def _member_metadata(state: StreamsGroup, record: StreamsGroupMemberMetadataRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_member(state, record)
    member = put_metadata(state, record, value, StreamsMember)
    member.instance_id = value["instanceId"]
    member.rebalance_timeout_ms = value["rebalanceTimeoutMs"]
    member.topology_epoch = value["topologyEpoch"]
    member.process_id = value["processId"]
    endpoint = value["userEndpoint"]
    member.user_endpoint = None if endpoint is None else Endpoint(endpoint["host"], endpoint["port"])
    member.client_tags = _pairs(value["clientTags"])
    return NO_VIOLATIONS


def _pairs(values: Iterable[_Pair]) -> dict[str, str]:
    return {entry["key"]: entry["value"] for entry in values}


def _target_member(state: StreamsGroup, record: StreamsGroupTargetAssignmentMemberRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_target(state, record)
    target = TargetTasks(_tasks(value["activeTasks"]), _tasks(value["standbyTasks"]), _tasks(value["warmupTasks"]))
    return put_target(state, record, target)


def _tasks(values: Iterable[_TaskIds]) -> Partitions:
    return {entry["subtopologyId"]: entry["partitions"] for entry in values}


def _current_member(state: StreamsGroup, record: StreamsGroupCurrentMemberAssignmentRecord) -> Violations:
    value = record.value
    if value is None:
        return remove_current(state, record)
    member = member_of(state, record, StreamsMember)
    epoch = value["memberEpoch"]
    member.assigned = _current_tasks(value["activeTasks"], value["standbyTasks"], value["warmupTasks"], epoch)
    member.pending_revocation = _current_tasks(
        value["activeTasksPendingRevocation"],
        value["standbyTasksPendingRevocation"],
        value["warmupTasksPendingRevocation"],
        epoch,
    )
    return put_current(state, record, member, value, MEMBER_STATES)


def _current_tasks(
    active: _CurrentTasks, standby: _CurrentTasks, warmup: _CurrentTasks, member_epoch: int
) -> CurrentTasks:
    epochs = {tasks["subtopologyId"]: assignment_epochs(tasks, member_epoch) for tasks in active}
    return CurrentTasks(epochs, _tasks(standby), _tasks(warmup))


def _topology(state: StreamsGroup, record: StreamsGroupTopologyRecord) -> Violations:
    """The tombstone comes after the one of the group when a group is deleted, so it may find nothing."""
    state.topology = None if record.value is None else topology_of(record.value)
    return NO_VIOLATIONS


def topology_of(value: StreamsGroupTopologyValue) -> Topology:
    """Return the topology of a topology record's value."""
    return Topology(value["epoch"], [_subtopology(subtopology) for subtopology in value["subtopologies"]])


def _subtopology(value: StreamsGroupTopologySubtopology) -> Subtopology:
    return Subtopology(
        value["subtopologyId"],
        value["sourceTopics"],
        value["sourceTopicRegex"],
        [_internal_topic(topic) for topic in value["stateChangelogTopics"]],
        value["repartitionSinkTopics"],
        [_internal_topic(topic) for topic in value["repartitionSourceTopics"]],
        [
            CopartitionGroup(group["sourceTopics"], group["sourceTopicRegex"], group["repartitionSourceTopics"])
            for group in value["copartitionGroups"]
        ],
    )


def _internal_topic(value: StreamsGroupTopologyTopicInfo) -> InternalTopic:
    return InternalTopic(value["name"], value["partitions"], value["replicationFactor"], _pairs(value["topicConfigs"]))


def _group_metadata(state: StreamsGroup, record: StreamsGroupMetadataRecord) -> Violations:
    value = record.value
    if value is not None:
        absent = -1 if "lastAssignmentConfigs" in value else None  # Kafka 4.1 writes neither of the two
        state.validated_topology_epoch = value.get("validatedTopologyEpoch", absent)
        state.last_assignment_configs = _pairs(value.get("lastAssignmentConfigs") or [])
        stored, failed = NO_DESCRIPTION
        state.description_epochs = (
            value.get("storedDescriptionTopologyEpoch", stored),
            value.get("failedDescriptionTopologyEpoch", failed),
        )
    return apply_group_epoch(state, record)


def _partition_metadata(state: StreamsGroup, record: StreamsGroupPartitionMetadataRecord) -> Violations:
    """Only KIP-1071 has this record; releases write the metadata hash instead."""
    state.subscription_metadata = None if record.value is None else subscribed_topics(record.value)
    return NO_VIOLATIONS


HANDLERS: Mapping[int, Callable[[StreamsGroup, AnyRecord], Violations]] = {
    RecordType.STREAMS_GROUP_METADATA: _group_metadata,
    RecordType.STREAMS_GROUP_PARTITION_METADATA: _partition_metadata,
    RecordType.STREAMS_GROUP_MEMBER_METADATA: _member_metadata,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: apply_target_epoch,
    RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: _target_member,
    RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: _current_member,
    RecordType.STREAMS_GROUP_TOPOLOGY: _topology,
}
"""Record type to the function that changes the state."""
