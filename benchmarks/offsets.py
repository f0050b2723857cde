"""How fast the newest offsets come out of a log of commits: ``python -m benchmarks.offsets [COMMITS]``.

Prints JSON: seconds of the clock and of processors for a plain Spark group-by-max over all commits, and for the newest
offsets from the summaries that a night has made of the same commits. The ratio is to the group-by-max (1: as fast; 2:
twice as fast), by processor time. The rows are synthetic, in Parquet: 2,000 groups with 10 partitions each, one commit
in a hundred a tombstone.
"""

import json
import sys
import tempfile
import time
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.nightly import processor_seconds
from jobs import settings
from jobs.pipeline.commits.fold import INPUT, PassOver, What, summarizer
from jobs.relations.offsets import OFFSETS
from jobs.tables import session
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.results import GROUP_OFFSETS
from jobs.tables.spark_reader import SparkReader, spark_types
from jobs.tables.table import OFFSET_KEY

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


def summaries_of(log: DataFrame, path: str) -> None:
    """Write the summaries that the pass of a night makes of the commits."""
    given = {"what": F.lit(int(What.COMMIT)).cast("byte"), "run": F.lit(0), "state": F.lit(None).cast("string")}
    rows = log.withColumns(given).repartition("log_partition").sortWithinPartitions("log_partition", "log_offset")
    passed = summarizer(PassOver("c", "__consumer_offsets", ["run"]))
    rows.select(*INPUT).mapInArrow(passed, spark_types(COMMIT_SUMMARIES.schema)).write.parquet(path)


def newest_offsets(spark: SparkSession, summaries: str) -> DataFrame:
    """Return the offsets from the summaries in a folder of Parquet."""
    wanted = pa.schema([field for field in GROUP_OFFSETS.schema if field.name in (*OFFSET_KEY, "committed_offset")])
    given = {COMMIT_SUMMARIES.name: f"SELECT * FROM parquet.`{summaries}`"}
    return SparkReader(spark, "", given).frame(OFFSETS, wanted, cluster="c")


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
        summaries_of(log, f"{folder}/summaries")
        wanted = {"group_by_max": group_by_max(log), "newest_offsets": newest_offsets(spark, f"{folder}/summaries")}
        took = {name: best(rows) for name, rows in wanted.items()}
    figures = {
        name: {"clock_s": round(each.clock, 2), "processor_s": round(each.processor, 2)} for name, each in took.items()
    }
    ratio = round(took["group_by_max"].processor / took["newest_offsets"].processor, 2)
    print(json.dumps({"commits": count, **figures, "ratio_of_newest_offsets": ratio}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS)
