"""A coordinator's responses to ListGroups and to the describe requests of each type of group."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState, as_fields
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup, is_reconciled_to
from coordinator_core.coordinator.memory import CoordinatorState, LiveGroup
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.share.heartbeat import ASSIGNOR
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.records import pairs
from coordinator_core.coordinator.streams.task_offsets import as_fields as offset_fields
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.connect.describe import group_state as connect_group_state
from coordinator_core.groups.connect.state import ConnectGroup, ConnectGroupState, ConnectMember, Work, left_over, units
from coordinator_core.groups.consumer.state import ConsumerGroupState, ConsumerMember
from coordinator_core.groups.share.describe import group_state as share_group_state
from coordinator_core.groups.share.state import ShareGroupState, ShareMember
from coordinator_core.groups.streams.describe import are_hidden, endpoint_shown, subtopologies_shown, tasks_shown
from coordinator_core.groups.streams.describe import group_state as streams_group_state
from coordinator_core.groups.streams.state import InternalTopic, StreamsGroupState, StreamsMember, TargetTasks
from coordinator_core.records import Fields

NO_OPERATIONS = -(2**31)
"""The authorised operations of a group if the request did not ask for them."""


def kafka_name(state: StrEnum) -> str:
    """Return the name of the state in Kafka's responses: PREPARING_REBALANCE is PreparingRebalance."""
    return "".join(word.capitalize() for word in state.value.split("_"))


def group_state(group: LiveGroup) -> StrEnum:
    """Return the state of a group of any type."""
    if isinstance(group, LiveConsumerGroup):
        return _consumer_state(group)
    if isinstance(group, LiveClassicGroup):
        return group.state
    if isinstance(group, LiveShareGroup):
        return share_group_state(group.log) or ShareGroupState.EMPTY
    if isinstance(group, LiveStreamsGroup):
        return _streams_state(group)
    raise TypeError(f"no state of {type(group).__name__}")


def list_groups(memory: CoordinatorState) -> list[Fields]:
    """Return the groups of a ListGroups response."""
    if isinstance(memory, ConnectCoordinatorState):
        groups = {group_id: memory.group(group_id) for group_id in memory.log.groups}
        kind = {"protocolType": "connect", "groupType": "connect"}
        return [
            {"groupId": group_id, **kind, "groupState": _connect_state(group)}
            for group_id, group in groups.items()
            if group is not None
        ]
    return [
        {
            "groupId": group_id,
            "protocolType": (group.protocol_type or "") if isinstance(group, LiveClassicGroup) else group.type.lower(),
            "groupState": kafka_name(group_state(group)),
            "groupType": str(group.type).lower(),
        }
        for group_id, group in memory.live.items()
    ]


def _consumer_state(group: LiveConsumerGroup) -> ConsumerGroupState:
    if group.is_empty:
        return ConsumerGroupState.EMPTY
    if group.group_epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(is_reconciled_to(member, group.assignment_epoch) for member in group.log.members.values()):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING


def _streams_state(group: LiveStreamsGroup) -> StreamsGroupState:
    """The state of a streams group; a new one is empty.

    A group whose metadata record does not say which topology was validated is not ready: the coordinator takes the
    missing field as -1, while to a reader of the log it may be a record of Kafka 4.1, which has no such field.
    """
    if group.log.members and not group.log.is_validated:
        return StreamsGroupState.NOT_READY
    return streams_group_state(group.log) or StreamsGroupState.ASSIGNING


def _classic(group: LiveClassicGroup, memory: CoordinatorState, topics: TopicImage) -> Fields:
    """The group's own fields of a DescribeGroups response (version 6); only a stable group shows metadata."""
    stable = group.state is ClassicGroupState.STABLE
    return {
        "protocolType": group.protocol_type or "",
        "protocolData": (group.protocol or "") if stable else "",
        "members": [
            {
                "memberId": member.member_id,
                "groupInstanceId": member.instance_id,
                "clientId": member.client_id,
                "clientHost": member.client_host,
                "memberMetadata": member.metadata(group.protocol) if stable else b"",
                "memberAssignment": member.assignment,
            }
            for member in group.members.values()
        ],
    }


def _consumer(group: LiveConsumerGroup, memory: CoordinatorState, topics: TopicImage) -> Fields:
    """The group's own fields of a ConsumerGroupDescribe response (version 1)."""
    votes, default = group.assignors.counts, memory.config.group_consumer_assignors[0]
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "assignorName": max(votes, key=votes.__getitem__, default=default),
        "members": [
            _consumer_member(group.log.members[member_id], group.view.targets.get(member_id, {}), topics)
            for member_id in group.view.members
        ],
    }


def _consumer_member(member: ConsumerMember, target: Mapping[str, Iterable[int]], topics: TopicImage) -> Fields:
    held: dict[str, list[int]] = {}
    # Until it has given them up the member is responsible for partitions that it is to lose.
    for partitions in (member.assigned, member.pending_revocation):
        for topic_id, epochs in partitions.items():
            held.setdefault(topic_id, []).extend(epochs)
    return {
        "memberId": member.member_id,
        "instanceId": member.instance_id,
        "rackId": member.rack_id,
        "memberEpoch": member.member_epoch or 0,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "subscribedTopicNames": list(member.subscribed_topic_names),
        "subscribedTopicRegex": member.subscribed_topic_regex,
        "assignment": _partitions(held, topics),
        "targetAssignment": _partitions(target, topics),
        "memberType": 1 if member.classic is None else 0,
    }


def _partitions(partitions: Mapping[str, Iterable[int]], topics: TopicImage) -> Fields:
    return {
        "topicPartitions": [
            {"topicId": topic_id, "topicName": topics.by_id[topic_id].name, "partitions": list(numbers)}
            for topic_id, numbers in partitions.items()
            if topic_id in topics.by_id
        ]
    }


