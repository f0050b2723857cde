"""The state of share partitions: how it is requested, initialised and deleted (KIP-932).

A share partition is assigned only once the share coordinator has initialised its state. The group coordinator writes
which partitions are initialising, asks the share coordinator, and writes the result. A lost response is asked for again
after a while.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from coordinator_core.cluster.image import TopicImage
from coordinator_core.coordinator.lookup import group_of
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.share import records
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.groups.share.state import ShareTopic, StatePartitionMetadata

INITIALIZE_EFFECT = "initialize_share_group_state"
"""Outcome effect: what a share coordinator has to initialise, a list of topics with partitions."""
DELETE_EFFECT = "delete_share_group_state"
"""Outcome effect: whose state a share coordinator has to delete, a list of topics with partitions."""
_Of = TypeVar("_Of", ShareTopic, str)
UNSET_START_OFFSET = -1
UNKNOWN_TOPIC = "<UNKNOWN>"
"""What Kafka writes as the name of a topic that it no longer finds."""


def initialize(op: Operation, group: LiveShareGroup, epoch: int, names: Iterable[str]) -> None:
    """Ask for the state of subscribed partitions without state; for those already requested, ask again after a
    while.
    """
    known = group.share_partitions
    retry = op.memory.config.share_initialize_retry_ms
    waited_for = known.initializing if op.now - group.initializing_since_ms < retry else {}
    asked: dict[str, ShareTopic] = {}
    for name in sorted(names):
        topic = op.topics.by_name.get(name)
        if topic is None:
            continue
        initialized_of_topic = _partitions(known.initialized, topic.id)
        if len(initialized_of_topic) == topic.partitions:
            continue
        settled = {*initialized_of_topic, *_partitions(waited_for, topic.id)}
        if len(settled) < topic.partitions:
            asked[topic.id] = ShareTopic(
                name, [partition for partition in range(topic.partitions) if partition not in settled]
            )
    if not asked:
        return
    write_initializing(op, group, asked)
    starts = {topic_id: dict.fromkeys(topic.partitions, UNSET_START_OFFSET) for topic_id, topic in asked.items()}
    ask_to_initialize(op, epoch, starts)


def write_initializing(op: Operation, group: LiveShareGroup, asked: Mapping[str, ShareTopic]) -> None:
    """Write that these partitions get their state, in addition to those that already do."""
    initializing = _union(group.share_partitions.initializing, asked)
    write_state(op, group, initializing=initializing, deleting=_others(group.share_partitions.deleting, initializing))


def ask_to_initialize(op: Operation, epoch: int, starts: Mapping[str, Mapping[int, int]]) -> None:
    """Ask share coordinators for the state of partitions: start offsets by topic id and partition, -1 for not set."""
    op.outcome.effects[INITIALIZE_EFFECT] = [
        {
            "topic_id": topic_id,
            "partitions": [
                {"partition": partition, "state_epoch": epoch, "start_offset": start}
                for partition, start in partitions.items()
            ],
        }
        for topic_id, partitions in starts.items()
    ]


def ask_to_delete(op: Operation, partitions: Mapping[str, Iterable[int]]) -> None:
    """Ask share coordinators to delete the state of these partitions, by topic id."""
    op.outcome.effects[DELETE_EFFECT] = [
        {"topic_id": topic_id, "partitions": sorted(numbers)} for topic_id, numbers in partitions.items()
    ]


def initialized(op: Operation, group_id: str, partitions: Mapping[str, Collection[int]]) -> None:
    """Note that a share coordinator initialised these partitions, by topic id; raises ApiError if the group was
    deleted.
    """
    if not partitions:
        return
    group = op.memory.live.get(group_id)
    if not isinstance(group, LiveShareGroup):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group_id} is not a share group any more.")
    known = group.share_partitions
    done = {topic_id: ShareTopic(_name(topic_id, op.topics), list(numbers)) for topic_id, numbers in partitions.items()}
    left = _without(known.initializing, partitions)
    write_state(op, group, initializing=left, initialized=_union(known.initialized, done))


def uninitialized(op: Operation, group_id: str, partitions: Mapping[str, Collection[int]]) -> None:
    """Note that a share coordinator failed to initialise these partitions, by topic id: the next heartbeat asks
    again.
    """
    group = op.memory.live.get(group_id)
    if not isinstance(group, LiveShareGroup) or not partitions or not group.share_partitions.initializing:
        return
    write_state(op, group, initializing=_without(group.share_partitions.initializing, partitions))


def topics_deleted(op: Operation, topic_ids: Collection[str]) -> None:
    """Remove the state of partitions of deleted topics."""
    for group in op.memory.live.values():
        if not isinstance(group, LiveShareGroup):
            continue
        known = group.share_partitions
        if not {*known.initializing, *known.initialized, *known.deleting}.isdisjoint(topic_ids):
            kept = _others(known.initializing, topic_ids), _others(known.initialized, topic_ids)
            write_state(op, group, *kept, _others(known.deleting, topic_ids))


def delete_all(op: Operation, group_id: str) -> None:
    """Ask for the deletion of all state, and write that it is being deleted, before the group is deleted.

    A topic that an earlier deletion left behind is asked for again if it still exists. Raises ApiError for a group with
    members, or of another type.
    """
    group = group_of(op, group_id, LiveShareGroup)
    if not group.is_empty:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    known = group.share_partitions
    if group.log.state_partitions is None:
        return
    leftover = {
        topic_id: ShareTopic(topic.name, list(range(topic.partitions)))
        for topic_id in known.deleting
        if (topic := op.topics.by_id.get(topic_id)) is not None
    }
    gone = _union(_union(known.initialized, known.initializing), leftover)
    deleting = {topic_id: topic.name for topic_id, topic in gone.items()}
    op.write(*records.state_partitions(group_id, StatePartitionMetadata({}, {}, deleting)))
    if gone:
        ask_to_delete(op, {topic_id: topic.partitions for topic_id, topic in gone.items()})


def write_state(
    op: Operation,
    group: LiveShareGroup,
    initializing: dict[str, ShareTopic] | None = None,
    initialized: dict[str, ShareTopic] | None = None,
    deleting: Iterable[str] | None = None,
) -> None:
    """Write which partitions get state, or have it, and which topics' state is being deleted; None: what is known."""
    known = group.share_partitions
    metadata = StatePartitionMetadata(
        known.initializing if initializing is None else initializing,
        known.initialized if initialized is None else initialized,
        {topic_id: _name(topic_id, op.topics) for topic_id in (known.deleting if deleting is None else deleting)},
    )
    op.write(*records.state_partitions(group.group_id, metadata))


