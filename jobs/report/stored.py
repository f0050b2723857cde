"""The report from the tables: histories from the history tables, coverage computed by Spark."""

from __future__ import annotations

import time
from collections.abc import Iterator

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Family
from jobs.pipeline import given_partitions
from jobs.pipeline.group_history import histories
from jobs.pipeline.log_start import is_start
from jobs.report.build import ReportHeader, build
from jobs.report.coverage import MOST_GAPS
from jobs.report.data import Gap, LogCoverage, Report
from jobs.settings import Settings
from jobs.sources.files import FAMILIES
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_PARTITION, LOG_RECORDS, PLACED
from jobs.tables.results import GROUP_OFFSETS
from jobs.versions import software_version

BLOCK = 1 << 16
"""Number of offsets in a block. Blocks are counted first; rows are sorted only in blocks with missing offsets."""


def stored_report(tables: Tables, settings: Settings) -> Report:
    """Return the report about the cluster of the settings, at the end of what was replayed; empty if nothing was."""
    covered = list(stored_coverage(tables, settings.cluster))
    there = {(log.topic, log.partition) for log in covered}
    given = given_partitions.given(tables).where(F.col("cluster") == settings.cluster)
    places = [(row.log_topic, row.log_partition) for row in given.collect()]
    source = ReportHeader(
        cluster=settings.cluster,
        software=software_version(),
        made_ms=time.time_ns() // 1_000_000,
        coverage=covered,
        topics_known=any(FAMILIES[log.topic] is Family.METADATA for log in covered),
        warnings=[],
        ends=stored_ends(tables, settings.cluster),
        empty=[place for place in places if place not in there],
    )
    return build(histories(tables, settings.cluster), settings.findings, source)


def stored_ends(tables: Tables, cluster: str) -> dict[TopicPartition, int]:
    """Return the end offsets that were given when the committed offsets were stored last."""
    if not tables.exists(GROUP_OFFSETS):
        return {}
    kept = tables.read(GROUP_OFFSETS).where(F.col("cluster") == cluster)
    newest = kept.select(F.max("run_id").alias("run_id"))
    known = kept.join(newest, "run_id").where("end_offset IS NOT NULL").select("topic", "partition", "end_offset")
    return {TopicPartition(row.topic, row.partition): row.end_offset for row in known.distinct().collect()}


def stored_coverage(tables: Tables, cluster: str) -> Iterator[LogCoverage]:
    """Yield the coverage of each log partition in ``log_records``, by kind of log, topic and partition."""
    log = tables.read(LOG_RECORDS).where((F.col("cluster") == cluster) & F.col("log_topic").isin(*FAMILIES))
    log = log.where(F.col("kind").isin("record", "control") & F.expr(PLACED))
    block = F.floor(F.col("log_offset") / BLOCK).alias("block")
    rows = log.select(*LOG_PARTITION, block, "log_offset", "timestamp_ms", is_start().alias("is_start"))
    blocks = _extents(rows, "block")
    found = _together(blocks).collect()
    gaps = _largest_gaps(rows, blocks) if any(row.missing for row in found) else {}
    for row in sorted(found, key=lambda row: (FAMILIES[row.log_topic].value, row.log_topic, row.log_partition)):
        count, largest = gaps.get((row.log_topic, row.log_partition), (0, ()))
        yield LogCoverage(
            topic=row.log_topic,
            partition=row.log_partition,
            first_offset=row.first_offset,
            last_offset=row.last_offset,
            first_ms=row.first_ms,
            last_ms=row.last_ms,
            records=row.records,
            missing=row.missing,
            gap_count=count,
            gaps=largest,
            from_start=row.from_start,
        )


def _extents(rows: DataFrame, *within: str) -> DataFrame:
    time = F.when(F.col("timestamp_ms") >= 0, F.col("timestamp_ms"))
    return rows.groupBy(*LOG_PARTITION, *within).agg(
        F.min("log_offset").alias("first_offset"),
        F.max("log_offset").alias("last_offset"),
        F.min(time).alias("first_ms"),
        F.max(time).alias("last_ms"),
        F.count("*").alias("records"),
        F.bool_or("is_start").alias("from_start"),
    )


def _together(blocks: DataFrame) -> DataFrame:
    """Aggregate the blocks of each log partition; the columns are those of ``LogCoverage`` without the gaps."""
    first, last, records = F.min("first_offset"), F.max("last_offset"), F.sum("records")
    return blocks.groupBy(*LOG_PARTITION).agg(
        first.alias("first_offset"),
        last.alias("last_offset"),
        F.coalesce(F.min("first_ms"), F.lit(-1)).alias("first_ms"),
        F.coalesce(F.max("last_ms"), F.lit(-1)).alias("last_ms"),
        records.alias("records"),
        (last - first + 1 - records).alias("missing"),
        F.bool_or("from_start").alias("from_start"),
    )


def _largest_gaps(rows: DataFrame, blocks: DataFrame) -> dict[tuple[str, int], tuple[int, tuple[Gap, ...]]]:
    """Return for each log partition with gaps: their number, and the largest ones in log order."""
    with_holes = blocks.where("records <= last_offset - first_offset").select(*LOG_PARTITION, "block")
    places = rows.join(with_holes, [*LOG_PARTITION, "block"], "left_semi")
    gaps = _gaps(blocks, LOG_PARTITION, "first_offset", "last_offset").unionByName(
        _gaps(places, (*LOG_PARTITION, "block"), "log_offset", "log_offset")
    )
    size = F.col("last") - F.col("first")
    of_partition = Window.partitionBy(*LOG_PARTITION)
    rank = F.row_number().over(of_partition.orderBy(size.desc(), "first"))
    ranked = gaps.withColumns({"rank": rank, "count": F.count("*").over(of_partition)}).where(
        F.col("rank") <= MOST_GAPS
    )
    listed = F.sort_array(F.collect_list(F.struct("first", "last"))).alias("gaps")
    return {
        (row.log_topic, row.log_partition): (row["count"], tuple(Gap(*gap) for gap in row.gaps))
        for row in ranked.groupBy(*LOG_PARTITION, "count").agg(listed).collect()
    }


def _gaps(parts: DataFrame, within: tuple[str, ...], first: str, last: str) -> DataFrame:
    """Return the offset ranges between adjacent parts of a log."""
    before = F.lag(last).over(Window.partitionBy(*within).orderBy(first))
    gaps = parts.select(*LOG_PARTITION, (before + 1).alias("first"), (F.col(first) - 1).alias("last"))
    return gaps.where("first <= last")
