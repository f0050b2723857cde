"""Fill ``log_ranges``, the offsets that were read of each log partition, and read it.

A range has no gap. So the table is small where the log is whole, and steps that ask what was read need not look at the
log again.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline.decoded_runs import decoded_runs, newest_runs
from jobs.pipeline.log_start import is_start
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_PARTITION, LOG_RANGES, LOG_RECORDS, PLACED
from jobs.tables.spark_reader import sql_text

BLOCK: Final = 1 << 16
"""Number of offsets in a block. Blocks are counted first; rows are put in order only in blocks with missing offsets."""

SEARCHED_TOGETHER: Final = 1 << 20
"""Number of offsets in which one task searches the ranges of places: a busy log partition is no single task."""

OF: Final = ("cluster", "run_id", *LOG_PARTITION, "leader_epoch")
"""All offsets of a range have these in common."""

BARE: Final = (
    "SELECT DISTINCT log_topic, log_partition FROM $log_ranges WHERE cluster = :cluster AND leader_epoch IS NULL"
)
"""Log partitions with ranges of which no leader epoch is known."""


def update(tables: Tables) -> None:
    """Take in the runs that were decoded since the last time."""
    if not tables.exists(LOG_RECORDS):
        return
    tables.create(LOG_RANGES)
    known = newest_runs(tables, LOG_RANGES)
    for cluster, runs in sorted(decoded_runs(tables).items()):
        done = known.get(cluster, "")
        if runs[-1] > done:
            _add(tables, cluster, done, runs[-1])


def _add(tables: Tables, cluster: str, done: str, upto: str) -> None:
    known = tables.engine().rows(BARE, cluster=cluster) if done else ()
    bare = [(row["log_topic"], row["log_partition"]) for row in known]
    better = _learned(_log(tables, cluster, upto), done, bare) if bare else []
    if not better:
        here = _here(tables, cluster, done, upto)
        if here is not None:
            tables.append(LOG_RANGES, here, f"{upto}/{cluster}")
            return
    log, is_new = _log(tables, cluster, upto), F.col("run_id") > done
    if not better:
        written_files.append(tables, LOG_RANGES, ranges(log.where(is_new)), f"{upto}/{cluster}")
        return
    places = " OR ".join(f"(log_topic = {sql_text(topic)} AND log_partition = {number})" for topic, number in better)
    of_rows = f"cluster = {sql_text(cluster)} AND (run_id > {sql_text(done)} OR {places})"
    tables.replace_where(LOG_RANGES, ranges(log.where(is_new | F.expr(places))), of_rows)


def _log(tables: Tables, cluster: str, upto: str) -> DataFrame:
    return tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & (F.col("run_id") <= upto))


def _here(tables: Tables, cluster: str, done: str, upto: str) -> pa.Table | None:
    """Return the rows of new runs that this process has found; None: Spark finds them."""
    # Not at the top: Python workers of Spark have no use for it.
    from jobs.pipeline.ranges_here import ranges_here

    return tables.engine().here(lambda reader: ranges_here(reader, cluster, done, upto, tables.limits.rows))


def _learned(log: DataFrame, done: str, bare: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the log partitions without leader epochs in which a new run has told facts about known rows."""
    revised = log.where((F.col("revised_by") > done) & (F.col("run_id") <= done) & F.expr(PLACED))
    found = {(row.log_topic, row.log_partition) for row in revised.select(*LOG_PARTITION).distinct().collect()}
    return sorted(found & set(bare))


def ranges(log: DataFrame) -> DataFrame:
    """Return rows of ``log_records`` as rows of ``log_ranges``."""
    block = F.floor(F.col("log_offset") / BLOCK).alias("block")
    placed = log.where(F.col("kind").isin("record", "control") & F.expr(PLACED))
    rows = placed.select(*OF, block, "log_offset", "timestamp_ms", is_start().alias("has_start"))
    time = F.when(F.col("timestamp_ms") >= 0, F.col("timestamp_ms"))
    parts = rows.select(
        *(*OF, "block", "has_start"),
        F.col("log_offset").alias("first_offset"),
        F.col("log_offset").alias("last_offset"),
        time.alias("first_ms"),
        time.alias("last_ms"),
        F.lit(1).cast("long").alias("records"),
    )
    blocks = _summed(parts, *OF, "block")
    is_whole = F.col("records") == F.col("last_offset") - F.col("first_offset") + 1
    holed = blocks.where(~is_whole).select(*(F.col(name).alias(f"holed_{name}") for name in (*OF, "block")))
    same = [F.col(name).eqNullSafe(F.col(f"holed_{name}")) for name in (*OF, "block")]
    pieces = parts.join(F.broadcast(holed), same, "left_semi")
    return joined(blocks.where(is_whole).unionByName(pieces).drop("block"))


