"""Outcomes of transactions that one dump leaves open and a later part of the log decides."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.wire.transactions import BY_CONTROL_TYPE, Outcome
from jobs.log_schema import LOG_RECORDS
from jobs.tables import Tables


def settle(tables: Tables, cluster: str, run_id: str) -> None:
    """Give open records the outcome that the next marker of their producer states."""
    log = tables.read(LOG_RECORDS).where(F.col("cluster") == cluster)
    undecided = log.where(F.col("outcome") == Outcome.OPEN.value)
    if undecided.isEmpty():
        return
    decided = decide(undecided, markers(log))
    if not decided.isEmpty():
        tables.merge(LOG_RECORDS, decided, {"outcome": "s.outcome", "revised_by": f"'{run_id}'"})


def markers(log: DataFrame) -> DataFrame:
    """Where transactions end: partition, producer, ``marker_offset``, ``marker_epoch`` and what it says."""
    said = F.create_map(*(F.lit(text) for item in BY_CONTROL_TYPE.items() for text in (item[0], item[1].value)))
    return log.where("is_transactional AND control_type IS NOT NULL").select(
        F.col("log_topic").alias("marker_topic"),
        F.col("log_partition").alias("marker_partition"),
        F.col("producer_id").alias("marker_producer"),
        F.col("producer_epoch").alias("marker_epoch"),
        F.col("log_offset").alias("marker_offset"),
        F.coalesce(said[F.col("control_type")], F.lit(Outcome.UNKNOWN.value)).alias("said"),
    )


def decide(undecided: DataFrame, ends: DataFrame) -> DataFrame:
    """The undecided rows that have a later marker, by the key of ``log_records``, with their ``outcome``.

    The next marker of the producer decides; its epoch is that of the data or higher, or it is not theirs.
    """
    later = (
        F.col("log_topic").eqNullSafe(F.col("marker_topic"))
        & F.col("log_partition").eqNullSafe(F.col("marker_partition"))
        & (F.col("producer_id") == F.col("marker_producer"))
        & (F.col("log_offset") < F.col("marker_offset"))
    )
    next_marker = F.min_by(F.struct("said", "marker_epoch"), "marker_offset")
    decided = undecided.join(ends, later).groupBy(*LOG_RECORDS.key, "producer_epoch").agg(next_marker.alias("next"))
    is_theirs = F.col("next.marker_epoch") >= F.col("producer_epoch")
    return decided.select(
        *LOG_RECORDS.key, F.when(is_theirs, F.col("next.said")).otherwise(Outcome.UNKNOWN.value).alias("outcome")
    )
