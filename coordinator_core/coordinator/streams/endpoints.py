"""Endpoints of members for interactive queries, and the partitions that can be queried there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.streams.state import Endpoint, StreamsMember
from coordinator_core.groups.streams.topology import ConfiguredSubtopology
from coordinator_core.records import Fields


def partitions_by_endpoint(group: LiveStreamsGroup, updated: StreamsMember, topics: TopicImage) -> list[Fields]:
    """Return for each member with an endpoint the input partitions of its active and of its standby tasks.

    As in Kafka a member whose endpoint just changed, and nothing else, is still listed with the old one.

    Raises ApiError where Kafka fails: with an endpoint, and a topology whose tasks are not known.
    """
    former = group.static_member(updated.instance_id) or updated
    gone = updated.member_id, former.member_id
    members = [member for member_id, member in group.log.members.items() if member_id not in gone]
    return [
        _known(group, member, member.user_endpoint, topics)
        for member in (*members, updated)
        if member.user_endpoint is not None
    ]


def _known(group: LiveStreamsGroup, member: StreamsMember, endpoint: Endpoint, topics: TopicImage) -> Fields:
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
