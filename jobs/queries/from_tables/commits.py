"""Committed offsets at a moment, from the tables: what was committed, what was open, and what is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.groups.certainty import CommitRecords
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.records import LogPosition
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.pipeline import offsets
from jobs.pipeline.transaction_outcomes import markers
from jobs.queries.from_tables.log_extent import Extents, before_end
from jobs.tables.results import COMMIT

GROUP: Final = ("log_topic", "log_partition", "group_id")
ABOUT: Final = ("topic", "partition", "last", "pending", "is_followed", "is_decided_later")
HELD: Final = ("log_partition", "topic", "partition", "status", *COMMIT)


def with_outcome_then(commits: DataFrame, log: DataFrame, extents: Extents) -> DataFrame:
    """The commits with their outcome as of the moment: a transaction that ended later was open.

    ``is_decided_later``: it was open, and not aborted since.
    """
    if all(extent.end is None for extent in extents.values()):
        return commits.withColumn("is_decided_later", F.lit(False))
    ended = (
        markers(log.where(before_end(extents)))
        .groupBy(
            F.col("log_topic").alias("marker_topic"),
            F.col("log_partition").alias("marker_partition"),
            F.col("producer_id").alias("marker_producer"),
        )
        .agg(F.max("log_offset").alias("marker_offset"))
    )
    same = (
        (F.col("log_topic") == F.col("marker_topic"))
        & (F.col("log_partition") == F.col("marker_partition"))
        & (F.col("producer_id") == F.col("marker_producer"))
    )
    has_ended = F.coalesce(F.col("marker_offset") > F.col("log_offset"), F.lit(False))
    lost = of_partition({place: extent.gaps.lost for place, extent in extents.items()}, -1)
    has_outcome = F.col("outcome").isin(TransactionOutcome.COMMITTED.value, TransactionOutcome.ABORTED.value)
    is_undecided = F.expr(offsets.UNDECIDED) & (F.col("log_offset") > lost)
    was_open = (has_outcome & ~has_ended) | is_undecided
    then = F.when(was_open, TransactionOutcome.OPEN.value).otherwise(F.col("outcome"))
    is_decided_later = F.coalesce(was_open & (F.col("outcome") != TransactionOutcome.ABORTED.value), F.lit(False))
    columns = [name for name in commits.columns if name != "outcome"]
    found = commits.join(ended, same, "left")
    return found.select(*columns, then.alias("outcome"), is_decided_later.alias("is_decided_later"))


def commit_records(then: DataFrame, followed: DataFrame, extents: Extents) -> DataFrame:
    """What ``CommitRecords`` has of the partitions of each group for which it decides anything."""
    doubtful = of_partition({place: not of.gaps.lists_all for place, of in extents.items()}, False)
    may_be_lost = of_partition({place: of.gaps.lost >= 0 or of.gaps.lost_later for place, of in extents.items()}, False)
    is_open = F.col("outcome") == TransactionOutcome.OPEN.value
    ended = F.max(F.when(F.col("is_tombstone"), F.col("log_offset")))
    counts = F.col("is_tombstone") | F.expr(offsets.COUNTS)
    opened = ~F.col("is_tombstone") & is_open
    of = [*GROUP, "topic", "partition"]
    rows = then.where(doubtful).select(
        *of,
        "log_offset",
        "is_tombstone",
        "outcome",
        "producer_id",
        "is_decided_later",
        F.lit(False).alias("follows"),
    )
    rows = rows.unionByName(followed.select(*of, F.lit(True).alias("follows")).distinct(), allowMissingColumns=True)
    return (
        rows.groupBy(*of)
        .agg(
            F.coalesce(F.max(F.when(~F.col("follows") & counts, F.col("log_offset"))), F.lit(-1)).alias("last"),
            F.coalesce(F.max(F.when(opened, F.col("log_offset"))), F.lit(-1)).alias("opened"),
            F.coalesce(ended, F.lit(-1)).alias("ended"),
            F.coalesce(F.bool_or(opened & F.col("is_decided_later")), F.lit(False)).alias("is_decided_later"),
            F.bool_or("follows").alias("is_followed"),
        )
        .withColumn("pending", F.when(F.col("opened") > F.col("ended"), F.col("opened")).otherwise(F.lit(-1)))
        .where(F.col("is_followed") | (F.col("pending") >= 0) | may_be_lost)
    )


def of_partition(values: Mapping[tuple[str, int], Any], otherwise: Any) -> Column:
    """The value of the log partition that a row is of."""
    return reduce(
        lambda other, each: F.when(
            (F.col("log_topic") == each[0][0]) & (F.col("log_partition") == each[0][1]), F.lit(each[1])
        ).otherwise(other),
        ((place, value) for place, value in values.items() if value != otherwise),
        F.lit(otherwise),
    )


def read_offsets(held: Iterable[Row]) -> GroupOffsets:
    """The rows of ``group_offsets`` of one group as the core has them."""
    found = GroupOffsets()
    for row in sorted(held, key=lambda row: row.log_offset):
        producer_id = None if row.producer_id in (None, -1) else row.producer_id
        commit = Commit(
            row.committed_offset,
            None if row.leader_epoch in (None, -1) else row.leader_epoch,
            row.metadata,
            row.commit_timestamp,
            None if row.expire_timestamp in (None, -1) else row.expire_timestamp,
            row.topic_id,
            LogPosition(row.log_partition, row.log_offset, row.timestamp_ms),
            producer_id,
        )
        of = found.committed if row.status == "committed" else found.pending.setdefault(producer_id or -1, {})
        of[TopicPartition(row.topic, row.partition)] = commit
    return found


def read_records(about: Iterable[Row]) -> dict[TopicPartition, CommitRecords]:
    """The rows of ``commit_records`` of one group as the core has them."""
    return {
        TopicPartition(row.topic, row.partition): CommitRecords(
            row["last"], row.pending, row.is_followed, row.is_decided_later
        )
        for row in about
    }
