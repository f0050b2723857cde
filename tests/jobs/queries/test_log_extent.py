"""Coverage from the tables: counted in blocks of offsets, and the same as from the log itself, however they fall."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.pipeline import log_ranges
from jobs.report import stored
from jobs.report.coverage import MOST_GAPS
from jobs.report.data import Gap
from jobs.settings import EngineLimits
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.spark_reader import SparkReader, spark_types
from jobs.tables.table import few

CLUSTER, TOPIC = "c", "__consumer_offsets"


def offsets(seed: int, upto: int) -> list[int]:
    """Some offsets of a log partition; long stretches are whole, and long stretches are missing."""
    chance = random.Random(seed)
    kept: list[int] = []
    at = 0
    while at < upto:
        size = chance.choice([1, 1, 2, 30])
        kept.extend(range(at, at + size) if chance.random() < 0.7 else ())
        at += size
    return kept


@pytest.mark.parametrize("limits", [EngineLimits(), EngineLimits.nothing()], ids=["this process", "Spark"])
def test_gaps_within_blocks_and_between_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: EngineLimits
) -> None:
    monkeypatch.setattr(log_ranges, "BLOCK", 8)
    logs = {0: offsets(1, 300), 1: offsets(2, 300), 2: list(range(5, 50)), 3: [7]}
    names = LOG_RECORDS.schema.names
    rows = [
        {"cluster": CLUSTER, "run_id": "run", "log_topic": TOPIC, "log_partition": partition, "log_offset": offset}
        | {"kind": "record", "timestamp_ms": offset - 6, "source": f"{offset - offset % 100:020}.log"}
        for partition, kept in logs.items()
        for offset in kept
    ]
    tables = Tables(spark, str(tmp_path), limits)
    tables.create(LOG_RECORDS)
    frame = spark.createDataFrame(
        [tuple(row.get(name) for name in names) for row in rows], spark_types(LOG_RECORDS.schema)
    )
    tables.append(LOG_RECORDS, frame.repartition(3), "run")
    tables.create(RUNS)
    ledger = {"cluster": CLUSTER, "run_id": "run", "records": len(rows)}
    rows_of_runs = [dict.fromkeys(RUNS.schema.names) | ledger | {"job": job} for job in ("ingest", "decode")]
    tables.append(RUNS, few(RUNS, rows_of_runs), "run")
    log_ranges.update(tables)

    found = list(stored.stored_coverage(FolderReader(tables.location), CLUSTER))

    assert found == list(stored.stored_coverage(SparkReader(tables.spark, tables.location), CLUSTER))
    assert [each.partition for each in found] == list(logs)
    for each, kept in zip(found, logs.values(), strict=True):
        gaps = [Gap(before + 1, after - 1) for before, after in pairwise(kept) if after > before + 1]
        largest = sorted(gaps, key=lambda gap: gap.first - gap.last)[:MOST_GAPS]
        assert (each.first_offset, each.last_offset, each.records) == (kept[0], kept[-1], len(kept))
        assert (each.missing, each.gap_count) == (kept[-1] - kept[0] + 1 - len(kept), len(gaps))
        assert each.gaps == tuple(sorted(largest))
        times = [offset - 6 for offset in kept if offset >= 6]
        assert (each.first_ms, each.last_ms) == (min(times), max(times))
        assert each.from_start == (kept[0] < 100)
