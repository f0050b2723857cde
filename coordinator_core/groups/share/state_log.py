"""Share partitions as in ``__share_group_state``, the share state log: snapshots and updates (KIP-932).

A snapshot is the whole state of a share partition. An update changes part of it: its batches replace the known ones for
their offsets, and what is below the start offset is dropped.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from coordinator_core.groups.share.delivery import TERMINAL, StateBatch, batches_from, merge_batches
from coordinator_core.record_fields.share_coordinator import (
    ShareSnapshotRecord,
    ShareSnapshotStateBatch,
    ShareSnapshotValue,
    ShareUpdateRecord,
    ShareUpdateStateBatch,
    ShareUpdateValue,
)
from coordinator_core.records import LogPosition

SHARE_SNAPSHOT = 0
"""Record type of a share partition's whole state."""
SHARE_UPDATE = 1
"""Record type of what changed in it since the last snapshot."""
UNSET = -1
"""A start offset, leader epoch or count that is not set; in an update: start offset or leader epoch stay."""

ShareStateRecord = ShareSnapshotRecord | ShareUpdateRecord


class SharePartition(NamedTuple):
    """A share partition: one partition of a topic, by id, as one group shares it."""

    group_id: str
    topic_id: str
    partition: int

    @classmethod
    def of(cls, record: ShareStateRecord) -> "SharePartition":
        """Return the share partition that a record is about."""
        return cls(record.key["groupId"], record.key["topicId"], record.key["partition"])


@dataclass(slots=True)
class SharePartitionState:
    """What the share coordinator keeps of a share partition.

    ``start_offset`` is -1 until the first write after a delivery, or until an administrator sets it.
    ``delivery_complete_count`` counts the offsets from there on that need no delivery any more (KIP-1226), -1 where
    that is not known. ``batches`` are the offsets with a known delivery state; ``is_whole``: no other offset has one.
    ``at`` is the last record. ``state_epoch``, and the times of the snapshot that the state goes back to, are None
    where no snapshot was seen; snapshots of 4.0 have no times.
    """

    snapshot_epoch: int
    state_epoch: int | None
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    at: LogPosition
    is_whole: bool
    created_ms: int | None
    written_ms: int | None

    @property
    def end_offset(self) -> int:
        """The offset after the last one whose delivery state was written; the start offset where none was."""
        return self.batches[-1].last + 1 if self.batches else self.start_offset

    @property
    def next_offset(self) -> int:
        """The first offset from the start on that is not settled."""
        offset = self.start_offset
        for batch in self.batches:
            if batch.first > offset or batch.state not in TERMINAL:
                break
            offset = batch.last + 1
        return offset

    @property
    def by_state(self) -> Counter[int]:
        """How many records are in each delivery state."""
        records = Counter[int]()
        for batch in self.batches:
            records[batch.state] += batch.records
        return records

    @property
    def by_state_and_count(self) -> Counter[tuple[int, int]]:
        """How many records have each delivery state and delivery count."""
        records = Counter[tuple[int, int]]()
        for batch in self.batches:
            records[batch.state, batch.delivery_count] += batch.records
        return records


Merge = Callable[[Sequence[StateBatch] | None, Iterable[StateBatch], int], list[StateBatch]]
"""How the batches of a record are laid over the known ones, from a start offset on; None: the record is a snapshot."""


def merge_from(known: Sequence[StateBatch] | None, new: Iterable[StateBatch], start: int) -> list[StateBatch]:
    """Return the batches with new ones laid over them, neighbours in the same state joined."""
    return batches_from(merge_batches(known or (), new), start)


def next_state(
    known: SharePartitionState | None, record: ShareStateRecord, merge: Merge = merge_from
) -> SharePartitionState | None:
    """Return the state of a share partition after a record about it; None after a tombstone."""
    if record.value is None:
        return None
    if record.type == SHARE_SNAPSHOT:
        return _snapshot(cast(ShareSnapshotValue, record.value), record.at, merge)
    return _updated(known, cast(ShareUpdateValue, record.value), record.at, merge)


def _snapshot(value: ShareSnapshotValue, at: LogPosition, merge: Merge) -> SharePartitionState:
    return SharePartitionState(
        value["snapshotEpoch"],
        value["stateEpoch"],
        value["leaderEpoch"],
        value["startOffset"],
        value.get("deliveryCompleteCount", UNSET),
        merge(None, state_batches(value["stateBatches"]), UNSET),
        at,
        True,
        value.get("createTimestamp"),
        value.get("writeTimestamp"),
    )


def _updated(
    known: SharePartitionState | None, value: ShareUpdateValue, at: LogPosition, merge: Merge
) -> SharePartitionState:
    """An update without its snapshot stands for itself: no more is known.

    One that names another snapshot than the last comes behind one that is missing, whose state epoch is not known.
    """
    new = state_batches(value["stateBatches"])
    start, leader_epoch = value["startOffset"], value["leaderEpoch"]
    count = value.get("deliveryCompleteCount", UNSET)
    if known is None:
        batches = merge((), new, start)
        return SharePartitionState(
            value["snapshotEpoch"], None, leader_epoch, start, count, batches, at, False, None, None
        )
    start = known.start_offset if start == UNSET else start
    return SharePartitionState(
        value["snapshotEpoch"],
        known.state_epoch if value["snapshotEpoch"] == known.snapshot_epoch else None,
        known.leader_epoch if leader_epoch == UNSET else leader_epoch,
        start,
        count,
        merge(known.batches, new, start),
        at,
        known.is_whole,
        known.created_ms,
        known.written_ms,
    )


def state_batches(batches: Iterable[ShareSnapshotStateBatch | ShareUpdateStateBatch]) -> Iterable[StateBatch]:
    """Return the batches of a record."""
    return [
        StateBatch(batch["firstOffset"], batch["lastOffset"], batch["deliveryState"], batch["deliveryCount"])
        for batch in batches
    ]


@dataclass(slots=True)
class ShareStateLog:
    """The state of all share partitions, folded from one or all partitions of the share state log.

    ``lost`` are the log partitions of which records before the moment are lost. Brokers do not compact this log: they
    remove its beginning when all share partitions have newer snapshots. Records later than ``sure_ms`` may be later
    than the moment (None: all are earlier), and share partitions that have one are ``undated``: their state then is not
    known.
    """

    partitions: dict[SharePartition, SharePartitionState] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    sure_ms: int | None = None
    undated: set[SharePartition] = field(default_factory=set)

    def knows(self, which: SharePartition) -> bool:
        """Return whether the state of a share partition is known, or that it has none."""
        state = self.partitions.get(which)
        if state is None:
            return not self.lost and which not in self.undated
        tells_start = UNSET not in (state.start_offset, state.leader_epoch)
        return state.is_whole or tells_start or state.at.partition not in self.lost

    def apply(self, record: ShareStateRecord) -> None:
        """Change the state by a record; records of one share partition come in the order of the log."""
        which = SharePartition.of(record)
        if self.sure_ms is not None and record.at.timestamp_ms > self.sure_ms:
            self.undated.add(which)
        state = None if which in self.undated else next_state(self.partitions.get(which), record)
        if state is None:
            self.partitions.pop(which, None)
        else:
            self.partitions[which] = state

    def lose(self, log_partition: int) -> None:
        """Records of this partition of the log are missing here: each share partition in it may have another state
        now, or none. What later records say of it is known.
        """
        self.lost.add(log_partition)
        for which in [which for which, state in self.partitions.items() if state.at.partition == log_partition]:
            del self.partitions[which]
