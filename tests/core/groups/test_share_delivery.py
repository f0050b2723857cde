"""The share state log folded: against Kafka's own fold of a real log, and against one offset at a time."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.groups.share.delivery import DeliveryChange, StateBatch, batches_from, changes, merge_batches
from coordinator_core.groups.share.partition_offsets import describe_share_partitions
from coordinator_core.groups.share.state import ShareGroup, ShareTopic, StatePartitionMetadata
from coordinator_core.groups.share.state_log import (
    SHARE_SNAPSHOT,
    SHARE_UPDATE,
    TERMINAL,
    SharePartition,
    SharePartitionState,
    ShareStateLog,
    next_state,
    state_batches,
)
from coordinator_core.records import AnyRecord, CoordinatorRecord, LogPosition
from tests.core.groups.share_delivery import decoded_records, folded_states
from tests.core.share_log import TOPIC_ID, ShareLog

Offsets = dict[int, tuple[int, int]]
"""The oracle's form: each offset with its delivery count and state."""


def test_the_fold_equals_kafkas_own_after_every_record() -> None:
    log, compared = ShareStateLog(), 0
    for record, expected in zip(decoded_records(), folded_states(), strict=True):
        log.apply(record)
        state = log.partitions.get(SharePartition.of(record))
        assert (None if state is None else as_kafka_tells(state)) == joined(expected), record.at
        compared += 1
    assert compared == 245


def joined(expected: dict[str, Any] | None) -> dict[str, Any] | None:
    """Kafka may leave neighbours apart that have one state and count; a batch of both says the same."""
    if expected is None:
        return None
    return {**expected, "stateBatches": as_told(merge_batches((), state_batches(expected["stateBatches"])))}


def as_told(batches: Iterable[StateBatch]) -> list[dict[str, Any]]:
    names = ("firstOffset", "lastOffset", "deliveryState", "deliveryCount")
    return [dict(zip(names, batch, strict=True)) for batch in batches]


def as_kafka_tells(state: SharePartitionState) -> dict[str, Any]:
    return {
        "snapshotEpoch": state.snapshot_epoch,
        "stateEpoch": state.state_epoch,
        "leaderEpoch": state.leader_epoch,
        "startOffset": state.start_offset,
        "deliveryCompleteCount": state.delivery_complete_count,
        "createTimestamp": state.created_ms,
        "writeTimestamp": state.written_ms,
        "stateBatches": as_told(state.batches),
    }


def test_the_delivery_complete_count_is_that_of_the_terminal_offsets_but_for_aborted_transactions() -> None:
    """5 offsets of an aborted transaction are archived in memory and never written."""
    log, differences = ShareStateLog(), []
    for record in decoded_records():
        log.apply(record)
        state = log.partitions.get(SharePartition.of(record))
        if state is None:
            continue
        settled = sum(each.records for each in state.batches if each.state in TERMINAL)
        if state.delivery_complete_count not in (-1, settled):
            differences.append((record.key["groupId"], state.delivery_complete_count - settled))
    assert differences == [("warehouse", 5)]


# --- one offset at a time --------------------------------------------------------------------------------------------

batch = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length - 1, state, count),
    st.integers(0, 40),
    st.integers(1, 12),
    st.sampled_from([0, 2, 4]),
    st.integers(1, 4),
)
batches = st.lists(batch, max_size=6)


def by_offset(batches: Iterable[StateBatch]) -> Offsets:
    found: Offsets = {}
    for each in batches:
        for offset in range(each.first, each.last + 1):
            rank = (each.delivery_count, each.state)
            found[offset] = max(rank, found.get(offset, rank))
    return found


def assert_canonical(batches: Sequence[StateBatch]) -> None:
    for one, other in itertools.pairwise(batches):
        assert one.last < other.first
        assert one.last + 1 < other.first or one.rank != other.rank
    assert all(each.first <= each.last for each in batches)


@given(batches, batches)
def test_merged_batches_are_those_of_each_offset(known: list[StateBatch], new: list[StateBatch]) -> None:
    merged = merge_batches(merge_batches((), known), new)
    assert_canonical(merged)
    assert by_offset(merged) == by_offset([*known, *new])


@given(batches, st.integers(-1, 60))
def test_batches_from_an_offset_are_those_of_each_offset(known: list[StateBatch], start: int) -> None:
    merged = merge_batches((), known)
    left = batches_from(merged, start)
    assert_canonical(left)
    assert by_offset(left) == {offset: rank for offset, rank in by_offset(merged).items() if offset >= start}


