"""Fill ``lag_history``: the lag of every group at each snapshot of the end offsets that the tables have.

Spark finds for each snapshot the last commits of each group and partition. Only these few are judged in Python, by the
same function that judges them from log files. Rows at times before anything new are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from coordinator_core.audit.offsets.lag import WINDOW, EndOffset, LagPoint, LogReach, TimedCommit, lag_point
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import LOG_TOPICS, Family, LogPosition
from jobs.pipeline.decoded_runs import decoded_runs, newest_runs
from jobs.relations.stored_reach import log_reaches
from jobs.tables.commit_order import in_order
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RANGES, LONG
from jobs.tables.reader import TableReader, with_names
from jobs.tables.row_types import row_type
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY
from jobs.tables.spark_reader import DIALECT, sql_name, sql_text

GROUP_LOG: Final = LOG_TOPICS[Family.GROUP]
KEY: Final = ("group_id", "log_partition", "topic", "partition")
OF_TOPIC: Final = ("topic", "partition")

COMMITS: Final = f"""
{in_order("log_topic, log_partition, group_id, topic, partition", "cluster = :cluster AND log_topic = :log")}
SELECT {", ".join(KEY)}, held_ms, log_offset, timestamp_ms,
  CASE WHEN NOT is_tombstone THEN committed_offset END AS offset, topic_id FROM kept
