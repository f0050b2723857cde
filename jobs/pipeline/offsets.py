"""Committed offsets from ``offset_commits`` as DataFrames: the latest ones, and commit rates.

Commits of a dump that has no offsets cannot be ordered and are left out, as are those of aborted transactions. A dump
by a consumer does not show transactions: the ``outcome`` of its commits is unknown, and they count as committed.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.wire.transactions import TransactionOutcome
from jobs.pipeline import commit_history
from jobs.pipeline.commits import summaries as commit_summaries
from jobs.pipeline.decoded_runs import newest_runs
from jobs.pipeline.snapshots import stored_end_offsets
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.history import TOPIC_HISTORY
from jobs.tables.log import PLACED
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import COMMIT, GROUP_OFFSETS, OFFSET_KEY
from jobs.tables.snapshots import END_OFFSETS

PLACE: Final = ("cluster", "log_topic", "log_partition")
"""Where a log lies."""

UNDECIDED: Final = f"(outcome = '{TransactionOutcome.UNKNOWN.value}' AND coalesce(producer_id >= 0, false))"
"""Whether a commit is in a transaction whose end is lost. A dump by a consumer does not show its producer."""

COUNTS: Final = (
    f"NOT coalesce(outcome IN ('{TransactionOutcome.OPEN.value}', '{TransactionOutcome.ABORTED.value}') "
    f"OR {UNDECIDED}, false)"
)
"""Whether a commit holds: it is in no transaction, or in one that was committed."""


def run(tables: Tables, ends: DataFrame | None = None) -> int:
    """Store the committed offsets as of the newest decoded run, or a later one with a snapshot, once.

    Return their number. ``ends`` are snapshots of end offsets as ``lag.read_end_offsets`` gives them; None: those in
    the tables.
    """
    for table in (GROUP_OFFSETS, TOPIC_HISTORY):
        tables.create(table)
    commit_summaries.update(tables)
    (newest,) = tables.engine().rows("SELECT max(run_id) AS run_id FROM $runs WHERE job = 'decode'")
    run_id = newest["run_id"]
    if run_id is None:
        return 0
    if ends is None and tables.exists(END_OFFSETS):
        run_id = max(run_id, *newest_runs(tables, END_OFFSETS).values())
    if stored := _stored(tables, run_id):
        return stored
    here = _here(tables, run_id) if ends is None else None
    if here is not None:
        tables.append(GROUP_OFFSETS, here, run_id)
        return int(here.num_rows)
    ends = stored_end_offsets(tables) if ends is None else ends
    shared = share_offsets(tables)
    found = (
        newest_offsets(commit_summaries.all_commits(tables))
        .withColumn("delivered", F.lit(0))
        .unionByName(shared, allowMissingColumns=True)
    )
    found = with_lag(found, ends).withColumn("run_id", F.lit(run_id))
    written_files.append(tables, GROUP_OFFSETS, found, run_id)
    return _stored(tables, run_id)


def _here(tables: Tables, run_id: str) -> pa.Table | None:
    """Return the rows that this process has found; None: Spark finds them."""
    # Not at the top: Python workers of Spark have no use for it.
    from jobs.pipeline.offsets_here import offsets_here

    return tables.engine().here(lambda reader: offsets_here(reader, run_id, tables.limits.rows))


def _stored(tables: Tables, run_id: str) -> int:
    """Return how many offsets are stored as of a run."""
    (found,) = tables.engine().rows("SELECT count(*) AS rows FROM $group_offsets WHERE run_id = :run", run=run_id)
    return int(found["rows"])


def with_lag(found: DataFrame, ends: DataFrame | None) -> DataFrame:
    """Add the newest end offset and the lag. ``delivered``: records after the offset that are already processed."""
    if ends is None:
        unknown = F.lit(None).cast("long")
        return found.withColumns({"end_offset": unknown, "end_offset_ms": unknown, "lag": unknown})
    of = ["cluster", "topic", "partition"]
    newest = F.max_by(F.struct("end_offset", "timestamp_ms"), "timestamp_ms").alias("end")
    behind = "greatest(0, end.end_offset - committed_offset - delivered)"
    return (
        found.join(ends.groupBy(*of).agg(newest), of, "left")
        .withColumn("lag", F.expr(f"if(end IS NOT NULL AND committed_offset >= 0 AND delivered >= 0, {behind}, null)"))
        .withColumns({"end_offset": F.col("end.end_offset"), "end_offset_ms": F.col("end.timestamp_ms")})
    )


def share_offsets(tables: Tables) -> DataFrame:
    """Return the start offsets of share groups as rows of ``group_offsets`` with status ``share``.

    ``committed_offset`` is null until a start is set, ``delivered`` -1 where the log does not count deliveries.
    """
    log = tables.read(GROUP_RECORDS).where("share_snapshot.key IS NOT NULL OR share_update.key IS NOT NULL")
    fields = {
        "topic_id": "key.topicId",
        "partition": "key.partition",
        "start": "value.startOffset",
        "leader_epoch": "value.leaderEpoch",
        "delivered": "value.deliveryCompleteCount",
    }
    of_either = {name: F.coalesce(f"share_snapshot.{at}", f"share_update.{at}") for name, at in fields.items()}
    of = ["cluster", "log_topic", "log_partition", "group_id", "topic_id", "partition"]
    # In an update, -1 means that the field does not change.
    says = "NOT is_tombstone AND (share_snapshot.key IS NOT NULL OR {} <> -1)".format
    newest = F.max_by(F.struct("log_offset", "timestamp_ms", "delivered"), "log_offset").alias("newest")
    found = (
        log.where(PLACED)
        .withColumns(of_either)
        .groupBy(*of)
        .agg(
            F.expr("coalesce(max(log_offset) FILTER (WHERE is_tombstone), -1)").alias("ended"),
            F.expr(f"max_by(start, log_offset) FILTER (WHERE {says('start')})").alias("start"),
            F.expr(f"max_by(leader_epoch, log_offset) FILTER (WHERE {says('leader_epoch')})").alias("leader_epoch"),
            newest,
        )
        .where("newest.log_offset > ended")
    )
    names = tables.read(TOPIC_HISTORY).select("cluster", "topic_id", "topic").distinct()
    return found.join(names, ["cluster", "topic_id"], "left").select(
        *of,
        "topic",
        "leader_epoch",
        "newest.*",
        F.expr("nullif(start, -1)").alias("committed_offset"),
        F.lit("share").alias("status"),
        F.lit(True).alias("is_stable"),
    )


def commits(tables: Tables) -> DataFrame:
    """Return the offset commits and tombstones whose place in the log is known."""
    return tables.read(OFFSET_COMMITS).where(PLACED)


def newest_offsets(summaries: DataFrame) -> DataFrame:
    """Return the rows of ``group_offsets`` from rows of all commits of ``commit_summaries``."""
    is_open = f"each.outcome = '{TransactionOutcome.OPEN.value}' AND each.log_offset > coalesce(ended, -1L)"
    committed = summaries.where("committed.log_offset > coalesce(ended, -1L)").select(
        *OFFSET_KEY,
        F.lit("committed").alias("status"),
        F.expr(f"NOT exists(pending, each -> {is_open})").alias("is_stable"),
        "committed.*",
    )
    newest = F.max_by(F.struct(*COMMIT), "log_offset").alias("newest")
    opened = commit_history.pending(summaries).groupBy(*OFFSET_KEY, F.col("producer_id").alias("producer")).agg(newest)
    opened = opened.select(*OFFSET_KEY, F.lit("pending").alias("status"), F.lit(False).alias("is_stable"), "newest.*")
    return committed.unionByName(opened)


def group_offsets(log: DataFrame) -> DataFrame:
    """Return the offsets of each group and partition at the end of these ``commits``.

    ``status``: committed, or pending in a transaction that is open, one row a producer. ``is_stable``: no transaction
    is open for the partition, so that a fetch with requireStable returns the offset (KIP-447). A tombstone ends what
    was committed before it, by transactions that were open then, too.
    """
    is_open = F.col("outcome") == TransactionOutcome.OPEN.value
    latest = log.groupBy(*OFFSET_KEY).agg(
        _newest(F.col("is_tombstone")).alias("ended"),
        _newest(~F.col("is_tombstone") & F.expr(COUNTS)).alias("committed"),
        _newest(~F.col("is_tombstone") & is_open).alias("opened"),
    )
    ended = F.coalesce("ended", F.lit(-1))
    is_stable = F.coalesce(F.col("opened") <= ended, F.lit(True))
    committed = latest.where(F.col("committed") > ended).select(
        *PLACE, F.col("committed").alias("log_offset"), F.lit("committed").alias("status"), is_stable.alias("is_stable")
    )
    opened = log.where(is_open & ~F.col("is_tombstone"))
    # Usually there are none; the statistics of the files show that without reading rows.
    chosen = committed if opened.isEmpty() else committed.unionByName(_pending(log, opened))
    # The chosen rows are few: broadcast them instead of shuffling the log.
    place = [*PLACE, "log_offset"]
    details = log.select(*OFFSET_KEY, *COMMIT)
    return details.join(F.broadcast(chosen), place).select(*OFFSET_KEY, "status", "is_stable", *COMMIT)


def _pending(log: DataFrame, opened: DataFrame) -> DataFrame:
    """Return the newest offset of each open transaction that no tombstone ended.

    They are few, so their details are looked up again instead of being kept for all partitions.
    """
    tombstones = log.where("is_tombstone").groupBy(*OFFSET_KEY).agg(F.max("log_offset").alias("ended"))
    return (
        opened.groupBy(*OFFSET_KEY, "producer_id")
        .agg(F.max("log_offset").alias("log_offset"))
        .join(tombstones, list(OFFSET_KEY), "left")
        .where(F.col("log_offset") > F.coalesce("ended", F.lit(-1)))
        .select(*PLACE, "log_offset", F.lit("pending").alias("status"), F.lit(False).alias("is_stable"))
    )


def _newest(which: Column) -> Column:
    """Return the newest offset that meets a condition. Spark is fastest at aggregates of plain numbers."""
    return F.max(F.when(which, F.col("log_offset")))


def commit_rates(log: DataFrame, every: str = "1 hour") -> DataFrame:
    """Return commits and tombstones of each group by interval of log time, and its share of all records.

    A group with most of the share floods the log: each of its commits is replicated, kept until compaction, and read
    again whenever a broker loads the partition.
    """
    interval = F.window(F.timestamp_millis("timestamp_ms"), every)
    rates = (
        log.where("timestamp_ms >= 0")
        .groupBy("cluster", "group_id", interval.alias("interval"))
        .agg(
            F.count_if(~F.col("is_tombstone")).alias("commits"),
            F.count_if("is_tombstone").alias("tombstones"),
            F.count_distinct("topic", "partition").alias("partitions"),
        )
    )
    records = F.col("commits") + F.col("tombstones")
    share = records / F.sum(records).over(Window.partitionBy("cluster", "interval"))
    return rates.select(
        "cluster",
        "group_id",
        F.col("interval.start").alias("since"),
        F.col("interval.end").alias("until"),
        "commits",
        "tombstones",
        "partitions",
        share.alias("share"),
    )
