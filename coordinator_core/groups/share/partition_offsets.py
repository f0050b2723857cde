"""The share partitions of a group: their offsets as Kafka's Admin client gives them, and the deliveries beyond them."""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.described import DescribedShareOffset, DescribedSharePartition
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.share.delivery import DeliveryState, state_name
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.share.state_log import UNSET, SharePartition, SharePartitionState, ShareStateLog

NO_STATE: Final = cast(
    DescribedSharePartition,
    {**dict.fromkeys(DescribedSharePartition.__annotations__), "topic": "", "partition": -1, "status": "unknown"},
)
"""A share partition of which the log shows no state, without its name and end offset."""


def unknown_share_offsets(
    group_id: str, group: ShareGroup, state: ShareStateLog, topics: TopicImage | None
) -> Iterator[TopicPartition]:
    """Yield the initialised partitions whose start offset is not known, because records about them are lost."""
    for partition, which in _initialized(group_id, group, topics):
        if not state.knows(which):
            yield partition


def lacks_share_state(group_id: str, group: ShareGroup, state: ShareStateLog, topics: TopicImage | None) -> bool:
    """Return whether the state of an initialised partition, or a part of it, is not known."""
    known = (state.partitions.get(which) for _, which in _initialized(group_id, group, topics))
    return any(partition is None or not partition.is_whole for partition in known)


def _initialized(
    group_id: str, group: ShareGroup, topics: TopicImage | None
) -> Iterator[tuple[TopicPartition, SharePartition]]:
    initialized = {} if group.state_partitions is None else group.state_partitions.initialized
    for topic_id, topic in initialized.items():
        if topics is None or not topics.is_whole or topic_id in topics.by_id:
            for partition in topic.partitions:
                yield TopicPartition(topic.name, partition), SharePartition(group_id, topic_id, partition)


def describe_share_offsets(
    group_id: str,
    group: ShareGroup,
    state: ShareStateLog,
    topics: TopicImage | None,
    data_end: Mapping[TopicPartition, int] | None,
) -> dict[str, DescribedShareOffset | None]:
    """Return start offset, leader epoch and lag of each initialised partition, as ``Admin.listShareGroupOffsets`` does.

    None for a partition whose start is not set, or not known. The lag is None if the end offset of the partition is not
    known.
    """
    described: dict[str, DescribedShareOffset | None] = {}
    for partition, which in _initialized(group_id, group, topics):
        known = state.partitions.get(which) if state.knows(which) else None
        end = None if data_end is None else data_end.get(partition)
        described[str(partition)] = None if known is None else _offset(known, end)
    return described


def _offset(state: SharePartitionState, end: int | None) -> DescribedShareOffset | None:
    if state.start_offset == UNSET:
        return None
    return {"lag": _lag(state, end), "leaderEpoch": state.leader_epoch, "startOffset": state.start_offset}


def _lag(state: SharePartitionState, end: int | None) -> int | None:
    """Records that still need a delivery: Admin's lag. Those in flight are among them.

    An end offset that was taken before the state was written may be below it: then there is no lag to tell of.
    """
    if end is None or UNSET in (state.start_offset, state.delivery_complete_count):
        return None
    return max(0, end - state.start_offset - state.delivery_complete_count)


def describe_share_partitions(
    group_id: str, group: ShareGroup, state: ShareStateLog, data_end: Mapping[TopicPartition, int] | None
) -> list[DescribedSharePartition]:
    """Return the deliveries of each initialised partition, in the order of topic name and partition."""
    initialized = {} if group.state_partitions is None else group.state_partitions.initialized
    return [
        _delivery(
            topic.name,
            partition,
            state.partitions.get(SharePartition(group_id, topic_id, partition)),
            None if data_end is None else data_end.get(TopicPartition(topic.name, partition)),
        )
        for topic_id, topic in sorted(initialized.items(), key=lambda entry: entry[1].name)
        for partition in sorted(topic.partitions)
    ]


def _delivery(
    topic: str, partition: int, state: SharePartitionState | None, end: int | None
) -> DescribedSharePartition:
    if state is None:
        return {**NO_STATE, "topic": topic, "partition": partition, "logEndOffset": end}
    is_set, is_whole = state.start_offset != UNSET, state.is_whole
    not_set = "not set" if is_whole else "unknown"
    totals = state.by_state
    counts = state.by_state_and_count
    return {
        "topic": topic,
        "partition": partition,
        "status": "set" if is_set else not_set,
        "startOffset": state.start_offset if is_set else None,
        "nextOffset": state.next_offset if is_set and is_whole else None,
        "endOffset": state.end_offset if is_set and is_whole else None,
        "logEndOffset": end,
        "lag": _lag(state, end),
        "deliveryCompleteCount": None if state.delivery_complete_count == UNSET else state.delivery_complete_count,
        "available": totals[DeliveryState.AVAILABLE] if is_whole else None,
        "acknowledged": totals[DeliveryState.ACKNOWLEDGED] if is_whole else None,
        "archiving": totals[DeliveryState.ARCHIVING] if is_whole else None,
        "archived": totals[DeliveryState.ARCHIVED] if is_whole else None,
        "unknown": state.end_offset - state.start_offset - totals.total() if is_set and is_whole else None,
        "stateEpoch": state.state_epoch,
        "leaderEpoch": state.leader_epoch,
        "snapshotEpoch": state.snapshot_epoch,
        "logPartition": state.at.partition,
        "logOffset": state.at.offset,
        "counts": [
            {"state": state_name(code), "deliveryCount": count, "records": counts[code, count]}
            for code, count in sorted(counts)
        ]
        if is_whole
        else None,
    }
