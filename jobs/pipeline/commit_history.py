"""Each commit beside the one before it: what went back, what was removed, and what of transactions is open."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.commits import GROUP_ENDS, MOST_KEPT, TOPIC_CLEANUP_MS
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.pipeline.offsets import COUNTS
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import OFFSET_KEY

IS_REWIND: Final = "committed_offset < before.committed_offset AND NOT coalesce(topic_id <> before.topic_id, false)"
"""Offsets are compared within the life of a topic: a new topic id begins anew."""
IS_REMOVAL: Final = "is_tombstone AND before IS NOT NULL AND NOT before.is_tombstone"
IS_PAST_EXPIRY: Final = "before.expire_timestamp BETWEEN 0 AND timestamp_ms"

STEP: Final = [
    *OFFSET_KEY,
    "log_offset",
    "timestamp_ms",
    "before.committed_offset AS offset_before",
    "before.log_offset AS log_offset_before",
]

AT: Final = "named_struct('partition', bigint(log_partition), 'offset', log_offset, 'timestamp_ms', timestamp_ms)"
"""The position of a record, as the core has it."""


def _steps(tables: Tables, log: DataFrame) -> DataFrame:
    """The commits that count, and tombstones, each with ``before``: the one before it of the same partition.

    A transactional commit counts from the marker of its transaction on, unless a later one was there by then.
    """
    columns = ("log_offset", "is_tombstone", "committed_offset", "commit_timestamp", "expire_timestamp", "topic_id")
    in_order = Window.partitionBy(*OFFSET_KEY).orderBy("effective", "log_offset")
    newest_before = F.max("log_offset").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
    return (
        _effective(tables, log.where(COUNTS).select(*OFFSET_KEY, "timestamp_ms", "producer_id", "outcome", *columns))
        .withColumn("newest_before", newest_before)
        .where("newest_before IS NULL OR newest_before < log_offset")
        .withColumn("before", F.lag(F.struct(*columns)).over(in_order))
    )


def _effective(tables: Tables, log: DataFrame) -> DataFrame:
    """With ``effective``: the offset of the marker that ends a commit's transaction, or its own if it is in none."""
    is_committed = F.coalesce(F.col("outcome") == TransactionOutcome.COMMITTED.value, F.lit(False))
    of = ["cluster", "log_topic", "log_partition", "producer_id"]
    ends = tables.read(LOG_RECORDS).where("is_transactional AND control_type IN ('COMMIT', 'ABORT')")
    ends = ends.select(*of, "log_offset", F.col("log_offset").alias("marker"))
    following = Window.partitionBy(*of).orderBy("log_offset").rowsBetween(0, Window.unboundedFollowing)
    marker = F.first("marker", ignorenulls=True).over(following)
    settled = (
        log.where(is_committed)
        .unionByName(ends, allowMissingColumns=True)
        .withColumn("effective", F.coalesce(marker, "log_offset"))
        .where("marker IS NULL")
    )
    plain = log.where(~is_committed).withColumn("effective", F.col("log_offset"))
    return plain.unionByName(settled.drop("marker"))


def rewinds(tables: Tables, log: DataFrame) -> DataFrame:
    """Commits below the one before, with the owner of the partition at that time and the rebalance before it.

    ``owner`` is null where nobody was known to own it; ``in_rebalance`` says whether that rebalance was still under
    way.
    """
    found = _steps(tables, log).where(IS_REWIND).selectExpr(*STEP, "committed_offset")
    return _with_rebalance(tables, _with_owner(tables, found))


def _with_owner(tables: Tables, found: DataFrame) -> DataFrame:
    owned = tables.read(HISTORY["assignments"]).where("kind = 'current' AND role = 'partition'")
    held = owned.select("cluster", "group_id", "topic", "partition", "member_id", "since", "until")
    at_the_time = (
        (F.col("since.partition") == F.col("log_partition"))
        & (F.col("since.offset") <= F.col("log_offset"))
        & F.coalesce(F.col("until.offset") > F.col("log_offset"), F.lit(True))
    )
    keys = ["cluster", "group_id", "topic", "partition"]
    same = [F.col(f"f.{name}") == F.col(f"h.{name}") for name in keys]
    joined = found.alias("f").join(held.alias("h"), [*same, at_the_time], "left")
    columns = [F.col(f"f.{name}") for name in found.columns]
    return joined.groupBy(*columns).agg(F.min("member_id").alias("owner"))


def _with_rebalance(tables: Tables, found: DataFrame) -> DataFrame:
    opened = tables.read(HISTORY["rebalances"]).select("cluster", "group_id", "at", "to_epoch", "finished")
    earlier = (F.col("at.partition") == F.col("log_partition")) & (F.col("at.offset") <= F.col("log_offset"))
    same = [F.col(f"f.{name}") == F.col(f"r.{name}") for name in ("cluster", "group_id")]
    joined = found.alias("f").join(opened.alias("r"), [*same, earlier], "left")
    last = F.max_by(F.struct("at", "to_epoch", "finished"), "at.offset").alias("rebalance")
    under_way = F.coalesce(F.col("rebalance.finished.offset") >= F.col("log_offset"), F.lit(True))
    return (
        joined.groupBy(*(F.col(f"f.{name}") for name in found.columns))
        .agg(last)
        .select(
            *found.columns,
            F.col("rebalance.at").alias("rebalance_at"),
            F.col("rebalance.to_epoch").alias("rebalance_to"),
            F.when(F.col("rebalance").isNotNull(), under_way).alias("in_rebalance"),
        )
    )


