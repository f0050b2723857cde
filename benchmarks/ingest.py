"""Segments to tables in Delta, against Spark copying the same rows from Parquet to Delta without decoding.

``python -m benchmarks.ingest``: ``log_records`` and ``offset_commits``, both ways in one warm ``local[2]`` session, in
turn. The figures are the ratio of the medians and the largest resident size that a Python worker reached.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from benchmarks.generate import generate
from jobs import decode, ingest, session, settings
from jobs.log_schema import LOG_RECORDS
from jobs.record_schema import OFFSET_COMMITS
from jobs.sources.dump import open_dump
from jobs.tables import Tables

POLL_S = 0.2


class Workers(threading.Thread):
    """Watches the Python processes below this one; ``peak`` is the largest resident size seen, in bytes."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak = 0

    def run(self) -> None:
        """Until the process ends."""
        here = psutil.Process()
        while True:
            for child in here.children(recursive=True):
                try:
                    if "python" in child.name():
                        self.peak = max(self.peak, child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            time.sleep(POLL_S)


def seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def take_in(spark: SparkSession, logs: Path, home: Path) -> None:
    """Segments to both tables."""
    shutil.rmtree(home, ignore_errors=True)
    tables = Tables(spark, str(home))
    for table in (LOG_RECORDS, *(output.table for output in decode.outputs()), decode.QUARANTINE):
        tables.create(table)
    ingest.ingest(tables, open_dump(spark, [str(logs)]), "benchmark", "run")
    decode.decode(tables, "run")


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
        take_in(spark, logs, home)
        tables = Tables(spark, str(home))
        for table in (LOG_RECORDS, OFFSET_COMMITS):
            tables.read(table).write.parquet(str(parquet / table.name))
        rows = tables.read(LOG_RECORDS).count()
        ours, theirs = [], []
        for _ in range(given.runs):
            theirs.append(seconds(lambda: copy(spark, parquet, home)))
            ours.append(seconds(lambda: take_in(spark, logs, home)))
    mine, copied = statistics.median(ours), statistics.median(theirs)
    print(f"{rows} records: taken in and decoded {mine:.1f} s, copied {copied:.1f} s, ratio {mine / copied:.2f}")
    print(f"largest Python worker: {workers.peak >> 20} MB")


if __name__ == "__main__":
    main()
