"""A streams group as StreamsGroupDescribe answers it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordinator_core.groups.streams.describe import group_state
from coordinator_core.groups.streams.live import LiveStreamsGroup
from coordinator_core.groups.streams.records import pairs, task_ids
from coordinator_core.groups.streams.state import (
    CurrentTasks,
    InternalTopic,
    StreamsGroupState,
    StreamsMember,
    TargetTasks,
)
from coordinator_core.groups.streams.task_offsets import as_fields
from coordinator_core.records import Fields


def state_of(group: LiveStreamsGroup) -> StreamsGroupState:
    """The state of the group; a new one is empty."""
    return group_state(group.log) or StreamsGroupState.ASSIGNING


def described(group: LiveStreamsGroup) -> Fields:
    """The group's own fields of a StreamsGroupDescribe response (version 0)."""
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "topology": _topology(group),
        "members": [_member(group, member) for member in group.log.members.values()],
    }


def _member(group: LiveStreamsGroup, member: StreamsMember) -> Fields:
    target = group.log.targets.get(member.member_id, TargetTasks())
    offsets, end_offsets = group.task_offsets.of_member(member.member_id)
    endpoint = member.user_endpoint
    return {
        "memberId": member.member_id,
        "memberEpoch": member.member_epoch or 0,
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "topologyEpoch": member.topology_epoch,
        "processId": member.process_id,
        "userEndpoint": None if endpoint is None else {"host": endpoint.host, "port": endpoint.port},
        "clientTags": pairs(member.client_tags),
        "taskOffsets": as_fields(offsets),
        "taskEndOffsets": as_fields(end_offsets),
        "assignment": _tasks(member.assigned),
        "targetAssignment": _tasks(target),
        "isClassic": member.member_id in group.classic,
    }


def _tasks(tasks: TargetTasks | CurrentTasks) -> Fields:
    return {
        "activeTasks": task_ids(tasks.active),
        "standbyTasks": task_ids(tasks.standby),
        "warmupTasks": task_ids(tasks.warmup),
    }


def _topology(group: LiveStreamsGroup) -> Fields | None:
    """With the partition counts that were decided for internal topics, where the topology is ready."""
    topology, configured = group.log.topology, group.configured
    if topology is None:
        return None
    if configured is not None and configured.problem is None:
        subtopologies = [
            _subtopology(
                key,
                each.source_topics,
                each.repartition_sink_topics,
                each.state_changelog_topics.values(),
                each.repartition_source_topics.values(),
            )
            for key, each in configured.subtopologies.items()
        ]
    else:
        subtopologies = [
            _subtopology(
                each.subtopology_id,
                each.source_topics,
                each.repartition_sink_topics,
                each.state_changelog_topics,
                each.repartition_source_topics,
            )
            for each in topology.subtopologies
        ]
    return {"epoch": topology.epoch, "subtopologies": subtopologies}


def _subtopology(
    subtopology_id: str,
    sources: Iterable[str],
    sinks: Iterable[str],
    changelogs: Iterable[InternalTopic],
    repartition: Iterable[InternalTopic],
) -> Fields:
    return {
        "subtopologyId": subtopology_id,
        "sourceTopics": sorted(sources),
        "repartitionSinkTopics": sorted(sinks),
        "stateChangelogTopics": [_internal_topic(topic) for topic in changelogs],
        "repartitionSourceTopics": [_internal_topic(topic) for topic in repartition],
    }


def _internal_topic(topic: InternalTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "partitions": topic.partitions,
        "replicationFactor": topic.replication_factor,
        "topicConfigs": pairs(topic.configs),
    }
