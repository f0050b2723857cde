"""The histories of all groups with what their findings need, from the tables, one group after the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from coordinator_core.audit.folds.commit_counts import (
    HOUR_MS,
    LENGTHS_MS,
    MOST_INTERVALS,
    CommitCount,
    fitting_length,
)
from coordinator_core.audit.folds.group_history import (
    GroupHistory,
    OpenTransaction,
    PartitionCommits,
    RecordSize,
    Removal,
    Rewind,
)
from coordinator_core.audit.folds.removals import how_removed, removal_window
from coordinator_core.audit.group_audit import AUDITED_TABLES
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.cluster.topic_history import TopicInterval
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.records import LogPosition
from coordinator_core.wire.batch_format import HEADER_SIZE
from coordinator_core.wire.transactions import TransactionOutcome
from jobs.relations.record_sizes import RECORD_BYTES
from jobs.relations.stored_brokers import lines_of_groups
from jobs.relations.stored_logs import LogFacts
from jobs.sources.files import GROUP_TOPICS
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader

OF_GROUP: Final = {table.name: table.row for table in AUDITED_TABLES if table.row is not TopicInterval}
"""The row type of each table that has rows of groups."""

OF_LOG: Final = "log_topic, log_partition, group_id"

SIZES: Final = f"""
WITH measured AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, coalesce(batch_base, log_offset) AS base,
    CAST(bytes_of(key) AS BIGINT) AS key_bytes, CAST(coalesce(bytes_of(value), 0) AS BIGINT) AS value_bytes
  FROM $group_records WHERE cluster = :cluster AND log_topic IN :topics AND {{among}} AND log_offset IS NOT NULL
    AND log_partition IS NOT NULL
), sized AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, base, {RECORD_BYTES} AS size FROM measured
), in_batches AS (
  SELECT {OF_LOG}, record_type, log_offset, timestamp_ms, size, base,
    row_number() OVER (PARTITION BY {OF_LOG}, record_type ORDER BY size DESC, log_offset) AS nth,
    sum(size) OVER (PARTITION BY {OF_LOG}, base) AS total,
    count(*) OVER (PARTITION BY {OF_LOG}, base) AS records,
    row_number() OVER (PARTITION BY {OF_LOG}, base ORDER BY log_offset DESC) AS from_end
  FROM sized
), batches AS (
  SELECT {OF_LOG}, base, total, records, timestamp_ms,
    row_number() OVER (PARTITION BY {OF_LOG} ORDER BY total DESC, base) AS nth
  FROM in_batches WHERE from_end = 1
)
SELECT {OF_LOG}, CAST(record_type AS INT) AS record_type, size + {HEADER_SIZE} AS size, CAST(1 AS BIGINT) AS records,
  log_offset, timestamp_ms
FROM in_batches WHERE nth = 1
UNION ALL
SELECT {OF_LOG}, CAST(NULL AS INT), total + {HEADER_SIZE}, records, base, timestamp_ms FROM batches WHERE nth = 1
ORDER BY group_id
"""
"""The largest record of each type with a batch of its own, and the largest batch, which has no type; of equal ones the
first in the log.
"""

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


class _Summary(NamedTuple):
    """What the histories need of a row of all commits of ``commit_summaries``."""

    group_id: str
    log_topic: str
    log_partition: int
    topic: str
    partition: int
    commits: int | None
    ended: int | None
    offset: int | None
    first_partition: int
    first_offset: int
    first_ms: int
    last_partition: int
    last_offset: int
    last_ms: int
    rewinds: Sequence[Mapping[str, Any]] | None
    removals: Sequence[Mapping[str, Any]] | None
    pending: Sequence[Mapping[str, Any]] | None


NESTED: Final = {
    "offset": "s.committed.committed_offset",
    **{
        f"{end}_{name}": f"s.{end}.{part}"
        for end in ("first", "last")
        for name, part in zip(("partition", "offset", "ms"), LogPosition._fields, strict=True)
    },
    **{name: f"CASE WHEN cardinality(s.{name}) > 0 THEN s.{name} END" for name in ("rewinds", "removals", "pending")},
}
"""Most partitions have no steps. Structs and lists take most of the time that a row takes on its way here."""

SUMMARY: Final = ", ".join(f"{NESTED.get(name, f's.{name}')} AS {name}" for name in _Summary._fields)

GROUP: Final = itemgetter(0)
Found = tuple[str, list[Any]]
"""A group, and rows of its history."""

Place = tuple[str, str, int]
"""Group, log topic and log partition."""
OF_PLACE: Final = itemgetter(0, 1, 2)


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
        _commits(tables, cluster, groups),
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
        "SELECT s.group_id AS group_id, max(r.last_ms) AS own_ms FROM $group_states AS s JOIN $log_ranges AS r "
        "ON s.cluster = r.cluster AND s.log_topic = r.log_topic AND s.log_partition = r.log_partition "
        f"WHERE s.cluster = :cluster AND s.log_topic IN :topics AND {_among(groups)} GROUP BY s.group_id "
        "ORDER BY group_id",
        cluster=cluster,
        topics=GROUP_TOPICS,
        groups=groups,
    )
    return ((row["group_id"], row["own_ms"] or 0) for row in rows)


def _commits(tables: TableReader, cluster: str, groups: Sequence[str] | None) -> Iterator[Found]:
    """Yield for each group and log partition the sums of its commits for each partition, and its open transactions."""
    rows = tables.tuples(
        f"SELECT {SUMMARY} FROM $commit_summaries AS s WHERE cluster = :cluster AND hour_ms IS NULL "
        f"AND {_among(groups)} ORDER BY group_id, log_topic, log_partition",
        cluster=cluster,
        groups=groups,
    )
    group_ends, topic_ends = _group_ends(tables, cluster), _topic_ends(tables, cluster)
    for place, of_group in groupby(map(_Summary._make, rows), OF_PLACE):
        summaries, ends = list(of_group), group_ends.get(place, ())
        found: list[Any] = [
            _partition_commits(each, ends, topic_ends.get(each.topic, ())) for each in summaries if each.commits
        ]
        yield place[0], [*found, *_open_transactions(summaries)]


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
    """Yield the largest records and batches of each group; ``audit.findings.record_sizes`` finds the same in a log."""
    for row in tables.rows(SIZES.format(among=_among(groups)), cluster=cluster, topics=GROUP_TOPICS, groups=groups):
        at = LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"])
        yield row["group_id"], RecordSize(row["log_topic"], row["record_type"], row["size"], row["records"], at)


def _partition_commits(row: _Summary, group_ends: Sequence[LogPosition], topic_ends: Sequence[int]) -> PartitionCommits:
    """Return the sums; ``group_ends``: positions of the group's tombstones; ``topic_ends``: deletions of the topic."""
    rewinds: tuple[Rewind, ...] = ()
    removals: tuple[Removal, ...] = ()
    if row.rewinds is not None:
        rewinds = tuple(Rewind(LogPosition(**each["at"]), each["before"], each["after"]) for each in row.rewinds)
    if row.removals is not None:
        removals = tuple(_removal(each, group_ends, topic_ends) for each in row.removals)
    return PartitionCommits(
        row.topic,
        row.partition,
        row.commits or 0,
        LogPosition(row.first_partition, row.first_offset, row.first_ms),
        LogPosition(row.last_partition, row.last_offset, row.last_ms),
        row.offset,
        rewinds,
        removals,
    )


