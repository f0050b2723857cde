"""Committed offsets, commits that went back and removed offsets of the samples: what the core's fold says."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.folds.commits import PartitionCommits
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import LogPosition
from jobs.api import COMMIT_RATES
from jobs.api_columns import RATES_SCHEMA
from jobs.queries.from_logs.answers import replay
from jobs.queries.from_logs.history import group_histories
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.spark_reader import SparkReader
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.frames import assert_rows
from tests.jobs.relations.engines import write

pytestmark = pytest.mark.long
"""Each test runs whole jobs over the samples: too long for the quick tier."""


def test_offsets_are_those_of_the_core(sample):
    expected = set()
    for group, held, _ in replay(find_logs([SAMPLE_LOGS]), AsOf(), pytest.fail).groups():
        stable = held.stable()
        for status, of_status in [
            ("committed", held.committed),
            *(("pending", each) for each in held.pending.values()),
        ]:
            for place, commit in of_status.items():
                is_stable = status == "committed" and place in stable
                at = (commit.at.partition, commit.at.offset)
                expected.add((group.group_id, *place, status, is_stable, commit.offset, commit.metadata, *at))
    found = (
        sample.table("group_offsets")
        .where("status <> 'share'")
        .select(
            "group_id",
            "topic",
            "partition",
            "status",
            "is_stable",
            "committed_offset",
            "metadata",
            "log_partition",
            "log_offset",
        )
    )
    assert_rows(found, expected)


def test_share_offsets_are_those_of_the_core(sample):
    state = replay(find_logs([SAMPLE_LOGS]), AsOf(), pytest.fail).share_state
    expected = {
        (*of, None if each.start_offset == -1 else each.start_offset, each.leader_epoch, each.at.offset)
        for of, each in (state.partitions.items() if state else ())
    }
    rows = sample.table("group_offsets").where("status = 'share'")
    columns = ("group_id", "topic_id", "partition", "committed_offset", "leader_epoch", "log_offset")
    assert_rows(rows.select(*columns), expected)


def test_rewinds_name_the_owner_then_and_the_rebalance_before(sample):
    expected = set()
    for history in group_histories(find_logs([SAMPLE_LOGS]), pytest.fail):
        for commits in history.commits:
            members = {row.member_id for row in history.memberships}
            for at, before, after, metadata, _ in commits.rewinds:
                owners = [row.member_id for row in history.assignments if holds(row, commits, at)]
                opened = [row.to_epoch for row in history.rebalances if row.at.offset <= at.offset]
                last = opened[-1] if opened else None
                of = (history.group_id, commits.topic, commits.partition, at.offset, before, after)
                expected.add((*of, metadata if metadata in members else None, min(owners, default=None), last))
    columns = ("group_id", "topic", "partition", "log_offset", "offset_before", "committed_offset")
    assert_rows(sample.rewinds().select(*columns, "committer", "owner", "rebalance_to"), expected)
    assert any(owner is not None for *_, owner, _ in expected)


def holds(row: AssignmentRow, commits: PartitionCommits, at: LogPosition) -> bool:
    """Whether the member had the partition then."""
    ended = row.until is not None and row.until.offset <= at.offset
    of = (row.kind, row.role, row.topic, row.partition) == ("current", "partition", commits.topic, commits.partition)
    return of and row.since.offset <= at.offset and not ended


def test_removals_tell_how(sample):
    histories = group_histories(find_logs([SAMPLE_LOGS]), pytest.fail)
    expected = {
        (history.group_id, commits.topic, commits.partition, each.at.offset, each.offset, each.how)
        for history in histories
        for commits in history.commits
        for each in commits.removals
    }
    columns = ("group_id", "topic", "partition", "log_offset", "offset_before", "cause")
    assert_rows(sample.removals().select(*columns), expected)
    assert {"group deleted"} <= {cause for *_, cause in expected}


def test_rates(spark: SparkSession, tmp_path: Path) -> None:
    times = [(0, False), (1_000, False), (4_000, True), (5_000, True)]
    place = {"cluster": "c", "log_topic": "log", "log_partition": 0, "group_id": "g", "topic": "t", "partition": 0}
    rows = [
        {**place, "log_offset": at, "timestamp_ms": time_ms, "is_tombstone": ended}
        for at, (time_ms, ended) in enumerate(times)
    ]
    write(tmp_path, {OFFSET_COMMITS: rows})
    rates = SparkReader(spark, str(tmp_path)).frame(COMMIT_RATES, RATES_SCHEMA, cluster="c", every="1 hour")
    assert_rows(rates.select("commits", "tombstones", "share"), [(2, 2, 1.0)])
