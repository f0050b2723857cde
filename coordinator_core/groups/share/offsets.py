"""The offsets of share groups, folded from the share state log (``__share_group_state``)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from coordinator_core.cluster.image import TopicImage
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.record_fields.share_coordinator import ShareSnapshotRecord, ShareUpdateRecord
from coordinator_core.records import LogPosition

SHARE_SNAPSHOT = 0
"""Record type of a share partition's whole state."""
SHARE_UPDATE = 1
"""Record type of what changed in it since the last snapshot."""


class SharePartition(NamedTuple):
    """A share partition: one partition of a topic, by id, as one group shares it."""

    group_id: str
    topic_id: str
    partition: int


@dataclass(slots=True)
class SharePartitionState:
    """What the share coordinator keeps of a share partition.

    ``start_offset`` is -1 until the first delivery or an administrator set it. ``delivery_complete_count`` counts the
    records from there on that need no delivery any more (KIP-1226), -1 where that is not known.
    """

    snapshot_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    at: LogPosition


@dataclass(slots=True)
class ShareStateLog:
    """The state of all share partitions, folded from one or all partitions of the share state log."""

    partitions: dict[SharePartition, SharePartitionState] = field(default_factory=dict)

    def apply(self, record: ShareSnapshotRecord | ShareUpdateRecord) -> None:
        """Applies a snapshot or an update. An update without its snapshot stands for itself: no more is known.

        In an update -1 leaves start offset and leader epoch as they were.
        """
        key, value = record.key, record.value
        which = SharePartition(key["groupId"], key["topicId"], key["partition"])
        if value is None:
            self.partitions.pop(which, None)
            return
        known = self.partitions.get(which)
        start_offset, leader_epoch = value["startOffset"], value["leaderEpoch"]
        if record.type == SHARE_UPDATE and known is not None:
            start_offset = known.start_offset if start_offset == -1 else start_offset
            leader_epoch = known.leader_epoch if leader_epoch == -1 else leader_epoch
        self.partitions[which] = SharePartitionState(
            value["snapshotEpoch"], leader_epoch, start_offset, value.get("deliveryCompleteCount", -1), record.at
        )


def describe_share_offsets(
    group_id: str,
    group: ShareGroup,
    state: ShareStateLog,
    topics: TopicImage | None,
    data_end: Mapping[TopicPartition, int] | None,
) -> dict[str, Any]:
    """Start offset, leader epoch and lag of each initialised partition, as ``Admin.listShareGroupOffsets`` gives them.

    None for a partition whose start is not set. The lag is None without the end offset of the partition.
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
