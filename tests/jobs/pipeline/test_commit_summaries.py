"""Summaries of commits and ranges of the log, from run to run: the same as from all runs at once."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline import commit_summaries, log_ranges
from jobs.pipeline.commit_fold import What
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS

CLUSTER, LOG_TOPIC = "c", "__consumer_offsets"
RUN_IDS = ("run 1", "run 2", "run 3")
OF_COMMITS = ("group_id", "topic", "partition")

SLICED = "what int, log_partition int, group_id string, topic string, partition int, producer_id long"

Row = dict[str, Any]


def log_of(rng: random.Random, partition: int) -> list[tuple[str, Row]]:
    """The rows of a log partition: the table of each, and its columns."""
    rows: list[tuple[str, Row]] = []
    open_commits: list[Row] = []
    offset = 0
    for _ in range(120):
        offset += rng.choice((1, 1, 1, 2))
        place = {"log_partition": partition, "log_offset": offset, "timestamp_ms": 3_500_000 + offset * 2_000}
        row = {"cluster": CLUSTER, "log_topic": LOG_TOPIC, "kind": "record", "leader_epoch": offset // 70, **place}
        commit: Row = {"group_id": f"group-{partition}-{rng.randrange(2)}", "topic": "orders", "is_tombstone": False}
        commit |= {"partition": rng.randrange(2), "committed_offset": rng.randrange(30), "record_type": 1}
        what = rng.choices(("commit", "in transaction", "marker", "tombstone", "record"), (8, 3, 2, 1, 1))[0]
        if what == "marker":
            row |= {"kind": "control", "control_type": "COMMIT", "producer_id": 7, "is_transactional": True}
            for each in open_commits:
                each["ended_at"] = offset
            open_commits = []
        elif what == "record":
            rows.append((GROUP_RECORDS.name, row | {"group_id": commit["group_id"], "record_type": 2}))
        else:
            row |= commit
            row |= {"producer_id": 7, "is_transactional": True} if what == "in transaction" else {"producer_id": -1}
            row |= {"is_tombstone": True, "committed_offset": None} if what == "tombstone" else {}
            rows.append((OFFSET_COMMITS.name, row))
            open_commits += [row] if what == "in transaction" else []
        rows.append((LOG_RECORDS.name, row))
    return rows


def put(tables: Tables, run: int, rows: list[tuple[str, Row]], runs: dict[int, int]) -> None:
    """Put the rows of a run into the tables; ``runs`` has the run of each row. Then decoding has run."""
    seen = {row["log_offset"] for _, row in rows if runs[id(row)] <= run}
    for table in (LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS):
        tables.create(table)
        found = []
        for name, row in rows:
            if name != table.name or runs[id(row)] > run:
                continue
            said = dict(row)
            if row.get("producer_id") == 7 and row["kind"] == "record":
                ended = [r for r in range(runs[id(row)], run + 1) if _ended(rows, row, runs, r)]
                said["outcome"] = "committed" if ended else "open"
                if ended and ended[0] > runs[id(row)]:
                    said["revised_by"] = RUN_IDS[ended[0]]
            said["run_id"] = RUN_IDS[runs[id(row)]]
            found.append(tuple(said.get(column) for column in table.schema.names))
        tables.replace(table, tables.spark.createDataFrame(found, table.schema))
    tables.create(RUNS)
    of_run = {"cluster": CLUSTER, "run_id": RUN_IDS[run]}
    ledger: list[Row] = [of_run | {"job": "decode", "records": len(seen)}]
    for partition in {row["log_partition"] for _, row in rows}:
        places = {row["log_offset"] for _, row in rows if (row["log_partition"], runs[id(row)]) == (partition, run)}
        counts = {"records": len(places), "last_offset": max(places, default=None)}
        ledger.append(of_run | {"job": "ingest", "log_topic": LOG_TOPIC, "log_partition": partition, **counts})
    made = tables.spark.createDataFrame([tuple(map(row.get, RUNS.schema.names)) for row in ledger], RUNS.schema)
    tables.append(RUNS, made, RUN_IDS[run])


def _ended(rows: list[tuple[str, Row]], commit: Row, runs: dict[int, int], run: int) -> bool:
    place = (commit["log_partition"], commit.get("ended_at"))
    return any(
        (row["log_partition"], row["log_offset"]) == place and runs[id(row)] <= run
        for name, row in rows
        if name == LOG_RECORDS.name
    )


def summaries(tables: Tables) -> list[str]:
    """All commits, and the sums of each hour, as text."""
    columns = [name for name in commit_summaries.all_commits(tables).columns if name not in ("run_id", "hour_ms")]
    found = commit_summaries.all_commits(tables).select(F.to_json(F.struct(*columns)).alias("row")).collect()
    sums = ("commits", "written", "tombstones", "rewind_count", "removal_count")
    hours = commit_summaries.hours(tables).groupBy("log_partition", *OF_COMMITS, "hour_ms")
    summed = hours.agg(*(F.sum(name).alias(name) for name in sums)).collect()
    return sorted(row.row for row in found) + sorted(map(str, summed))


def ranges(tables: Tables) -> list[tuple[Any, ...]]:
    """The ranges, without the runs that added them."""
    names = [name for name in LOG_RANGES.schema.names if name != "run_id"]
    return sorted(log_ranges.joined(tables.read(LOG_RANGES).withColumn("run_id", F.lit(""))).select(*names).collect())


@pytest.mark.parametrize("late", [False, True], ids=["in order", "late, in slices"])
def test_runs_give_what_one_run_gives(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    rng = random.Random(5)
    rows = [row for partition in range(3) for row in log_of(rng, partition)]
    runs = {id(row): min(row["log_offset"] // 60, 2) for _, row in rows}
    if late:
        # The middle of one log partition comes last. The other two are whole.
        runs = {id(row): {1: 2, 2: 1}.get(runs[id(row)], 0) if row["log_partition"] == 1 else 0 for _, row in rows}
    nightly, whole = Tables(spark, str(tmp_path / "nightly")), Tables(spark, str(tmp_path / "whole"))
    with monkeypatch.context() as changed:
        if late:
            changed.setattr(commit_summaries, "SLICE_ROWS", 40)
        for run in range(3):
            put(nightly, run, rows, runs)
            log_ranges.update(nightly)
            commit_summaries.update(nightly)
    for run in range(3):
        put(whole, run, rows, runs)
    log_ranges.update(whole)
    commit_summaries.update(whole)
    assert summaries(nightly) == summaries(whole)
    assert ranges(nightly) == ranges(whole)
    assert any("pending" in row and "rewinds" in row for row in summaries(whole))


def test_a_large_log_partition_is_several_tasks(spark: SparkSession) -> None:
    """Commits are divided by group and partition; what they need of other rows goes with them."""
    commits = [
        (What.COMMIT, partition, "g", "t", number % 40, number % 3) for partition in (0, 1) for number in range(80)
    ]
    records = [(What.RECORD, 1, group, None, None, None) for group in ("g", "no commits")]
    markers = [(What.MARKER, 1, None, None, None, producer) for producer in (1, 99)]
    rows = spark.createDataFrame([(int(each[0]), *each[1:]) for each in (*commits, *records, *markers)], SLICED)
    found = commit_summaries._sliced(rows, {1: 4}).collect()
    mine = [row for row in found if row.what == What.COMMIT]
    assert {row.slice for row in mine if row.log_partition == 0} == {0}
    assert {row.slice for row in mine if row.log_partition == 1} == {0, 1, 2, 3}
    assert len(mine) == len(commits)
    assert len({(row.partition, row.slice) for row in mine if row.log_partition == 1}) == 40
    others = [(row.what, row.group_id, row.producer_id, row.slice) for row in found if row.what != What.COMMIT]
    producers = {row.slice for row in mine if row.log_partition == 1 and row.producer_id == 1}
    assert set(others) == {
        *((What.RECORD, "g", None, number) for number in range(4)),
        *((What.MARKER, None, 1, number) for number in producers),
    }
    assert len(others) == len(set(others))


def test_coverage_of_places_in_any_block(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranges over several blocks, that follow each other or do not; places in them, at their ends, and between them.

    Whether a gap follows the last range is not known.
    """
    monkeypatch.setattr(log_ranges, "SEARCHED_TOGETHER", 7)
    spans = [(2, 5, 0), (6, 30, 1), (33, 33, 1), (40, 62, 2)]
    made = [(LOG_TOPIC, 4, first, last, epoch, first == 2) for first, last, epoch in spans]
    schema = (
        "log_topic string, log_partition int, first_offset long, last_offset long, leader_epoch int, has_start boolean"
    )
    places = [(LOG_TOPIC, 4, offset) for offset in range(70)]
    found = log_ranges.coverage(
        spark.createDataFrame(made, schema),
        spark.createDataFrame(places, "log_topic string, log_partition int, log_offset long"),
    )
    since = {2: 2, 6: 2, 33: 33, 40: 40}
    expected = [
        (offset, since[first], epoch, True, None if offset == 62 else offset in (30, 33))
        for first, last, epoch in spans
        for offset in range(first, last + 1)
    ]
    names = ("log_offset", "unbroken_since", "leader_epoch", "from_start", "gap_follows")
    assert sorted(map(tuple, found.select(*names).collect())) == sorted(expected)
