"""OffsetFetch and OffsetDelete, and the removal of offsets that are no longer needed."""

from collections.abc import Iterable, Mapping
from itertools import groupby

from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.lookup import check_group_id, check_offset_fetch
from coordinator_core.coordinator.memory import LiveGroup
from coordinator_core.coordinator.offset_commit import TOPIC_ID_VERSION
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import NO_TOPIC_ID, ApiError, ErrorCode, Request
from coordinator_core.coordinator.request_fields import checked
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.groups.streams.topology import subtopology_of_sources
from coordinator_core.record_fields.coordinator_requests import (
    OffsetDeleteRequest,
    OffsetFetchGroup,
    OffsetFetchRequest,
    OffsetFetchTopic,
)
from coordinator_core.records import Fields, RecordType

NO_OFFSET = -1


def fetch(op: Operation, request: Request) -> Fields:
    """Serve OffsetFetch from version 8 on, for several groups; each has its own result."""
    data = checked(request, OffsetFetchRequest)
    groups = []
    for group in data["groups"]:
        try:
            by_id = request.version >= TOPIC_ID_VERSION
            groups.append(_fetch_group(op, group, stable=data["requireStable"], by_id=by_id))
        except ApiError as error:
            groups.append({"groupId": group["groupId"], "topics": [], "errorCode": int(error.code)})
    return {"throttleTimeMs": 0, "groups": groups}


def _fetch_group(op: Operation, asked: OffsetFetchGroup, *, stable: bool, by_id: bool) -> Fields:
    """The committed offsets of one group; topics go ``by_id`` or by name, as the request's version has them."""
    group = op.memory.live.get(asked["groupId"])
    if isinstance(group, (LiveConsumerGroup, LiveStreamsGroup)):
        check_offset_fetch(group, asked["memberId"], asked["memberEpoch"])
    logged = op.memory.log.offsets_of(asked["groupId"])
    unstable = _in_transaction(logged) if stable else frozenset[TopicPartition]()
    # A group that was dropped from memory leaves offsets in the log, which a share group of its name does not have.
    has_offsets = group is not None and not isinstance(group, LiveShareGroup)
    offsets = logged if has_offsets else GroupOffsets()
    if asked["topics"] is None:
        partitions = sorted(offsets.committed)
        topics = [
            label
            | {
                "partitions": [
                    _answer(partition, offsets.committed.get(partition), unstable) for partition in each_topic
                ]
            }
            for name, each_topic in groupby(partitions, key=lambda partition: partition.topic)
            # Where topics go by their ids, one that is gone cannot be named.
            if (label := _label(op, name, by_id=by_id)) is not None
        ]
    elif by_id:
        topics = [_fetch_topic_by_id(op, topic, offsets, unstable) for topic in asked["topics"]]
    else:
        topics = [
            {"name": topic["name"], "partitions": _fetch_partitions(topic["name"], topic, offsets, unstable)}
            for topic in asked["topics"]
        ]
    return {"groupId": asked["groupId"], "topics": topics, "errorCode": 0}


def _label(op: Operation, name: str, *, by_id: bool) -> Fields | None:
    """How the response names the topic; None if it has to name it by its id, and there is no such topic any more."""
    if not by_id:
        return {"name": name}
    topic = op.topics.by_name.get(name)
    return None if topic is None else {"topicId": topic.id}


def _fetch_topic_by_id(
    op: Operation, topic: OffsetFetchTopic, offsets: GroupOffsets, unstable: frozenset[TopicPartition]
) -> Fields:
    known = op.topics.by_id.get(topic["topicId"])
    if known is None:
        unknown = [_no_offset(number, ErrorCode.UNKNOWN_TOPIC_ID) for number in topic["partitionIndexes"]]
        return {"topicId": topic["topicId"], "partitions": unknown}
    return {"topicId": known.id, "partitions": _fetch_partitions(known.name, topic, offsets, unstable)}


def _fetch_partitions(
    name: str, topic: OffsetFetchTopic, offsets: GroupOffsets, unstable: frozenset[TopicPartition]
) -> list[Fields]:
    answers = []
    for number in topic["partitionIndexes"]:
        partition = TopicPartition(name, number)
        commit = offsets.committed.get(partition)
        if commit is not None and NO_TOPIC_ID not in (commit.topic_id or NO_TOPIC_ID, topic["topicId"]):
            # Committed for a topic of that name that is gone.
            commit = commit if commit.topic_id == topic["topicId"] else None
        answers.append(_answer(partition, commit, unstable))
    return answers


def _in_transaction(offsets: GroupOffsets) -> frozenset[TopicPartition]:
    return frozenset(partition for commits in offsets.pending.values() for partition in commits)


