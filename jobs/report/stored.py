"""The report from the tables: histories from the history tables, coverage from the ranges that were read."""

import time
from collections.abc import Iterator
from heapq import nlargest
from itertools import groupby
from operator import itemgetter
from typing import Final

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.records import Family
from jobs.installation import software_version
from jobs.relations.commit_trails import trails_by_text
from jobs.relations.given_partitions import given
from jobs.relations.groups import report_histories
from jobs.relations.knowledge import missing_of_shares, stored_knowledge
from jobs.relations.logs import topics_at_end
from jobs.relations.replay import NOT_REPLAYED, has_replayed_all
from jobs.relations.unreadable import ignored_types
from jobs.relations.up_to_date import newest_run_in
from jobs.report.build import ReportHeader, assembled, build
from jobs.report.coverage import MOST_GAPS
from jobs.report.data import Gap, LogCoverage, Report, ReportedCheck
from jobs.report.lag_lines import stored_lags
from jobs.report.packing import PageTexts
from jobs.report.parts import kept_parts, kept_texts
from jobs.settings import Settings
from jobs.sources.files import FAMILIES
from jobs.tables.night_rows import stored_nights
from jobs.tables.reader import Row, TableReader, known_rows
from jobs.tables.row_reader import reader

PLACE: Final = itemgetter("log_topic", "log_partition")


def stored_report(
    tables: TableReader, settings: Settings, since_ms: int | None = None, until_ms: int | None = None
) -> Report:
    """Return the report about the cluster of the settings, at the end of what was replayed; empty if nothing was.

    Findings and rebalances are those from ``since_ms`` to ``until_ms`` (None: all).
    """
    known = stored_knowledge(tables, settings.cluster)
    source = stored_header(tables, settings, known)._replace(since_ms=since_ms, until_ms=until_ms)
    histories = report_histories(tables, settings.cluster, also=trails_by_text(tables, settings.cluster))
    return build(histories, settings.findings, source, known.shows_all_since)


def kept_report(tables: TableReader, settings: Settings) -> tuple[Report, dict[str, PageTexts]]:
    """Return the same report of all times from what the step findings has just made of each group (``group_pages``),
    and the texts of the pages of its groups.
    """
    cluster = settings.cluster
    source = stored_header(tables, settings, stored_knowledge(tables, cluster))
    parts = [*kept_parts(tables.rows("SELECT summary FROM $group_pages WHERE cluster = :cluster", cluster=cluster))]
    told = "SELECT * FROM $findings WHERE cluster = :cluster AND (group_id IS NULL OR covered)"
    of_cluster, covered = list[FindingRow](), set[FindingRow]()
    for row in map(reader(FindingRow), tables.rows(told, cluster=cluster)):
        if row.group_id is None:
            of_cluster.append(row)
        else:
            # Kept pages have findings without the mark, which is set only when those of all groups are known.
            covered.add(row._replace(covered=False))
    made = assembled(
        parts,
        of_cluster,
        lambda rows: (row._replace(covered=row in covered) for row in rows),
        topics_at_end(tables, cluster) if parts else NO_TOPICS,
        source,
    )
    listed = [group.line.group_id for group in made.groups]
    of_listed = "SELECT group_id, texts FROM $group_pages WHERE cluster = :cluster AND group_id IN :listed"
    return made, kept_texts(tables.rows(of_listed, cluster=cluster, listed=listed))


def stored_header(tables: TableReader, settings: Settings, known: Knowledge) -> ReportHeader:
    """Return the source of a report of all times."""
    covered = list(stored_coverage(tables, settings.cluster))
    there = {(log.topic, log.partition) for log in covered}
    return ReportHeader(
        cluster=settings.cluster,
        software=software_version(),
        made_ms=time.time_ns() // 1_000_000,
        coverage=covered,
        topics_known=any(FAMILIES[log.topic] is Family.METADATA for log in covered),
        warnings=_warnings(known, tables, settings.cluster),
        ends=stored_ends(tables, settings.cluster),
        empty=sorted(given(tables).get(settings.cluster, set()) - there),
        lags=stored_lags(tables, settings.cluster),
        nights=stored_nights(tables, settings.cluster),
        checks=list(stored_checks(tables, settings.cluster)),
    )


