"""Rules of the share state log: what one record may do to its share partition (KIP-932)."""

import itertools
from collections.abc import Iterator
from typing import cast

from coordinator_core.groups.rules import Rule
from coordinator_core.groups.share.delivery import NEWEST_STATE, STATES, TERMINAL, StateBatch, changes, state_name
from coordinator_core.groups.share.state_log import (
    SHARE_SNAPSHOT,
    UNSET,
    SharePartitionState,
    ShareStateRecord,
    next_state,
    state_batches,
)
from coordinator_core.groups.violations import Violation
from coordinator_core.history.share_partitions import KnownBefore
from coordinator_core.record_fields.share_coordinator import ShareSnapshotValue, ShareUpdateValue
from coordinator_core.records import SHARE_LOG


def judge_share_state(known: KnownBefore, record: ShareStateRecord) -> list[Violation]:
    """Return the rules that a record breaks; ``known`` is what was known of its share partition before it.

    A rule that compares with earlier records is judged only where none of them can be missing.
    """
    return [_violation(rule, record, detail) for rule, detail in _broken(known, record)]


def _broken(known: KnownBefore, record: ShareStateRecord) -> Iterator[tuple[Rule, str]]:
    if record.value is None:
        if known.lost is None and known.state is None:
            yield Rule.SHARE_TOMBSTONE_WITHOUT_STATE, "no such share partition"
        return
    is_snapshot = record.type == SHARE_SNAPSHOT
    yield from _wrong_batches(record)
    # Without all earlier records only what the record says by itself can be judged.
    if known.lost is not None:
        return
    before, after = known.state, next_state(known.state, record)
    if before is None or after is None:
        epoch = record.value["snapshotEpoch"]
        if not is_snapshot:
            yield Rule.SHARE_UPDATE_WITHOUT_SNAPSHOT, f"update of snapshot epoch {epoch}"
        elif epoch != 0:
            yield Rule.SHARE_SNAPSHOT_EPOCH_WRONG, f"the first snapshot has epoch {epoch}"
    elif is_snapshot:
        yield from _wrong_snapshot(before, after)
    elif before.state_epoch is not None:
        yield from _wrong_update(before, after, cast(ShareUpdateValue, record.value))
    if before is not None and after is not None and known.missing is None and not _begins_again(after, is_snapshot):
        yield from _settled_again(before, after)


def _wrong_snapshot(before: SharePartitionState, after: SharePartitionState) -> Iterator[tuple[Rule, str]]:
    if after.snapshot_epoch != before.snapshot_epoch + 1:
        yield Rule.SHARE_SNAPSHOT_EPOCH_WRONG, f"snapshot epoch {after.snapshot_epoch} after {before.snapshot_epoch}"
    if before.state_epoch is not None and after.state_epoch is not None and after.state_epoch < before.state_epoch:
        yield Rule.SHARE_STATE_EPOCH_WENT_BACK, f"state epoch {after.state_epoch} after {before.state_epoch}"
    if not _begins_again(after, is_snapshot=True):
        yield from _older_leader(before, after)


def _wrong_update(
    before: SharePartitionState, after: SharePartitionState, value: ShareUpdateValue
) -> Iterator[tuple[Rule, str]]:
    epoch = value["snapshotEpoch"]
    if epoch != before.snapshot_epoch:
        yield Rule.SHARE_SNAPSHOT_EPOCH_WRONG, f"update of snapshot epoch {epoch} after {before.snapshot_epoch}"
    if after.start_offset < before.start_offset:
        yield Rule.SHARE_START_OFFSET_WENT_BACK, f"start offset {after.start_offset} after {before.start_offset}"
    yield from _older_leader(before, after)


def _older_leader(before: SharePartitionState, after: SharePartitionState) -> Iterator[tuple[Rule, str]]:
    if after.leader_epoch < before.leader_epoch:
        yield Rule.SHARE_LEADER_EPOCH_WENT_BACK, f"leader epoch {after.leader_epoch} after {before.leader_epoch}"


def _begins_again(after: SharePartitionState, is_snapshot: bool) -> bool:
    """Whether a record is what initialisation and alteration write: a snapshot of no leader, without batches."""
    return is_snapshot and not after.batches and after.leader_epoch <= 0


def _settled_again(before: SharePartitionState, after: SharePartitionState) -> Iterator[tuple[Rule, str]]:
    for change in changes(before.batches, after.batches):
        old, new = change.before, change.after
        if old is not None and old[0] in TERMINAL and new is not None:
            yield Rule.SHARE_SETTLED_AGAIN, f"offsets {change.first} to {change.last}: {_text(new)} after {_text(old)}"


def _text(state: tuple[int, int]) -> str:
    return f"{state_name(state[0])} with delivery count {state[1]}"


def _wrong_batches(record: ShareStateRecord) -> Iterator[tuple[Rule, str]]:
    value = cast(ShareSnapshotValue | ShareUpdateValue, record.value)
    batches = sorted(state_batches(value["stateBatches"]))
    for batch in batches:
        fault = _fault(batch, value["startOffset"])
        if fault is not None:
            yield Rule.SHARE_BATCH_WRONG, f"offsets {batch.first} to {batch.last}: {fault}"
        elif batch.state > NEWEST_STATE:
            yield Rule.SHARE_STATE_NEW, f"offsets {batch.first} to {batch.last}: delivery state {batch.state}"
    for one, other in itertools.pairwise(batches):
        if other.first <= one.last:
            yield Rule.SHARE_BATCH_WRONG, f"offset {other.first} is in two batches"


def _fault(batch: StateBatch, start_offset: int) -> str | None:
    if batch.last < batch.first or batch.first < 0:
        return "no offsets"
    if batch.state not in STATES and batch.state <= NEWEST_STATE:
        return f"delivery state {batch.state}"
    if batch.delivery_count < 0:
        return f"delivery count {batch.delivery_count}"
    if start_offset != UNSET and batch.first < start_offset:
        return f"below the start offset {start_offset}"
    return None


def _violation(rule: Rule, record: ShareStateRecord, detail: str) -> Violation:
    key, log = record.key, f"{SHARE_LOG}-{record.at.partition}"
    share_partition = f"{key['topicId']}-{key['partition']}"
    return Violation(rule, record.at, record.group_id, None, f"{log}: {share_partition}: {detail}")
