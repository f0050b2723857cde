"""What targets are computed from besides members: topics as a group sees them, regexes, the topology, share state."""

from __future__ import annotations

from coordinator_core.groups.consumer.state import ConsumerGroup, ResolvedRegex
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.share.state import ShareGroup, StatePartitionMetadata
from coordinator_core.groups.streams.state import StreamsGroup, Topology
from coordinator_core.groups.subscribed_topics import SubscribedTopic
from coordinator_core.history.causes import CauseKind, cause, difference, recorded_topic_causes
from coordinator_core.history.held_units import consumer_topics
from coordinator_core.history.history_writer import HistoryWriter
from coordinator_core.history.record_handler import RecordHandler
from coordinator_core.history.share_initializations import follow_share_phases
from coordinator_core.record_fields.consumer_group import ConsumerGroupRegularExpressionRecord
from coordinator_core.record_fields.streams_group import StreamsGroupTopologyRecord
from coordinator_core.records import CoordinatorRecord, RecordType

Seen = dict[str, SubscribedTopic] | None


def partition_metadata_before(state: GroupState | None, record: CoordinatorRecord) -> Seen:
    """Return the topics as the group saw them before."""
    return state.subscription_metadata if isinstance(state, ConsumerGroup | StreamsGroup) else None


def on_partition_metadata(writer: HistoryWriter, record: CoordinatorRecord, before: Seen) -> None:
    """Apply partition metadata of brokers before 4.1, or of KIP-1071: the topics as the group sees them."""
    state = writer.group.state
    if record.value is None or not isinstance(state, ConsumerGroup | StreamsGroup):
        return
    after = state.subscription_metadata or {}
    writer.open_history.topic_names.update({topic.topic_id: name for name, topic in after.items()})
    last = writer.open_history.epoch
    if before is not None and last is not None:
        subscribed = consumer_topics(state) if isinstance(state, ConsumerGroup) else set(before) | set(after)
        names = subscribed & {*last.topics}
        writer.open_history.changes += recorded_topic_causes(before, after, names, record.at)


def regex_before(state: GroupState | None, record: ConsumerGroupRegularExpressionRecord) -> ResolvedRegex | None:
    """Return how the regular expression was resolved before."""
    return state.regexes.get(record.key["regularExpression"]) if isinstance(state, ConsumerGroup) else None


def on_regex(writer: HistoryWriter, record: ConsumerGroupRegularExpressionRecord, known: ResolvedRegex | None) -> None:
    """Apply the resolution of a regular expression: it causes a rebalance if it now matches other topics."""
    if record.value is None:
        return
    before, after = set(known.topics if known else ()), set(record.value["topics"])
    if before != after:
        detail = f"{record.key['regularExpression']}: {difference(before, after)}"
        writer.open_history.changes.append(
            cause(CauseKind.REGEX_RESOLVED, record.at, topics=before ^ after, detail=detail)
        )


def topology_before(state: GroupState | None, record: CoordinatorRecord) -> Topology | None:
    """Return the topology before the record."""
    return state.topology if isinstance(state, StreamsGroup) else None


def on_topology(writer: HistoryWriter, record: StreamsGroupTopologyRecord, before: Topology | None) -> None:
    """Apply the topology of a streams group; the first one comes with the first member."""
    if record.value is not None and before is not None and before.epoch != record.value["epoch"]:
        detail = f"topology epoch {before.epoch} to {record.value['epoch']}"
        writer.open_history.changes.append(cause(CauseKind.TOPOLOGY_CHANGED, record.at, detail=detail))


def state_partitions_before(state: GroupState | None, record: CoordinatorRecord) -> StatePartitionMetadata | None:
    """Return which share partitions were assignable before."""
    return state.state_partitions if isinstance(state, ShareGroup) else None


def on_state_partitions(
    writer: HistoryWriter, record: CoordinatorRecord, before: StatePartitionMetadata | None
) -> None:
    """Apply which share partitions are assignable: those initialised, by topic name."""
    state = writer.group.state
    after = state.state_partitions if isinstance(state, ShareGroup) else None
    follow_share_phases(writer, record.at, before, after)
    if record.value is None or after is None:
        return
    for topics in (after.initializing, after.initialized):
        writer.open_history.topic_names.update({topic_id: topic.name for topic_id, topic in topics.items()})
    known = before.initialized if before is not None else {}
    topics_now = [
        topic.name
        for topic_id, topic in after.initialized.items()
        if topic_id not in known or set(known[topic_id].partitions) != set(topic.partitions)
    ]
    if topics_now:
        writer.open_history.changes.append(cause(CauseKind.SHARE_STATE_INITIALIZED, record.at, topics=topics_now))


HANDLERS: dict[int, RecordHandler] = {
    RecordType.CONSUMER_GROUP_PARTITION_METADATA: RecordHandler(
        GroupType.CONSUMER.value, on_partition_metadata, partition_metadata_before
    ),
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RecordHandler(GroupType.CONSUMER.value, on_regex, regex_before),
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: RecordHandler(
        GroupType.SHARE.value, on_state_partitions, state_partitions_before
    ),
    RecordType.STREAMS_GROUP_PARTITION_METADATA: RecordHandler(
        GroupType.STREAMS.value, on_partition_metadata, partition_metadata_before
    ),
    RecordType.STREAMS_GROUP_TOPOLOGY: RecordHandler(GroupType.STREAMS.value, on_topology, topology_before),
}
"""Record type to what it does to the history."""
