"""The histories of all groups with what their findings need, from the tables, one group after the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from coordinator_core.audit.folds.commit_counts import (
    HOUR_MS,
    LENGTHS_MS,
    MOST_INTERVALS,
    CommitCount,
    fitting_length,
)
from coordinator_core.audit.folds.group_history import (
    GroupHistory,
    RecordSize,
)
from coordinator_core.audit.group_audit import AUDITED_TABLES
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.cluster.topic_history import TopicInterval
from jobs.relations.commit_sums import sums_of_groups
from jobs.relations.record_sizes import SIZES, record_size
from jobs.relations.stored_brokers import lines_of_groups
from jobs.relations.stored_logs import LogFacts
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader

OF_GROUP: Final = {table.name: table.row for table in AUDITED_TABLES if table.row is not TopicInterval}
"""The row type of each table that has rows of groups."""

OWN_TIMES: Final = """
SELECT s.group_id AS group_id, max(r.last_ms) AS own_ms FROM $group_states AS s JOIN $log_ranges AS r
ON s.cluster = r.cluster AND s.log_topic = r.log_topic AND s.log_partition = r.log_partition
WHERE s.cluster = :cluster AND s.log_topic IN :topics AND {among} GROUP BY s.group_id
"""
"""The groups that were replayed, and the latest time of their log partition."""

COMMITS_BY_HOUR: Final = f"""
SELECT group_id, hour_ms AS since_ms, CAST({HOUR_MS} AS BIGINT) AS length_ms, CAST(sum(written) AS BIGINT) AS records
FROM $commit_summaries WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0
GROUP BY group_id, hour_ms ORDER BY group_id
"""
FITTING: Final = " ".join(
    f"WHEN (last_ms - last_ms % {each}) - (first_ms - first_ms % {each}) < {each * MOST_INTERVALS} THEN {each}"
    for each in LENGTHS_MS
)
"""The choice of ``fitting_length`` in SQL."""
COMMITS_BY_TIME: Final = f"""
WITH written AS (
  SELECT group_id, timestamp_ms - timestamp_ms % {LENGTHS_MS[0]} AS at_ms, count(*) AS records FROM $offset_commits
  WHERE cluster = :cluster AND NOT is_tombstone AND timestamp_ms >= 0
  GROUP BY group_id, timestamp_ms - timestamp_ms % {LENGTHS_MS[0]}
), spans AS (
  SELECT group_id, at_ms, records, min(at_ms) OVER (PARTITION BY group_id) AS first_ms,
    max(at_ms) OVER (PARTITION BY group_id) AS last_ms FROM written
), placed AS (
  SELECT group_id, at_ms, records, CAST(CASE {FITTING} ELSE {LENGTHS_MS[-1]} END AS BIGINT) AS length_ms FROM spans
), counted AS (
  SELECT group_id, length_ms, at_ms - at_ms % length_ms AS since_ms, records FROM placed
)
SELECT group_id, length_ms, since_ms, CAST(sum(records) AS BIGINT) AS records FROM counted
GROUP BY group_id, length_ms, since_ms ORDER BY group_id
"""
"""Commits are counted by the shortest interval first: each length divides the next one."""


GROUP: Final = itemgetter(0)
Found = tuple[str, list[Any]]
"""A group, and rows of its history."""


def stored_histories(tables: TableReader, cluster: str) -> Iterator[GroupHistory]:
    """Yield the history of each group, by group id; the rows of one group are in memory at a time."""
    return _histories(tables, cluster, None, over_time=True)


def histories_for_findings(tables: TableReader, cluster: str, groups: Sequence[str] | None) -> Iterator[GroupHistory]:
    """Yield the history of each of these groups (None: of all) as findings need it: without commits over time."""
    return iter(()) if groups == [] else _histories(tables, cluster, groups, over_time=False)


def _histories(
    tables: TableReader, cluster: str, groups: Sequence[str] | None, *, over_time: bool
) -> Iterator[GroupHistory]:
    rows = merge(
        *(_together(_rows_of(tables, cluster, table, row_type, groups)) for table, row_type in OF_GROUP.items()),
        sums_of_groups(tables, cluster, groups),
        *([_together(_commit_counts(tables, cluster))] if over_time else ()),
        _together(largest_records(tables, cluster, groups)),
        _together(_own_times(tables, cluster, groups)),
        _together(lines_of_groups(tables, cluster, groups)),
        key=GROUP,
    )
    facts = LogFacts.read(tables, cluster)
    for group_id, mine in groupby(rows, GROUP):
        found: list[Any] = [each for _, rows_of_one in mine for each in rows_of_one]
        own_ms = max((each for each in found if isinstance(each, int)), default=0)
        others = [each for each in found if not isinstance(each, int)]
        if found and all(isinstance(each, BrokerEvent) for each in found):
            continue  # these logs have no record of the group
        yield GroupHistory.gather(group_id, own_ms, others, *facts)


def _together(rows: Iterable[tuple[str, Any]]) -> Iterator[Found]:
    """Yield the rows of each group as one list, from rows by group."""
    return ((group_id, [each for _, each in mine]) for group_id, mine in groupby(rows, GROUP))


def _among(groups: Sequence[str] | None) -> str:
    return "TRUE" if groups is None else "group_id IN :groups"


def _rows_of(
    tables: TableReader, cluster: str, table: str, row_type: type, groups: Sequence[str] | None
) -> Iterator[tuple[str, Any]]:
    read = reader(row_type)
    rows = tables.rows(
        f"SELECT * FROM ${table} WHERE cluster = :cluster AND {_among(groups)} ORDER BY group_id",
        cluster=cluster,
        groups=groups,
    )
    return ((row["group_id"], read(row)) for row in rows)


def _own_times(tables: TableReader, cluster: str, groups: Sequence[str] | None) -> Iterator[tuple[str, int]]:
    """Yield each group that was replayed, and the latest time (ms) of its log partition."""
    rows = tables.rows(
        OWN_TIMES.format(among=_among(groups)) + " ORDER BY group_id",
        cluster=cluster,
        topics=GROUP_TOPICS,
        groups=groups,
    )
    return ((row["group_id"], row["own_ms"] or 0) for row in rows)


def _commit_counts(tables: TableReader, cluster: str) -> Iterator[tuple[str, CommitCount]]:
    """Yield commit records by group and time: over a long time from the sums of hours, else from the commits."""
    (span,) = tables.rows(
        "SELECT min(hour_ms) AS first, max(hour_ms) AS last FROM $commit_summaries "
        "WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0",
        cluster=cluster,
    )
    if span["first"] is None:
        return
    is_long = fitting_length(span["first"] + HOUR_MS - 1, span["last"]) >= HOUR_MS
    for row in tables.rows(COMMITS_BY_HOUR if is_long else COMMITS_BY_TIME, cluster=cluster):
        yield row["group_id"], CommitCount(row["since_ms"], row["length_ms"], row["records"])


def largest_records(
    tables: TableReader, cluster: str, groups: Sequence[str] | None
) -> Iterator[tuple[str, RecordSize]]:
    """Yield the largest records and batches of each group; ``audit.folds.record_sizes`` finds the same in a log."""
    rows = tables.rows(
        SIZES.format(among=_among(groups)) + " ORDER BY group_id", cluster=cluster, topics=GROUP_TOPICS, groups=groups
    )
    return ((row["group_id"], record_size(row)) for row in rows)
