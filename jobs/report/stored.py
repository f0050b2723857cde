"""The report from the tables: histories come from the tables of history, coverage is counted by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.records import Family
from jobs.gaps import PARTITION
from jobs.log_reader import FIRST_SEGMENT
from jobs.log_schema import LOG_RECORDS
from jobs.report.build import Source, build
from jobs.report.coverage import MOST_GAPS
from jobs.report.data import Gap, LogCoverage, Report
from jobs.settings import Settings
from jobs.sources.files import FAMILIES
from jobs.stored_history import histories
from jobs.tables import Tables
from jobs.versions import software_version


def stored_report(tables: Tables, settings: Settings) -> Report:
    """The report on the cluster that the settings name, as of the end of what was replayed; empty if nothing was."""
    covered = list(stored_coverage(tables, settings.cluster))
    source = Source(
        cluster=settings.cluster,
        software=software_version(),
        made_ms=time.time_ns() // 1_000_000,
        coverage=covered,
        topics_known=any(FAMILIES[log.topic] is Family.METADATA for log in covered),
        warnings=[],
    )
    return build(histories(tables, settings.cluster), settings.findings, source)


def stored_coverage(tables: Tables, cluster: str) -> Iterator[LogCoverage]:
    """What there is of each log partition in ``log_records``, by kind of log, topic and partition."""
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & F.col("log_topic").isin(*FAMILIES))
    log = log.where("kind IN ('record', 'control') AND log_offset IS NOT NULL AND log_partition IS NOT NULL")
    before = F.lag("log_offset").over(Window.partitionBy(*PARTITION).orderBy("log_offset"))
    is_start = (F.col("log_offset") == 0) | F.col("source").endswith(FIRST_SEGMENT)
    rows = log.select(*PARTITION, "log_offset", "timestamp_ms", is_start.alias("is_start"))
    rows = rows.withColumn("first", before + 1)
    found = _extents(rows).collect()
    largest = _largest_gaps(rows)
    for row in sorted(found, key=lambda row: (FAMILIES[row.log_topic].value, row.log_topic, row.log_partition)):
        gaps = tuple(sorted(largest.get((row.log_topic, row.log_partition), [])))
        yield LogCoverage(row.log_topic, row.log_partition, *row[2:-1], gaps, row.from_start)


def _extents(rows: DataFrame) -> DataFrame:
    """Columns as ``LogCoverage`` has them, but for the gaps."""
    time = F.when(F.col("timestamp_ms") >= 0, F.col("timestamp_ms"))
    missing = F.col("log_offset") - F.col("first")
    return rows.groupBy(*PARTITION).agg(
        F.min("log_offset").alias("first_offset"),
        F.max("log_offset").alias("last_offset"),
        F.coalesce(F.min(time), F.lit(-1)).alias("first_ms"),
        F.coalesce(F.max(time), F.lit(-1)).alias("last_ms"),
        F.count("*").alias("records"),
        F.coalesce(F.sum(missing), F.lit(0)).alias("missing"),
        F.count_if(missing > 0).alias("gap_count"),
        F.bool_or("is_start").alias("from_start"),
    )


def _largest_gaps(rows: DataFrame) -> dict[tuple[str, int], list[Gap]]:
    size = F.col("log_offset") - F.col("first")
    rank = F.row_number().over(Window.partitionBy(*PARTITION).orderBy(size.desc(), "first"))
    ranked = rows.where(size > 0).withColumn("rank", rank).where(F.col("rank") <= MOST_GAPS)
    found: dict[tuple[str, int], list[Gap]] = {}
    for row in ranked.collect():
        found.setdefault((row.log_topic, row.log_partition), []).append(Gap(row["first"], row.log_offset - 1))
    return found
