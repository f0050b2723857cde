"""AlterShareGroupOffsets and DeleteShareGroupOffsets (KIP-932): an administrator moves or deletes share offsets.

Both are for groups without members. The group coordinator writes what has to happen and asks the share coordinators to
do it; their response is written as well.
"""

from collections.abc import Mapping

from coordinator_core.cluster.image import Topic
from coordinator_core.coordinator.lookup import check_group_id, group_of
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import NO_TOPIC_ID, ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked
from coordinator_core.coordinator.share import partitions
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.groups.share.state import ShareTopic
from coordinator_core.record_fields.coordinator_requests import (
    AlterShareGroupOffsetsPartition,
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsTopic,
    DeleteShareGroupOffsetsRequest,
)
from coordinator_core.records import Fields

UNKNOWN_PARTITION = "This server does not host this topic-partition."
NOTHING_TO_DELETE = "There is no offset information to delete."


def handle_alter(op: Operation, request: Request) -> Fields:
    """Serve AlterShareGroupOffsets: share partitions begin at other offsets. A group that does not exist is created."""
    data = checked(request, AlterShareGroupOffsetsRequest)
    group_id = data["groupId"]
    check_group_id(group_id)
    if group_id in op.memory.live:
        group = group_of(op, group_id, LiveShareGroup)
    else:
        group = LiveShareGroup(group_id)
    _check_empty(group)
    asked: dict[str, ShareTopic] = {}
    starts: dict[str, dict[int, int]] = {}
    answers = []
    for wanted in data["topics"]:
        topic = op.topics.by_name.get(wanted["topicName"])
        known = {} if topic is None else _starts(topic, wanted["partitions"])
        if topic is not None:
            asked[topic.id] = ShareTopic(topic.name, sorted(known))
            if known:
                starts[topic.id] = known
        answers.append(_altered(wanted, topic, known))
    if asked:
        partitions.write_initializing(op, group, asked)
    if starts:
        partitions.ask_to_initialize(op, group.group_epoch, starts)
    return {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "responses": answers}


def _starts(topic: Topic, wanted: list[AlterShareGroupOffsetsPartition]) -> dict[int, int]:
    return {
        partition["partitionIndex"]: partition["startOffset"]
        for partition in wanted
        if partition["partitionIndex"] < topic.partitions
    }


def _altered(wanted: AlterShareGroupOffsetsTopic, topic: Topic | None, known: Mapping[int, int]) -> Fields:
    return {
        "topicName": wanted["topicName"],
        "topicId": NO_TOPIC_ID if topic is None else topic.id,
        "partitions": [
            {
                "partitionIndex": partition["partitionIndex"],
                **(_NO_ERROR if partition["partitionIndex"] in known else _error(UNKNOWN_PARTITION)),
            }
            for partition in wanted["partitions"]
        ],
    }


def handle_delete(op: Operation, request: Request) -> Fields:
    """Serve DeleteShareGroupOffsets: the group loses the state of topics.

    The response names the topics that are refused; the others follow in the response to ``handle_deleted``.
    """
    data = checked(request, DeleteShareGroupOffsetsRequest)
    check_group_id(data["groupId"])
    group = group_of(op, data["groupId"], LiveShareGroup)
    _check_empty(group)
    refused: list[Fields] = []
    if group.log.state_partitions is None:
        return _deleted(refused)
    known = group.share_partitions
    initialized, deleting = dict(known.initialized), dict.fromkeys(known.deleting)
    asked: Fields = {}
    for wanted in data["topics"]:
        topic = op.topics.by_name.get(wanted["topicName"])
        if topic is None:
            refused.append(_refused(wanted["topicName"], UNKNOWN_PARTITION))
        elif topic.id in initialized:
            asked[topic.id] = initialized.pop(topic.id).partitions
            deleting[topic.id] = None
        elif topic.id in deleting:
            # An earlier deletion was not confirmed. Which partitions had state is not in the record any more: all are
            # asked for.
            asked[topic.id] = range(topic.partitions)
        else:
            refused.append(_refused(topic.name, NOTHING_TO_DELETE))
    partitions.write_state(op, group, initialized=initialized, deleting=deleting)
    if asked:
        partitions.ask_to_delete(op, asked)
    return _deleted(refused)


def handle_deleted(op: Operation, group_id: str, topics: Mapping[str, str]) -> Fields:
    """Note that share coordinators deleted the group's state of these topics, id to name."""
    group = op.memory.live.get(group_id)
    if not isinstance(group, LiveShareGroup) or group.log.state_partitions is None:
        return _deleted([])
    left = [topic_id for topic_id in group.share_partitions.deleting if topic_id not in topics]
    partitions.write_state(op, group, deleting=left)
    return _deleted([{"topicName": name, "topicId": topic_id, **_NO_ERROR} for topic_id, name in topics.items()])


_NO_ERROR: Fields = {"errorCode": 0, "errorMessage": None}


def _error(message: str) -> Fields:
    return {"errorCode": int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), "errorMessage": message}


def _refused(name: str, message: str) -> Fields:
    return {"topicName": name, "topicId": NO_TOPIC_ID, **_error(message)}


def _deleted(responses: list[Fields]) -> Fields:
    return {"throttleTimeMs": 0, "errorCode": 0, "errorMessage": None, "responses": responses}


def _check_empty(group: LiveShareGroup) -> None:
    if not group.is_empty:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
