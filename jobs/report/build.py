"""Build the report from the histories of groups, one group at a time."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from heapq import nlargest, nsmallest
from types import MappingProxyType
from typing import NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, listed, urgency
from coordinator_core.audit.findings.of_cluster import ClusterSigns, ShowsAll, about_cluster, marked
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commit_times import HOUR_MS, CommitCount, coarsened, fitting_length
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS, TopicsAtEnd
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.report.causes import most_frequent
from jobs.report.coverage import absent
from jobs.report.data import (
    FORMAT,
    Band,
    Bucket,
    Count,
    GroupDetail,
    GroupLag,
    LagLine,
    LogCoverage,
    Report,
    ReportedCheck,
    ReportedFeature,
)
from jobs.report.group_page import counts
from jobs.report.offsets_over_time import fitting
from jobs.report.parts import GroupPart, Opened, part_of
from jobs.tables.night_rows import NightRow

# The page is one file that a browser opens at once, however large the cluster is: each list has its most urgent or its
# newest entries, and the total beside it.
MOST_FINDINGS = 200
MOST_GROUPS = 5000
MOST_WARNINGS = 50
MOST_NIGHTS = 366
"""A year of nights."""
MOST_BANDS = 200
BAND_KINDS = frozenset(
    (FindingKind.COORDINATOR_AWAY, FindingKind.NO_COORDINATOR, FindingKind.STOOD_STILL, FindingKind.ROLLING_DEPLOY)
)
"""Causes, and no consequences such as a storm: a band behind all that it explains."""
MOST_BUCKETS = 72
"""Bars of the chart over time: more cannot be told apart."""
MOST_WORST = 5
MOST_LAGGING = 6
"""Lines in the chart of lag: more cannot be told apart."""
MOST_LAG_HISTORIES = 20
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
    """Source of a report: cluster, software, logs and warnings.

    Lag over time comes from ``lags`` by group id, or from ``lag_of`` (group id, partition of the log), which is asked
    for the groups with the highest lag alone: each question reads a partition of the log again.
    """

    cluster: str
    software: str
    made_ms: int
    coverage: Sequence[LogCoverage]
    topics_known: bool
    warnings: Sequence[str]
    ends: NewestEnds = MappingProxyType({})
    empty: Sequence[tuple[str, int]] = ()
    lags: Mapping[str, tuple[LagLine, ...]] = {}
    lag_of: Callable[[str, int], tuple[LagLine, ...]] | None = None
    nights: Sequence[NightRow] = ()
    checks: Sequence[ReportedCheck] = ()
    since_ms: int | None = None
    until_ms: int | None = None

    def has(self, since_ms: int, until_ms: int) -> bool:
        """Whether some of this time is in the time that is asked for."""
        begins = self.until_ms is None or since_ms <= self.until_ms
        return begins and (self.since_ms is None or until_ms >= self.since_ms)


def build(histories: Iterable[GroupHistory], limits: Thresholds, source: ReportHeader, shows_all: ShowsAll) -> Report:
    """Return the report. ``source.warnings`` may grow while the histories are read; ``shows_all`` is called then."""
    signs, parts, at_end = list[ClusterSigns](), list[GroupPart](), NO_TOPICS
    for history in histories:
        signs.append(ClusterSigns.of(history))
        at_end = history.topics
        parts.append(_in_time(part_of(history, limits, source.ends), source))
    of_groups = (row for part in parts for row in part.group.findings)
    of_cluster, storms = about_cluster(ClusterSigns.of_all(signs), at_end, of_groups, limits, shows_all)
    return assembled(parts, of_cluster, lambda rows: marked(rows, storms), at_end, source)


def assembled(
    parts: Sequence[GroupPart],
    of_cluster: Sequence[FindingRow],
    mark: Callable[[Iterable[FindingRow]], Iterable[FindingRow]],
    at_end: TopicsAtEnd,
    source: ReportHeader,
) -> Report:
    """Return the report of the parts of all groups, with the findings about the cluster; ``mark`` marks findings about
    groups that these cover. ``at_end``: the topics at the end.
    """
    groups = [part.group._replace(lag=source.lags.get(part.group.line.group_id, ())) for part in parts]
    opened = [row for part in parts for row in part.opened if row.time_ms >= 0]
    worst = [part.worst for part in parts if part.worst is not None]
    # Histories come in the order of the log or of the tables; among equals, what the report has must not depend on it.
    groups.sort(key=_most_urgent)
    worst.sort(key=lambda of_group: of_group.rebalance.group_id)
    if source.lag_of is not None:
        groups = _with_lag(groups, source.lag_of)
    groups, commits = _with_commits(groups)
    lines = [group.line for group in groups]
    first = min((line.first_ms for line in lines if line.first_ms is not None), default=None)
    ends = (end_ms for line in lines for end_ms in (line.last_ms, line.stands_still_ms))
    last = max((end for end in ends if end is not None), default=None)
    # Only now is it known over what time the report goes: its intervals are those of all groups.
    groups = groups if first is None or last is None else [fitting(group, first, last) for group in groups]
    bucket_ms, activity = buckets(opened)
    findings = [row for group in groups for row in group.findings]
    of_cluster = [row for row in of_cluster if source.has(row.since_ms, row.until_ms)]
    findings = listed([*mark(findings), *of_cluster])
    return headed(source, at_end)(
        first_ms=first,
        last_ms=last,
        types=counts(line.group_type for line in lines),
        outcomes=_sum(line.outcomes for line in lines),
        verdicts=_sum(line.verdicts for line in lines),
        findings_seen=len(findings),
        kinds=counts(row.kind for row in findings),
        findings=tuple(nsmallest(MOST_FINDINGS, findings, key=urgency)),
        bucket_ms=bucket_ms,
        activity=activity,
        families=counts(line.family for line in opened),
        commits=commits,
        lag=highest_lags((group.line.group_id, group.lag) for group in groups),
        worst=tuple(each.rebalance for each in nlargest(MOST_WORST, worst, key=lambda of_group: of_group.badness)),
        groups=tuple(groups[:MOST_GROUPS]),
        bands=tuple(bands_of([*of_cluster, *(row for group in groups for row in group.findings)])),
    )


def headed(source: ReportHeader, at_end: TopicsAtEnd) -> partial[Report]:
    """Return what makes a report of this source, of what was found; ``at_end``: the topics at the end."""
    return partial(
        Report,
        format=FORMAT,
        software=source.software,
        cluster=source.cluster,
        made_ms=source.made_ms,
        coverage=tuple(source.coverage),
        absent=tuple(absent(source.coverage, at_end.partitions, source.empty)),
        warnings=tuple(source.warnings[:MOST_WARNINGS]),
        warnings_seen=len(source.warnings),
        topics_known=source.topics_known,
        nights=tuple(source.nights[-MOST_NIGHTS:]),
        checks=tuple(source.checks),
        features=tuple(ReportedFeature(name, of.level, of.at) for name, of in at_end.features.items()),
        since_ms=source.since_ms,
        until_ms=source.until_ms,
    )


def bands_of(rows: Iterable[FindingRow]) -> Iterator[Band]:
    """Yield what lay over a time and explains what groups went through then."""
    of_time = (row for row in rows if row.kind in BAND_KINDS)
    for row in nsmallest(MOST_BANDS, of_time, key=urgency):
        yield Band(row.kind, row.group_id, row.since_ms, row.until_ms, row.is_open, row.detail)


def _in_time(part: GroupPart, source: ReportHeader) -> GroupPart:
    """Return the part with the findings and rebalances of the time that is asked for."""
    findings = tuple(row for row in part.group.findings if source.has(row.since_ms, row.until_ms))
    score = max((row.score for row in findings), default=0.0)
    line = part.group.line._replace(findings=len(findings), score=score)
    opened = tuple(row for row in part.opened if source.has(row.time_ms, row.ended_ms))
    worst = part.worst
    if worst is not None and not source.has(worst.rebalance.rebalance.at.timestamp_ms, worst.ended_ms):
        worst = None
    return GroupPart(part.group._replace(findings=findings, line=line), opened, worst)


def _most_urgent(group: GroupDetail) -> tuple[int, float, int, str]:
    """Return the key by which groups are sorted: by their most urgent finding, then by rebalances."""
    rank = Level(group.findings[0].level).rank if group.findings else len(Level)
    return rank, -group.line.score, -group.line.rebalances, group.line.group_id


def _with_lag(groups: Sequence[GroupDetail], lag_of: Callable[[str, int], tuple[LagLine, ...]]) -> list[GroupDetail]:
    """Return the groups, with lag over time for those whose lag is now the highest."""
    known = [
        (max(lags), index)
        for index, group in enumerate(groups)
        if (lags := [offset.lag for offset in group.offsets if offset.lag is not None])
    ]
    chosen = {index for _, index in nlargest(MOST_LAG_HISTORIES, known, key=lambda pair: pair[0])}
    return [
        # All commits of a group are in one partition of the log: any of them names it.
        group._replace(lag=lag_of(group.line.group_id, group.offsets[0].last.partition)) if index in chosen else group
        for index, group in enumerate(groups)
    ]


def _with_commits(groups: Sequence[GroupDetail]) -> tuple[list[GroupDetail], tuple[CommitCount, ...]]:
    """Return the groups with commits in intervals that suit the whole report, and the commits of all groups.

    Over a long time, no group has intervals below an hour: tables keep sums of hours.
    """
    every = [commit for group in groups for commit in group.commits]
    if not every:
        return list(groups), ()
    first, last = min(chart.since_ms for chart in every), max(chart.since_ms for chart in every)
    length = fitting_length(first, last, max(chart.length_ms for chart in every))
    shortest = HOUR_MS if length >= HOUR_MS else 0
    own = [_own_length(group.commits, shortest) for group in groups]
    suited = [group._replace(commits=coarsened(group.commits, each)) for group, each in zip(groups, own, strict=True)]
    return suited, coarsened(every, length)


def highest_lags(by_group: Iterable[tuple[str, Sequence[LagLine]]]) -> tuple[GroupLag, ...]:
    """Return the highest lag of a partition over time of the groups whose lag was the highest."""
    lags = []
    for group_id, lines in by_group:
        highest: dict[int, int | None] = {}
        for line in lines:
            for time, lag in zip(line.times_ms, line.lags, strict=True):
                known = highest.get(time)
                highest[time] = known if lag is None else max(lag, known or 0)
        most = max((value for value in highest.values() if value is not None), default=None)
        if most is not None:
            times = tuple(sorted(highest))
            lags.append((most, GroupLag(group_id, times, tuple(highest[time] for time in times))))
    return tuple(lag for _, lag in nlargest(MOST_LAGGING, lags, key=lambda pair: pair[0]))


def _own_length(commits: Sequence[CommitCount], shortest: int) -> int:
    """Return the interval length (ms) that suits the commits of one group."""
    times = [commit.since_ms for commit in commits]
    least = max([shortest, *(commit.length_ms for commit in commits)])
    return fitting_length(min(times), max(times), least) if times else least


def bucket_length(first_ms: int, last_ms: int) -> int:
    """Return the length (ms) of the intervals of a chart over this time."""
    span = last_ms - first_ms
    # One interval less: a time that does not begin where an interval does reaches into one more.
    return next((each for each in BUCKETS_MS if span // each < MOST_BUCKETS - 1), span // (MOST_BUCKETS - 1) + 1)


def buckets(opened: Sequence[Opened]) -> tuple[int, tuple[Bucket, ...]]:
    """Count rebalances by interval. Return the length of an interval (ms), and the intervals with any."""
    if not opened:
        return BUCKETS_MS[0], ()
    # The time is the first field: rows compare by it.
    length = bucket_length(min(opened).time_ms, max(opened).time_ms)
    outcomes: defaultdict[int, Counter[str]] = defaultdict(Counter)
    families: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for time, outcome, of_family, _ in opened:
        outcomes[time // length * length][outcome] += 1
        families[time // length * length][of_family] += 1
    return length, counted_buckets(outcomes, families)


def counted_buckets(outcomes: Mapping[int, Counter[str]], families: Mapping[int, Counter[str]]) -> tuple[Bucket, ...]:
    """Return the intervals in order, by their beginnings (ms); each has outcomes, ``families`` may lack some."""
    none = Counter[str]()
    return tuple(
        Bucket(since, most_frequent(outcomes[since]), most_frequent(families.get(since, none)))
        for since in sorted(outcomes)
    )


def _sum(all_counts: Iterable[Sequence[Count]]) -> tuple[Count, ...]:
    total: Counter[str] = Counter()
    for part in all_counts:
        for name, count in part:
            total[name] += count
    return most_frequent(total)
