"""The report from the tables: histories from the history tables, coverage from the ranges that were read."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Family
from jobs.pipeline import given_partitions, log_ranges
from jobs.pipeline.findings import INPUTS
from jobs.pipeline.group_history import histories
from jobs.report.build import ReportHeader, build
from jobs.report.coverage import MOST_GAPS
from jobs.report.data import FORMAT, Gap, LogCoverage, Report
from jobs.settings import Settings
from jobs.sources.files import FAMILIES
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_PARTITION, LOG_RANGES, RUNS
from jobs.tables.lookup import changed_ms
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.results import FINDINGS, GROUP_OFFSETS
from jobs.versions import software_version


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


def is_current(tables: Tables, settings: Settings, out: Path) -> bool:
    """Return whether the report in this file is what ``stored_report`` would return now.

    Thresholds are those of the findings in the tables.
    """
    data = out.with_suffix(".json")
    if not (out.is_file() and data.is_file()):
        return False
    made = json.loads(data.read_text(encoding="utf-8"))
    same = (made.get("format"), made.get("software"), made.get("cluster"))
    if same != (FORMAT, software_version(), settings.cluster):
        return False
    return bool(changed_ms(tables, (*INPUTS, FINDINGS, GROUP_OFFSETS, RUNS, DUMPED_FILES)) < made["made_ms"])


def stored_ends(tables: Tables, cluster: str) -> dict[TopicPartition, int]:
    """Return the end offsets that were given when the committed offsets were stored last."""
    if not tables.exists(GROUP_OFFSETS):
        return {}
    kept = tables.read(GROUP_OFFSETS).where(F.col("cluster") == cluster)
    newest = kept.select(F.max("run_id").alias("run_id"))
    known = kept.join(newest, "run_id").where("end_offset IS NOT NULL").select("topic", "partition", "end_offset")
    return {TopicPartition(row.topic, row.partition): row.end_offset for row in known.distinct().collect()}


def stored_coverage(tables: Tables, cluster: str) -> Iterator[LogCoverage]:
    """Yield the coverage of each log partition in ``log_ranges``, by kind of log, topic and partition."""
    ranges = tables.read(LOG_RANGES).where((F.col("cluster") == cluster) & F.col("log_topic").isin(*FAMILIES))
    found = log_ranges.extents(ranges).collect()
    gaps = _largest_gaps(ranges) if any(row.missing for row in found) else {}
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


def _largest_gaps(ranges: DataFrame) -> dict[tuple[str, int], tuple[int, tuple[Gap, ...]]]:
    """Return for each log partition with gaps: their number, and the largest ones in log order."""
    of_partition = Window.partitionBy(*LOG_PARTITION)
    rank = F.row_number().over(of_partition.orderBy((F.col("last") - F.col("first")).desc(), "first"))
    ranked = log_ranges.gaps_between(ranges).withColumns({"rank": rank, "count": F.count("*").over(of_partition)})
    listed = F.sort_array(F.collect_list(F.struct("first", "last"))).alias("gaps")
    found = ranked.where(F.col("rank") <= MOST_GAPS).groupBy(*LOG_PARTITION, "count").agg(listed).collect()
    return {(row.log_topic, row.log_partition): (row["count"], tuple(Gap(*gap) for gap in row.gaps)) for row in found}
