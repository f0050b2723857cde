"""Committed offsets from ``offset_commits``, as DataFrames: the latest ones, and what became of commits over time.

Commits of a dump that has no offsets cannot be ordered and are left out, as are those of aborted transactions. A dump
by a consumer does not show transactions: the ``outcome`` of its commits is unknown, and they count as committed.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import RecordType
from coordinator_core.wire.transactions import Outcome
from jobs.history_schema import HISTORY
from jobs.record_schema import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables import Tables

OF: Final = ("cluster", "log_topic", "log_partition", "group_id", "topic", "partition")
"""What an offset is committed for, and where its log lies."""

COMMIT: Final = (
    "log_offset",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "expire_timestamp",
    "topic_id",
    "producer_id",
    "outcome",
)
"""What ``group_offsets`` says of the commit that counts."""


def commits(tables: Tables) -> DataFrame:
    """Offset commits and tombstones that have a place in the log."""
    return tables.read(OFFSET_COMMITS).where("log_offset IS NOT NULL AND log_partition IS NOT NULL")


def group_offsets(log: DataFrame) -> DataFrame:
    """The offsets of each group and partition at the end of these ``commits``.

    ``status``: committed, or pending in a transaction that is open, one row a producer. ``is_stable``: no transaction
    is open for the partition, so that a fetch with requireStable returns the offset (KIP-447). A tombstone ends what
    was committed before it, by transactions that were open then, too.
    """
    is_open = F.col("outcome") == Outcome.OPEN.value
    counts = ~F.coalesce(F.col("outcome").isin(Outcome.OPEN.value, Outcome.ABORTED.value), F.lit(False))
    latest = log.groupBy(*OF).agg(
        _newest(F.col("is_tombstone")).alias("ended"),
        _newest(~F.col("is_tombstone") & counts).alias("committed"),
        _newest(~F.col("is_tombstone") & is_open).alias("opened"),
    )
    ended = F.coalesce("ended", F.lit(-1))
    is_stable = F.coalesce(F.col("opened") <= ended, F.lit(True))
    committed = latest.where(F.col("committed") > ended).select(
        *OF, F.col("committed").alias("log_offset"), F.lit("committed").alias("status"), is_stable.alias("is_stable")
    )
    unsettled = latest.where(F.col("opened") > ended).select(*OF, ended.alias("ended"))
    pending = (
        log.where(is_open & ~F.col("is_tombstone"))
        .join(unsettled, list(OF))
        .where("log_offset > ended")
        .groupBy(*OF, "producer_id")
        .agg(F.max("log_offset").alias("log_offset"))
        .select(*OF, "log_offset", F.lit("pending").alias("status"), F.lit(False).alias("is_stable"))
    )
    chosen = committed.unionByName(pending)
    place = ["cluster", "log_topic", "log_partition", "log_offset"]
    details = log.select(*place, *(name for name in COMMIT if name not in place))
    return details.join(chosen, place).select(*OF, "status", "is_stable", *COMMIT)


def _newest(which: Column) -> Column:
    """The newest record of a kind; aggregates of plain numbers are what Spark is fastest at."""
    return F.max(F.when(which, F.col("log_offset")))


def commit_rates(log: DataFrame, every: str = "1 hour") -> DataFrame:
    """Commits and tombstones of each group by interval of log time, with its share of the interval's records.

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


def rewinds(tables: Tables, log: DataFrame) -> DataFrame:
    """Commits below the one before, with the owner of the partition at that time and the rebalance before it.

    ``owner`` is null where nobody was known to own it; ``in_rebalance`` says whether that rebalance was still under
    way. Offsets are compared within the life of a topic: a new topic id begins anew.
    """
    settled = log.where(~F.coalesce(F.col("outcome") == Outcome.ABORTED.value, F.lit(False)))
    order = Window.partitionBy(*OF).orderBy("log_offset")
    before = F.lag(F.struct("committed_offset", "log_offset", "topic_id")).over(order)
    found = (
        settled.where("NOT is_tombstone")
        .select(*OF, "log_offset", "timestamp_ms", "committed_offset", "topic_id", before.alias("before"))
        .where("committed_offset < before.committed_offset AND topic_id <=> before.topic_id")
        .select(
            *OF,
            "log_offset",
            "timestamp_ms",
            "committed_offset",
            F.col("before.committed_offset").alias("offset_before"),
            F.col("before.log_offset").alias("log_offset_before"),
        )
    )
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

    ``cause``: ``group deleted`` where a tombstone of the group itself was written at the same time; else ``expired or
    deleted``, as Kafka writes the same for an expired offset, a deleted topic and a request to delete offsets.
    ``age_ms`` is the time since the last commit, ``past_expiry`` whether an expiry that the commit itself names (value
    version 1) was over.
    """
    order = Window.partitionBy(*OF).orderBy("log_offset")
    columns = ("is_tombstone", "committed_offset", "commit_timestamp", "expire_timestamp", "log_offset")
    before = F.lag(F.struct(*columns)).over(order)
    gone = (
        log.select(*OF, "log_offset", "timestamp_ms", "is_tombstone", before.alias("before"))
        .where("is_tombstone AND before IS NOT NULL AND NOT before.is_tombstone")
        .select(
            *OF,
            "log_offset",
            "timestamp_ms",
            F.col("before.committed_offset").alias("offset_before"),
            F.col("before.log_offset").alias("log_offset_before"),
            (F.col("timestamp_ms") - F.col("before.commit_timestamp")).alias("age_ms"),
            F.expr("before.expire_timestamp BETWEEN 0 AND timestamp_ms").alias("past_expiry"),
        )
    )
    ends = tables.read(GROUP_RECORDS).where(F.col("is_tombstone") & F.col("record_type").isin(*ENDS_GROUP))
    deleted = ends.select("cluster", "log_topic", "log_partition", "group_id", "timestamp_ms").distinct()
    cause = F.when(F.col("is_end"), "group deleted").otherwise("expired or deleted")
    keys = deleted.columns
    return gone.join(deleted.withColumn("is_end", F.lit(True)), keys, "left").select(
        *gone.columns, cause.alias("cause")
    )


ENDS_GROUP: Final = (
    RecordType.GROUP_METADATA,
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.SHARE_GROUP_METADATA,
    RecordType.STREAMS_GROUP_METADATA,
)
"""Records whose tombstone ends a group."""
