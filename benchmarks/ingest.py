"""Segments to tables in Delta, against Spark copying the same rows from Parquet to Delta without decoding.

``python -m benchmarks.ingest``: ``log_records`` and ``offset_commits``, both ways in one warm ``local[2]`` session, in
turn, both into new tables. The figures are the ratio of the medians, the seconds of ingest and decode apart, and the
largest resident size that a Python worker reached.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.generate import generate
from benchmarks.workers import Workers
from jobs import decode, ingest, session, settings
from jobs.log_schema import LOG_RECORDS
from jobs.record_schema import OFFSET_COMMITS
from jobs.sources.dump import open_dump
from jobs.tables import Tables


def seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def new_tables(spark: SparkSession, home: Path) -> Tables:
    """The tables, created once and for all before a log is first taken in."""
    shutil.rmtree(home, ignore_errors=True)
    tables = Tables(spark, str(home))
    for table in (LOG_RECORDS, *(output.table for output in decode.outputs()), decode.QUARANTINE):
        tables.create(table)
    return tables


def take_in(tables: Tables, logs: Path) -> tuple[float, float]:
    """Segments to both tables: the seconds of ingest and of decode."""
    return (
        seconds(lambda: ingest.ingest(tables, open_dump(tables.spark, [str(logs)]), "benchmark", "run")),
        seconds(lambda: decode.decode(tables, "run")),
    )


def copy(spark: SparkSession, parquet: Path, home: Path) -> None:
    """Parquet files with the rows of both tables to Delta."""
    shutil.rmtree(home, ignore_errors=True)
    for table in (LOG_RECORDS, OFFSET_COMMITS):
        spark.read.parquet(str(parquet / table.name)).write.format("delta").save(str(home / table.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    workers = Workers()
    workers.start()
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]"}).spark)
    with tempfile.TemporaryDirectory() as folder:
        logs, home, parquet = (Path(folder) / name for name in ("logs", "tables", "parquet"))
        generate(logs, given.commits, 2000, partitions=2)
        tables = new_tables(spark, home)
        take_in(tables, logs)
        for table in (LOG_RECORDS, OFFSET_COMMITS):
            tables.read(table).write.parquet(str(parquet / table.name))
        rows = tables.read(LOG_RECORDS).count()
        ours, theirs = [], []
        for _ in range(given.runs):
            theirs.append(seconds(lambda: copy(spark, parquet, home)))
            ours.append(take_in(new_tables(spark, home), logs))
    mine, copied = statistics.median(map(sum, ours)), statistics.median(theirs)
    took_in, decoded = (statistics.median(column) for column in zip(*ours, strict=True))
    print(f"{rows} records: taken in {took_in:.1f} s, decoded {decoded:.1f} s, copied {copied:.1f} s")
    print(f"ratio {mine / copied:.2f}")
    print(f"largest Python worker: {workers.peak >> 20} MB")


if __name__ == "__main__":
    main()
