"""Each commit compared with the commit before it: rewinds, removed offsets, open transactions."""

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
"""Offsets are compared only within one topic id: a recreated topic has a new one."""
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
"""The position of a record as the struct ``LogPosition`` of the core."""


def _steps(tables: Tables, log: DataFrame) -> DataFrame:
    """Return the commits that count, and tombstones, each with ``before``: the previous one of the same partition.

    A transactional commit counts from the marker that ends its transaction, unless a later commit came before the
    marker.
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
    """Add ``effective``: the log offset of the marker that ends the transaction, or else of the commit itself."""
    is_committed = F.coalesce(F.col("outcome") == TransactionOutcome.COMMITTED.value, F.lit(False))
    producer = ["cluster", "log_topic", "log_partition", "producer_id"]
    ends = tables.read(LOG_RECORDS).where("is_transactional AND control_type IN ('COMMIT', 'ABORT')")
    ends = ends.select(*producer, "log_offset", F.col("log_offset").alias("marker"))
    following = Window.partitionBy(*producer).orderBy("log_offset").rowsBetween(0, Window.unboundedFollowing)
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
    """Return the commits with a lower offset than the commit before, with the owner and the last rebalance.

    ``owner``: the member that owned the partition at that time; null if none is known. ``rebalance_at`` and
    ``rebalance_to``: the last rebalance before the commit. ``in_rebalance``: that rebalance had not finished.
    """
    found = _steps(tables, log).where(IS_REWIND).selectExpr(*STEP, "committed_offset")
    return _with_rebalance(tables, _with_owner(tables, found))


def _with_owner(tables: Tables, found: DataFrame) -> DataFrame:
    current = tables.read(HISTORY["assignments"]).where("kind = 'current' AND role = 'partition'")
    owned = current.select("cluster", "group_id", "topic", "partition", "member_id", "since", "until")
    at_the_time = (
        (F.col("since.partition") == F.col("log_partition"))
        & (F.col("since.offset") <= F.col("log_offset"))
        & F.coalesce(F.col("until.offset") > F.col("log_offset"), F.lit(True))
    )
    keys = ["cluster", "group_id", "topic", "partition"]
    same = [F.col(f"f.{name}") == F.col(f"o.{name}") for name in keys]
    joined = found.alias("f").join(owned.alias("o"), [*same, at_the_time], "left")
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
    """Return the tombstones of committed offsets: the removed offset, its age, and the cause if the log shows it.

    ``cause``: ``topic deleted`` if the metadata log has the deletion just before; ``group deleted`` if a tombstone of
    the group itself was written at the same time; ``expired`` if the expiry that the commit itself names (value version
    1) had passed; otherwise ``expired or deleted``, because Kafka writes the same tombstone for an expired offset and
    for a request to delete offsets. ``age_ms``: time since the last commit.
    """
    removed = (
        _steps(tables, log)
        .where(IS_REMOVAL)
        .selectExpr(*STEP, "timestamp_ms - before.commit_timestamp AS age_ms", f"{IS_PAST_EXPIRY} AS past_expiry")
    )
    cause = _cause(F.col("timestamp_ms"), F.col("log_offset"), F.col("past_expiry")).alias("cause")
    return _with_ends(tables, removed).select(*removed.columns, cause)


def _with_ends(tables: Tables, rows: DataFrame) -> DataFrame:
    """Add ``group_ends`` (times and offsets of the group's tombstones) and ``topic_ends`` (times of deletion).

    They are null for a group or topic that was never deleted.
    """
    of_group = ["cluster", "log_topic", "log_partition", "group_id"]
    ended = tables.read(GROUP_RECORDS).where(F.col("is_tombstone") & F.col("record_type").isin(*GROUP_ENDS))
    group_ends = ended.groupBy(*of_group).agg(F.collect_set(F.struct("timestamp_ms", "log_offset")).alias("group_ends"))
    of_topic = ["cluster", "topic"]
    deleted = tables.read(TOPIC_HISTORY).where("ended_by IN ('deleted', 'replaced')")
    topic_ends = deleted.groupBy(*of_topic).agg(F.collect_set("until.timestamp_ms").alias("topic_ends"))
    return rows.join(group_ends, of_group, "left").join(topic_ends, of_topic, "left")


def _cause(at_ms: Column, log_offset: Column, past_expiry: Column) -> Column:
    """Return the cause of a tombstone with this time and offset, for rows of ``_with_ends``.

    A coordinator that deletes a group writes the tombstones of its offsets before that of the group, at the same time.
    """

    def in_deletion(end: Column) -> Column:
        return (end["timestamp_ms"] == at_ms) & (end["log_offset"] > log_offset)

    with_topic = F.exists("topic_ends", lambda end_ms: at_ms.between(end_ms, end_ms + TOPIC_CLEANUP_MS))
    return (
        F.when(with_topic, "topic deleted")
        .when(F.exists("group_ends", in_deletion), "group deleted")
        .when(past_expiry, "expired")
        .otherwise("expired or deleted")
    )


# --- rows as the core's findings need them ----------------------------------------------------------------------------


def partition_commits(tables: Tables, log: DataFrame) -> DataFrame:
    """Return the columns of ``PartitionCommits``, a row for each ``OFFSET_KEY``, as ``CommitFold`` computes them."""
    rewind = f"named_struct('at', {AT}, 'before', before.committed_offset, 'after', committed_offset)"
    removal = f"named_struct('at', {AT}, 'offset', before.committed_offset, 'past_expiry', {IS_PAST_EXPIRY})"
    # One aggregation for all of it, because sorting the commits is the expensive part.
    counted = (
        _steps(tables, log)
        .groupBy(*OFFSET_KEY)
        .agg(
            F.expr("count_if(NOT is_tombstone)").alias("commits"),
            F.expr(f"min({AT}) FILTER (WHERE NOT is_tombstone)").alias("first"),
            F.expr(f"max({AT}) FILTER (WHERE NOT is_tombstone)").alias("last"),
            F.expr("max_by(if(is_tombstone, null, committed_offset), log_offset)").alias("offset"),
            _first_ones(f"if({IS_REWIND}, {rewind}, null)").alias("rewinds"),
            _first_ones(f"if({IS_REMOVAL}, {removal}, null)").alias("removals"),
        )
        .where("commits > 0")
    )
    return _with_ends(tables, counted).withColumn("removals", F.transform("removals", _removal))


def _removal(removal: Column) -> Column:
    cause = _cause(removal["at"]["timestamp_ms"], removal["at"]["offset"], removal["past_expiry"])
    return F.struct(removal["at"].alias("at"), removal["offset"].alias("offset"), cause.alias("how"))


def _first_ones(expression: str) -> Column:
    """Return the first ``MOST_KEPT`` values of an expression that are not null, in log order."""
    return F.expr(f"slice(sort_array(collect_list({expression})), 1, {MOST_KEPT})")


def open_transactions(log: DataFrame) -> DataFrame:
    """Return the columns of ``OpenTransaction``: transactions whose end is not in the log, for each group."""
    place = ("cluster", "log_topic", "log_partition", "group_id")
    ended = F.max(F.when(F.col("is_tombstone"), F.col("log_offset"))).over(Window.partitionBy(*OFFSET_KEY))
    return (
        log.where((F.col("outcome") == TransactionOutcome.OPEN.value) | F.col("is_tombstone"))
        .withColumn("ended", F.coalesce(ended, F.lit(-1)))
        .where("NOT is_tombstone AND log_offset > ended")
        .groupBy(*place, "producer_id")
        .agg(F.min(F.expr(AT)).alias("first"), F.count_distinct("topic", "partition").alias("partitions"))
    )
