"""A coordinator's responses to ListGroups and to the describe requests of each type of group."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.classic import describe_api as classic
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.connect import describe_api as connect
from coordinator_core.coordinator.connect.group import ConnectCoordinatorState
from coordinator_core.coordinator.consumer import describe_api as consumer
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.memory import CoordinatorState, LiveGroup
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.coordinator.share import describe_api as share
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams import describe_api as streams
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.connect.describe import group_state as connect_group_state
from coordinator_core.groups.connect.state import ConnectGroup, ConnectGroupState
from coordinator_core.groups.share.describe import group_state as share_group_state
from coordinator_core.groups.share.state import ShareGroupState
from coordinator_core.records import Fields

NO_OPERATIONS = -(2**31)
"""The authorised operations of a group if the request did not ask for them."""


def kafka_name(state: StrEnum) -> str:
    """Return the name of the state in Kafka's responses: PREPARING_REBALANCE is PreparingRebalance."""
    return "".join(word.capitalize() for word in state.value.split("_"))


def group_state(group: LiveGroup) -> StrEnum:
    """Return the state of a group of any type."""
    if isinstance(group, LiveConsumerGroup):
        return consumer.group_state(group)
    if isinstance(group, LiveClassicGroup):
        return group.state
    if isinstance(group, LiveShareGroup):
        return share_group_state(group.log) or ShareGroupState.EMPTY
    if isinstance(group, LiveStreamsGroup):
        return streams.state_of(group)
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
            "protocolType": _protocol_type(group),
            "groupState": kafka_name(group_state(group)),
            "groupType": str(group.type).lower(),
        }
        for group_id, group in memory.live.items()
    ]


def _protocol_type(group: LiveGroup) -> str:
    if isinstance(group, LiveClassicGroup):
        return group.protocol_type or ""
    return str(group.type).lower()


def consumer_group_describe(memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    """Return one group of a ConsumerGroupDescribe response (version 1)."""
    group = memory.live.get(group_id)
    if isinstance(group, LiveConsumerGroup):
        fields = consumer.described(group, topics, memory.config.group_consumer_assignors[0])
        return _found(group, group_id, fields)
    missing = {"groupEpoch": 0, "assignmentEpoch": 0, "assignorName": "", "members": []}
    return _missing(group, group_id, "consumer", "", missing)


def share_group_describe(memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    """Return one group of a ShareGroupDescribe response (version 1)."""
    group = memory.live.get(group_id)
    if isinstance(group, LiveShareGroup):
        return _found(group, group_id, share.described(group, topics))
    missing = {"groupEpoch": 0, "assignmentEpoch": 0, "assignorName": "", "members": []}
    return _missing(group, group_id, "share", "", missing)


def streams_group_describe(memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    """Return one group of a StreamsGroupDescribe response (version 0)."""
    group = memory.live.get(group_id)
    if isinstance(group, LiveStreamsGroup):
        return _found(group, group_id, streams.described(group, kip_1071=memory.profile.is_kip_1071))
    missing: Fields = {"groupEpoch": 0, "assignmentEpoch": 0, "topology": None, "members": []}
    return _missing(group, group_id, "streams", "", missing)


def describe_groups(memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    """Return one group of a DescribeGroups response (version 6)."""
    group = memory.live.get(group_id)
    if isinstance(group, LiveClassicGroup):
        return _found(group, group_id, classic.described(group))
    return _missing(group, group_id, "classic", "Dead", {"protocolType": "", "protocolData": "", "members": []})


def connect_group_describe(memory: CoordinatorState, group_id: str, topics: TopicImage) -> Fields:
    """Return a group of a Connect coordinator, in the form of the other responses (Connect on KIP-848 has no such
    API).
    """
    group = memory.group(group_id) if isinstance(memory, ConnectCoordinatorState) else None
    if group is None:
        missing: Fields = {"groupEpoch": 0, "assignmentEpoch": 0, "members": []}
        return _missing(None, group_id, "connect", "", missing)
    return _described(group_id, ErrorCode.NONE, None, _connect_state(group), connect.described(group))


def _connect_state(group: ConnectGroup) -> str:
    return kafka_name(connect_group_state(group) or ConnectGroupState.ASSIGNING)


DESCRIBE: dict[str, Callable[[CoordinatorState, str, TopicImage], Fields]] = {
    "ConsumerGroupDescribe": consumer_group_describe,
    "ShareGroupDescribe": share_group_describe,
    "StreamsGroupDescribe": streams_group_describe,
    "DescribeGroups": describe_groups,
    "ConnectGroupDescribe": connect_group_describe,
}
"""API name to what describes one group."""


def _found(group: LiveGroup, group_id: str, fields: Fields) -> Fields:
    return _described(group_id, ErrorCode.NONE, None, kafka_name(group_state(group)), fields)


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
