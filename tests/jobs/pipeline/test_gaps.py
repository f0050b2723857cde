"""Gaps and their causes, each from a few rows of a log."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline import gaps
from jobs.tables.log import LOG_RECORDS

Row = dict[str, Any]


def record(offset: int, key: str = "", batch: tuple[int, int] | None = None, kind: str = "record") -> Row:
    """A record that a segment holds, in a batch of its own unless said; its key is its own unless given."""
    base, last = batch or (offset, offset)
    return {
        "log_offset": None if kind == "damaged" else offset,
        "key": (key or f"key-{offset}").encode(),
        "kind": kind,
        "batch_base": base,
        "batch_last": last,
        "stray": "file#0" if kind == "damaged" else None,
        "record_type": 1,
    }


def seen(offset: int, key: str = "") -> Row:
    """The same as a consumer sees it."""
    return record(offset, key) | {"batch_base": None, "batch_last": None}


Gap = tuple[int, int, str]

CASES: dict[str, tuple[list[Row], list[Gap]]] = {
    "none": ([record(5), record(6), record(7)], []),
    "within a batch": (
        [record(0, batch=(0, 5)), record(3, batch=(0, 5)), record(6)],
        [(1, 2, "compaction"), (4, 5, "compaction")],
    ),
    "within batches that hold one key twice": (
        [record(0, "a", (0, 3)), record(1, "a", (0, 3)), record(6, "b", (5, 6))],
        [(2, 3, "compaction"), (4, 4, "missing"), (5, 5, "compaction")],
    ),
    "an empty batch": ([record(0), record(4, batch=(1, 4), kind="empty"), record(5)], []),
    "each key once before it": (
        [record(0, "a"), record(1, "b"), record(9, "a"), record(10, "a")],
        [(2, 8, "compaction")],
    ),
    "a key twice before it": ([record(0, "a"), record(1, "a"), record(9, "b")], [(2, 8, "missing")]),
    "a damaged batch in it": (
        [record(0, "a"), record(1, "a"), record(2, batch=(2, 8), kind="damaged"), record(9)],
        [(2, 8, "damaged")],
    ),
    "__cluster_metadata": ([record(0), record(9)], [(1, 8, "missing")]),
    "a consumer and one marker": ([seen(0, "a"), seen(1, "a"), seen(3)], [(2, 2, "unknown")]),
    "a consumer and more than markers": ([seen(0, "a"), seen(1, "a"), seen(9)], [(2, 8, "missing")]),
    "two holes, one behind each commit": (
        [seen(0, "a"), seen(2, "a"), seen(4)],
        [(1, 1, "unknown"), (3, 3, "unknown")],
    ),
}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, list[tuple[int, int, str]]]:
    """All cases in one look: each is a log partition."""
    names = LOG_RECORDS.schema.names
    rows = [
        tuple(({"log_topic": name, "log_partition": 0} | row).get(column) for column in names)
        for name, (log, _) in CASES.items()
        for row in reversed(log)
    ]
    log = spark.createDataFrame(rows, LOG_RECORDS.schema).withColumn("key_hash", F.xxhash64("key"))
    by_case: dict[str, list[tuple[int, int, str]]] = {name: [] for name in CASES}
    for row in gaps.find_gaps(log, log).orderBy("first_offset").collect():
        by_case[row.log_topic].append((row.first_offset, row.last_offset, row.cause))
    return by_case


@pytest.mark.parametrize("case", CASES)
def test_a_gap_has_the_cause_that_the_rows_around_it_prove(case: str, found: dict[str, list]) -> None:
    assert found[case] == CASES[case][1]


def test_the_summary_counts_all_and_lists_what_compaction_does_not_explain(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "LISTED", 2)
    rows = [(0, 4, "compaction"), (6, 6, "unknown"), (8, 17, "missing"), (20, 22, "missing"), (30, 30, "damaged")]
    frame = spark.createDataFrame(
        [("t", 0, *row) for row in rows],
        "log_topic string, log_partition int, first_offset long, last_offset long, cause string",
    )
    (row,) = gaps.summary(frame).collect()
    assert (row.compacted_offsets, row.unknown_offsets, row.missing_offsets, row.damaged_offsets) == (5, 1, 13, 1)
    assert [tuple(gap) for gap in row.gaps] == [(8, 17, "missing"), (20, 22, "missing")]
