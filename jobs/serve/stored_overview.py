"""The first page from the tables of one cluster: what is counted, and the rows that it shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from operator import attrgetter
from typing import Final

from coordinator_core.audit.finding_rows import FindingRow, listed, urgency
from coordinator_core.audit.folds.commit_times import HOUR_MS, CommitCount, coarsened, fitting_length
from coordinator_core.groups.end_offsets import NewestEnds
from jobs.relations.groups import report_histories
from jobs.relations.knowledge import stored_knowledge
from jobs.relations.logs import topics_at_end
from jobs.report.build import MOST_FINDINGS, MOST_WORST, bands_of, bucket_length, counted_buckets, headed, highest_lags
from jobs.report.causes import FAMILY_OF, CauseFamily, most_frequent
from jobs.report.data import Bucket, Count, Report, Worst
from jobs.report.parts import WorstOfGroup, part_of
from jobs.report.stored import stored_header
from jobs.report.worst import IN_SQL
from jobs.serve.group_times import OFFSETS
from jobs.serve.group_types import KNOWN, group_types
from jobs.settings import Settings
from jobs.tables.reader import TableReader, Value, known_rows
from jobs.tables.row_reader import reader

WITHOUT_TIME: Final = -1
INTERVAL: Final = (
    f"CASE WHEN r.at.timestamp_ms < 0 THEN {WITHOUT_TIME} ELSE r.at.timestamp_ms - r.at.timestamp_ms % :length END"
)
OUTCOMES: Final = f"""
SELECT {INTERVAL} AS since_ms, r.outcome AS outcome, count(*) AS rebalances,
  min(r.at.timestamp_ms) AS first_ms, max(r.at.timestamp_ms) AS last_ms
FROM $rebalances AS r WHERE r.cluster = :cluster GROUP BY {INTERVAL}, r.outcome
"""
KEY: Final = "since_ms, group_id, group_type, log_partition, log_offset"
NAMED: Final = " ".join(f"WHEN '{kind}' THEN '{of}'" for kind, of in FAMILY_OF.items() if of is not CauseFamily.UNKNOWN)
FAMILIES: Final = f"""
SELECT {KEY}, family FROM (
  SELECT {KEY}, CASE cause.kind {NAMED} END AS family FROM (
    SELECT {KEY}, each_of(causes) AS cause FROM (
      SELECT {INTERVAL} AS since_ms, r.group_id AS group_id, r.group_type AS group_type,
        r.at.partition AS log_partition, r.at.offset AS log_offset, r.causes AS causes
      FROM $rebalances AS r WHERE r.cluster = :cluster AND r.at.timestamp_ms >= 0 AND cardinality(r.causes) {{number}}
    ) AS r
  ) AS each_cause
) AS named WHERE family IS NOT NULL
"""
CAUSES: Final = f"""
SELECT since_ms, family, count(*) AS rebalances FROM (
  SELECT since_ms, family FROM ({FAMILIES.format(number="= 1")}) AS alone
  UNION ALL
  SELECT since_ms, CASE WHEN min(family) = max(family) THEN min(family) ELSE '{CauseFamily.SEVERAL}' END AS family
  FROM ({FAMILIES.format(number="> 1")}) AS together GROUP BY {KEY}
) AS of_rebalance GROUP BY since_ms, family
"""
"""Rebalances by the family of their causes, as ``family`` has it; those of which no cause is known are not here.

