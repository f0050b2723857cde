"""What is derived from a streams group's records, and how Kafka's Admin client describes it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.described import (
    DescribedEndpoint,
    DescribedInternalTopic,
    DescribedNode,
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedSubtopology,
    DescribedTasks,
)
from coordinator_core.groups.streams.configs import shows_kip_1071
from coordinator_core.groups.streams.sources import named_topics, resolved
from coordinator_core.groups.streams.state import (
    CurrentTasks,
    Endpoint,
    InternalTopic,
    StreamsGroup,
    StreamsGroupState,
    StreamsMember,
    StreamsMemberState,
    TargetTasks,
    Topology,
    task_ids,
)
from coordinator_core.groups.streams.topology import ConfiguredTopology, TopologyProblem, configure
from coordinator_core.records import RecordType

EPOCH = RecordType.STREAMS_GROUP_METADATA
TOPOLOGY = RecordType.STREAMS_GROUP_TOPOLOGY
CURRENT = RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT
TARGET = RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER


def group_state(group: StreamsGroup, certainty: Certainty = CERTAIN) -> StreamsGroupState | None:
    """Return the group's state, in the order in which Kafka 4.3 checks; None if the log has not shown what it
    depends on.
    """
    if not group.members:
        return StreamsGroupState.EMPTY if certainty.members_are_known else None
    if not (certainty.knows(TOPOLOGY) and certainty.knows(EPOCH)):
        return None
    if group.is_validated is False:
        return StreamsGroupState.NOT_READY
    if group.is_validated is None and not any(target.active for target in group.targets.values()):
        return None
    if group.group_epoch is None or group.assignment_epoch is None:
        return None
    if group.group_epoch > group.assignment_epoch:
        return StreamsGroupState.ASSIGNING
    known = [member for member in group.members.values() if certainty.knows(CURRENT, member.member_id)]
    if not all(is_reconciled(member, group.assignment_epoch) for member in known):
        return StreamsGroupState.RECONCILING
    is_all = certainty.members_are_known and len(known) == len(group.members)
    return StreamsGroupState.STABLE if is_all else None


def is_reconciled(member: StreamsMember, assignment_epoch: int) -> bool:
    """Whether the member has reached this target epoch with nothing left to revoke or to wait for."""
    return member.state == StreamsMemberState.STABLE and member.member_epoch == assignment_epoch


def describe_streams(
    group_id: str,
    group: StreamsGroup,
    topics: TopicImage | None,
    certainty: Certainty = CERTAIN,
    *,
    reloaded: bool,
    coordinator: DescribedNode | None = None,
) -> DescribedStreamsGroup:
    """Return the group as ``Admin.describeStreamsGroups`` returns it.

    Internal topics have the partition counts of the topology on these topics. They have the recorded counts if it is
    not ready on them, and in a ``reloaded`` group without members, as a coordinator computes them at a heartbeat. A
    count that the topics decide is null where they are not known: those that may have changed since count where the
    hash of the group's epoch is theirs.
    In a log of KIP-1071 the subtopologies are null, as the document has it, where source topics are missing or topics
    are incorrectly partitioned; and where topics that may be so, or that a pattern may match, are not known.
    """
    topology = group.topology
    is_recorded = _is_recorded(group, reloaded=reloaded)
    tells_counts = is_recorded or (topics is not None and topics.is_whole)
    is_known = knows_subtopologies(group, topics, reloaded=reloaded)
    topics = None if is_recorded else topics
    return {
        "coordinator": coordinator,
        "groupEpoch": group.group_epoch,
        "groupId": group_id,
        "groupState": group_state(group, certainty),
        "members": [_member(group, member, certainty) for _, member in sorted(group.members.items())],
        "subtopologies": _subtopologies(group, topology, topics, tells_counts)
        if topology is not None and is_known
        else None,
        "targetAssignmentEpoch": group.assignment_epoch,
        "topologyEpoch": None if topology is None else topology.epoch,
    }


def knows_subtopologies(group: StreamsGroup, topics: TopicImage | None, *, reloaded: bool) -> bool:
    """Whether what is known of topics decides which subtopologies a description has: in a log of a release always."""
    is_decided = _is_recorded(group, reloaded=reloaded) or (topics is not None and topics.is_whole)
    return is_decided or group.topology is None or not shows_kip_1071(group)


def _is_recorded(group: StreamsGroup, *, reloaded: bool) -> bool:
    """Whether a description has the topology as recorded, whatever the topics are."""
    return reloaded and not group.members


def may_be_classic(group: StreamsGroup, member: StreamsMember) -> bool:
    """Whether a member may still use the classic protocol, which no record says.

    Only KIP-1071 lets a group be converted while it has members. The id of a classic member is made by the broker:
    client or instance id, a hyphen, and a UUID.
    """
    names = (member.client_id, member.instance_id)
    return shows_kip_1071(group) and any(name is not None and member.member_id.startswith(f"{name}-") for name in names)


def unlogged_fields(group: StreamsGroup) -> list[str]:
    """Return the fields of members that are null because no record has them: how far tasks are, and the protocol.

    Brokers of releases answer with no task offsets, whatever the group does.
    """
    if not shows_kip_1071(group):
        return []
    lags = [f"{member}.{name}" for member in group.members for name in ("taskEndOffsets", "taskOffsets")]
    protocols = [f"{key}.isClassic" for key, member in group.members.items() if may_be_classic(group, member)]
    return [*lags, *protocols]


def _member(group: StreamsGroup, member: StreamsMember, certainty: Certainty) -> DescribedStreamsMember:
    is_known = certainty.knows(TARGET, member.member_id)
    target = group.targets.get(member.member_id, TargetTasks()) if is_known else None
    return {
        "assignment": tasks_shown(member.assigned) if member.has_current else None,
        "clientHost": member.client_host,
        "clientId": member.client_id,
        "clientTags": member.client_tags if member.has_metadata else None,
        "instanceId": member.instance_id,
        "isClassic": None if may_be_classic(group, member) else False,
        "memberEpoch": member.member_epoch,
        "memberId": member.member_id,
        "processId": member.process_id,
        "rackId": member.rack_id,
        "targetAssignment": None if target is None else tasks_shown(target),
        "taskEndOffsets": None if shows_kip_1071(group) else [],
        "taskOffsets": None if shows_kip_1071(group) else [],
        "topologyEpoch": member.topology_epoch,
        "userEndpoint": endpoint_shown(member.user_endpoint),
    }


def endpoint_shown(endpoint: Endpoint | None) -> DescribedEndpoint | None:
    """Return an endpoint as records and responses have it."""
    return None if endpoint is None else {"host": endpoint.host, "port": endpoint.port}


def tasks_shown(tasks: TargetTasks | CurrentTasks) -> DescribedTasks:
    """Return tasks by role, as responses have them."""
    return {
        "activeTasks": task_ids(tasks.active),
        "standbyTasks": task_ids(tasks.standby),
        "warmupTasks": task_ids(tasks.warmup),
    }


class ShownSubtopology(NamedTuple):
    """A subtopology with its internal topics as decided, or as recorded."""

    subtopology_id: str
    sources: list[str]
    sinks: list[str]
    repartition: list[InternalTopic]
    changelogs: list[InternalTopic]


def subtopologies_shown(topology: Topology, configured: ConfiguredTopology | None) -> list[ShownSubtopology]:
    """Return the subtopologies, with the partition counts that were decided for internal topics if the topology
    is ready.
    """
    is_ready = configured is not None and configured.problem is None
    recorded = [(subtopology.subtopology_id, subtopology) for subtopology in topology.subtopologies]
    return [
        ShownSubtopology(
            subtopology_id,
            sorted(subtopology.source_topics),
            sorted(subtopology.repartition_sink_topics),
            _listed(subtopology.repartition_source_topics),
            _listed(subtopology.state_changelog_topics),
        )
        for subtopology_id, subtopology in (configured.subtopologies.items() if configured and is_ready else recorded)
    ]


def _listed(topics: Mapping[str, InternalTopic] | list[InternalTopic]) -> list[InternalTopic]:
    return topics if isinstance(topics, list) else list(topics.values())


def are_hidden(configured: ConfiguredTopology | None, *, kip_1071: bool) -> bool:
    """Whether a description has no subtopologies: KIP-1071 gives them only where the sources fit; releases always."""
    return kip_1071 and configured is not None and configured.problem in _HIDING


_HIDING = (TopologyProblem.MISSING_SOURCE_TOPICS, TopologyProblem.INCORRECTLY_PARTITIONED_TOPICS)


def _subtopologies(
    group: StreamsGroup, topology: Topology, topics: TopicImage | None, tells_counts: bool
) -> list[DescribedSubtopology] | None:
    configured = None if topics is None else configure(topology, topics)
    if are_hidden(configured, kip_1071=shows_kip_1071(group)):
        return None
    if topics is not None and configured is not None and not tells_counts:
        names = named_topics(resolved(topology, topics)) & topics.by_name.keys()
        # The group's epoch was computed from these topics.
        if group.metadata_hash == group_hash([(name, topic_hash(topics.by_name[name])) for name in names]):
            tells_counts = configured.problem is None
        else:
            configured = None
    return [
        {
            "repartitionSinkTopics": subtopology.sinks,
            "repartitionSourceTopics": _internal_topics(subtopology.repartition, tells_counts),
            "sourceTopics": subtopology.sources,
            "stateChangelogTopics": _internal_topics(subtopology.changelogs, tells_counts),
            "subtopologyId": subtopology.subtopology_id,
        }
        for subtopology in subtopologies_shown(topology, configured)
    ]


def _internal_topics(topics: Iterable[InternalTopic], tells_counts: bool) -> dict[str, DescribedInternalTopic]:
    return {
        topic.name: {
            "partitions": topic.partitions if topic.partitions or tells_counts else None,
            "replicationFactor": topic.replication_factor,
            "topicConfigs": topic.configs,
        }
        for topic in topics
    }
