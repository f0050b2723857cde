"""The row of ``share_partitions``: a share partition over time, as the share state log has it (KIP-932).

A row begins with the record that changes something, so there are at most as many rows as records, and a cold snapshot,
which changes nothing, makes none. Counts, and not the batches of the whole window, describe what holds: a window may
have thousands of batches, and each row would repeat them. What one record changed is there as ranges of offsets.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, NamedTuple

from coordinator_core.history.rows import At, HistoryTable, MaybeAt


class ShareWrite(StrEnum):
    """What a record of the share state log does to its share partition."""

    INITIALIZED = "initialized"
    """The first snapshot of a share partition, or one that begins again without a start offset."""
    ALTERED = "altered"
    """A snapshot with another start offset, and nothing of what was known: an administrator set it."""
    DELIVERY = "delivery"
    """Records were acknowledged, given back or archived."""
    LEADER_CHANGED = "leader changed"
    """A new leader of the data partition read the state."""
    START_MOVED = "start moved"
    """Nothing but the start offset, or the count of complete deliveries."""
    FIRST_SEEN = "first seen"
    """The first record that the log shows of a share partition that was there before."""


class OffsetRange(NamedTuple):
    """Offsets of one delivery count."""

    first: Annotated[int, "first offset"]
    last: Annotated[int, "last offset"]
    delivery_count: Annotated[int, "how often they have been delivered"]


class StateCount(NamedTuple):
    """Records of one delivery state and count."""

    state: Annotated[str, "available, acknowledged, archiving or archived; a number: a newer release has the state"]
    delivery_count: Annotated[int, "how often they have been delivered"]
    records: Annotated[int, "how many there are"]


class SharePartitionRow(NamedTuple):
    """One share partition over an interval in which nothing of its state changed.

    Positions are those of ``__share_group_state``.
    """

    group_id: Annotated[str, "the group"]
    topic: Annotated[str | None, "topic name; null: no metadata log names the topic id"]
    topic_id: Annotated[str, "topic id"]
    partition: Annotated[int, "partition"]
    since: Annotated[At, "the record of the share state log with which it began"]
    until: Annotated[MaybeAt, "the record of the share state log that changed it; null while it lasts"]
    ended_by: Annotated[str | None, "next write, or state deleted; null while it lasts"]
    is_open: Annotated[bool, "true while it lasts; a later run replaces this row"]
    write: Annotated[str, "initialized, altered, delivery, leader changed, start moved or first seen"]
    snapshot_epoch: Annotated[int, "epoch of the snapshot, or of the one that the update follows"]
    state_epoch: Annotated[int | None, "group epoch in which it was initialized or altered; null: not seen"]
    leader_epoch: Annotated[int, "leader epoch of the data partition; -1: not seen"]
    start_offset: Annotated[int | None, "first offset that is kept track of; null: not set yet"]
    next_offset: Annotated[int | None, "first offset from there on that is not settled; null: not known"]
    end_offset: Annotated[
        int | None, "offset after the last with a delivery state; records in flight beyond it are not logged"
    ]
    complete: Annotated[int | None, "deliveryCompleteCount: offsets from the start on that need no delivery"]
    available: Annotated[int | None, "records given back, that wait for the next delivery; null: not known"]
    acknowledged: Annotated[int | None, "records accepted, from the start offset on; null: not known"]
    archiving: Annotated[
        int | None,
        "records given up that are on their way to the dead-letter queue, from the start offset on; null: not known",
    ]
    archived: Annotated[int | None, "records given up, from the start offset on; null: not known"]
    unknown: Annotated[
        int | None, "offsets between start and end without a state: in flight, or of an aborted transaction"
    ]
    counts: Annotated[tuple[StateCount, ...], "records by delivery state and delivery count"]
    delivery_limit: Annotated[int | None, "share.delivery.count.limit of the group; null: the metadata log has none"]
    accepted_now: Annotated[int, "records that this write acknowledges"]
    released_now: Annotated[tuple[OffsetRange, ...], "given back by this write: released, or the lock timed out"]
    archiving_now: Annotated[
        tuple[OffsetRange, ...],
        "sent to the dead-letter queue by this write: rejected, or at the delivery limit; archived after it",
    ]
    archived_now: Annotated[
        tuple[OffsetRange, ...],
        "archived by this write, not by way of a dead-letter queue: rejected, at the delivery limit, or no record is "
        "there",
    ]
    unqueued_now: Annotated[
        tuple[OffsetRange, ...], "archived by this write after the dead-letter queue could not take them"
    ]
    unqueued_why: Annotated[str | None, "why it could not, by the metadata log; null: it could, or it is not known"]
    redelivered_now: Annotated[int, "records in this write that had been delivered before"]
    passed_over: Annotated[int | None, "records given back that the start moved past; null: not known"]
    advanced: Annotated[
        MaybeAt, "the record with which next_offset last moved; null: it may have done so in records that are missing"
    ]
    next_offset_shown: Annotated[At, "the first record that shows next_offset as it is now"]
    history_complete: Annotated[bool, "what was before it was seen"] = True
    missing: Annotated[str | None, "what was not seen"] = None

    @property
    def given_up_now(self) -> tuple[OffsetRange, ...]:
        """Offsets that this write gives up: they are not delivered again."""
        return tuple(sorted((*self.archiving_now, *self.archived_now)))


SHARE_PARTITIONS = HistoryTable(
    "share_partitions", SharePartitionRow, ("group_id", "topic_id", "partition", "since.partition", "since.offset")
)
