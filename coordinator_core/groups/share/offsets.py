"""The offsets of share groups as Kafka's Admin client gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.share.state_log import SharePartition, SharePartitionState, ShareStateLog


def describe_share_offsets(
    group_id: str,
    group: ShareGroup,
    state: ShareStateLog,
    topics: TopicImage | None,
    data_end: Mapping[TopicPartition, int] | None,
) -> dict[str, Any]:
    """Return start offset, leader epoch and lag of each initialised partition, as ``Admin.listShareGroupOffsets`` does.

    None for a partition whose start is not set. The lag is None if the end offset of the partition is not known.
    """
    described: dict[str, Any] = {}
    initialized = {} if group.state_partitions is None else group.state_partitions.initialized
    for topic_id, topic in initialized.items():
        if topics is not None and topic_id not in topics.by_id:
            continue
        for partition in topic.partitions:
            known = state.partitions.get(SharePartition(group_id, topic_id, partition))
            end = None if data_end is None else data_end.get(TopicPartition(topic.name, partition))
            described[f"{topic.name}-{partition}"] = None if known is None else _offset(known, end)
    return described


def _offset(state: SharePartitionState, end: int | None) -> dict[str, Any] | None:
    if state.start_offset == -1:
        return None
    known = end is not None and state.delivery_complete_count != -1
    return {
        "lag": end - state.start_offset - state.delivery_complete_count if known and end is not None else None,
        "leaderEpoch": state.leader_epoch,
        "startOffset": state.start_offset,
    }
