"""The histories of groups with what findings need: each kind of rows is a text, whoever brings the rows together.

In this process the rows of a group are merged from one query a kind, sorted by group (``histories``). Spark brings them
together itself, in ``jobs.pipeline.findings``. Both make a history of them with ``gathered``.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from coordinator_core.audit.audited_rows import AUDITED_TABLES
from coordinator_core.audit.folds.commit_times import HOUR_MS, LENGTHS_MS, MOST_INTERVALS, CommitCount, fitting_length
from coordinator_core.audit.folds.group_history import GroupHistory, RecordSize
from coordinator_core.audit.folds.share_deliveries import ShareDelivery
from coordinator_core.audit.folds.two_logs import last_time
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.groups.end_offsets import NewestEnds
from coordinator_core.history.rows import GroupEpochRow, SharePartitionRow
from jobs.relations.brokers import TABLE, has_lines
from jobs.relations.commit_sums import (
    END_TYPES,
    GROUP_ENDS_TEXT,
    SUMMARIES,
    GroupEnd,
    Summary,
    sums_of_group,
    topic_ends,
)
from jobs.relations.deliveries import DELIVERIES, read_delivery
from jobs.relations.logs import LogFacts
from jobs.relations.record_sizes import SIZES
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader, Value
from jobs.tables.row_reader import tuple_reader


class RowKind(NamedTuple):
    """Rows that make up histories: a text with ``group_id`` and these columns, of the groups that ``{among}`` names.

    ``read`` makes of the values of the columns what ``gathered`` takes.
    """

    text: str
    columns: Sequence[str]
    read: Callable[[Sequence[Any]], Any]


class OwnTime(NamedTuple):
    """The latest time (ms) of a log partition of a group that was replayed; None: no record has a time."""

    log_topic: str
    last_ms: int | None


def _rows_of(table: str, row: Any) -> RowKind:
    text = f"SELECT * FROM ${table} WHERE cluster = :cluster AND group_id IS NOT NULL AND {{among}}"
    return RowKind(text, row._fields, tuple_reader(row))


def _own_times(places: str) -> RowKind:
    """Return the groups of a table that has their log partitions."""
    text = f"""