def _removal(row: Mapping[str, Any], group_ends: Sequence[LogPosition], topic_ends: Sequence[int]) -> Removal:
    at = LogPosition(**row["at"])
    return Removal(at, row["offset"], _cause(at, group_ends, topic_ends, row))


def _cause(
    at: LogPosition, group_ends: Sequence[LogPosition], topic_ends: Sequence[int], row: Mapping[str, Any]
) -> str:
    """Return the cause of a tombstone of an offset.

    A coordinator that deletes a group writes the tombstones of its offsets before that of the group, at the same time.
    """
    if any(end.timestamp_ms == at.timestamp_ms and end.offset > at.offset for end in group_ends):
        return "group deleted"
    if any(since <= at.timestamp_ms <= until for since, until in map(removal_window, topic_ends)):
        return "topic deleted"
    return how_removed(row["age_ms"], past_expiry=bool(row["past_expiry"]))


def _open_transactions(summaries: Sequence[_Summary]) -> Iterator[OpenTransaction]:
    """Yield the transactions of one group without an end in the log, as far as no tombstone ended their commits."""
    positions: dict[int, list[LogPosition]] = defaultdict(list)
    partitions: dict[int, set[tuple[str, int]]] = defaultdict(set)
    for row in summaries:
        ended = -1 if row.ended is None else row.ended
        for each in row.pending or ():
            if each["outcome"] == TransactionOutcome.OPEN.value and each["log_offset"] > ended:
                producer_id = each["producer_id"]
                positions[producer_id].append(LogPosition(row.log_partition, each["log_offset"], each["timestamp_ms"]))
                partitions[producer_id].add((row.topic, row.partition))
    for producer_id, found in positions.items():
        yield OpenTransaction(producer_id, min(found), len(partitions[producer_id]))


def _group_ends(tables: TableReader, cluster: str) -> dict[Place, list[LogPosition]]:
    rows = tables.rows(
        "SELECT group_id, log_topic, log_partition, log_offset, timestamp_ms FROM $group_records "
        "WHERE cluster = :cluster AND is_tombstone AND record_type IN :types",
        cluster=cluster,
        types=sorted(each.value for each in GROUP_ENDS),
    )
    found: dict[Place, list[LogPosition]] = defaultdict(list)
    for row in rows:
        place = row["group_id"], row["log_topic"], row["log_partition"]
        found[place].append(LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"]))
    return found


def _topic_ends(tables: TableReader, cluster: str) -> dict[str, list[int]]:
    rows = tables.rows(
        "SELECT t.topic AS topic, t.until.timestamp_ms AS ended_ms FROM $topic_history AS t "
        "WHERE cluster = :cluster AND ended_by IN ('deleted', 'replaced')",
        cluster=cluster,
    )
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        found[row["topic"]].append(row["ended_ms"])
    return found