"""

POINT: Final = (
    *(*KEY, "time_ms", "end_offset", "end_before", "previous_ms", "topic_id"),
    *("lowest_end", "recent", "is_followed"),
)
"""Columns of what is judged: a group and partition at the time of a snapshot."""


def run(tables: Tables) -> int:
    """Bring the lag up to date; return the number of rows that were written."""
    if not tables.exists(END_OFFSETS) or not tables.exists(LOG_RANGES):
        return 0
    tables.create(LAG_HISTORY)
    done = newest_runs(tables, LAG_HISTORY)
    snapshots = newest_runs(tables, END_OFFSETS)
    logs = decoded_runs(tables)
    written = 0
    for cluster in sorted(snapshots.keys() & logs.keys()):
        newest = max(snapshots[cluster], logs[cluster][-1])
        if newest > done.get(cluster, ""):
            written += _update(tables, cluster, done.get(cluster, ""), newest)
    return written


def _update(tables: Tables, cluster: str, done: str, newest: str) -> int:
    found = tables.engine()
    since_ms = _since(found, cluster, done)
    if since_ms is None:
        return 0
    points = _points(tables, cluster, since_ms).mapInArrow(_judge(log_reaches(found, cluster)), _judged_schema())
    rows = _with_changes(points).where(F.col("timestamp_ms") >= since_ms)
    rows = rows.withColumns({"cluster": F.lit(cluster), "run_id": F.lit(newest)})
    tables.replace_where(LAG_HISTORY, rows, f"cluster = {sql_text(cluster)} AND timestamp_ms >= {since_ms}")
    (count,) = tables.engine().rows(
        "SELECT count(*) AS number FROM $lag_history WHERE cluster = :cluster AND run_id = :run",
        cluster=cluster,
        run=newest,
    )
    return int(count["number"])


def _since(found: TableReader, cluster: str, done: str) -> int | None:
    """Return the time from which on the rows are made again; None: nothing is new.

    Something is new about times from the first new record or snapshot on, and about those after which a log partition
    had no record before.
    """
    of = {"cluster": cluster, "done": done, "topic": GROUP_LOG}
    (snapshots,) = found.rows(
        "SELECT min(timestamp_ms) AS first FROM $end_offsets WHERE cluster = :cluster AND run_id > :done", **of
    )
    spans = list(
        found.rows(
            "SELECT log_partition, min(CASE WHEN run_id > :done THEN coalesce(first_ms, -1) END) AS new_ms, "
            "max(CASE WHEN run_id <= :done THEN last_ms END) AS known_ms FROM $log_ranges "
            "WHERE cluster = :cluster AND log_topic = :topic GROUP BY log_partition",
            **of,
        )
    )
    new = [row for row in spans if row["new_ms"] is not None]
    times = [row["new_ms"] if row["known_ms"] is None else min(row["new_ms"], row["known_ms"]) for row in new]
    if snapshots["first"] is not None:
        times.append(snapshots["first"])
    return min(times, default=None)


def _points(tables: Tables, cluster: str, since_ms: int) -> DataFrame:
    """Return columns ``POINT``: each snapshot from a time on, and the one before, with the last commits before it."""
    ends = _ends(tables, cluster)
    sql = with_names(
        COMMITS, lambda name: sql_name(tables.location, name), {"cluster": cluster, "log": GROUP_LOG}, DIALECT
    )
    commits = tables.spark.sql(sql).join(ends.select(*OF_TOPIC).distinct(), list(OF_TOPIC), "left_semi")
    recent = _recent(_between_ends(commits, ends))
    wanted = ends.where((F.col("time_ms") >= since_ms) | (F.col("next_ms") >= since_ms))
    at_ends = commits.select(*KEY).distinct().join(wanted, list(OF_TOPIC))
    both = recent.withColumn("is_end", F.lit(0)).unionByName(
        at_ends.withColumn("is_end", F.lit(1)), allowMissingColumns=True
    )
    of_key = Window.partitionBy(*KEY)
    so_far = of_key.orderBy("time_ms", "is_end", "log_offset").rowsBetween(Window.unboundedPreceding, 0)
    is_followed = F.count("log_offset").over(so_far) < F.count("log_offset").over(of_key)
    held = F.last("recent", ignorenulls=True).over(so_far)
    return both.withColumns({"recent": held, "is_followed": is_followed}).where("is_end = 1").select(*POINT)


def _ends(tables: Tables, cluster: str) -> DataFrame:
    """Return the end offsets of a cluster, each with what the snapshots around it say of its partition."""
    ends = tables.read(END_OFFSETS).where((F.col("cluster") == cluster) & F.col("end_offset").isNotNull())
    in_time = Window.partitionBy(*OF_TOPIC).orderBy("time_ms")
    return (
        ends.select(*OF_TOPIC, F.col("timestamp_ms").alias("time_ms"), "end_offset", "topic_id")
        .withColumn("lowest_end", F.min("end_offset").over(in_time.rowsBetween(1 - WINDOW, 0)))
        .withColumn("end_before", F.lag("end_offset").over(in_time))
        .withColumn("previous_ms", F.lag("time_ms").over(in_time))
        .withColumn("next_ms", F.lead("time_ms").over(in_time))
    )


def _with_ends(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """Return the rows of both; ``is_end`` (0 or 1) tells them apart."""
    marked = ends.withColumn("is_end", F.lit(1))
    return commits.withColumn("is_end", F.lit(0)).unionByName(marked, allowMissingColumns=True)


def _between_ends(commits: DataFrame, ends: DataFrame) -> DataFrame:
    """Add the end offsets of the snapshots before and after each commit, as ``earlier_end`` and ``later_end``."""
    ends = ends.select(*OF_TOPIC, F.col("time_ms").alias("held_ms"), F.col("end_offset").alias("known_end"))
    both = commits.withColumn("is_end", F.lit(0)).unionByName(
        ends.withColumn("is_end", F.lit(1)), allowMissingColumns=True
    )
    of_topic = Window.partitionBy(*OF_TOPIC)
    before = of_topic.orderBy("held_ms", F.col("is_end").desc()).rowsBetween(Window.unboundedPreceding, 0)
    behind = of_topic.orderBy("held_ms", "is_end").rowsBetween(0, Window.unboundedFollowing)
    return both.withColumns(
        {
            "earlier_end": F.last("known_end", ignorenulls=True).over(before),
            "later_end": F.first("known_end", ignorenulls=True).over(behind),
        }
    ).where("is_end = 0")


def _recent(commits: DataFrame) -> DataFrame:
    """Return each commit with the last ones up to it, in order of time."""
    last = Window.partitionBy(*KEY).orderBy("held_ms", "log_offset").rowsBetween(1 - WINDOW, 0)
    one = F.struct("held_ms", "log_offset", "timestamp_ms", "offset", "topic_id", "earlier_end", "later_end")
    return commits.select(
        *KEY, F.col("held_ms").alias("time_ms"), "log_offset", F.collect_list(one).over(last).alias("recent")
    )


def _judge(reaches: Mapping[int, LogReach]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow``: rows of ``POINT`` to rows of ``lag_history``."""
    schema = to_arrow_schema(_judged_schema())

    def judge(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [row for each in batch.to_pylist() if (row := _judged(each, reaches)) is not None]
            yield pa.RecordBatch.from_pylist(rows, schema)

    return judge


def _judged(row: Mapping[str, Any], reaches: Mapping[int, LogReach]) -> dict[str, Any] | None:
    log = row["log_partition"]
    recent = [
        TimedCommit(
            each["held_ms"],
            LogPosition(log, each["log_offset"], each["timestamp_ms"]),
            each["offset"],
            each["topic_id"],
            each["earlier_end"],
            each["later_end"],
        )
        for each in row["recent"] or ()
    ]
    point = lag_point(
        row["group_id"],
        TopicPartition(row["topic"], row["partition"]),
        recent,
        EndOffset(row["time_ms"], row["end_offset"], row["topic_id"]),
        row["lowest_end"],
        reaches.get(log, LogReach()),
        is_followed=row["is_followed"],
    )
    if point is None:
        return None
    committed = None if point.committed is None else point.committed._asdict()
    produced = None if row["end_before"] is None else row["end_offset"] - row["end_before"]
    changes = {"committed": committed, "produced": produced, "previous_ms": row["previous_ms"]}
    return {**point._asdict(), **changes}


def _judged_schema() -> StructType:
    return StructType([*row_type(LagPoint).fields, StructField("previous_ms", LONG)])


def _with_changes(points: DataFrame) -> DataFrame:
    """Set ``consumed``: how far the committed offset moved since the snapshot before."""
    in_time = Window.partitionBy("group_id", *OF_TOPIC).orderBy("timestamp_ms")
    before = F.when(
        F.lag("timestamp_ms").over(in_time) == F.col("previous_ms"), F.lag("committed_offset").over(in_time)
    )
    return points.withColumn("consumed", F.col("committed_offset") - before)