def removals(tables: Tables, log: DataFrame) -> DataFrame:
    """Tombstones of offsets that were there: when, what they took, how old that was, and what the log says of why.

    ``cause``: ``topic deleted`` where the metadata log has that just before; ``group deleted`` where a tombstone of the
    group itself was written at the same time; ``expired`` where an expiry that the commit itself names (value version
    1) was over; else ``expired or deleted``, as Kafka writes the same for an offset that expired and for a request to
    delete offsets. ``age_ms`` is the time since the last commit.
    """
    gone = (
        _steps(tables, log)
        .where(IS_REMOVAL)
        .selectExpr(*STEP, "timestamp_ms - before.commit_timestamp AS age_ms", f"{IS_PAST_EXPIRY} AS past_expiry")
    )
    cause = _cause(F.col("timestamp_ms"), F.col("past_expiry")).alias("cause")
    return _with_ends(tables, gone).select(*gone.columns, cause)


def _with_ends(tables: Tables, rows: DataFrame) -> DataFrame:
    """With ``group_ends``: when the group was removed, and ``topic_ends``: when the topic was deleted; null: never."""
    of_group = ["cluster", "log_topic", "log_partition", "group_id"]
    ended = tables.read(GROUP_RECORDS).where(F.col("is_tombstone") & F.col("record_type").isin(*GROUP_ENDS))
    group_ends = ended.groupBy(*of_group).agg(F.collect_set("timestamp_ms").alias("group_ends"))
    of_topic = ["cluster", "topic"]
    deleted = tables.read(TOPIC_HISTORY).where("ended_by IN ('deleted', 'replaced')")
    topic_ends = deleted.groupBy(*of_topic).agg(F.collect_set("until.timestamp_ms").alias("topic_ends"))
    return rows.join(group_ends, of_group, "left").join(topic_ends, of_topic, "left")


def _cause(at_ms: Column, past_expiry: Column) -> Column:
    """Why a tombstone of this time was written, in a row with ``_with_ends``."""
    with_topic = F.exists("topic_ends", lambda end_ms: at_ms.between(end_ms, end_ms + TOPIC_CLEANUP_MS))
    return (
        F.when(with_topic, "topic deleted")
        .when(F.array_contains("group_ends", at_ms), "group deleted")
        .when(past_expiry, "expired")
        .otherwise("expired or deleted")
    )


# --- as the core's findings take it ----------------------------------------------------------------------------------


def partition_commits(tables: Tables, log: DataFrame) -> DataFrame:
    """Return the columns of ``PartitionCommits``, a row for each ``OFFSET_KEY``, as ``CommitFold`` computes them."""
    back = f"named_struct('at', {AT}, 'before', before.committed_offset, 'after', committed_offset)"
    gone = f"named_struct('at', {AT}, 'offset', before.committed_offset, 'past_expiry', {IS_PAST_EXPIRY})"
    # One look at the steps: putting all commits in order is what costs here.
    counted = (
        _steps(tables, log)
        .groupBy(*OFFSET_KEY)
        .agg(
            F.expr("count_if(NOT is_tombstone)").alias("commits"),
            F.expr(f"min({AT}) FILTER (WHERE NOT is_tombstone)").alias("first"),
            F.expr(f"max({AT}) FILTER (WHERE NOT is_tombstone)").alias("last"),
            F.expr("max_by(if(is_tombstone, null, committed_offset), log_offset)").alias("offset"),
            _first_ones(f"if({IS_REWIND}, {back}, null)").alias("rewinds"),
            _first_ones(f"if({IS_REMOVAL}, {gone}, null)").alias("removals"),
        )
        .where("commits > 0")
    )
    return _with_ends(tables, counted).withColumn("removals", F.transform("removals", _removal))


def _removal(gone: Column) -> Column:
    cause = _cause(gone["at"]["timestamp_ms"], gone["past_expiry"])
    return F.struct(gone["at"].alias("at"), gone["offset"].alias("offset"), cause.alias("how"))


def _first_ones(each: str) -> Column:
    """The first so many in log order of those that are not null."""
    return F.expr(f"slice(sort_array(collect_list({each})), 1, {MOST_KEPT})")


def open_transactions(log: DataFrame) -> DataFrame:
    """The columns of ``OpenTransaction`` for each cluster and group: transactions that hold commits back."""
    place = ("cluster", "log_topic", "log_partition", "group_id")
    ended = F.max(F.when(F.col("is_tombstone"), F.col("log_offset"))).over(Window.partitionBy(*OFFSET_KEY))
    return (
        log.where((F.col("outcome") == TransactionOutcome.OPEN.value) | F.col("is_tombstone"))
        .withColumn("ended", F.coalesce(ended, F.lit(-1)))
        .where("NOT is_tombstone AND log_offset > ended")
        .groupBy(*place, "producer_id")
        .agg(F.min(F.expr(AT)).alias("first"), F.count_distinct("topic", "partition").alias("partitions"))
    )
