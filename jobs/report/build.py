"""Build the report from the histories of groups, one group at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from coordinator_core.audit.findings.group_history import GroupHistory
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.findings.two_logs import by_log
from coordinator_core.groups.offsets import TopicPartition
from jobs.report.coverage import absent
from jobs.report.data import FORMAT, Bucket, Count, GroupDetail, LogCoverage, Report
from jobs.report.group import counts, detail, ranked

MOST_FINDINGS = 200
MOST_GROUPS = 1000
MOST_WARNINGS = 50
MOST_BUCKETS = 72
BUCKETS_MS = tuple(
    unit * count
    for unit, multiples in (
        (1_000, (1, 2, 5, 10, 15, 30)),
        (60_000, (1, 2, 5, 10, 15, 30)),
        (3_600_000, (1, 2, 3, 6, 12)),
        (86_400_000, (1, 2, 7, 14, 28, 91, 182, 364)),
    )
    for count in multiples
)
"""Round lengths of intervals, in milliseconds."""


class ReportHeader(NamedTuple):
    """Source of a report: cluster, software, logs and warnings."""

    cluster: str
    software: str
    made_ms: int
    coverage: Sequence[LogCoverage]
    topics_known: bool
    warnings: Sequence[str]
    ends: Mapping[TopicPartition, int] = {}
    empty: Sequence[tuple[str, int]] = ()


def build(histories: Iterable[GroupHistory], limits: Thresholds, source: ReportHeader) -> Report:
    """Return the report. ``source.warnings`` may grow while the histories are read."""
    topics: Mapping[str, int] = {}
    groups: list[GroupDetail] = []
    opened: list[tuple[int, str]] = []
    for history in histories:
        topics = history.partitions
        groups.append(detail(history, limits, source.ends))
        rebalances = (row for part in by_log(history) for row in part.rebalances)
        opened += [(row.at.timestamp_ms, row.outcome) for row in rebalances if row.at.timestamp_ms >= 0]
    groups.sort(key=lambda group: (-group.line.score, -group.line.rebalances, group.line.group_id))
    lines = [group.line for group in groups]
    first = min((line.first_ms for line in lines if line.first_ms is not None), default=None)
    last = max((line.last_ms for line in lines if line.last_ms is not None), default=None)
    bucket_ms, activity = buckets(opened)
    found = [row for group in groups for row in group.findings]
    return Report(
        format=FORMAT,
        software=source.software,
        cluster=source.cluster,
        made_ms=source.made_ms,
        first_ms=first,
        last_ms=last,
        coverage=tuple(source.coverage),
        absent=tuple(absent(source.coverage, topics, source.empty)),
        warnings=tuple(source.warnings[:MOST_WARNINGS]),
        warnings_seen=len(source.warnings),
        topics_known=source.topics_known,
        types=counts(line.group_type for line in lines),
        outcomes=_sum(line.outcomes for line in lines),
        verdicts=_sum(line.verdicts for line in lines),
        findings_seen=len(found),
        kinds=counts(row.kind for row in found),
        findings=tuple(nlargest(MOST_FINDINGS, found, key=lambda row: row.score)),
        bucket_ms=bucket_ms,
        activity=activity,
        groups=tuple(groups[:MOST_GROUPS]),
    )


def buckets(opened: Sequence[tuple[int, str]]) -> tuple[int, tuple[Bucket, ...]]:
    """Count rebalances, given as (time, outcome), by interval. Return the interval length, and intervals with any."""
    if not opened:
        return BUCKETS_MS[0], ()
    first, last = min(opened)[0], max(opened)[0]
    span = last - first
    length = next((each for each in BUCKETS_MS if span // each < MOST_BUCKETS - 1), span // (MOST_BUCKETS - 1) + 1)
    counted: dict[int, Counter[str]] = {}
    for time, outcome in opened:
        counted.setdefault(time // length * length, Counter())[outcome] += 1
    return length, tuple(Bucket(since, ranked(counted[since])) for since in sorted(counted))


def _sum(all_counts: Iterable[Sequence[Count]]) -> tuple[Count, ...]:
    total: Counter[str] = Counter()
    for each in all_counts:
        for name, count in each:
            total[name] += count
    return ranked(total)
