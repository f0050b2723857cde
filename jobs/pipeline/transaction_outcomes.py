"""Outcomes of transactions that a dump leaves open, or unknown because offsets without a record follow.

The next marker of the producer decides a transactional record. Compaction keeps it as long as a record of its
transaction is left, so a gap that compaction explains changes nothing; but where data is missing in between, or the
dump cannot show control records there, the true marker may have been among it: the outcome stays unknown.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from coordinator_core.wire.transactions import BY_CONTROL_TYPE, TransactionOutcome
from jobs.relations.gaps import GAPS, NEVER_COMPACTED
from jobs.tables.columns import LOG_PARTITION
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RANGES, LOG_RECORDS

UNDECIDED: Final = (
    "kind = 'record' AND is_transactional "
    f"AND outcome IN ('{TransactionOutcome.OPEN.value}', '{TransactionOutcome.UNKNOWN.value}')"
)
"""Records whose outcome the log may still tell."""

BEGINS: Final = (
    "SELECT log_topic, log_partition, min(log_offset) AS floor FROM $log_records "
    f"WHERE cluster = :cluster AND {UNDECIDED} GROUP BY log_topic, log_partition"
)
LOST: Final = f"SELECT * FROM ({GAPS.format(begins=BEGINS)}) AS gaps WHERE cause <> 'compaction'"
"""The gaps not caused by compaction after the first undecided record of each log partition."""

GAP: Final = StructType([LOG_RANGES.schema[name] for name in (*LOG_PARTITION, "first_offset")])


def settle(tables: Tables, cluster: str, run_id: str) -> None:
    """Set the outcome of open and unknown records from everything that was ingested so far."""
    there = tables.engine().rows(
        f"SELECT kind FROM $log_records WHERE cluster = :cluster AND {UNDECIDED} LIMIT 1", cluster=cluster
    )
    if next(there, None) is None:
        return
    log = tables.read(LOG_RECORDS).where(F.col("cluster") == cluster)
    undecided = log.where(UNDECIDED)
    # The table that is read here is changed with the result, by Spark.
    lost = tables.engine().in_spark().made(LOST, GAP, cluster=cluster, never=NEVER_COMPACTED)
    decided = decide(undecided, markers(log), lost)
    changed = decided.where("outcome <> outcome_before").drop("outcome_before")
    if not changed.isEmpty():
        tables.merge(LOG_RECORDS, changed, {"outcome": "s.outcome", "revised_by": f"'{run_id}'"})


def markers(log: DataFrame) -> DataFrame:
    """Return the ends of transactions: log partition, producer, ``marker`` (offset, epoch, outcome)."""
    said = F.create_map(*(F.lit(text) for item in BY_CONTROL_TYPE.items() for text in (item[0], item[1].value)))
    marker = F.struct(
        F.col("log_offset").alias("offset"),
        F.col("producer_epoch").alias("epoch"),
        F.coalesce(said[F.col("control_type")], F.lit(TransactionOutcome.UNKNOWN.value)).alias("said"),
    )
    ends = log.where("is_transactional AND control_type IS NOT NULL")
    return ends.select(*LOG_PARTITION, "stray", "producer_id", "log_offset", marker.alias("marker"))


def decide(undecided: DataFrame, ends: DataFrame, gaps: DataFrame) -> DataFrame:
    """Return the undecided rows by the key of ``log_records``, with ``outcome`` and ``outcome_before``.

    The next marker of the producer decides, unless one of the ``gaps`` lies before it; its epoch is that of the data
    or higher, or it is not theirs.
    """
    rows = undecided.select(*LOG_RECORDS.key, "producer_id", "producer_epoch", F.col("outcome").alias("outcome_before"))
    # Looking back over descending offsets instead of ahead over ascending ones: Spark does that in one pass.
    behind = Window.partitionBy(*LOG_PARTITION, "stray", "producer_id").orderBy(F.desc("log_offset"))
    following = F.last("marker", ignorenulls=True).over(behind.rowsBetween(Window.unboundedPreceding, -1))
    both = rows.withColumn("is_marker", F.lit(False)).unionByName(
        ends.withColumn("is_marker", F.lit(True)), allowMissingColumns=True
    )
    found = both.withColumn("next", following).where("NOT is_marker")
    begins = gaps.select(*LOG_PARTITION, "first_offset").toDF(*(f"gap_{name}" for name in LOG_PARTITION), "gap")
    crossed = [F.col(name) == F.col(f"gap_{name}") for name in LOG_PARTITION]
    crossed += [F.col("gap") > F.col("log_offset"), F.col("next").isNull() | (F.col("gap") < F.col("next.offset"))]
    said = (
        F.when(F.col("next").isNull(), TransactionOutcome.OPEN.value)
        .when(F.col("next.epoch") >= F.col("producer_epoch"), F.col("next.said"))
        .otherwise(TransactionOutcome.UNKNOWN.value)
    )
    proven = found.join(begins, crossed, "left_anti").withColumn("outcome", said)
    doubtful = found.join(begins, crossed, "left_semi").withColumn("outcome", F.lit(TransactionOutcome.UNKNOWN.value))
    return proven.unionByName(doubtful).select(*LOG_RECORDS.key, "outcome", "outcome_before")
