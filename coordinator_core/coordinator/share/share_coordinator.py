"""The share coordinator of one partition of the share state log: what it keeps, and what it writes (KIP-932).

It does what ``ShareCoordinatorShard`` of Kafka 4.3.1 does. A method that writes returns the record, and the state is
changed by it.
"""

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.coordinator.share.delivery_types import StateWrite
from coordinator_core.groups.share.delivery import StateBatch, batches_from
from coordinator_core.groups.share.state_log import (
    SHARE_SNAPSHOT,
    SHARE_UPDATE,
    UNSET,
    SharePartition,
    SharePartitionState,
    ShareStateRecord,
    next_state,
)
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition

UNINITIALIZED_EPOCH = 0
"""The leader epoch of a share partition of which no leader has read the state."""


@dataclass(slots=True)
class ShareCoordinator:
    """Which share partitions there are, with their state, and the highest epochs that it knows of each.

    ``updates`` counts the updates since the last snapshot that was due.
    """

    config: BrokerConfig = field(default_factory=BrokerConfig)
    partition: int = 0
    end_offset: int = 0
    partitions: dict[SharePartition, SharePartitionState] = field(default_factory=dict)
    leader_epochs: dict[SharePartition, int] = field(default_factory=dict)
    state_epochs: dict[SharePartition, int] = field(default_factory=dict)
    updates: dict[SharePartition, int] = field(default_factory=dict)

    def apply(self, record: ShareStateRecord) -> None:
        """Take in a record of the log."""
        which = SharePartition.of(record)
        self.end_offset = record.at.offset + 1
        state = next_state(self.partitions.get(which), record, combine_batches)
        if state is None or record.value is None:
            self.partitions.pop(which, None)
            for known in (self.leader_epochs, self.state_epochs, self.updates):
                known.pop(which, None)
            return
        self.partitions[which] = state
        epoch = record.value["leaderEpoch"]
        self.leader_epochs[which] = max(self.leader_epochs.get(which, epoch), epoch)
        if record.type == SHARE_UPDATE:
            self.updates[which] = self.updates.get(which, 0) + 1
            return
        if state.state_epoch is not None:
            self.state_epochs[which] = max(self.state_epochs.get(which, state.state_epoch), state.state_epoch)
        if self._is_snapshot_due(which):
            self.updates[which] = 0

    def initialize(self, which: SharePartition, state_epoch: int, start_offset: int, now: int) -> ShareStateRecord:
        """Begin the state of a share partition, or replace it; ``start_offset`` -1: no start offset is set.

        Raises:
            ApiError: FENCED_STATE_EPOCH if a higher state epoch is known.
        """
        if state_epoch != UNSET and self.state_epochs.get(which, state_epoch) > state_epoch:
            raise ApiError(ErrorCode.FENCED_STATE_EPOCH)
        known = self.partitions.get(which)
        value = {
            "snapshotEpoch": 0 if known is None else known.snapshot_epoch + 1,
            "stateEpoch": state_epoch,
            "leaderEpoch": UNINITIALIZED_EPOCH,
            "startOffset": start_offset,
            **_count(UNSET if start_offset == UNSET else 0),
            "createTimestamp": now,
            "writeTimestamp": now,
            "stateBatches": [],
        }
        return self._append(which, SHARE_SNAPSHOT, value, now)

    def read(
        self, which: SharePartition, leader_epoch: int, now: int
    ) -> tuple[SharePartitionState, ShareStateRecord | None]:
        """Return the state for a leader, and the record of its epoch if that is new.

        Raises:
            ApiError: INVALID_REQUEST if the share partition has no state, FENCED_LEADER_EPOCH if there is a newer
                leader.
        """
        state = self._known(which, leader_epoch)
        if leader_epoch in (UNSET, self.leader_epochs[which]):
            return state, None
        # The new epoch is written before the leader delivers anything: from here on a former leader is refused.
        write = StateWrite(state.start_offset, state.delivery_complete_count, [], [])
        return state, self._write(which, state, leader_epoch, write, now)

    def write(
        self, which: SharePartition, state_epoch: int, leader_epoch: int, write: StateWrite, now: int
    ) -> ShareStateRecord:
        """Write what a leader says, as an update or, after many of them, as a snapshot.

        Raises:
            ApiError: INVALID_REQUEST if the share partition has no state, FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH if
                a higher epoch is known.
        """
        state = self._known(which, leader_epoch)
        if state_epoch != UNSET and self.state_epochs[which] > state_epoch:
            raise ApiError(ErrorCode.FENCED_STATE_EPOCH)
        return self._write(which, state, state.leader_epoch, write, now)

    def delete(self, which: SharePartition, now: int) -> ShareStateRecord | None:
        """Remove the state of a share partition; None: it had none."""
        return self._append(which, SHARE_SNAPSHOT, None, now) if which in self.partitions else None

    def delete_topics(self, topic_ids: Collection[str], now: int) -> list[ShareStateRecord]:
        """Remove the state of all share partitions of topics."""
        gone = [which for which in self.partitions if which.topic_id in topic_ids]
        return [self._append(which, SHARE_SNAPSHOT, None, now) for which in gone]

    def snapshot_cold_partitions(self, now: int) -> list[ShareStateRecord]:
        """Write a snapshot of every share partition whose last one is old, unless nothing happened since to any."""
        # A snapshot of a cold partition keeps the time of creation of the one before; all others have one time for
        # both.
        if all(state.created_ms != state.written_ms for state in self.partitions.values()):
            return []
        after = self.config.share_coordinator_cold_partition_snapshot_interval_ms
        return [
            self._snapshot(which, state, now)
            for which, state in list(self.partitions.items())
            if state.written_ms is not None and now - state.written_ms >= after
        ]

    def _known(self, which: SharePartition, leader_epoch: int) -> SharePartitionState:
        state = self.partitions.get(which)
        if state is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, "The share partition is not initialized.")
        if leader_epoch != UNSET and self.leader_epochs[which] > leader_epoch:
            raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
        return state

    def _is_snapshot_due(self, which: SharePartition) -> bool:
        return self.updates.get(which, 0) >= self.config.share_coordinator_snapshot_update_records_per_snapshot

    def _write(
        self, which: SharePartition, state: SharePartitionState, leader_epoch: int, write: StateWrite, now: int
    ) -> ShareStateRecord:
        start, count = write.start_offset, write.delivery_complete_count
        if not self._is_snapshot_due(which):
            value: Fields = {
                "snapshotEpoch": state.snapshot_epoch,
                "leaderEpoch": leader_epoch,
                "startOffset": start,
                **_count(count),
                "stateBatches": _fields(combine_batches((), write.batches, start)),
            }
            return self._append(which, SHARE_UPDATE, value, now)
        start = state.start_offset if start == UNSET else start
        batches = combine_batches(state.batches, write.pieces, start)
        written = replace(state, leader_epoch=leader_epoch, start_offset=start, delivery_complete_count=count)
        return self._snapshot(which, replace(written, batches=batches, created_ms=now), now)

    def _snapshot(self, which: SharePartition, state: SharePartitionState, now: int) -> ShareStateRecord:
        """Write a whole state, as the next snapshot."""
        value: Fields = {
            "snapshotEpoch": state.snapshot_epoch + 1,
            "stateEpoch": state.state_epoch,
            "leaderEpoch": state.leader_epoch,
            "startOffset": state.start_offset,
            **_count(state.delivery_complete_count),
            "createTimestamp": state.created_ms,
            "writeTimestamp": now,
            "stateBatches": _fields(state.batches),
        }
        return self._append(which, SHARE_SNAPSHOT, value, now)

    def _append(self, which: SharePartition, kind: int, value: Fields | None, now: int) -> ShareStateRecord:
        key = {"groupId": which.group_id, "topicId": which.topic_id, "partition": which.partition}
        at = LogPosition(self.partition, self.end_offset, now)
        record: CoordinatorRecord[Any, Any] = CoordinatorRecord(at, kind, key, value, None if value is None else 0)
        self.apply(record)
        return record


