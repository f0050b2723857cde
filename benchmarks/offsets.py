"""How fast the newest offsets come out of a log of commits: ``python -m benchmarks.offsets [COMMITS]``.

Prints JSON: seconds of the clock and of processors for a plain Spark group-by-max over all commits, for the newest
offsets from the summaries that a night has made of the same commits, and for ``group_offsets`` from all commits. Ratios
are to the group-by-max (1: as fast; 2: twice as fast), by processor time. The rows are synthetic, in Parquet: 2,000
groups with 10 partitions each, one commit in a hundred a tombstone.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.nightly import processor_seconds
from jobs import settings
from jobs.pipeline import offsets
from jobs.pipeline.commits.fold import INPUT, PassOver, What, summarizer
from jobs.tables import session
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.results import OFFSET_KEY

COMMITS, GROUPS, PARTITIONS = 10_000_000, 2_000, 10
REPEATS = 3


def log_of_commits(spark: SparkSession, count: int, path: str) -> DataFrame:
    group = F.col("id") % GROUPS
    rows = spark.range(count).select(
        F.lit("c").alias("cluster"),
        F.lit("__consumer_offsets").alias("log_topic"),
        (group % 50).cast("int").alias("log_partition"),
        F.col("id").alias("log_offset"),
        F.col("id").alias("timestamp_ms"),
        F.concat(F.lit("billing-service-"), group).alias("group_id"),
        F.lit("orders").alias("topic"),
        (F.hash("id") % PARTITIONS).cast("int").alias("partition"),
        (F.col("id") * 3).alias("committed_offset"),
        (F.hash("id", F.lit(7)) % 100 == 0).alias("is_tombstone"),
        F.lit(None).cast("string").alias("outcome"),
        F.lit(-1).cast("long").alias("producer_id"),
        F.lit(0).alias("leader_epoch"),
        F.lit("").alias("metadata"),
        F.col("id").alias("commit_timestamp"),
        F.lit(-1).cast("long").alias("expire_timestamp"),
        F.lit(None).cast("string").alias("topic_id"),
    )
    rows.write.parquet(path)
    return spark.read.parquet(path)


def summaries_of(log: DataFrame, path: str) -> DataFrame:
    """Return the summaries that the pass of a night makes of the commits."""
    given = {"what": F.lit(int(What.COMMIT)).cast("byte"), "run": F.lit(0), "state": F.lit(None).cast("string")}
    rows = log.withColumns(given).repartition("log_partition").sortWithinPartitions("log_partition", "log_offset")
    passed = summarizer(PassOver("c", "__consumer_offsets", ["run"]))
    rows.select(*INPUT).mapInArrow(passed, COMMIT_SUMMARIES.schema).write.parquet(path)
    return log.sparkSession.read.parquet(path)


def group_by_max(log: DataFrame) -> DataFrame:
    return log.groupBy(*OFFSET_KEY).agg(F.max("log_offset"))


class LeastTime(NamedTuple):
    """Seconds of the clock and of processors."""

    clock: float
    processor: float


def best(rows: DataFrame) -> LeastTime:
    """Compute the rows some times; return the least that it took."""
    times = []
    for _ in range(REPEATS):
        start, before = time.perf_counter(), processor_seconds()
        rows.write.format("noop").mode("overwrite").save()
        times.append(LeastTime(time.perf_counter() - start, processor_seconds() - before))
    return min(times, key=lambda took: took.processor)


def main(count: int) -> None:
    spark = session.get_or_create(settings.load().spark)
    with tempfile.TemporaryDirectory() as folder:
        log = log_of_commits(spark, count, f"{folder}/commits")
        summaries = summaries_of(log, f"{folder}/summaries").where("hour_ms IS NULL")
        wanted = {
            "group_by_max": group_by_max(log),
            "newest_offsets": offsets.newest_offsets(summaries),
            "group_offsets": offsets.group_offsets(log),
        }
        counts = {name: wanted[name].count() for name in ("newest_offsets", "group_offsets")}
        if len(set(counts.values())) != 1:
            raise SystemExit(f"the numbers of offsets differ: {counts}")
        took = {name: best(rows) for name, rows in wanted.items()}
    figures = {
        name: {"clock_s": round(each.clock, 2), "processor_s": round(each.processor, 2)} for name, each in took.items()
    }
    plain = took["group_by_max"].processor
    ratios = {f"ratio_of_{name}": round(plain / took[name].processor, 2) for name in counts}
    print(json.dumps({"commits": count, **figures, **ratios}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS)