def assignment_pending(group: LiveShareGroup) -> bool:
    """Whether the newest target does not assign exactly the subscribed partitions that have their state.

    False while the target of the group epoch is not computed yet, as it will.
    """
    if group.pending is None:
        group.pending = _is_pending(group)
    return group.pending


def _is_pending(group: LiveShareGroup) -> bool:
    state = group.log.state_partitions
    if group.is_empty or state is None or group.group_epoch > group.assignment_epoch:
        return False
    for topic_id, topic in state.initialized.items():
        if topic.name in group.subscriptions.by_name:
            assigned = {partition for target in group.log.targets.values() for partition in target.get(topic_id, ())}
            if assigned != set(topic.partitions):
                return True
    return False


def _partitions(topics: Mapping[str, ShareTopic], topic_id: str) -> Collection[int]:
    return topics[topic_id].partitions if topic_id in topics else ()


def _union(some: Mapping[str, ShareTopic], more: Mapping[str, ShareTopic]) -> dict[str, ShareTopic]:
    union = dict(some)
    for topic_id, topic in more.items():
        union[topic_id] = ShareTopic(topic.name, sorted({*_partitions(some, topic_id), *topic.partitions}))
    return union


def _without(topics: Mapping[str, ShareTopic], gone: Mapping[str, Collection[int]]) -> dict[str, ShareTopic]:
    """The partitions that are not gone. A topic of which no partition was ever asked for stays, as in Kafka."""
    left = {
        topic_id: ShareTopic(
            topic.name, [partition for partition in topic.partitions if partition not in gone.get(topic_id, ())]
        )
        for topic_id, topic in topics.items()
    }
    return {topic_id: topic for topic_id, topic in left.items() if topic.partitions or topic_id not in gone}


def _others(topics: Mapping[str, _Of], gone: Collection[str]) -> dict[str, _Of]:
    """The topics without those that are gone."""
    return {topic_id: topic for topic_id, topic in topics.items() if topic_id not in gone}


def _name(topic_id: str, topics: TopicImage) -> str:
    return topics.by_id[topic_id].name if topic_id in topics.by_id else UNKNOWN_TOPIC
