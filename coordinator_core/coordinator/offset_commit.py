"""OffsetCommit and TxnOffsetCommit: which members may commit, and what is written."""

from collections.abc import Callable

from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic import validation as classic
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.consumer import validation as consumer
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.lookup import check_group_id
from coordinator_core.coordinator.memory import LiveGroup
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import NO_TOPIC_ID, ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams import validation as streams
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.record_fields.coordinator_requests import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitTopic,
    TxnOffsetCommitRequest,
)
from coordinator_core.record_fields.offset_commit import OffsetCommitKey, OffsetCommitValue
from coordinator_core.records import Fields, RecordType

VERSION, EXPIRING_VERSION = 4, 1
"""The version of the value; the other one for the few clients that bring a retention time of their own."""
GROUP_ID_NOT_FOUND_VERSION = 9
"""From this version on a missing group is called so."""
TOPIC_ID_VERSION = 10
"""From this version on topics go by their ids (KIP-848)."""
THROTTLED_VERSION = 3
"""From this version on the answer has a throttle time."""

PartitionCheck = Callable[[str, str, int], None]
"""Raises ApiError if the member may not commit for this topic (name, id) and partition."""


def commit(op: Operation, request: Request) -> Fields:
    """Serve OffsetCommit. Without a group, a commit without a member makes a simple group, which has only offsets."""
    data = checked(request, OffsetCommitRequest)
    group_id, member_id = data["groupId"], data["memberId"]
    epoch, instance_id = data["generationIdOrMemberEpoch"], data["groupInstanceId"]
    group = op.memory.live.get(group_id)
    # A generation names a group that must be there; -1 is a client that manages its partitions itself.
    if group is None and epoch >= 0:
        if request.version >= GROUP_ID_NOT_FOUND_VERSION:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    check = _may_commit(group, member_id, instance_id, epoch, request.version, transactional=False)
    if isinstance(group, LiveClassicGroup) and group.state in _COMMITS_ARE_HEARTBEATS:
        rebalance.expect_member(op, group, group.members[member_id])
    _make_simple_group(op, group_id, group)
    expires = None if data["retentionTimeMs"] == -1 else op.now + data["retentionTimeMs"]
    answers = []
    for topic in data["topics"]:
        if request.version >= TOPIC_ID_VERSION:
            known = op.topics.by_id.get(topic["topicId"])
            label, name = {"topicId": topic["topicId"]}, None if known is None else known.name
        else:
            known = op.topics.by_name.get(topic["name"])
            label, name = {"name": topic["name"]}, topic["name"]
            # Where the request has no id, a broker gives the topic's own: the record has it in either case.
            topic = topic if known is None else topic | {"topicId": known.id}
        answers.append(label | {"partitions": _write(op, group_id, name, topic, check, expires)})
    throttled = {"throttleTimeMs": 0} if request.version >= THROTTLED_VERSION else {}
    return throttled | {"topics": answers}


_COMMITS_ARE_HEARTBEATS = (ClassicGroupState.STABLE, ClassicGroupState.PREPARING_REBALANCE)


def commit_in_transaction(op: Operation, request: Request) -> Fields:
    """Serve TxnOffsetCommit: the offsets count once the producer's transaction is committed."""
    data = checked(request, TxnOffsetCommitRequest)
    group_id, generation = data["groupId"], data["generationId"]
    check_group_id(group_id)
    group = op.memory.live.get(group_id)
    if group is None and generation >= 0:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    try:
        check = _may_commit(
            group, data["memberId"], data["groupInstanceId"], generation, request.version, transactional=True
        )
        _make_simple_group(op, group_id, group)
        op.outcome.producer_id = data["producerId"]
        answers = []
        for topic in data["topics"]:
            # The topic's id serves the check only; the record of a transactional commit has none.
            known = topic | {"topicId": _known_id(op, topic["name"], check)}
            partitions = _write(op, group_id, topic["name"], known, check, None, with_id=False)
            answers.append({"name": topic["name"], "partitions": partitions})
        return {"throttleTimeMs": 0, "topics": answers}
    except ApiError as error:
        if error.code is ErrorCode.STALE_MEMBER_EPOCH:
            raise ApiError(ErrorCode.ILLEGAL_GENERATION) from None
        raise


def _known_id(op: Operation, name: str, check: PartitionCheck | None) -> str:
    topic = op.topics.by_name.get(name)
    if topic is None and check is not None:
        raise ApiError(ErrorCode.ILLEGAL_GENERATION)
    return NO_TOPIC_ID if topic is None else topic.id


def _may_commit(
    group: LiveGroup | None, member_id: str, instance_id: str | None, epoch: int, version: int, *, transactional: bool
) -> PartitionCheck | None:
    """Raises ApiError if the member may not commit; what is returned judges each partition (None: all are allowed)."""
    if isinstance(group, LiveClassicGroup):
        classic.check_offset_commit(group, member_id, instance_id, epoch, transactional=transactional)
    elif isinstance(group, LiveConsumerGroup):
        return consumer.check_offset_commit(group, member_id, instance_id, epoch, version, transactional=transactional)
    elif isinstance(group, LiveStreamsGroup):
        return streams.check_offset_commit(group, member_id, instance_id, epoch, version, transactional=transactional)
    elif isinstance(group, LiveShareGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group.group_id} is not a consumer group.")
    elif group is not None and not group.is_empty:
        raise ApiError(ErrorCode.UNKNOWN_MEMBER_ID)
    return None


def _make_simple_group(op: Operation, group_id: str, group: LiveGroup | None) -> None:
    if group is None:
        op.memory.live[group_id] = LiveClassicGroup(group_id, state_timestamp_ms=op.now)


def _write(
    op: Operation,
    group_id: str,
    name: str | None,
    topic: OffsetCommitTopic,
    check: PartitionCheck | None,
    expires: int | None,
    *,
    with_id: bool = True,
) -> list[Fields]:
    """Write the commits of one topic; the error code of each partition. No name: there is no topic of this id."""
    codes = []
    for partition in topic["partitions"]:
        index, metadata = partition["partitionIndex"], partition["committedMetadata"] or ""
        code = ErrorCode.NONE
        if name is None:
            code = ErrorCode.UNKNOWN_TOPIC_ID
        elif len(metadata) > op.memory.config.offset_metadata_max_bytes:
            code = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            if check is not None:
                check(name, topic["topicId"], index)
            key: OffsetCommitKey = {"group": group_id, "topic": name, "partition": index}
            value, version = _value(op, partition, metadata, topic["topicId"] if with_id else NO_TOPIC_ID, expires)
            op.write(RecordType.OFFSET_COMMIT, key, value, version)
        codes.append({"partitionIndex": index, "errorCode": int(code)})
    return codes


def _value(
    op: Operation, partition: OffsetCommitPartition, metadata: str, topic_id: str, expires: int | None
) -> tuple[OffsetCommitValue, int]:
    value: OffsetCommitValue = {"offset": partition["committedOffset"], "metadata": metadata, "commitTimestamp": op.now}
    if expires is not None:
        value["expireTimestamp"] = expires
        return value, EXPIRING_VERSION
    value["leaderEpoch"] = partition["committedLeaderEpoch"]
    if topic_id != NO_TOPIC_ID:
        value["topicId"] = topic_id
    return value, VERSION
