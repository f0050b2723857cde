"""Committed offsets in DataFrame terms: what the core's fold says, and Burrow's rules one by one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from coordinator_core.audit.folds.group_history import PartitionCommits
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import LogPosition
from jobs.pipeline import lag, offsets
from jobs.queries.from_logs.groups import replay
from jobs.queries.from_logs.history import group_histories
from jobs.queries.interface import AsOf
from jobs.sources.files import find_logs
from tests.jobs.conftest import SAMPLE_LOGS

pytestmark = pytest.mark.long
"""Each test runs whole jobs over the samples: too long for the quick tier."""

LOG = (
    "cluster string, log_topic string, log_partition int, log_offset long, group_id string, topic string, "
    "partition int, timestamp_ms long, committed_offset long, is_tombstone boolean, outcome string, producer_id long"
)
COMMIT = "leader_epoch int, metadata string, commit_timestamp long, expire_timestamp long, topic_id string"


def log_of(spark: SparkSession, *cases: Sequence[tuple[Any, ...]]) -> DataFrame:
    """Each case is a partition: (time, offset), offset None for a tombstone, and (outcome, producer) if in one."""
    full = []
    for case, rows in enumerate(cases):
        for place, (time_ms, offset, *transaction) in enumerate(rows):
            outcome, producer = transaction or (None, -1)
            row = ("c", "log", case, place, "g", "t", case, time_ms, offset, offset is None, outcome, producer)
            full.append((*row, *[None] * 5))
    return spark.createDataFrame(full, f"{LOG}, {COMMIT}")


def ends_of(spark: SparkSession, *cases: Sequence[tuple[int, int]]) -> DataFrame:
    rows = [("c", "t", case, *end) for case, ends in enumerate(cases) for end in ends]
    return spark.createDataFrame(rows, ", ".join(f"{name} {of}" for name, of in lag.END_OFFSETS.items()))


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
    assert {tuple(row) for row in found.collect()} == expected


def test_share_offsets_are_those_of_the_core(sample):
    state = replay(find_logs([SAMPLE_LOGS]), AsOf(), pytest.fail).share_state
    expected = {
        (*of, None if each.start_offset == -1 else each.start_offset, each.leader_epoch, each.at.offset)
        for of, each in (state.partitions.items() if state else ())
    }
    rows = sample.table("group_offsets").where("status = 'share'")
    columns = ("group_id", "topic_id", "partition", "committed_offset", "leader_epoch", "log_offset")
    assert {tuple(row) for row in rows.select(*columns).collect()} == expected


def test_lag_of_kept_offsets(spark):
    columns = "cluster string, topic string, partition int, committed_offset long, delivered int"
    rows = [("c", "t", 0, 5, 0), ("c", "t", 1, 5, 0), ("c", "t", 2, -1, 0), ("c", "t", 3, 5, 2), ("c", "t", 4, 5, -1)]
    known = [("c", "t", of, 70, 9) for of in (0, 2, 3, 4)]
    ends = spark.createDataFrame(known, ", ".join(f"{name} {of}" for name, of in lag.END_OFFSETS.items()))
    found = offsets.with_lag(spark.createDataFrame(rows, columns), ends).orderBy("partition").collect()
    assert [(row.end_offset, row.lag) for row in found] == [(9, 4), (None, None), (9, None), (9, 2), (9, None)]


def test_rewinds_name_the_owner_then_and_the_rebalance_before(sample):
    expected = set()
    for history in group_histories(find_logs([SAMPLE_LOGS]), pytest.fail):
        for commits in history.commits:
            for at, before, after in commits.rewinds:
                owners = [row.member_id for row in history.assignments if holds(row, commits, at)]
                opened = [row.to_epoch for row in history.rebalances if row.at.offset <= at.offset]
                last = opened[-1] if opened else None
                of = (history.group_id, commits.topic, commits.partition, at.offset, before, after)
                expected.add((*of, min(owners, default=None), last))
    columns = ("group_id", "topic", "partition", "log_offset", "offset_before", "committed_offset")
    found = sample.rewinds().select(*columns, "owner", "rebalance_to").collect()
    assert {tuple(row) for row in found} == expected
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
    assert {tuple(row) for row in sample.removals().select(*columns).collect()} == expected
    assert {"group deleted"} <= {cause for *_, cause in expected}


def test_transactions_and_tombstones(spark):
    cases = [
        ([(1, 10), (2, 20)], {("committed", True, 20)}),
        ([(1, 10), (2, None)], set()),
        ([(1, 10, "open", 7)], {("pending", False, 10)}),
        (
            [(1, 10), (2, 20, "open", 7), (3, 30, "open", 8)],
            {("committed", False, 10), ("pending", False, 20), ("pending", False, 30)},
        ),
        ([(1, 10, "open", 7), (2, None)], set()),
        ([(1, 10, "open", 7), (2, None), (3, 5)], {("committed", True, 5)}),
        ([(1, 10), (2, 20, "aborted", 7)], {("committed", True, 10)}),
        ([(1, 10), (2, 20, "committed", 7)], {("committed", True, 20)}),
    ]
    found: dict[int, set[tuple[Any, ...]]] = {}
    for row in offsets.group_offsets(log_of(spark, *(rows for rows, _ in cases))).collect():
        found.setdefault(row.partition, set()).add((row.status, row.is_stable, row.committed_offset))
    assert [found.get(case, set()) for case in range(len(cases))] == [expected for _, expected in cases]


def steady(*of: int) -> list[tuple[int, int]]:
    """Commits a second apart."""
    return [(1_000 * place, offset) for place, offset in enumerate(of)]


RISING = steady(*range(0, 100, 10))


@pytest.mark.parametrize(
    ("now", "cases"),
    [
        (
            9_500,
            {
                "lag falls": (RISING, [(0, 500)], "OK", 410),
                "lag grows": (RISING, [(each * 1_000, 500 + each * 20) for each in range(10)], "WARN", 590),
                "stalled": (steady(*[50] * 10), [(0, 500)], "STALL", 450),
                "rewound": (steady(0, 10, 20, 30, 5, 6, 7, 8, 9, 10), [(0, 500)], "REWIND", 490),
                "made good": (steady(0, 10, 20, 30, 5, 30, 31, 32, 33, 34), [(0, 500)], "OK", 466),
                "no end offset": (RISING, [], "UNKNOWN", None),
                "end offset too late": (RISING, [(9_600, 500)], "UNKNOWN", None),
            },
        ),
        (
            60_000,
            {
                "stopped": (RISING, [(0, 500)], "STOP", 410),
                "at the end": (RISING, [(0, 90)], "OK", 0),
                "too few commits": (steady(0, 10), [(0, 500)], "OK", 490),
            },
        ),
    ],
)
def test_burrow_rules(spark, now, cases):
    log = log_of(spark, *(commits for commits, *_ in cases.values()))
    evaluated = lag.evaluate(log, ends_of(spark, *(ends for _, ends, *_ in cases.values())), now)
    found = {row.partition: (row.status, row.lag) for row in evaluated.collect()}
    expected = [(status, behind) for *_, status, behind in cases.values()]
    assert dict(zip(cases, map(found.get, range(len(cases))), strict=True)) == dict(zip(cases, expected, strict=True))


def test_no_end_offsets_is_not_no_lag(spark):
    (group,) = lag.group_status(lag.evaluate(log_of(spark, [(0, 5)]), ends_of(spark), 10)).collect()
    assert (group.status, group.max_lag, group.unknown) == ("UNKNOWN", None, 1)


def test_without_end_offsets_nothing_is_said_of_lag(spark):
    cases = {
        "MOVING": steady(*range(10)),
        "IDLE_OR_STALLED": steady(*[4] * 10),
        "REWIND": steady(5, 6, 1, 2, 2, 2, 2, 2, 2, 2),
        "UNKNOWN": steady(1, 2),
        "SILENT": [(time_ms - 60_000, offset) for time_ms, offset in RISING],
    }
    found = lag.evaluate_offsets_only(log_of(spark, *cases.values()), 9_500).orderBy("partition").collect()
    assert [row.activity for row in found] == [*cases]
    assert "lag" not in found[0]


def test_end_offsets_from_json(spark, tmp_path):
    path = tmp_path / "ends.jsonl"
    path.write_text(json.dumps({"topic": "t", "partition": 0, "timestamp_ms": 5, "end_offset": 9}))
    (row,) = lag.read_end_offsets(spark, str(path), "c").collect()
    assert tuple(row) == ("c", "t", 0, 5, 9)


def test_rates(spark):
    log = log_of(spark, [(0, 10), (1_000, 20), (4_000, None), (5_000, None)])
    (rate,) = offsets.commit_rates(log).collect()
    assert (rate.commits, rate.tombstones, rate.share) == (2, 2, 1.0)
