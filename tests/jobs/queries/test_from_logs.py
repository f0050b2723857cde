"""Logs replayed without tables: what damaged bytes leave unknown."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator_core.records import CoordinatorRecord, LogPosition
from coordinator_core.wire.control import COMMIT
from jobs.queries.from_logs.groups import replay
from jobs.queries.from_logs.history import group_histories
from jobs.queries.interface import AsOf
from jobs.sources.files import find_logs
from tests.jobs.logs import batch, marker, write_segment


def commit(offset: int, topic: str) -> CoordinatorRecord:
    value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1}
    return CoordinatorRecord(LogPosition(0, offset, 1000), 1, {"group": "g", "topic": topic, "partition": 0}, value)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_beyond_damaged_bytes_no_marker_commits(tmp_path: Path, is_damaged: bool) -> None:
    """The damaged batch may have been the first transaction's marker, and the one behind it that of the next."""
    between = bytearray(batch(commit(1, "b")))
    between[-1] ^= is_damaged
    batches = [batch(commit(0, "a"), producer_id=1), bytes(between)]
    batches += [batch(commit(2, "c"), producer_id=1), marker(COMMIT, 1, 3, 1000)]
    write_segment(tmp_path / "__consumer_offsets-0", batches)
    warnings: list[str] = []
    (then,) = replay(find_logs([tmp_path]), AsOf(), warnings.append).groups()
    committed = {partition.topic for partition in then.offsets.committed}
    assert committed == ({"c"} if is_damaged else {"a", "b", "c"})
    assert {partition.topic for partition in then.certainty.unknown_offsets} == ({"a"} if is_damaged else set())
    assert len(warnings) == is_damaged
    (history,) = group_histories(find_logs([tmp_path]), warnings.append)
    assert {commits.topic for commits in history.commits} == committed
    assert not history.transactions
