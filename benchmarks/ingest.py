"""Segments to tables in Delta, against Spark copying the same rows from Parquet to Delta without decoding.

``python -m benchmarks.ingest``: ``log_records`` and ``offset_commits``, both ways in one warm ``local[2]`` session, in
turn, both into new tables. Two copies are measured: of the rows as the tables keep them, and of the rows with the bytes
of all keys and values, which the tables keep only where no decoded row gives them back. The figures are seconds of the
clock and of processors (JVM, Python workers) by step, medians of several runs, their ratios, and the largest resident
size that a Python worker reached. Tasks read segments themselves; ``rows through Spark`` is the way of all other dumps.
Steps whose rows go nowhere show where the time of the others goes. Only processor time means anything on a machine that
has other work.
"""

import argparse
import shutil
import statistics
import tempfile
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.generate import generate
from benchmarks.workers import Workers, WorkerTime, taken
from jobs import settings
from jobs.pipeline import decode, ingest, runs, typed_tables
from jobs.pipeline.on_spark import arrived
from jobs.pipeline.row_identity import identified
from jobs.sources.dump import open_dump
from jobs.tables import session
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.records import OFFSET_COMMITS

WHOLE = "log_records_with_all_bytes"
PLACE = ("log_topic", "log_partition", "log_offset")


def new_tables(spark: SparkSession, home: Path) -> Tables:
    """The tables, created once and for all before a log is first taken in."""
    shutil.rmtree(home, ignore_errors=True)
    tables = Tables(spark, str(home))
    typed_tables.create(tables)
    tables.create(RUNS)
    return tables


def copy(spark: SparkSession, parquet: Path, home: Path, *names: str) -> None:
    """Parquet files with rows to Delta."""
    shutil.rmtree(home, ignore_errors=True)
    for name in names:
        spark.read.parquet(str(parquet / name)).write.format("delta").save(str(home / name))


def drain(rows: DataFrame) -> None:
    """Compute all rows, and keep none."""
    rows.write.format("noop").mode("overwrite").save()


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

        def take_in() -> None:
            ingest.ingest(tables, open_dump(spark, [str(logs)]), "benchmark", "run")

        def take_in_rows() -> None:
            """As rows of any other dump are: through Spark."""
            identify = partial(identified, cluster="benchmark", run_id="rows")
            arrived.write(tables, open_dump(spark, [str(logs)])[0].load(), "rows/0", identify)

        def read_parquet() -> None:
            for name in (LOG_RECORDS.name, OFFSET_COMMITS.name):
                drain(spark.read.parquet(str(parquet / name)))

        def account() -> None:
            runs.account_ingest(tables, "run")
            decode.pass_on(tables, "run")
            runs.account_decode(tables, "run", runs.balance(tables, "run"))

        take_in()
        account()
        for table in (LOG_RECORDS, OFFSET_COMMITS):
            tables.read(table).write.parquet(str(parquet / table.name))
        bytes_of = open_dump(spark, [str(logs)])[0].load().select(*PLACE, "key", "value")
        whole = tables.read(LOG_RECORDS).drop("key", "value").join(bytes_of, list(PLACE))
        whole.select(*LOG_RECORDS.schema.names).write.parquet(str(parquet / WHOLE))
        rows = tables.read(LOG_RECORDS).count()
        works = {
            "copy": lambda: copy(spark, parquet, Path(folder) / "copy", LOG_RECORDS.name, OFFSET_COMMITS.name),
            "copy with all bytes": lambda: copy(spark, parquet, Path(folder) / "copy", WHOLE, OFFSET_COMMITS.name),
            "ingest": take_in,
            "counts": account,
            "ingest, rows through Spark": take_in_rows,
            "Parquet to nowhere": read_parquet,
            "segments to nowhere": lambda: drain(open_dump(spark, [str(logs)])[0].load()),
        }
        times: dict[str, list[WorkerTime]] = {name: [] for name in works}
        for _ in range(given.runs):
            tables = new_tables(spark, home)
            for name, work in works.items():
                times[name].append(taken(work))
    medians = {name: WorkerTime(*map(statistics.median, zip(*runs, strict=True))) for name, runs in times.items()}
    print(f"{rows} records{'seconds':>23}{'JVM':>8}{'Python':>8}")
    for name, took in medians.items():
        print(f"{name:26}{took.wall:8.1f}{took.jvm:8.1f}{took.python:8.1f}")
    for way in ("ingest", "ingest, rows through Spark"):
        ours = (medians[way], medians["counts"])
        for name in ("copy", "copy with all bytes"):
            print(f"{way}: ratio to {name}: {sum(took.wall for took in ours) / medians[name].wall:.2f}, ", end="")
            print(f"of processors {sum(took.cpu for took in ours) / medians[name].cpu:.2f}")
    print(f"largest Python worker: {workers.peak >> 20} MB")


if __name__ == "__main__":
    main()
