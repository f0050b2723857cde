"""Log partitions in slices: the same summaries of commits, and the same answers on what was read of the log."""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.pipeline import commit_summaries, log_ranges
from jobs.pipeline.commits import from_files
from jobs.pipeline.commits.fold import What
from jobs.pipeline.on_spark import commits as on_spark
from jobs.settings import EngineLimits
from jobs.tables.delta import Tables
from jobs.tables.log import RUNS
from jobs.tables.table import few
from tests.jobs.pipeline.commits.test_commit_summaries import CLUSTER, LOG_TOPIC, RUN_IDS, log_of, put, summaries

SLICED = "what int, log_partition int, group_id string, topic string, partition int, producer_id long"


def test_a_large_log_partition_is_several_tasks(spark: SparkSession) -> None:
    """Commits are divided by group and partition; what they need of other rows goes with them."""
    commits = [
        (What.COMMIT, partition, "g", "t", number % 40, number % 3) for partition in (0, 1) for number in range(80)
    ]
    records = [(What.RECORD, 1, group, None, None, None) for group in ("g", "no commits")]
    markers = [(What.MARKER, 1, None, None, None, producer) for producer in (1, 99)]
    rows = spark.createDataFrame([(int(each[0]), *each[1:]) for each in (*commits, *records, *markers)], SLICED)
    found = on_spark._sliced(rows, {1: 4}).collect()
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


@pytest.mark.long
@pytest.mark.parametrize("nights", [2, 3])
def test_runs_in_slices_give_what_the_files_of_each_log_partition_give(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nights: int
) -> None:
    """Of three nights, the last brings the middle of one log partition. The other two are whole."""
    rng = random.Random(5)
    rows = [row for partition in range(3) for row in log_of(rng, partition)]
    last = nights - 1
    runs = {
        id(row): min({0: 0, 1: 2}.get(row["log_offset"] // 60, 1), last) if row["log_partition"] == 1 else 0
        for _, row in rows
    }
    write_files = from_files.write_files
    sliced, whole = Tables(spark, str(tmp_path / "sliced")), Tables(spark, str(tmp_path / "whole"))
    sliced.limits = whole.limits = EngineLimits(rows=-1)
    asked = []
    for run in range(nights):
        put(sliced, run, rows, runs)
        counts = [sum(row["log_partition"] == of and runs[id(row)] == run for _, row in rows) for of in range(3)]
        ledger = [
            {"cluster": CLUSTER, "run_id": RUN_IDS[run], "job": "ingest", "log_topic": LOG_TOPIC}
            | {"log_partition": partition, "records": count}
            for partition, count in enumerate(counts)
        ]
        sliced.append(RUNS, few(RUNS, [dict.fromkeys(RUNS.schema.names) | row for row in ledger]), f"{run}/ingest")
        with monkeypatch.context() as changed:
            changed.setattr(on_spark, "SLICE_ROWS", 40)
            changed.setattr(from_files, "slices_of", lambda *_: None)  # as in a catalog
            asked.append(
                on_spark.of_log_partitions(sliced, CLUSTER, (RUN_IDS[run - 1] if run else "", RUN_IDS[run]), [], 2)
            )
            sliced.limits = EngineLimits()  # ranges are Spark's subject elsewhere
            log_ranges.update(sliced)
            sliced.limits = whole.limits
            commit_summaries.update(sliced)
    for run in range(nights):
        put(whole, run, rows, runs)
    written = []
    monkeypatch.setattr(from_files, "write_files", lambda *of: written.append(of[1]) or write_files(*of))
    commit_summaries.update(whole)
    assert [len(slices) for slices in written] == [3]
    assert [max(slices.values()) > 1 for slices in asked] == [True] * nights
    assert summaries(sliced) == summaries(whole)
    assert any("pending" in row and "rewinds" in row for row in summaries(whole))
