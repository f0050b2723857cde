"""Lag and status of groups by Burrow's rules, from commits and snapshots of end offsets.

There are two separate variants: ``evaluate`` needs end offsets (partitions without any are UNKNOWN), and
``evaluate_offsets_only`` does not compute lag. Rules: linkedin/Burrow at ced55ba, core/internal/evaluator.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.wire.transactions import TransactionOutcome
from jobs.sources.end_offsets import JSON_SUFFIXES, check_columns
from jobs.tables.results import OFFSET_KEY

WINDOW: Final = 10
"""Number of last commits, and of last end offsets, that are evaluated for each partition (``intervals`` in Burrow)."""

MINIMUM: Final = 1.0
"""Share of the window that must be filled before a partition gets a status. Burrow has no default: it evaluates a
partition with a single commit, and calls it stopped."""

END_OFFSETS: Final = {
    "cluster": "string",
    "topic": "string",
    "partition": "int",
    "timestamp_ms": "long",
    "end_offset": "long",
}
"""Columns of a snapshot of end offsets: the log end offset of a partition at a time (ms since the epoch)."""

RANKS: Final = {"OK": 1, "WARN": 2, "ERR": 3, "STOP": 4, "STALL": 5, "REWIND": 6}
"""Burrow's order of statuses. A group has the worst status of its partitions; all worse than ERR become ERR."""


def read_end_offsets(spark: SparkSession, path: str, cluster: str) -> DataFrame:
    """Return snapshots of end offsets from JSON lines or Parquet: columns ``END_OFFSETS``.

    Rows without a column ``cluster`` are of the cluster given.

    Raises:
        InputError: a column is missing.
    """
    rows = spark.read.json(path) if path.endswith(JSON_SUFFIXES) else spark.read.parquet(path)
    check_columns(path, rows.columns)
    named = rows if "cluster" in rows.columns else rows.withColumn("cluster", F.lit(cluster))
    return named.select(*(F.col(name).cast(data_type) for name, data_type in END_OFFSETS.items()))


def evaluate(
    log: DataFrame, ends: DataFrame, now_ms: int, *, minimum: float = MINIMUM, allowed_lag: int = 0
) -> DataFrame:
    """Return status and lag of each group and partition at ``now_ms``, from ``commits`` and snapshots of end offsets.

    ``lag`` (records) is null and ``status`` is UNKNOWN if no end offset of the partition is known by then. ``complete``
    is the share of the window that has commits.
    """
    known = ends.where(F.col("timestamp_ms") <= now_ms)
    window = _last_commits(_with_lag(_settled(log, now_ms), known))
    newest = Window.partitionBy("cluster", "topic", "partition").orderBy(F.col("timestamp_ms").desc())
    recent = (
        known.withColumn("nth", F.row_number().over(newest))
        .where(F.col("nth") <= WINDOW)
        .groupBy("cluster", "topic", "partition")
        .agg(F.min("end_offset").alias("lowest_end"), F.max_by("end_offset", "timestamp_ms").alias("end_offset"))
    )
    status = (
        F.when(F.col("lag").isNull(), "UNKNOWN")
        .when((F.col("complete") < minimum) | (F.col("lag") <= allowed_lag), "OK")
        .when(_silent(now_ms) & (F.col("lowest_end") > F.col("last_offset")), "STOP")
        .when(_is_rewound(), "REWIND")
        .when(F.exists("lags", lambda each: each <= allowed_lag), "OK")
        .when(_is_unmoved(), "STALL")
        .when(_lag_never_falls(), "WARN")
        .otherwise("OK")
    )
    return (
        window.join(recent, ["cluster", "topic", "partition"], "left")
        .withColumn("lag", _behind("end_offset", "last_offset"))
        .select(*OFFSET_KEY, "last_offset", "last_ms", "complete", "end_offset", "lag", status.alias("status"))
    )


def evaluate_offsets_only(log: DataFrame, now_ms: int, *, minimum: float = MINIMUM) -> DataFrame:
    """Return what the commits alone show about each group and partition at ``now_ms``.

    ``activity``: REWIND, SILENT (no commit for longer than the whole window took: the consumer may have stopped, or has
    nothing to commit), IDLE_OR_STALLED (the consumer commits the same offset again) or MOVING. UNKNOWN: the window is
    filled less than ``minimum``.
    """
    activity = (
        F.when(F.col("complete") < minimum, "UNKNOWN")
        .when(_is_rewound(), "REWIND")
        .when(_silent(now_ms), "SILENT")
        .when(_is_unmoved(), "IDLE_OR_STALLED")
        .otherwise("MOVING")
    )
    rows = _settled(log, now_ms).withColumn("lag", F.lit(None).cast("long"))
    return _last_commits(rows).select(*OFFSET_KEY, "last_offset", "last_ms", "complete", activity.alias("activity"))


