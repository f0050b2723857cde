"""Gaps: offsets between the first and the last of a log that have no record, and their cause.

Compaction leaves holes, and so does missing data. What tells them apart, in this order:

- Offsets within the bounds of a batch that is there, or of an empty batch, went by compaction: brokers write batches
  without holes.
- A hole in which damaged bytes lie is ``damaged``.
- A consumer cannot see control records, one at the end of each transaction in a log partition. In a dump by a consumer
  a hole of at most as many offsets as there were commits since the hole before it is ``unknown``.
- Compaction works from the beginning of the log up to some offset, and leaves of each key the last record before it.
  So where a key occurs twice up to the end of a hole, compaction has not been there, and the hole is ``missing``. So is
  each hole in a log that brokers do not compact, such as the metadata log, whose records have no keys.
  Otherwise it is ``compaction``.

``coordinator_core.wire.offset_gaps`` finds the same in segment files.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import LOG_TOPICS
from coordinator_core.wire.batch_format import ENDS_WITHIN
from jobs.sources.log_reader import COMPACTED
from jobs.tables.log import LOG_PARTITION
from jobs.tables.records import OFFSET_COMMIT_TYPES

LISTED: Final = 100
"""Number of largest gaps that are listed for one log partition; all gaps are counted."""


NEVER_COMPACTED: Final = [topic for family, topic in LOG_TOPICS.items() if family not in COMPACTED]


def find_gaps(log: DataFrame, history: DataFrame) -> DataFrame:
    """Return the gaps in these rows of ``log_records``: partition, ``first_offset``, ``last_offset``, ``cause``.

    Of each log partition all rows from some offset on must be there; in ``history``, all there are. A gap is split
    where its cause changes.
    """
    parts = _parts(log.where("stray IS NULL"))
    explained = parts.where("within_batch").withColumn("cause", F.lit("compaction"))
    others = parts.where("NOT within_batch")
    if not others.isEmpty():
        explained = explained.unionByName(_with_cause(log, history, others))
    return explained.select(*LOG_PARTITION, "first_offset", "last_offset", "cause")


def placed_from(begin: str) -> Column:
    """Rows from the offset in that column on; damaged bytes that tell no offset may be among them."""
    return F.expr(f"coalesce(log_offset, batch_base) >= {begin} OR (kind = 'damaged' AND batch_base IS NULL)")


def _parts(log: DataFrame) -> DataFrame:
    """Return the gaps between adjacent rows, split at the bounds of the batches on both sides."""
    is_commit = F.coalesce(F.col("record_type").isin(*OFFSET_COMMIT_TYPES), F.lit(False))
    rows = log.where("kind <> 'damaged'").select(
        *LOG_PARTITION,
        F.when(F.col("kind") == "empty", F.col("batch_base")).otherwise(F.col("log_offset")).alias("first"),
        F.col("log_offset").alias("last"),
        F.coalesce("batch_base", "log_offset").alias("base"),
        F.coalesce("batch_last", "log_offset").alias("end"),
        F.col("batch_base").isNull().alias("is_blind"),
        is_commit.cast("long").alias("commits"),
    )
    order = Window.partitionBy(*LOG_PARTITION).orderBy("first")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    holes = (
        rows.withColumns(
            {
                "first_offset": F.max("last").over(before) + 1,
                "last_offset": F.col("first") - 1,
                "low": F.greatest(F.max("last").over(before), F.max("end").over(before)) + 1,
                "high": F.least("first", "base") - 1,
                "is_blind": F.col("is_blind") | F.lag("is_blind").over(order),
                "commits": F.sum("commits").over(before),
            }
        )
        .where("first_offset <= last_offset")
        .withColumn("commits", F.col("commits") - F.coalesce(F.lag("commits").over(order), F.lit(0)))
    )
    whole = F.array(_part("first_offset", "last_offset", within=True))
    cut = F.array(
        _part("first_offset", F.col("low") - 1, within=True),
        _part("low", "high", within=False),
        _part(F.col("high") + 1, "last_offset", within=True),
    )
    part = F.explode(F.when(F.col("low") > F.col("high"), whole).otherwise(cut)).alias("part")
    return (
        holes.select(*LOG_PARTITION, "is_blind", "commits", part)
        .select(*LOG_PARTITION, "is_blind", "commits", "part.*")
        .where("first_offset <= last_offset")
    )


def _part(first: Column | str, last: Column | str, *, within: bool) -> Column:
    bounds = [F.col(bound) if isinstance(bound, str) else bound for bound in (first, last)]
    return F.struct(
        bounds[0].alias("first_offset"), bounds[1].alias("last_offset"), F.lit(within).alias("within_batch")
    )


def _with_cause(log: DataFrame, history: DataFrame, parts: DataFrame) -> DataFrame:
    """Return the causes of gaps between batches."""
    names = [F.col(name).alias(f"damaged_{name}") for name in LOG_PARTITION]
    damage = damaged_offsets(log).select(*names, "damaged_at")
    in_it = F.col("damaged_at").between(F.col("first_offset"), F.col("last_offset"))
    for name in LOG_PARTITION:
        in_it = in_it & F.col(name).eqNullSafe(F.col(f"damaged_{name}"))
    size = F.col("last_offset") - F.col("first_offset") + 1
    cause = (
        F.when(F.col("is_damaged"), "damaged")
        .when(F.col("is_blind") & (size <= F.col("commits")), "unknown")
        .when(F.col("log_topic").isin(NEVER_COMPACTED), "missing")
        .when(F.col("first_repeat") <= F.col("last_offset"), "missing")
        .otherwise("compaction")
    )
    undamaged = parts.join(damage, in_it, "left_anti").withColumn("is_damaged", F.lit(False))
    damaged = parts.join(damage, in_it, "left_semi").withColumn("is_damaged", F.lit(True))
    return (
        undamaged.unionByName(damaged)
        .join(_first_repeats(history), list(LOG_PARTITION), "left")
        .withColumn("cause", cause)
    ).drop("is_damaged", "first_repeat")


def damaged_offsets(log: DataFrame) -> DataFrame:
    """Where damaged bytes lie: log partition, ``damaged_at``, ``damaged_to``, offsets that are among those lost.

    They are the first and the last one of the damaged batch. Where bytes do not even tell that, it is the one behind
    the last record before them in their file, or the one before the first record. ``is_cut_off``: a file ends there.
    """
    cut_off = F.coalesce(F.col("error").contains(ENDS_WITHIN), F.lit(False)).alias("is_cut_off")
    damaged = log.where("kind = 'damaged'")
    told = damaged.where("batch_base IS NOT NULL").select(
        *LOG_PARTITION, F.col("batch_base").alias("damaged_at"), F.col("batch_last").alias("damaged_to"), cut_off
    )
    untold = damaged.where("batch_base IS NULL")
    if untold.isEmpty():
        return told
    of = ("damaged_source", "damaged_place", "is_cut_off")
    untold = untold.select(
        *LOG_PARTITION, F.col("source").alias("damaged_source"), F.col("place").alias("damaged_place"), cut_off
    )
    files = log.where("kind <> 'damaged'").select(F.col("log_offset").alias("near"), "source", "place")
    beside = untold.join(files, F.col("source") == F.col("damaged_source"), "left")
    before = F.max(F.when(F.col("place") < F.col("damaged_place"), F.col("near"))) + 1
    behind = F.min(F.when(F.col("place") > F.col("damaged_place"), F.col("near"))) - 1
    found = beside.groupBy(*LOG_PARTITION, *of).agg(F.coalesce(before, behind).alias("damaged_at"))
    return told.unionByName(
        found.select(*LOG_PARTITION, "damaged_at", F.col("damaged_at").alias("damaged_to"), "is_cut_off")
    )


def _first_repeats(log: DataFrame) -> DataFrame:
    """Return for each log partition the lowest offset at which a key occurs for the second time."""
    keys = log.where("kind = 'record' AND key_hash IS NOT NULL").select(*LOG_PARTITION, "log_offset", "key_hash")
    nth = F.row_number().over(Window.partitionBy(*LOG_PARTITION, "key_hash").orderBy("log_offset"))
    second = keys.withColumn("nth", nth).where("nth = 2")
    return second.groupBy(*LOG_PARTITION).agg(F.min("log_offset").alias("first_repeat"))


def summary(gaps: DataFrame) -> DataFrame:
    """Return for each log partition: missing offsets by cause, and the largest gaps not caused by compaction."""
    size = F.col("last_offset") - F.col("first_offset") + 1
    by_size = Window.partitionBy(*LOG_PARTITION, F.col("cause") == "compaction").orderBy(size.desc(), "first_offset")
    listed = (F.col("cause") != "compaction") & (F.col("rank") <= LISTED)
    gap = F.struct("first_offset", "last_offset", "cause")
    causes = {"compacted": "compaction", "unknown": "unknown", "missing": "missing", "damaged": "damaged"}
    counts = [
        F.sum(F.when(F.col("cause") == cause, size).otherwise(0)).alias(f"{name}_offsets")
        for name, cause in causes.items()
    ]
    return (
        gaps.withColumn("rank", F.row_number().over(by_size))
        .groupBy(*LOG_PARTITION)
        .agg(*counts, F.sort_array(F.collect_list(F.when(listed, gap))).alias("gaps"))
    )