def _share(group: LiveShareGroup, memory: CoordinatorState, topics: TopicImage) -> Fields:
    """The group's own fields of a ShareGroupDescribe response (version 1)."""
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "assignorName": ASSIGNOR,
        "members": [_share_member(group.log.members[member_id], topics) for member_id in group.view.members],
    }


def _share_member(member: ShareMember, topics: TopicImage) -> Fields:
    return {
        "memberId": member.member_id,
        "rackId": member.rack_id,
        "memberEpoch": member.member_epoch or 0,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "subscribedTopicNames": list(member.subscribed_topic_names),
        "assignment": _partitions(member.assigned, topics),
    }


def _streams(group: LiveStreamsGroup, memory: CoordinatorState, topics: TopicImage) -> Fields:
    """The group's own fields of a StreamsGroupDescribe response (version 0).

    In KIP-1071 without subtopologies where source topics are missing, or topics are incorrectly partitioned.
    """
    return {
        "groupEpoch": group.group_epoch,
        "assignmentEpoch": group.assignment_epoch,
        "topology": _topology(group, kip_1071=memory.profile.is_kip_1071),
        "members": [_streams_member(group, member) for member in group.log.members.values()],
    }


def _streams_member(group: LiveStreamsGroup, member: StreamsMember) -> Fields:
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
        "taskOffsets": offset_fields(offsets),
        "taskEndOffsets": offset_fields(end_offsets),
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


def _connect(group: ConnectGroup) -> Fields:
    """The group's own fields; ``unassigned`` is the work that is in no worker's target."""
    return {
        "groupEpoch": group.group_epoch or 0,
        "assignmentEpoch": group.assignment_epoch or 0,
        "connectorsAndTasks": as_fields(units(group.work)),
        "unassigned": as_fields(left_over(group)),
        "configuration": dict(group.configuration),
        "members": [_worker(group, member) for member in group.members.values()],
    }


def _worker(group: ConnectGroup, member: ConnectMember) -> Fields:
    target = group.targets.get(member.member_id)
    return {
        "memberId": member.member_id,
        "memberEpoch": member.member_epoch or 0,
        "instanceId": member.instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "assignors": [
            {
                "name": assignor.name,
                "minimumVersion": assignor.minimum_version,
                "maximumVersion": assignor.maximum_version,
            }
            for assignor in member.assignors
        ],
        "assignment": as_fields(units(member.current.work if member.current else Work())),
        "targetAssignment": as_fields(units(target.work if target else Work())),
    }


class _Description(NamedTuple):
    """A describe request: the class of the groups that it is for, their own fields, and those of a missing group."""

    wanted: type[Any]
    fields: Callable[[Any, CoordinatorState, TopicImage], Fields]
    missing: Fields
    kind: str
    state: str = ""


_NO_GROUP: Fields = {"groupEpoch": 0, "assignmentEpoch": 0, "assignorName": "", "members": []}
_NO_TOPOLOGY: Fields = {"groupEpoch": 0, "assignmentEpoch": 0, "topology": None, "members": []}
_NO_PROTOCOL: Fields = {"protocolType": "", "protocolData": "", "members": []}
_DESCRIPTIONS = {
    "ConsumerGroupDescribe": _Description(LiveConsumerGroup, _consumer, _NO_GROUP, "consumer"),
    "ShareGroupDescribe": _Description(LiveShareGroup, _share, _NO_GROUP, "share"),
    "StreamsGroupDescribe": _Description(LiveStreamsGroup, _streams, _NO_TOPOLOGY, "streams"),
    "DescribeGroups": _Description(LiveClassicGroup, _classic, _NO_PROTOCOL, "classic", "Dead"),
}


def _describe(api: str, memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    wanted, fields, missing, kind, state = _DESCRIPTIONS[api]
    group = memory.live.get(group_id)
    if isinstance(group, wanted):
        state = kafka_name(group_state(group))
        return _described(group_id, ErrorCode.NONE, None, state, fields(group, memory, topics))
    return _missing(group, group_id, kind, state, missing)


def connect_group_describe(memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    """Return a group of a Connect coordinator, in the form of the other responses (Connect on KIP-848 has no such
    API).
    """
    group = memory.group(group_id) if isinstance(memory, ConnectCoordinatorState) else None
    if group is None:
        missing: Fields = {"groupEpoch": 0, "assignmentEpoch": 0, "members": []}
        return _missing(None, group_id, "connect", "", missing)
    return _described(group_id, ErrorCode.NONE, None, _connect_state(group), _connect(group))


def _connect_state(group: ConnectGroup) -> str:
    return kafka_name(connect_group_state(group) or ConnectGroupState.ASSIGNING)


DESCRIBE: dict[str, Callable[[CoordinatorState, str, TopicImage], Fields]] = {
    **{api: partial(_describe, api) for api in _DESCRIPTIONS},
    "ConnectGroupDescribe": connect_group_describe,
}
"""API name to what describes one group."""


def _missing(group: LiveGroup | None, group_id: str, wanted: str, state: str, fields: Fields) -> Fields:
    if not group_id and wanted != "classic":
        return _described(group_id, ErrorCode.INVALID_GROUP_ID, None, state, fields)
    message = f"Group {group_id} not found." if group is None else f"Group {group_id} is not a {wanted} group."
    return _described(group_id, ErrorCode.GROUP_ID_NOT_FOUND, message, state, fields)


def _described(group_id: str, error: ErrorCode, message: str | None, state: str, fields: Fields) -> Fields:
    return {
        "errorCode": int(error),
        "errorMessage": message,
        "groupId": group_id,
        "groupState": state,
        **fields,
        "authorizedOperations": NO_OPERATIONS,
    }
