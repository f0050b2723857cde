"""Real compaction changes nothing about the final state.

The broker went on after the full log was taken, each time on its own: restarted, it let sessions expire. What it wrote
then continues the full log.
"""

from collections.abc import Iterable
from pathlib import Path

from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.groups.shard import CoordinatorShard
from tests.differential.decoded import LogEntry, log_entries
from tests.shared_data import CORPUS

FULL = CORPUS / "scenarios"
KEPT = FULL / "compacted_keep"
DROPPED = FULL / "compacted_drop"


def entries(folder: Path) -> list[LogEntry]:
    return list(log_entries(folder / "decoded.jsonl.gz"))


def beyond(full: Iterable[LogEntry], compacted: Iterable[LogEntry]) -> list[LogEntry]:
    end = {entry.at.partition: entry.at.offset for entry in full}
    return [entry for entry in compacted if entry.at.offset > end[entry.at.partition]]


def fold(log: Iterable[LogEntry]) -> dict[int, CoordinatorShard]:
    shards: dict[int, CoordinatorShard] = {}
    for entry in log:
        shard = shards.setdefault(entry.at.partition, CoordinatorShard())
        if entry.record is not None:
            shard.apply(entry.record, entry.producer_id)
        elif entry.producer_id is not None:
            shard.end_transaction(entry.producer_id, committed=entry.committed)
    return shards


def final_states(log: Iterable[LogEntry]) -> dict[str, tuple]:
    """State, committed and pending offsets of every group that there is."""
    found = {}
    for shard in fold(log).values():
        for group_id, group in shard.groups.items():
            offsets = shard.offsets_of(group_id)
            if group.state is not None or offsets.committed:
                found[group_id] = (group.state, offsets.committed, _pending(offsets))
    return found


def _pending(offsets: GroupOffsets) -> dict:
    return {producer_id: commits for producer_id, commits in offsets.pending.items() if commits}


def test_with_tombstones_kept_every_group_is_the_same() -> None:
    full, kept = entries(FULL), entries(KEPT)
    assert final_states(full + beyond(full, kept)) == final_states(kept)


def test_with_tombstones_dropped_every_idle_group_is_the_same() -> None:
    """Groups that were deleted or lost members afterwards left nothing of that; see their checkpoint instead."""
    full, dropped = entries(FULL), entries(DROPPED)
    busy = {entry.record.group_id for entry in beyond(full, [*entries(KEPT), *dropped]) if entry.record is not None}
    before, after = final_states(full), final_states(dropped)
    idle = (before.keys() | after.keys()) - busy
    assert len(idle) > 20
    assert {group_id: before.get(group_id) for group_id in idle} == {group_id: after.get(group_id) for group_id in idle}