SELECT s.group_id AS group_id, s.log_topic AS log_topic, max(r.last_ms) AS last_ms
FROM {places} AS s JOIN $log_ranges AS r
ON s.cluster = r.cluster AND s.log_topic = r.log_topic AND s.log_partition = r.log_partition
WHERE s.cluster = :cluster AND s.log_topic IN :topics AND {{among}} GROUP BY s.group_id, s.log_topic
"""
    return RowKind(text, OwnTime._fields, OwnTime._make)


ROWS: Final = {
    table.name: _rows_of(table.name, table.row)
    for table in AUDITED_TABLES
    if table.row not in (TopicInterval, SharePartitionRow)
}
"""The rows of history tables that have as many rows as a group has events, and not as its share state has records."""

SHARE_PARTITIONS: Final = {"share_partitions": _rows_of("share_partitions", SharePartitionRow)}
EVENTS: Final = {"events": _rows_of(TABLE, BrokerEvent)}
OWN_TIMES: Final = {"own_times": _own_times("$group_states")}
COMMITTERS: Final = {"own_times": _own_times("(SELECT * FROM $offset_commits WHERE log_offset IS NOT NULL)")}
"""Groups with commits, also of a log that is not replayed yet."""

SUMS: Final = {
    "deliveries": RowKind(DELIVERIES, ShareDelivery._fields, read_delivery),
    "summaries": RowKind(f"{SUMMARIES} AND {{among}}", Summary._fields, Summary._make),
    "group_ends": RowKind(f"{GROUP_ENDS_TEXT} AND {{among}}", GroupEnd._fields, GroupEnd._make),
    "sizes": RowKind(SIZES, ("log_topic", "record_type", "size", "records", "at"), tuple_reader(RecordSize)),
}
"""What findings need of records, commits and share partitions."""

COMMITS_BY_HOUR: Final = f"""
SELECT group_id, hour_ms AS since_ms, CAST({HOUR_MS} AS BIGINT) AS length_ms, CAST(sum(written) AS BIGINT) AS records
FROM $commit_summaries WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0 AND {{among}}
GROUP BY group_id, hour_ms
"""
FITTING: Final = " ".join(
    f"WHEN (last_ms - last_ms % {bound}) - (first_ms - first_ms % {bound}) < {bound * MOST_INTERVALS} THEN {bound}"
    for bound in LENGTHS_MS[:-1]
)
"""The choice of ``fitting_length`` in SQL, but for the longest one."""
COMMITS_BY_TIME: Final = f"""
WITH written AS (
  SELECT group_id, timestamp_ms - timestamp_ms % {LENGTHS_MS[0]} AS at_ms, count(*) AS records FROM $offset_commits
  WHERE cluster = :cluster AND NOT is_tombstone AND timestamp_ms >= 0 AND {{among}}
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
GROUP BY group_id, length_ms, since_ms
"""
"""Commits are counted by the shortest interval first: each length divides the next one."""


GROUP: Final = itemgetter(0)

OfGroup = tuple[str, list[Any]]
"""The id of a group, and some of its rows, which are all of one type."""


def report_histories(
    tables: TableReader,
    cluster: str,
    groups: Sequence[str] | None = None,
    also: Mapping[str, RowKind] = MappingProxyType({}),
) -> Iterator[GroupHistory]:
    """Yield the history of each of these groups (None: of all), by group id, with commits over time, the rows of share
    partitions, and what is wanted ``also``.
    """
    return histories(tables, cluster, groups, {**report_kinds(tables, cluster), **also})


def report_kinds(tables: TableReader, cluster: str) -> dict[str, RowKind]:
    """Return the rows that a report needs, and findings with it."""
    return {**kinds(tables), **SHARE_PARTITIONS, **_commits_over_time(tables, cluster)}


def kinds(tables: TableReader) -> dict[str, RowKind]:
    """Return the rows that findings need."""
    return ROWS | SUMS | OWN_TIMES | _events(tables)


def one_history(tables: TableReader, cluster: str, group_id: str) -> GroupHistory | None:
    """Return the history of a group without its commits; None for a group without records.

    A group that has only committed offsets has an empty one.
    """
    # A group that was replayed has a state: only one without is looked for among all commits.
    for own_times in (OWN_TIMES, COMMITTERS):
        of_group = ROWS | SHARE_PARTITIONS | _events(tables) | own_times
        if (history := next(histories(tables, cluster, [group_id], of_group), None)) is not None:
            return history
    return None


def histories(
    tables: TableReader, cluster: str, groups: Sequence[str] | None, wanted: Mapping[str, RowKind]
) -> Iterator[GroupHistory]:
    """Yield the history of each of these groups (None: of all), by group id; the rows of one group are in memory."""
    rows = merged(tables, cluster, groups, wanted)
    return gathered(rows, LogFacts.read(tables, cluster), topic_ends(tables, cluster))


def merged(
    tables: TableReader, cluster: str, groups: Sequence[str] | None, wanted: Mapping[str, RowKind]
) -> Iterator[OfGroup]:
    """Yield what the kinds make of the rows of these groups (None: of all), by group id, as ``gathered`` takes them."""
    among = "TRUE" if groups is None else "group_id IN :groups"
    rows = (rows_of(tables, kind, among, groups=groups, **given(cluster)) for kind in wanted.values())
    # Groups are merged, and not their rows: there are hundreds of rows of some groups.
    return merge(*map(_by_group, rows), key=GROUP)


def _by_group(rows: Iterable[tuple[str, object]]) -> Iterator[OfGroup]:
    for group_id, of_group in groupby(rows, GROUP):
        yield group_id, [row for _, row in of_group]


def rows_of(tables: TableReader, kind: RowKind, among: str = "TRUE", **values: Value) -> Iterator[tuple[str, object]]:
    """Yield what a kind makes of its rows, by group id; ``among``: an SQL condition on ``group_id``."""
    columns = ", ".join(f"f.{name}" for name in kind.columns)
    text = f"SELECT f.group_id AS of_group, {columns} FROM ({kind.text.format(among=among)}) AS f ORDER BY of_group"
    return ((group_id, kind.read(row)) for group_id, *row in tables.tuples(text, **values))


def given(cluster: str) -> dict[str, Value]:
    """Return the values that the texts name."""
    return {"cluster": cluster, "topics": GROUP_TOPICS, "types": END_TYPES}


def gathered(
    rows: Iterable[OfGroup],
    logs: LogFacts,
    topic_ends: Mapping[str, Sequence[int]],
    ends: NewestEnds = MappingProxyType({}),
) -> Iterator[GroupHistory]:
    """Yield the history of each group from what the kinds make of its rows, which follow each other.

    ``topic_ends``: when topics were deleted (ms), by name. ``ends``: the newest end offsets of data partitions.
    """
    for group_id, of_group in groupby(rows, GROUP):
        by_type: dict[type, list[Any]] = defaultdict(list)
        for _, some in of_group:
            # Each kind makes rows of one type, so that no row has to carry its kind.
            by_type[type(some[0])] += some
        own_times, group_ends = by_type.pop(OwnTime, ()), by_type.pop(GroupEnd, ())
        parts = list(sums_of_group(by_type.pop(Summary, ()), group_ends, topic_ends))
        if not own_times and not parts and not by_type.keys() - {BrokerEvent}:
            continue  # these logs have no record of the group
        parts += (row for rows_of_type in by_type.values() for row in rows_of_type)
        logs_ms = {topic: last_ms or 0 for topic, last_ms in own_times}
        own_ms = last_time(logs_ms, by_type[GroupEpochRow])
        of_two = logs_ms if len(logs_ms) > 1 else {}
        yield GroupHistory.gather(group_id, own_ms, parts, *logs).replaced(logs_ms=of_two, ends=ends)


def _events(tables: TableReader) -> dict[str, RowKind]:
    return EVENTS if has_lines(tables) else {}


def _commits_over_time(tables: TableReader, cluster: str) -> dict[str, RowKind]:
    """Return commit records by group and time: over a long time from the sums of hours, else from the commits."""
    (span,) = tables.rows(
        "SELECT min(hour_ms) AS first, max(hour_ms) AS last FROM $commit_summaries "
        "WHERE cluster = :cluster AND hour_ms >= 0 AND written > 0",
        cluster=cluster,
    )
    if span["first"] is None:
        return {}
    # Where in its hour a commit lies is not known: sums of hours do only if the shortest span between them needs hours.
    is_long = fitting_length(span["first"] + HOUR_MS - 1, span["last"]) >= HOUR_MS
    return {"counts": RowKind(COMMITS_BY_HOUR if is_long else COMMITS_BY_TIME, CommitCount._fields, CommitCount._make)}
