"""Commits that went back, removed offsets and open transactions, from the table of commit summaries."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.folds.group_history import Rewind
from coordinator_core.audit.folds.removals import SHORTEST_RETENTION_MS, removal_window
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import OFFSET_KEY

STEP: Final = [
    *OFFSET_KEY,
    "at.offset AS log_offset",
    "at.timestamp_ms AS timestamp_ms",
]


def rewinds(tables: Tables, hours: DataFrame) -> DataFrame:
    """Return the commits with a lower offset than the commit before, with the owner and the last rebalance.

    ``hours`` are rows of hours of ``commit_summaries``. ``owner``: the member that owned the partition at that time;
    null if none is known. ``rebalance_at`` and ``rebalance_to``: the last rebalance before the commit.
    ``in_rebalance``: that rebalance had not finished.
    """
    found = hours.selectExpr(*OFFSET_KEY, "inline(rewinds)").selectExpr(
        *STEP, "before AS offset_before", "log_offset_before", "after AS committed_offset"
    )
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


def removals(tables: Tables, hours: DataFrame) -> DataFrame:
    """Return the tombstones of committed offsets: the removed offset, its age, and the cause if the log shows it.

    ``hours`` are rows of hours of ``commit_summaries``. ``cause``: ``topic deleted`` if the metadata log has the
    deletion just before; ``group deleted`` if a tombstone of the group itself was written at the same time; ``expired``
    if the expiry that the commit itself names (value version 1) had passed; ``deleted`` if the commit was too young to
    expire; otherwise ``expired or deleted``, because Kafka writes the same tombstone for an expired offset and for a
    request to delete offsets. ``age_ms``: time since
    the last commit.
    """
    removed = hours.selectExpr(*OFFSET_KEY, "inline(removals)").selectExpr(
        *STEP, "offset AS offset_before", "log_offset_before", "age_ms", "past_expiry"
    )
    at = F.col("timestamp_ms"), F.col("log_offset")
    cause = _cause(*at, F.col("past_expiry"), F.col("age_ms")).alias("cause")
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


def _cause(at_ms: Column, log_offset: Column, past_expiry: Column, age_ms: Column) -> Column:
    """Return the cause of a tombstone with this time and offset, for rows of ``_with_ends``.

    A coordinator that deletes a group writes the tombstones of its offsets before that of the group, at the same time.
    """

    def in_deletion(end: Column) -> Column:
        return (end["timestamp_ms"] == at_ms) & (end["log_offset"] > log_offset)

    with_topic = F.exists("topic_ends", lambda end_ms: at_ms.between(*removal_window(end_ms)))
    return (
        F.when(F.exists("group_ends", in_deletion), "group deleted")
        .when(with_topic, "topic deleted")
        .when(past_expiry, "expired")
        .when(age_ms < SHORTEST_RETENTION_MS, "deleted")
        .otherwise("expired or deleted")
    )


# --- rows as the core's findings need them ----------------------------------------------------------------------------


def partition_commits(tables: Tables, commits: DataFrame) -> DataFrame:
    """Return the columns of ``PartitionCommits``, a row for each ``OFFSET_KEY``, as ``CommitFold`` computes them.

    ``commits`` are rows of all commits of ``commit_summaries``.
    """
    fields = ", ".join(f"'{name}', each.{name}" for name in Rewind._fields)
    rewind = F.expr(f"transform(rewinds, each -> named_struct({fields}))")
    counted = commits.where("commits > 0").select(
        *(*OFFSET_KEY, "commits", "first", "last", "removals"),
        F.col("committed.committed_offset").alias("offset"),
        rewind.alias("rewinds"),
    )
    return _with_ends(tables, counted).withColumn("removals", F.transform("removals", _removal))


def _removal(removal: Column) -> Column:
    at = removal["at"]
    cause = _cause(at["timestamp_ms"], at["offset"], removal["past_expiry"], removal["age_ms"])
    return F.struct(removal["at"].alias("at"), removal["offset"].alias("offset"), cause.alias("how"))


def pending(commits: DataFrame) -> DataFrame:
    """Return the commits of open transactions that no tombstone ended: ``OFFSET_KEY`` and the columns ``COMMIT``.

    ``commits`` are rows of all commits of ``commit_summaries``.
    """
    each = commits.where("size(pending) > 0").selectExpr(*OFFSET_KEY, "ended", "inline(pending)")
    is_open = F.col("outcome") == TransactionOutcome.OPEN.value
    return each.where(is_open & (F.col("log_offset") > F.coalesce("ended", F.lit(-1)))).drop("ended")


def open_transactions(commits: DataFrame) -> DataFrame:
    """Return the columns of ``OpenTransaction``: transactions whose end is not in the log, for each group.

    ``commits`` are rows of all commits of ``commit_summaries``.
    """
    place = ("cluster", "log_topic", "log_partition", "group_id")
    at = "named_struct('partition', bigint(log_partition), 'offset', log_offset, 'timestamp_ms', timestamp_ms)"
    return (
        pending(commits)
        .groupBy(*place, "producer_id")
        .agg(F.min(F.expr(at)).alias("first"), F.count_distinct("topic", "partition").alias("partitions"))
    )