@given(batches, batches)
def test_changes_are_those_of_each_offset(before: list[StateBatch], after: list[StateBatch]) -> None:
    old, new = merge_batches((), before), merge_batches((), after)
    told = list(changes(old, new))
    assert flat(told) == {
        offset: (turned(by_offset(old).get(offset)), turned(by_offset(new).get(offset)))
        for offset in by_offset(old).keys() | by_offset(new).keys()
        if by_offset(old).get(offset) != by_offset(new).get(offset)
    }
    assert [each.first for each in told] == sorted(each.first for each in told)


def flat(told: Iterable[DeliveryChange]) -> dict[int, tuple[Any, Any]]:
    return {offset: (each.before, each.after) for each in told for offset in range(each.first, each.last + 1)}


def turned(rank: tuple[int, int] | None) -> tuple[int, int] | None:
    """Delivery count and state as state and count."""
    return None if rank is None else (rank[1], rank[0])


write = st.tuples(st.sampled_from([SHARE_SNAPSHOT, SHARE_UPDATE, None]), st.integers(-1, 45), batches)


@given(st.lists(write, max_size=12))
def test_any_log_is_that_of_each_offset(writes: list[tuple[int | None, int, list[StateBatch]]]) -> None:
    state: SharePartitionState | None = None
    offsets: Offsets | None = None
    start = -1
    for record, (kind, given_start, given_batches) in zip(logged(writes), writes, strict=True):
        state = next_state(state, record)
        if kind is None:
            offsets, start = None, -1
        else:
            known = {} if kind == SHARE_SNAPSHOT or offsets is None else offsets
            start = given_start if kind == SHARE_SNAPSHOT or given_start != -1 or offsets is None else start
            offsets = {
                offset: max(rank, known.get(offset, rank)) for offset, rank in by_offset(given_batches).items()
            } | {offset: rank for offset, rank in known.items() if offset not in by_offset(given_batches)}
            if kind == SHARE_UPDATE:
                offsets = {offset: rank for offset, rank in offsets.items() if offset >= start}
        assert (state is None) == (offsets is None)
        if state is not None:
            assert (by_offset(state.batches), state.start_offset) == (offsets, start)


def logged(writes: Iterable[tuple[int | None, int, list[StateBatch]]]) -> Iterator[AnyRecord]:
    key = {"groupId": "g", "topicId": "t", "partition": 0}
    for offset, (kind, start, given_batches) in enumerate(writes):
        at = LogPosition(0, offset, offset)
        if kind is None:
            yield CoordinatorRecord(at, SHARE_SNAPSHOT, key, None)
            continue
        value = {
            "snapshotEpoch": 0,
            "leaderEpoch": 0,
            "startOffset": start,
            "stateBatches": [
                {"firstOffset": each.first, "lastOffset": each.last, "deliveryState": each.state}
                | {"deliveryCount": each.delivery_count}
                for each in given_batches
            ],
        }
        if kind == SHARE_SNAPSHOT:
            value |= {"stateEpoch": 0, "createTimestamp": 0, "writeTimestamp": 0}
        yield CoordinatorRecord(at, kind, key, value, 0)


@pytest.mark.parametrize(
    ("known", "new", "merged"),
    [
        ([(0, 9, 0, 1)], [(3, 5, 2, 2)], [(0, 2, 0, 1), (3, 5, 2, 2), (6, 9, 0, 1)]),
        ([(3, 5, 2, 2)], [(0, 9, 0, 1)], [(0, 2, 0, 1), (3, 5, 2, 2), (6, 9, 0, 1)]),
        ([(0, 4, 2, 1)], [(5, 9, 2, 1)], [(0, 9, 2, 1)]),
        ([(0, 4, 4, 1)], [(0, 4, 2, 1)], [(0, 4, 4, 1)]),
        ([(0, 4, 4, 1)], [(0, 4, 0, 2)], [(0, 4, 0, 2)]),
    ],
)
def test_the_higher_count_holds_then_the_higher_state(known: Any, new: Any, merged: Any) -> None:
    assert merge_batches([StateBatch(*each) for each in known], [StateBatch(*each) for each in new]) == merged


@pytest.mark.parametrize("is_whole", [True, False])
def test_counts_of_deliveries_are_all_there_are_or_unknown(is_whole: bool) -> None:
    """An empty list would say that nothing was delivered."""
    log, which = ShareStateLog(), SharePartition("g", TOPIC_ID, 0)
    log.apply(ShareLog().snapshot(start=5))
    log.partitions[which] = replace(log.partitions[which], is_whole=is_whole)
    group = ShareGroup(state_partitions=StatePartitionMetadata(initialized={TOPIC_ID: ShareTopic("orders", [0, 1])}))
    known, none = describe_share_partitions("g", group, log, None)
    assert (known["status"], known["counts"], known["available"], known["endOffset"]) == (
        ("set", [], 0, 5) if is_whole else ("set", None, None, None)
    )
    assert (none["status"], none["counts"], none["available"]) == ("unknown", None, None)