def group_status(partitions: DataFrame) -> DataFrame:
    """Return the status of each group, and the highest and the total lag of its partitions whose lag is known."""
    rank = F.create_map(*(F.lit(each) for item in RANKS.items() for each in item))[F.col("status")]
    status = F.when(F.col("worst") >= RANKS["ERR"], "ERR").when(F.col("worst") == RANKS["WARN"], "WARN").otherwise("OK")
    return (
        partitions.groupBy("cluster", "group_id")
        .agg(
            F.max(rank).alias("worst"),
            F.max("lag").alias("max_lag"),
            F.sum("lag").alias("total_lag"),
            F.count_if(F.col("status") == "UNKNOWN").alias("unknown"),
            F.avg(F.when(F.col("complete") == 1, 1).otherwise(0)).alias("complete"),
        )
        .withColumn("status", F.when(F.col("worst").isNull(), "UNKNOWN").otherwise(status))
        .drop("worst")
    )


# --- the window of a partition --------------------------------------------------------------------------------------


def _settled(log: DataFrame, now_ms: int) -> DataFrame:
    """Return the commits that count by then: after the last tombstone of their partition."""
    dropped = F.col("outcome").isin(TransactionOutcome.OPEN.value, TransactionOutcome.ABORTED.value)
    ended = F.max(F.when(F.col("is_tombstone"), F.col("log_offset"))).over(Window.partitionBy(*OFFSET_KEY))
    return (
        log.where((F.col("timestamp_ms") <= now_ms) & ~F.coalesce(dropped, F.lit(False)))
        .withColumn("ended", F.coalesce(ended, F.lit(-1)))
        .where("NOT is_tombstone AND log_offset > ended")
        .select(*OFFSET_KEY, "log_offset", "committed_offset", "timestamp_ms")
    )


def _with_lag(rows: DataFrame, ends: DataFrame) -> DataFrame:
    """Add ``lag`` at the time of each commit: to the newest end offset known by then; null if none is known."""
    keys = ("cluster", "topic", "partition")
    both = rows.withColumn("is_commit", F.lit(1)).unionByName(
        ends.select(*keys, "timestamp_ms", "end_offset", F.lit(0).alias("is_commit")), allowMissingColumns=True
    )
    order = Window.partitionBy(*keys).orderBy("timestamp_ms", "is_commit")
    end = F.last("end_offset", ignorenulls=True).over(order)
    known = both.withColumn("end", end).where("is_commit = 1")
    return known.withColumn("lag", _behind("end", "committed_offset")).select(*rows.columns, "lag")


def _behind(end: str, offset: str) -> Column:
    """Return the records between an offset and the end; null if the end is unknown (``greatest`` would return 0)."""
    return F.when(F.col(end).isNotNull(), F.greatest(F.lit(0), F.col(end) - F.col(offset)))


def _last_commits(rows: DataFrame) -> DataFrame:
    """Return offsets, times and lags of the last commits of each group and partition, oldest first."""
    newest = Window.partitionBy(*OFFSET_KEY).orderBy(F.col("log_offset").desc())
    commit = F.struct("log_offset", "committed_offset", "timestamp_ms", "lag")
    return (
        rows.withColumn("nth", F.row_number().over(newest))
        .where(F.col("nth") <= WINDOW)
        .groupBy(*OFFSET_KEY)
        .agg(F.sort_array(F.collect_list(commit)).alias("commits"))
        .select(
            *OFFSET_KEY,
            F.col("commits.committed_offset").alias("offsets"),
            F.col("commits.timestamp_ms").alias("times"),
            F.filter(F.col("commits.lag"), lambda lag: lag.isNotNull()).alias("lags"),
            (F.size("commits") / WINDOW).alias("complete"),
        )
        .withColumns({"last_offset": F.element_at("offsets", -1), "last_ms": F.element_at("times", -1)})
    )


def _silent(now_ms: int) -> Column:
    """Return whether there was no commit for longer than the whole window took."""
    return now_ms - F.col("last_ms") > F.col("last_ms") - F.get("times", F.lit(0))


def _is_rewound() -> Column:
    """Return whether the offset never got back to its value before its first decrease. Later decreases do not count."""
    return F.expr(
        """coalesce(get(transform(
            filter(sequence(1, size(offsets)), i -> get(offsets, i) < get(offsets, i - 1)),
            i -> NOT exists(slice(offsets, i + 1, size(offsets)), later -> later >= get(offsets, i - 1))
        ), 0), false)"""
    )


def _is_unmoved() -> Column:
    return F.array_max("offsets") == F.array_min("offsets")


def _lag_never_falls() -> Column:
    return F.expr("NOT exists(sequence(1, size(lags)), i -> coalesce(get(lags, i) < get(lags, i - 1), false))")
