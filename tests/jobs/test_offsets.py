"""Committed offsets in DataFrame terms: what the core's fold says, and Burrow's rules one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs import decode, ingest, lag, offsets
from jobs.local import Moment, replay
from jobs.sources.dump import open_dump
from jobs.sources.files import find_logs
from jobs.tables import Tables
from tests.jobs.conftest import SAMPLE_LOGS

LOG = (
    "cluster string, log_topic string, log_partition int, log_offset long, group_id string, topic string, "
    "partition int, timestamp_ms long, committed_offset long, is_tombstone boolean, outcome string, producer_id long"
)
COMMIT = "leader_epoch int, metadata string, commit_timestamp long, expire_timestamp long, topic_id string"


def log_of(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    """Commits of one partition: (time, offset), offset None for a tombstone, and (outcome, producer) if in one."""
    full = []
    for place, (time_ms, offset, *transaction) in enumerate(rows):
        outcome, producer = transaction or (None, -1)
        tombstone = offset is None
        full.append(("c", "log", 0, place, "g", "t", 0, time_ms, offset, tombstone, outcome, producer) + (None,) * 5)
    return spark.createDataFrame(full, f"{LOG}, {COMMIT}")


def ends_of(spark: SparkSession, *ends: tuple[int, int]) -> DataFrame:
    rows = [("c", "t", 0, time_ms, end) for time_ms, end in ends]
    return spark.createDataFrame(rows, ", ".join(f"{name} {of}" for name, of in lag.END_OFFSETS.items()))


def test_offsets_are_those_of_the_core(spark, tmp_path):
    tables = Tables(spark, str(tmp_path))
    ingest.run(tables, open_dump(spark, [str(SAMPLE_LOGS)]), "sample")
    decode.run(tables)
    expected = set()
    for group, shard in replay(find_logs([SAMPLE_LOGS]), Moment(), pytest.fail).groups():
        held = shard.offsets_of(group.group_id)
        stable = held.stable()
        for status, of_status in [
            ("committed", held.committed),
            *(("pending", each) for each in held.pending.values()),
        ]:
            for place, commit in of_status.items():
                is_stable = status == "committed" and place in stable
                at = (commit.at.partition, commit.at.offset)
                expected.add((group.group_id, *place, status, is_stable, commit.offset, commit.metadata, *at))
    found = offsets.group_offsets(offsets.commits(tables)).select(
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
    assert {tuple(row) for row in found.collect()} == expected


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1, 10), (2, 20)], {("committed", True, 20)}),
        ([(1, 10), (2, None)], set()),
        ([(1, 10, "open", 7)], {("pending", False, 10)}),
        (
            [(1, 10), (2, 20, "open", 7), (3, 30, "open", 8)],
            {("committed", False, 10), ("pending", False, 20), ("pending", False, 30)},
        ),
        ([(1, 10, "open", 7), (2, None)], set()),
        ([(1, 10), (2, 20, "aborted", 7)], {("committed", True, 10)}),
        ([(1, 10), (2, 20, "committed", 7)], {("committed", True, 20)}),
    ],
)
def test_transactions_and_tombstones(spark, rows, expected):
    found = offsets.group_offsets(log_of(spark, *rows)).select("status", "is_stable", "committed_offset")
    assert {tuple(row) for row in found.collect()} == expected


def steady(*of: int) -> Iterable[tuple[int, int]]:
    """Commits a second apart."""
    return [(1_000 * place, offset) for place, offset in enumerate(of)]


@pytest.mark.parametrize(
    ("commits", "ends", "now", "expected"),
    [
        (steady(*range(0, 100, 10)), [(0, 500)], 9_500, ("OK", 410)),
        (steady(*range(0, 100, 10)), [(each * 1_000, 500 + each * 20) for each in range(10)], 9_500, ("WARN", 590)),
        (steady(*range(0, 100, 10)), [(0, 500)], 60_000, ("STOP", 410)),
        (steady(*range(0, 100, 10)), [(0, 90)], 60_000, ("OK", 0)),
        (steady(*[50] * 10), [(0, 500)], 9_500, ("STALL", 450)),
        (steady(0, 10, 20, 30, 5, 6, 7, 8, 9, 10), [(0, 500)], 9_500, ("REWIND", 490)),
        (steady(0, 10, 20, 30, 5, 30, 31, 32, 33, 34), [(0, 500)], 9_500, ("OK", 466)),
        (steady(*range(0, 100, 10)), [], 9_500, ("UNKNOWN", None)),
        (steady(0, 10), [(0, 500)], 60_000, ("OK", 490)),
    ],
    ids=["lag falls", "lag grows", "stopped", "no lag", "stalled", "rewound", "made good", "no end", "too few"],
)
def test_burrow_rules(spark, commits, ends, now, expected):
    (found,) = lag.evaluate(log_of(spark, *commits), ends_of(spark, *ends), now).collect()
    assert (found.status, found.lag) == expected


def test_no_end_offsets_is_not_no_lag(spark):
    (group,) = lag.group_status(lag.evaluate(log_of(spark, (0, 5)), ends_of(spark), 10)).collect()
    assert (group.status, group.max_lag, group.unknown) == ("UNKNOWN", None, 1)


@pytest.mark.parametrize(
    ("commits", "now", "expected"),
    [
        (steady(*range(10)), 9_500, "MOVING"),
        (steady(*range(10)), 60_000, "SILENT"),
        (steady(*[4] * 10), 9_500, "IDLE_OR_STALLED"),
        (steady(5, 6, 1, 2, 2, 2, 2, 2, 2, 2), 9_500, "REWIND"),
        (steady(1, 2), 9_500, "UNKNOWN"),
    ],
)
def test_without_end_offsets_nothing_is_said_of_lag(spark, commits, now, expected):
    (found,) = lag.evaluate_offsets_only(log_of(spark, *commits), now).collect()
    assert found.activity == expected
    assert "lag" not in found


def test_end_offsets_from_json(spark, tmp_path):
    path = tmp_path / "ends.jsonl"
    path.write_text(json.dumps({"topic": "t", "partition": 0, "timestamp_ms": 5, "end_offset": 9}))
    (row,) = lag.read_end_offsets(spark, str(path), "c").collect()
    assert tuple(row) == ("c", "t", 0, 5, 9)


def test_rates(spark):
    log = log_of(spark, (0, 10), (1_000, 20), (4_000, None), (5_000, None))
    (rate,) = offsets.commit_rates(log).collect()
    assert (rate.commits, rate.tombstones, rate.share) == (2, 2, 1.0)