Most have one cause: only the others have to be told apart, which takes memory for each.
"""
MOST_TOLD: Final = 1_000_000
"""Of more rebalances than these, causes are not counted, but outcomes alone: 2 million take 5 s of a processor."""
WORST_A_PASS: Final = 1_000
"""So many rebalances are taken of one pass, as the worst ones may all be of one group."""
WORST: Final = f"""
SELECT r.group_id AS group_id FROM $rebalances AS r
WHERE r.cluster = :cluster AND NOT coalesce(r.group_id IN :seen, FALSE)
ORDER BY {IN_SQL}, r.group_id
"""
"""The groups of the worst rebalances, but for those that were seen."""
VERDICTS: Final = "SELECT verdict, count(*) AS targets FROM $target_audits WHERE cluster = :cluster GROUP BY verdict"
COMMITS: Final = """
SELECT hour_ms, CAST(sum(written) AS BIGINT) AS records FROM $commit_summaries
WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0 GROUP BY hour_ms
"""
TYPES: Final = f"""
SELECT coalesce(t.group_type, '{OFFSETS}') AS name, count(*) AS groups FROM ({KNOWN}) AS k
LEFT JOIN ({{types}}) AS t ON k.group_id = t.group_id
GROUP BY coalesce(t.group_type, '{OFFSETS}')
"""


def stored_overview(tables: TableReader, settings: Settings) -> Report:
    """Return the report without its groups."""
    cluster = settings.cluster
    types = group_types(tables, cluster)
    known = stored_knowledge(tables, cluster)
    source = stored_header(tables, settings, known)
    first = min((log.first_ms for log in source.coverage if log.first_ms >= 0), default=None)
    last = max((log.last_ms for log in source.coverage), default=None) if first is not None else None
    length, activity, unnamed = _activity(tables, cluster, bucket_length(first or 0, last or 0))
    outcomes, families = Counter[str](), Counter[str]()
    for _, of_outcome, of_family in activity:
        outcomes.update(dict(of_outcome))
        families.update(dict(of_family))
    outcomes.update(unnamed)
    found = _findings(tables, cluster)
    commits = [CommitCount(row["hour_ms"], HOUR_MS, row["records"]) for row in tables.rows(COMMITS, cluster=cluster)]
    commit_length = fitting_length(commits[0].since_ms, commits[-1].since_ms, HOUR_MS) if commits else HOUR_MS
    return headed(source, topics_at_end(tables, cluster))(
        first_ms=first,
        last_ms=last,
        types=_counts(tables, TYPES.format(types=types.text), cluster=cluster, **types.values),
        outcomes=most_frequent(outcomes),
        verdicts=_counts(tables, VERDICTS, cluster=cluster),
        findings_seen=len(found),
        kinds=most_frequent(Counter(str(row.kind) for row in found)),
        findings=tuple(sorted(found, key=urgency)[:MOST_FINDINGS]),
        bucket_ms=length,
        activity=activity,
        families=most_frequent(families),
        commits=coarsened(commits, commit_length),
        worst=tuple(_worst(tables, settings, source.ends)),
        lag=highest_lags(source.lags.items()),
        groups=(),
        bands=tuple(bands_of(found)),
    )


def _activity(tables: TableReader, cluster: str, length: int) -> tuple[int, tuple[Bucket, ...], Counter[str]]:
    """Return how long an interval is (ms), the rebalances in each, and the outcomes of those without a time.

    ``length`` is that of the time of the logs, which mostly is that of the rebalances, too.
    Every rebalance is counted by the engine: what comes here is a row for each interval and name.
    """
    rows = list(tables.tuples(OUTCOMES, cluster=cluster, length=length))
    times = [time for since, *_, begin, end in rows if since != WITHOUT_TIME for time in (begin, end)]
    fitting = bucket_length(min(times, default=0), max(times, default=0))
    if fitting != length:
        length, rows = fitting, list(tables.tuples(OUTCOMES, cluster=cluster, length=fitting))
    outcomes, families = defaultdict[int, Counter[str]](Counter), defaultdict[int, Counter[str]](Counter)
    for since, outcome, rebalances, *_ in rows:
        outcomes[since][outcome] += rebalances
    unnamed = outcomes.pop(WITHOUT_TIME, Counter[str]())
    if sum(each.total() for each in outcomes.values()) <= MOST_TOLD:
        for since, family, rebalances in tables.tuples(CAUSES, cluster=cluster, length=length):
            families[since][family] += rebalances
        for since, of_outcome in outcomes.items():
            if without := of_outcome.total() - families[since].total():
                families[since][CauseFamily.UNKNOWN] += without
    return length, counted_buckets(outcomes, families), unnamed


def _worst(tables: TableReader, settings: Settings, ends: NewestEnds) -> Iterator[Worst]:
    """Yield the worst rebalances, of one group each: only these groups are read."""
    seen: list[str] = []
    text = f"{WORST} LIMIT {WORST_A_PASS}"
    while len(seen) < MOST_WORST:
        of_pass = [group_id for (group_id,) in tables.tuples(text, cluster=settings.cluster, seen=seen)]
        seen = [*seen, *dict.fromkeys(of_pass)][:MOST_WORST]
        if len(of_pass) < WORST_A_PASS:
            break
    worst: list[WorstOfGroup] = []
    for history in report_histories(tables, settings.cluster, seen) if seen else ():
        of_group = part_of(history, settings.findings, ends).worst
        worst += () if of_group is None else (of_group,)
    yield from (each.rebalance for each in sorted(worst, key=attrgetter("badness"), reverse=True))


def _findings(tables: TableReader, cluster: str) -> list[FindingRow]:
    rows = known_rows(tables, "SELECT * FROM $findings WHERE cluster = :cluster", cluster=cluster)
    return listed(map(reader(FindingRow), rows))


def _counts(tables: TableReader, sql: str, **values: Value) -> tuple[Count, ...]:
    return most_frequent(Counter(dict(tables.tuples(sql, **values))))