def joined(parts: DataFrame) -> DataFrame:
    """Return the parts with those that follow each other as one."""
    before = F.lag("last_offset").over(Window.partitionBy(*OF).orderBy("first_offset"))
    begins = F.coalesce(before != F.col("first_offset") - 1, F.lit(True)).cast("int")
    number = F.sum("begins").over(Window.partitionBy(*OF).orderBy("first_offset"))
    return _summed(parts.withColumn("begins", begins).withColumn("range", number), *OF, "range").drop("range")


def _summed(parts: DataFrame, *of: str) -> DataFrame:
    return parts.groupBy(*of).agg(
        F.min("first_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.sum("records").alias("records"),
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
        F.bool_or("has_start").alias("has_start"),
    )


# --- what was read ---------------------------------------------------------------------------------------------------


def extents(found: DataFrame) -> DataFrame:
    """Return one row for each cluster and log partition of these ranges: first and last offset, times, counts."""
    first, last, records = F.min("first_offset"), F.max("last_offset"), F.sum("records")
    return found.groupBy("cluster", *LOG_PARTITION).agg(
        first.alias("first_offset"),
        last.alias("last_offset"),
        F.coalesce(F.min("first_ms"), F.lit(-1)).alias("first_ms"),
        F.coalesce(F.max("last_ms"), F.lit(-1)).alias("last_ms"),
        records.alias("records"),
        (last - first + 1 - records).alias("missing"),
        F.bool_or("has_start").alias("from_start"),
    )


def gaps_between(found: DataFrame) -> DataFrame:
    """Return the offsets that are missing between these ranges: cluster, log partition, ``first``, ``last``."""
    order = Window.partitionBy("cluster", *LOG_PARTITION).orderBy("first_offset")
    gaps = found.select(
        *("cluster", *LOG_PARTITION),
        (F.lag("last_offset").over(order) + 1).alias("first"),
        (F.col("first_offset") - 1).alias("last"),
    )
    return gaps.where("first <= last")


def coverage(found: DataFrame, places: DataFrame) -> DataFrame:
    """Return what is known of the log at these ``places`` (log partition and offset) of one cluster.

    Columns: the place, ``leader_epoch``, ``unbroken_since`` (the first offset of the range without a gap up to it),
    ``gap_follows`` (the log goes on, but the next offset is missing), ``from_start`` (the log was read from its start).
    """
    order = Window.partitionBy(*LOG_PARTITION).orderBy("first_offset")
    begins = F.when(
        F.coalesce(F.lag("last_offset").over(order) == F.col("first_offset") - 1, F.lit(False)), None
    ).otherwise(F.col("first_offset"))
    whole = Window.partitionBy(*LOG_PARTITION)
    known = found.withColumn("begins", begins).select(
        *LOG_PARTITION,
        "first_offset",
        F.struct(
            "leader_epoch",
            "last_offset",
            (F.lead("first_offset").over(order) > F.col("last_offset") + 1).alias("gap_follows"),
            F.bool_or("has_start").over(whole).alias("from_start"),
        ).alias("range"),
        F.last("begins", ignorenulls=True).over(order).alias("unbroken_since"),
    )
    blocks = known.withColumn("block", F.explode(F.sequence(_searched("first_offset"), _searched("range.last_offset"))))
    ranges_of_blocks = blocks.withColumn(
        "log_offset", F.greatest("first_offset", F.col("block") * SEARCHED_TOGETHER)
    ).drop("first_offset")
    rows = ranges_of_blocks.withColumn("is_range", F.lit(0)).unionByName(
        places.select(*LOG_PARTITION, "log_offset", F.lit(1).alias("is_range"), _searched("log_offset").alias("block")),
        allowMissingColumns=True,
    )
    upto = Window.partitionBy(*LOG_PARTITION, "block").orderBy("log_offset", "is_range")
    last_range, since = (F.last(name, ignorenulls=True).over(upto) for name in ("range", "unbroken_since"))
    return (
        rows.withColumns({"range": last_range, "unbroken_since": since})
        .where("is_range = 1 AND log_offset <= range.last_offset")
        .select(
            *(*LOG_PARTITION, "log_offset", "unbroken_since", "range.leader_epoch", "range.from_start"),
            (F.col("range.gap_follows") & (F.col("log_offset") == F.col("range.last_offset"))).alias("gap_follows"),
        )
    )


def _searched(offset: str) -> Column:
    """Return the number of the block in which an offset is searched."""
    return F.floor(F.col(offset) / SEARCHED_TOGETHER)
