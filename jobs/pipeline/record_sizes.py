"""The largest records and batches of each group; ``audit.findings.record_sizes`` finds the same in a log."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.wire.batch_format import HEADER_SIZE
from jobs.relations.record_sizes import RECORD_BYTES
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.log import PLACED

LOG: Final = ("cluster", "log_topic", "log_partition", "group_id")
AT: Final = "named_struct('partition', bigint(log_partition), 'offset', {0}, 'timestamp_ms', {1})"


def record_sizes(records: DataFrame) -> DataFrame:
    """Return the columns of ``RecordSize`` for each group, from rows of ``group_records``.

    Where the batches of a dump are not known, each record is a batch of its own.
    """
    measured = records.where(F.expr(PLACED) & F.col("log_topic").isin(GROUP_TOPICS)).select(
        *LOG,
        "record_type",
        "log_offset",
        "timestamp_ms",
        F.octet_length("key").cast("bigint").alias("key_bytes"),
        F.coalesce(F.octet_length("value"), F.lit(0)).cast("bigint").alias("value_bytes"),
        F.coalesce("batch_base", "log_offset").alias("base"),
    )
    sized = measured.withColumn("size", F.expr(RECORD_BYTES))
    largest = F.max_by(
        F.struct("size", F.expr(AT.format("log_offset", "timestamp_ms")).alias("at")), _rank("log_offset")
    )
    one = sized.groupBy(*LOG, "record_type").agg(largest.alias("found"))
    alone = (F.col("found.size") + HEADER_SIZE).alias("size")
    one = one.select(*LOG, "record_type", alone, F.lit(1).cast("bigint").alias("records"), "found.at")
    batches = sized.groupBy(*LOG, "base").agg(
        (F.sum("size") + HEADER_SIZE).alias("size"),
        F.count("*").alias("records"),
        F.max_by("timestamp_ms", "log_offset").alias("ended"),
    )
    of_batch = F.struct("size", "records", F.expr(AT.format("base", "ended")).alias("at"))
    all_in_one = batches.groupBy(*LOG).agg(F.max_by(of_batch, _rank("base")).alias("found"))
    no_type = F.lit(None).cast("smallint").alias("record_type")
    return one.unionByName(all_in_one.select(*LOG, no_type, "found.size", "found.records", "found.at"))


def _rank(offset: str) -> Column:
    """Order by size; of equal ones the first in the log is the largest."""
    return F.struct("size", -F.col(offset))