VERDICTS: Final = {True: "passed", False: "failed", None: "unknown"}
CHECKS: Final = """
SELECT r.check AS name, r.passed, r.severity, r.about, r.happened, r.observed, r.bound
FROM $check_results AS r
JOIN (SELECT max(run_id) AS run_id FROM $check_results) AS newest ON r.run_id = newest.run_id
WHERE r.cluster = :cluster OR r.cluster IS NULL
"""


def stored_checks(tables: TableReader, cluster: str) -> Iterator[ReportedCheck]:
    """Yield the checks that were made last of a cluster, those that failed first."""
    order = {False: 0, None: 1, True: 2}
    for row in sorted(known_rows(tables, CHECKS, cluster=cluster), key=lambda row: (order[row["passed"]], row["name"])):
        of_check = (row[name] for name in ReportedCheck._fields[2:])
        yield ReportedCheck(row["name"], VERDICTS[row["passed"]], *of_check)


def _warnings(known: Knowledge, tables: TableReader, cluster: str) -> list[str]:
    """Return what the histories lack, in words."""
    return [
        *([] if has_replayed_all(tables, cluster) else [NOT_REPLAYED]),
        *ignored_types(tables, cluster),
        *known.reasons_with_topics(),
        *known.about_history(),
        *missing_of_shares(known, tables, cluster),
    ]


ENDS: Final = """
SELECT DISTINCT topic, partition, end_offset_ms, end_offset FROM $group_offsets
WHERE cluster = :cluster AND run_id = :run_id AND end_offset IS NOT NULL
"""
ENDS_WITH_TOPICS: Final = f"""
SELECT o.topic, o.partition, o.end_offset_ms, o.end_offset, e.topic_id FROM ({ENDS}) AS o
LEFT JOIN (SELECT DISTINCT topic, partition, timestamp_ms, topic_id FROM $end_offsets WHERE cluster = :cluster) AS e
ON o.topic = e.topic AND o.partition = e.partition AND o.end_offset_ms = e.timestamp_ms
"""
"""The ends with the topic ids that snapshots name; other ends have none."""


def stored_ends(tables: TableReader, cluster: str) -> dict[TopicPartition, EndOffset]:
    """Return the end offsets that were given when the committed offsets were stored last."""
    if not tables.exists("group_offsets"):
        return {}
    text = ENDS_WITH_TOPICS if tables.exists("end_offsets") else ENDS
    run_id = newest_run_in(tables, cluster, "group_offsets")
    return {
        TopicPartition(topic, partition): EndOffset(*end)
        for topic, partition, *end in tables.tuples(text, cluster=cluster, run_id=run_id)
    }


def stored_coverage(tables: TableReader, cluster: str) -> Iterator[LogCoverage]:
    """Yield the coverage of each log partition in ``log_ranges``, by kind of log, topic and partition."""
    rows = tables.rows(
        "SELECT log_topic, log_partition, first_offset, last_offset, first_ms, last_ms, records, has_start "
        "FROM $log_ranges WHERE cluster = :cluster AND log_topic IN :topics "
        "ORDER BY log_topic, log_partition, first_offset",
        cluster=cluster,
        topics=sorted(FAMILIES),
    )
    of_logs = [_coverage(place, list(ranges)) for place, ranges in groupby(rows, PLACE)]
    yield from sorted(of_logs, key=lambda each: (FAMILIES[each.topic].value, each.topic, each.partition))


def _coverage(place: tuple[str, int], ranges: list[Row]) -> LogCoverage:
    """Return the coverage of a log partition from its ranges in the order of the log."""
    first, last = ranges[0]["first_offset"], max(row["last_offset"] for row in ranges)
    records = sum(row["records"] for row in ranges)
    gaps, end = [], first
    for row in ranges:
        if row["first_offset"] > end:
            gaps.append(Gap(end, row["first_offset"] - 1))
        end = max(end, row["last_offset"] + 1)
    largest = nlargest(MOST_GAPS, gaps, key=lambda gap: (gap.last - gap.first, -gap.first))
    return LogCoverage(
        topic=place[0],
        partition=place[1],
        first_offset=first,
        last_offset=last,
        first_ms=min((row["first_ms"] for row in ranges if row["first_ms"] is not None), default=-1),
        last_ms=max((row["last_ms"] for row in ranges if row["last_ms"] is not None), default=-1),
        records=records,
        missing=last - first + 1 - records,
        gap_count=len(gaps),
        gaps=tuple(sorted(largest)),
        from_start=any(row["has_start"] for row in ranges),
    )
