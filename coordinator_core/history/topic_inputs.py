"""What targets are computed from besides members: topics as a group sees them, regexes, the topology, share state."""

from collections.abc import Iterable
from enum import StrEnum

from coordinator_core.groups.consumer.state import ConsumerGroup, ResolvedRegex
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.share.state import ShareGroup, ShareTopic, StatePartitionMetadata
from coordinator_core.groups.streams.state import StreamsGroup, Topology
from coordinator_core.groups.subscribed_topics import SubscribedTopic
from coordinator_core.history.causes import CauseKind, cause, difference, recorded_topic_causes
from coordinator_core.history.grounds import lost_offsets
from coordinator_core.history.held_units import consumer_topics
from coordinator_core.history.history_writer import HistoryWriter, RecordHandler
from coordinator_core.history.rows import ShareInitializationRow
from coordinator_core.history.testimony import lacking
from coordinator_core.history.topics_of_epochs import NO_TOPICS_HASH
from coordinator_core.record_fields.consumer_group import ConsumerGroupRegularExpressionRecord
from coordinator_core.record_fields.streams_group import StreamsGroupTopologyRecord
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType

ALL_PARTITIONS = -1
"""In place of a partition: a record names the topics whose state is being deleted, not their partitions."""
NOTHING = StatePartitionMetadata()


class SharePhase(StrEnum):
    """What the group's log says of the state of a share partition."""

    INITIALIZING = "initializing"
    INITIALIZED = "initialized"
    DELETING = "deleting"


_SHOWN = {
    SharePhase.INITIALIZING: "initialized",
    SharePhase.INITIALIZED: "state deleted",
    SharePhase.DELETING: "state deleted",
}
"""The only way in which a phase ends that lists behind missing ones show."""
Unit = tuple[str, int]
"""Topic id and partition."""
Listed = dict[SharePhase, dict[Unit, str]]
"""What a record lists in each phase, with topic names."""


def follow_share_phases(
    writer: HistoryWriter, at: LogPosition, before: StatePartitionMetadata | None, after: StatePartitionMetadata | None
) -> None:
    """Follow a record that lists share partitions by phase; ``after`` is None where all of it is deleted.

    A request that failed takes a partition out of ``initializing`` until the next one: that does not end the phase.
    """
    old, new = _listed(before or NOTHING), _listed(after or NOTHING)
    # Records that list share partitions may be missing since the last one.
    last, coverage = writer.open_history.share_listed or 0, writer.coverage
    is_whole = coverage is not None and coverage.unbroken(at.partition, last, at.offset)
    missing = None if is_whole else lost_offsets(last, at.offset)
    writer.open_history.share_listed = at.offset
    for phase in SharePhase:
        lasting = writer.open_history.share_phases.setdefault(phase.value, {})
        for partitions in lasting.values() if missing is not None else ():
            # What lasts may have ended and begun again in records that are missing.
            partitions.update({number: lacking(row, missing) for number, row in partitions.items()})
        for unit in [(topic_id, number) for topic_id, partitions in lasting.items() for number in partitions]:
            outcome = "group deleted" if after is None else _outcome(writer, phase, new, unit, at)
            if outcome is not None:
                if missing is not None and outcome != _SHOWN[phase]:
                    outcome = "unknown"  # it may have gone another way before, in records that are missing
                row = lasting[unit[0]].pop(unit[1])
                writer.rows.append(row._replace(until=at, outcome=outcome, is_open=False))
        for unit, name in new[phase].items():
            known = lasting.setdefault(unit[0], {})
            row_there = known.get(unit[1])
            if row_there is None:
                known[unit[1]] = lacking(_begun(writer, phase, unit, name, at, new), missing)
            elif phase is SharePhase.INITIALIZING and (unit not in old[phase] or old == new):
                # A record that says again what the one before said asks for its whole list again.
                known[unit[1]] = row_there._replace(asked=row_there.asked + 1, last_asked=at)


