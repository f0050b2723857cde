"""A streams group as in the response to StreamsGroupDescribe."""

from __future__ import annotations

from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.records import pairs
from coordinator_core.coordinator.streams.task_offsets import as_fields
from coordinator_core.groups.streams.describe import (
    are_hidden,
    endpoint_shown,
    group_state,
    subtopologies_shown,
    tasks_shown,
)
from coordinator_core.groups.streams.state import InternalTopic, StreamsGroupState, StreamsMember, TargetTasks
from coordinator_core.records import Fields


def state_of(group: LiveStreamsGroup) -> StreamsGroupState:
    """Return the state of the group; a new one is empty.

    A group whose metadata record does not say which topology was validated is not ready: the coordinator takes the
    missing field as -1, while to a reader of the log it may be a record of Kafka 4.1, which has no such field.
    """
    if group.log.members and not group.log.is_validated:
        return StreamsGroupState.NOT_READY
    return group_state(group.log) or StreamsGroupState.ASSIGNING


def described(group: LiveStreamsGroup, *, kip_1071: bool = False) -> Fields:
    """Return the group's own fields of a StreamsGroupDescribe response (version 0).

    ``kip_1071``: without subtopologies where source topics are missing, or topics are incorrectly partitioned.
    """
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "topology": _topology(group, kip_1071=kip_1071),
        "members": [_member(group, member) for member in group.log.members.values()],
    }


def _member(group: LiveStreamsGroup, member: StreamsMember) -> Fields:
    target = group.log.targets.get(member.member_id, TargetTasks())
    offsets, end_offsets = group.task_offsets.of_member(member.member_id)
    return {
        "memberId": member.member_id,
        "memberEpoch": member.member_epoch or 0,
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "topologyEpoch": member.topology_epoch,
        "processId": member.process_id,
        "userEndpoint": endpoint_shown(member.user_endpoint),
        "clientTags": pairs(member.client_tags),
        "taskOffsets": as_fields(offsets),
        "taskEndOffsets": as_fields(end_offsets),
        "assignment": tasks_shown(member.assigned),
        "targetAssignment": tasks_shown(target),
        "isClassic": member.member_id in group.classic,
    }


def _topology(group: LiveStreamsGroup, *, kip_1071: bool) -> Fields | None:
    topology = group.log.topology
    if topology is None:
        return None
    if are_hidden(group.configured, kip_1071=kip_1071):
        return {"epoch": topology.epoch, "subtopologies": None}
    subtopologies = [
        {
            "subtopologyId": subtopology.subtopology_id,
            "sourceTopics": subtopology.sources,
            "repartitionSinkTopics": subtopology.sinks,
            "stateChangelogTopics": [_internal_topic(topic) for topic in subtopology.changelogs],
            "repartitionSourceTopics": [_internal_topic(topic) for topic in subtopology.repartition],
        }
        for subtopology in subtopologies_shown(topology, group.configured)
    ]
    return {"epoch": topology.epoch, "subtopologies": subtopologies}


def _internal_topic(topic: InternalTopic) -> dict[str, object]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replicationFactor": topic.replication_factor,
        "topicConfigs": pairs(topic.configs),
    }