def _count(count: int) -> Fields:
    """The field with the number of settled records; without a number it is not written."""
    return {} if count == UNSET else {"deliveryCompleteCount": count}


def _fields(batches: list[StateBatch]) -> list[Fields]:
    return [
        {"firstOffset": first, "lastOffset": last, "deliveryState": state, "deliveryCount": count}
        for first, last, state, count in batches
    ]


def combine_batches(known: Sequence[StateBatch] | None, new: Iterable[StateBatch], start: int) -> list[StateBatch]:
    """Return the known batches with new ones laid over them, from the start offset on; those of a snapshot (``known``
    None) remain as they are (Kafka's ``PersisterStateBatchCombiner``).

    The delivery states are those of ``merge_batches``, but neighbours in the same state remain apart where Kafka does
    not join them: it finds pairs that overlap or can be joined from the first offset on, and never returns to what lies
    before.
    """
    if known is None:
        return list(new)
    batches = [*known, *new]
    if start != UNSET:
        batches = [piece for batch in batches for piece in batches_from([batch], start)]
    if len(batches) < 2:
        return batches
    # Reversed, so that the first batch is at the end: to take it is one pop. Kafka has them in a TreeSet: equal ones
    # are one.
    waiting = sorted(set(batches), key=lambda batch: (batch.first, batch.last, batch.rank), reverse=True)
    combined: list[StateBatch] = []
    while waiting:
        batch = waiting.pop()
        if not waiting or not _meet(batch, waiting[-1]):
            combined.append(batch)
            continue
        for piece in _resolved(batch, waiting.pop()):
            insort(waiting, piece, key=lambda batch: (-batch.first, -batch.last, *(-part for part in batch.rank)))
    return combined


def _meet(batch: StateBatch, following: StateBatch) -> bool:
    """Whether two batches overlap, or can be joined."""
    can_join = batch.last + 1 == following.first and batch.rank == following.rank
    return following.first <= batch.last or can_join


def _resolved(batch: StateBatch, following: StateBatch) -> Iterator[StateBatch]:
    """What becomes of two batches that meet: where they overlap, the higher rank holds."""
    if batch.rank == following.rank:
        yield batch._replace(last=max(batch.last, following.last))
    elif following.rank < batch.rank:
        yield batch
        if following.last > batch.last:
            yield following._replace(first=batch.last + 1)
    else:
        if batch.first < following.first:
            yield batch._replace(last=following.first - 1)
        yield following
        if following.last < batch.last:
            yield batch._replace(first=following.last + 1)
