"""How fast the newest offsets come out of a log of commits: ``python -m benchmarks.offsets [COMMITS]``.

Prints JSON: seconds for a plain Spark group-by-max over the same rows, for ``group_offsets``, and their ratio (1: as
fast). The rows are synthetic, in Parquet: 2,000 groups with 10 partitions each, one commit in a hundred a tombstone.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobs import settings
from jobs.pipeline import offsets
from jobs.tables import session
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


def group_by_max(log: DataFrame) -> DataFrame:
    return log.groupBy(*OFFSET_KEY).agg(F.max("log_offset"))


def best(action: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def main(count: int) -> None:
    spark = session.get_or_create(settings.load().spark)
    with tempfile.TemporaryDirectory() as folder:
        log = log_of_commits(spark, count, f"{folder}/commits")
        plain = best(lambda: group_by_max(log).write.format("noop").mode("overwrite").save())
        newest = best(lambda: offsets.group_offsets(log).write.format("noop").mode("overwrite").save())
    figures = {"commits": count, "group_by_max_s": plain, "group_offsets_s": newest, "ratio": plain / newest}
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS)