def _answer(partition: TopicPartition, commit: Commit | None, unstable: frozenset[TopicPartition]) -> Fields:
    if partition in unstable:
        return _no_offset(partition.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if commit is None:
        return _no_offset(partition.partition, ErrorCode.NONE)
    return {
        "partitionIndex": partition.partition,
        "committedOffset": commit.offset,
        "committedLeaderEpoch": -1 if commit.leader_epoch is None else commit.leader_epoch,
        "metadata": commit.metadata,
        "errorCode": 0,
    }


def _no_offset(number: int, error: ErrorCode) -> Fields:
    return {
        "partitionIndex": number,
        "committedOffset": NO_OFFSET,
        "committedLeaderEpoch": -1,
        "metadata": "",
        "errorCode": int(error),
    }


def delete(op: Operation, request: Request) -> Fields:
    """Serve OffsetDelete: delete offsets of topics that the group does not subscribe to."""
    data = checked(request, OffsetDeleteRequest)
    group_id = data["groupId"]
    check_group_id(group_id)
    group = op.memory.live.get(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if isinstance(group, LiveShareGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    if isinstance(group, LiveClassicGroup) and not (group.is_empty or group.protocol_type == CONSUMER_PROTOCOL_TYPE):
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    offsets = op.memory.log.offsets_of(group_id)
    there = {*offsets.committed, *_in_transaction(offsets)}
    answers = []
    for topic in data["topics"]:
        partitions = [TopicPartition(topic["name"], partition["partitionIndex"]) for partition in topic["partitions"]]
        subscribed = is_subscribed(group, topic["name"])
        if not subscribed:
            write_tombstones(op, group_id, (partition for partition in partitions if partition in there))
        code = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE)
        codes = [{"partitionIndex": partition.partition, "errorCode": code} for partition in partitions]
        answers.append({"name": topic["name"], "partitions": codes})
    return {"errorCode": 0, "throttleTimeMs": 0, "topics": answers}


def is_subscribed(group: LiveGroup, topic: str) -> bool:
    """Whether the group subscribes to the topic, or may do so: a group of consumers whose topics are not known."""
    if isinstance(group, LiveConsumerGroup):
        return bool(group.subscriptions.among([topic]))
    if isinstance(group, LiveClassicGroup):
        if group.subscribed_topics is None:
            return group.protocol_type == CONSUMER_PROTOCOL_TYPE
        return topic in group.subscribed_topics
    if isinstance(group, LiveStreamsGroup) and not group.is_empty and group.log.topology is not None:
        return topic in subtopology_of_sources(group.log.topology, group.configured)
    return False


def write_tombstones(op: Operation, group_id: str, partitions: Iterable[TopicPartition]) -> None:
    """Write tombstones of the offsets of these partitions."""
    for topic, partition in partitions:
        op.write(RecordType.OFFSET_COMMIT, {"group": group_id, "topic": topic, "partition": partition}, None)


def write_all_tombstones(op: Operation, group_id: str) -> None:
    """Write tombstones of all offsets of the group, including those of open transactions."""
    offsets = op.memory.log.offsets_of(group_id)
    write_tombstones(op, group_id, dict.fromkeys((*offsets.committed, *sorted(_in_transaction(offsets)))))


def clean_up(op: Operation) -> None:
    """Remove expired offsets, and each group without members that has no offsets left, as a broker does every ten
    minutes.
    """
    for group_id, group in list(op.memory.live.items()):
        if group.type is GroupType.SHARE:
            continue
        offsets = op.memory.log.offsets_of(group_id)
        if offsets.committed:
            expired = _expired(op, group)
            write_tombstones(op, group_id, expired)
            if len(expired) < len(offsets.committed):
                continue
        if not any(offsets.pending.values()) and group.is_empty:
            op.erase(group)


def _expired(op: Operation, group: LiveGroup) -> list[TopicPartition]:
    """The offsets of the group that are older than the retention time, as the group's type counts it."""
    offsets = op.memory.log.offsets_of(group.group_id)
    in_transaction = {partition for commits in offsets.pending.values() for partition in commits}
    retention = op.memory.config.offsets_retention_minutes * 60_000
    expired = []
    for partition, commit in offsets.committed.items():
        since = _unused_since(group, commit)
        # An open transaction would bring the offset back when it ends, and a subscribed topic is still read.
        if since is None or partition in in_transaction or is_subscribed(group, partition.topic):
            continue
        # A few old clients bring an expiry time of their own.
        expires = since + retention if commit.expire_timestamp is None else commit.expire_timestamp
        if op.now >= expires:
            expired.append(partition)
    return expired


def _unused_since(group: LiveGroup, commit: Commit) -> int | None:
    """Since when the offset counts as unused, in milliseconds; None: it does not."""
    if not isinstance(group, LiveClassicGroup) or group.protocol_type is None:
        return commit.commit_timestamp
    if group.state is ClassicGroupState.EMPTY:
        return commit.commit_timestamp if group.state_timestamp_ms == -1 else group.state_timestamp_ms
    knows_topics = group.protocol_type == CONSUMER_PROTOCOL_TYPE and group.subscribed_topics is not None
    return commit.commit_timestamp if knows_topics and group.state is ClassicGroupState.STABLE else None


def topics_deleted(op: Operation, topics: Mapping[str, str]) -> None:
    """Remove the offsets of deleted topics (name to id)."""
    for group_id, offsets in op.memory.log.offsets.groups.items():
        # Offsets of open transactions, too: they would come back with the end of the transaction.
        for commits in (offsets.committed, *offsets.pending.values()):
            write_tombstones(
                op,
                group_id,
                [
                    partition
                    for partition, commit in commits.items()
                    if partition.topic in topics and commit.topic_id in (None, topics[partition.topic])
                ],
            )