def _begun(
    writer: HistoryWriter, phase: SharePhase, unit: Unit, name: str, at: LogPosition, new: Listed
) -> ShareInitializationRow:
    is_asked = phase is SharePhase.INITIALIZING
    return ShareInitializationRow(
        group_id=writer.group.group_id,
        topic=name,
        topic_id=unit[0],
        partition=unit[1],
        phase=phase.value,
        since=at,
        asked=int(is_asked),
        last_asked=at,
        until=None,
        outcome="open",
        is_open=True,
        was_initialized=is_asked and unit in new[SharePhase.INITIALIZED],
    )


def _listed(metadata: StatePartitionMetadata) -> Listed:
    return {
        SharePhase.INITIALIZING: _partitions(metadata.initializing.items()),
        SharePhase.INITIALIZED: _partitions(metadata.initialized.items()),
        SharePhase.DELETING: {(topic_id, ALL_PARTITIONS): name for topic_id, name in metadata.deleting.items()},
    }


def _partitions(topics: Iterable[tuple[str, ShareTopic]]) -> dict[Unit, str]:
    return {(topic_id, number): topic.name for topic_id, topic in topics for number in topic.partitions}


def _outcome(writer: HistoryWriter, phase: SharePhase, new: Listed, unit: Unit, at: LogPosition) -> str | None:
    """How a phase ended, None if it goes on."""
    topic_id = unit[0]
    if unit in new[phase]:
        return None
    if phase is SharePhase.DELETING:
        return "state deleted"
    if phase is SharePhase.INITIALIZING and unit in new[SharePhase.INITIALIZED]:
        return "initialized"
    if (topic_id, ALL_PARTITIONS) in new[SharePhase.DELETING]:
        return "state deleted"
    if phase is SharePhase.INITIALIZED:
        return "topic deleted"
    # One that is newer than what is known of the topics may be there.
    is_gone = writer.topics is not None and writer.topics.partitions_at(topic_id, at.timestamp_ms) == 0
    return "topic deleted" if is_gone else None


Seen = dict[str, SubscribedTopic] | None


def on_partition_metadata(writer: HistoryWriter, record: CoordinatorRecord, before: Seen) -> None:
    """Apply partition metadata of brokers before 4.1, or of KIP-1071: the topics as the group sees them."""
    state = writer.group.state
    if record.value is None or not isinstance(state, ConsumerGroup | StreamsGroup):
        return
    after = state.subscription_metadata or {}
    writer.open_history.topic_names.update({topic.topic_id: name for name, topic in after.items()})
    last = writer.open_history.epoch
    if before is None and last is not None and last.metadata_hash == NO_TOPICS_HASH:
        before = {}  # brokers before 4.1 write nothing while none of the topics is there
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
        topics, detail = before ^ after, f"{record.key['regularExpression']}: {difference(before, after)}"
        writer.open_history.changes.append(cause(CauseKind.REGEX_RESOLVED, record.at, topics=topics, detail=detail))


def on_topology(writer: HistoryWriter, record: StreamsGroupTopologyRecord, before: Topology | None) -> None:
    """Apply the topology of a streams group; the first one comes with the first member."""
    if record.value is not None and before is not None and before.epoch != record.value["epoch"]:
        detail = f"topology epoch {before.epoch} to {record.value['epoch']}"
        writer.open_history.changes.append(cause(CauseKind.TOPOLOGY_CHANGED, record.at, detail=detail))


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
    **{
        record_type: RecordHandler(
            group_type.value,
            on_partition_metadata,
            lambda state, _: state.subscription_metadata if isinstance(state, ConsumerGroup | StreamsGroup) else None,
        )
        for record_type, group_type in (
            (RecordType.CONSUMER_GROUP_PARTITION_METADATA, GroupType.CONSUMER),
            (RecordType.STREAMS_GROUP_PARTITION_METADATA, GroupType.STREAMS),
        )
    },
    RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: RecordHandler(GroupType.CONSUMER.value, on_regex, regex_before),
    RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: RecordHandler(
        GroupType.SHARE.value,
        on_state_partitions,
        lambda state, _: state.state_partitions if isinstance(state, ShareGroup) else None,
    ),
    RecordType.STREAMS_GROUP_TOPOLOGY: RecordHandler(
        GroupType.STREAMS.value,
        on_topology,
        lambda state, _: state.topology if isinstance(state, StreamsGroup) else None,
    ),
}
"""Record type to what it does to the history."""
