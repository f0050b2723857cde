"""What was read of each log partition, what is lost of it, and what is known of the logs as a whole."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from coordinator_core.audit.folds.group_history import ShareLogs
from coordinator_core.audit.folds.topics_at_end import CountedLife, TopicsAtEnd
from coordinator_core.audit.offsets.burrow import LogReach, LogSpan
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.history.lost_records import LogExtent, LostRecords
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.batch_format import IN_VALUE, TIMESTAMP_TYPES
from coordinator_core.wire.offset_gaps import GapCause
from jobs.relations.brokers import other_lines
from jobs.relations.gaps import Place, damage_of, gaps_below, lost_behind
from jobs.relations.given_partitions import given
from jobs.relations.missing_ends import StoredEnd, missing_ends
from jobs.relations.moment import NEVER_MS
from jobs.relations.topics import stored_for_groups, topics_given
from jobs.relations.unreadable import unread_commits, unreadable_of_groups
from jobs.sources.files import FIRST_SEGMENT, GROUP_TOPICS, REPLAYED_TOPICS, SHARE_TOPICS, log_name
from jobs.tables.reader import Row, TableReader, found_once, known_rows
from jobs.tables.table import LOG_PARTITION, PLACED

BLOCK: Final = 1 << 16
"""Number of offsets in a block of ``RANGES``."""

IS_START: Final = f"(log_offset = 0 OR source LIKE '%{FIRST_SEGMENT}')"
"""A row of ``log_records`` that proves that its log partition was read from its start.

It is the first record ever written, or comes from the segment that began with it: compaction may have removed that
record since.
"""

OF_RANGE: Final = ("cluster", "run_id", *LOG_PARTITION, "leader_epoch")
"""All offsets of a range have these in common."""

OF: Final = ", ".join(OF_RANGE)
OF_PIECE: Final = ", ".join(f"p.{name} AS {name}" for name in OF_RANGE)
RANGES: Final = f"""
WITH placed AS (
  SELECT {OF}, log_offset - log_offset % :block AS block, log_offset, {IS_START} AS is_start,
    CASE WHEN timestamp_ms >= 0 THEN timestamp_ms END AS time_ms
  FROM $log_records WHERE {{which}} AND kind IN ('record', 'control') AND {PLACED}
), blocks AS (
  SELECT {OF}, block, min(log_offset) AS first_offset, max(log_offset) AS last_offset, count(*) AS records,
    min(time_ms) AS first_ms, max(time_ms) AS last_ms, bool_or(is_start) AS has_start
  FROM placed GROUP BY {OF}, block
), pieces AS (
  SELECT {OF}, first_offset, last_offset, records, first_ms, last_ms, has_start
  FROM blocks WHERE records = last_offset - first_offset + 1
  UNION ALL
  -- Only blocks with a hole come apart into records. Epochs may be null, which plain equality would not join.
  SELECT {OF_PIECE}, p.log_offset AS first_offset, p.log_offset AS last_offset, CAST(1 AS BIGINT) AS records,
    time_ms AS first_ms, time_ms AS last_ms, is_start AS has_start
  FROM placed AS p LEFT SEMI JOIN (SELECT * FROM blocks WHERE records < last_offset - first_offset + 1) AS b
  ON p.block = b.block AND {" AND ".join(f"(p.{name} IS NOT DISTINCT FROM b.{name})" for name in OF_RANGE)}
), bounds AS (
  SELECT *, CASE WHEN lag(last_offset) OVER (PARTITION BY {OF} ORDER BY first_offset) = first_offset - 1
    THEN 0 ELSE 1 END AS begins
  FROM pieces
), numbered AS (
  SELECT *, sum(begins) OVER (PARTITION BY {OF} ORDER BY first_offset) AS number FROM bounds
)
SELECT {OF}, min(first_offset) AS first_offset, max(last_offset) AS last_offset, min(first_ms) AS first_ms,
  max(last_ms) AS last_ms, sum(records) AS records, bool_or(has_start) AS has_start
FROM numbered GROUP BY {OF}, number
"""
"""Rows of ``log_ranges``: offsets that follow each other, of the rows of ``log_records`` that ``{which}`` names.

A log is whole nearly everywhere, so that its rows are only counted, by block, which needs no order. The rows of blocks
with missing offsets are put in order, and then the blocks. A row or block that does not follow the one before begins a
range; the number of beginnings so far is the same for all parts of a range, and so groups them.
"""


PLACE: Final = itemgetter("log_topic", "log_partition")


class LogFacts(NamedTuple):
    """What is known of the logs of a cluster as a whole, as ``GroupHistory.gather`` takes it.

    ``topics``: those at the end. ``lost``: what the logs of groups and of share state lack.
    ``brokers``: the lines of brokers' application logs that name no group.
    """

    topics: TopicsAtEnd
    share_logs: ShareLogs
    lost: LostRecords
    brokers: tuple[BrokerEvent, ...] = ()

    @classmethod
    def read(cls, tables: TableReader, cluster: str) -> "LogFacts":
        """Read them from the tables."""
        lost = replace(lost_records(tables, cluster, REPLAYED_TOPICS), read=_read_of_groups(tables, cluster))
        shares = _share_logs(tables, cluster, lost)
        topics = topics_at_end(tables, cluster)
        return cls(topics, shares, lost, other_lines(tables, cluster))


def topics_at_end(tables: TableReader, cluster: str) -> TopicsAtEnd:
    """Return what is known of the topics at the end of the logs."""
    given = topics_given(tables, cluster)
    history = None if given.is_strange else stored_for_groups(tables, cluster)
    at_end = TopicsAtEnd.of(history, given.reach)
    return at_end._replace(reach=given.reach).counted(counted_lives(tables, cluster))


def counted_lives(tables: TableReader, cluster: str) -> list[CountedLife]:
    """Return the topics over each interval of their history, with their numbers of partitions, by topic and offset."""
    rows = tables.rows(
        "SELECT t.topic AS topic, coalesce(t.since.timestamp_ms, -1) AS since_ms, t.until.timestamp_ms AS until_ms, "
        "t.partitions AS partitions FROM $topic_history AS t WHERE t.cluster = :cluster ORDER BY topic, t.since.offset",
        cluster=cluster,
    )
    return [CountedLife(**row) for row in rows]


def _share_logs(tables: TableReader, cluster: str, lost: LostRecords) -> ShareLogs:
    """Return the extent of the share state log in the tables; ``lost`` is what the logs lack."""
    rows = list(
        tables.rows(
            "SELECT log_partition, coalesce(max(last_ms), -1) AS last_ms, max(last_offset) AS last_offset, "
            "sum(records) AS records FROM $log_ranges WHERE cluster = :cluster AND log_topic IN :topics "
            "GROUP BY log_partition",
            cluster=cluster,
            topics=SHARE_TOPICS,
        )
    )
    not_whole = {place[1] for place in (*lost.ranges, *lost.unreadable, *lost.unplaced) if place[0] in SHARE_TOPICS}
    # As many records as offsets from 0 on: this log is not compacted, so that fewer mean loss, or a removed beginning.
    whole = frozenset(row["log_partition"] for row in rows if row["records"] == row["last_offset"] + 1) - not_whole
    # Only share state of a group that the log of groups lacks asks whether that log is whole.
    groups_ms = _whole_logs_of_groups(tables, cluster, lost) if rows and has_orphans(tables, cluster) else {}
    return ShareLogs({row["log_partition"]: row["last_ms"] for row in rows}, whole, groups_ms)


def _read_of_groups(tables: TableReader, cluster: str) -> dict[Place, LogExtent]:
    """Return what was read of the logs of groups. A partition that was given without a record was read, too."""
    places = {place for place in given(tables).get(cluster, ()) if place[0] in GROUP_TOPICS}
    rows = tables.rows(
        "SELECT log_topic, log_partition, first_offset, last_offset FROM $log_ranges WHERE cluster = :cluster "
        "AND log_topic IN :topics AND log_partition IS NOT NULL AND first_offset IS NOT NULL "
        "ORDER BY log_topic, log_partition, first_offset",
        cluster=cluster,
        topics=GROUP_TOPICS,
    )
    return dict.fromkeys(places, LogExtent.of(())) | {
        place: LogExtent.of((row["first_offset"], row["last_offset"]) for row in of_place)
        for place, of_place in groupby(rows, PLACE)
    }


def has_orphans(tables: TableReader, cluster: str, group_id: str | None = None) -> bool:
    """Return whether a group, or one group, has share state, and no record in the log of groups."""
    (orphans,) = tables.rows(
        "SELECT count(*) AS groups FROM $group_states AS s LEFT JOIN "
        "(SELECT DISTINCT group_id FROM $group_states WHERE cluster = :cluster AND log_topic IN :groups) AS g "
        "ON s.group_id = g.group_id WHERE s.cluster = :cluster AND s.log_topic IN :shares AND g.group_id IS NULL "
        "AND s.group_id = coalesce(:group_id, s.group_id)",
        cluster=cluster,
        groups=GROUP_TOPICS,
        shares=SHARE_TOPICS,
        group_id=group_id,
    )
    return bool(orphans["groups"])


def _whole_logs_of_groups(tables: TableReader, cluster: str, lost: LostRecords) -> dict[int, int]:
    """Return what ``ShareLogs.groups_ms`` is."""
    of = {"cluster": cluster, "topic": GROUP_LOG}
    read = tables.rows(
        "SELECT log_partition, max(last_ms) AS last_ms FROM $log_ranges WHERE cluster = :cluster "
        "AND log_topic = :topic GROUP BY log_partition HAVING bool_or(has_start)",
        **of,
    )
    # Bytes that do not even tell an offset are damage in no gap.
    damaged = tables.rows(
        "SELECT DISTINCT log_partition FROM $log_records WHERE cluster = :cluster AND log_topic = :topic "
        "AND kind = 'damaged'",
        **of,
    )
    not_whole = {row["log_partition"] for row in damaged}
    not_whole |= {place[1] for place in (*lost.ranges, *lost.unplaced) if place[0] == GROUP_LOG}
    return {row["log_partition"]: row["last_ms"] for row in read if row["log_partition"] not in not_whole}


def newest_times(tables: TableReader, cluster: str, topic: str, until_ms: int | None) -> dict[int, int]:
    """Return the latest time (ms) of a record of each partition of a log that is not later than ``until_ms``."""
    rows = tables.rows(
        "SELECT log_partition, max(timestamp_ms) AS last_ms FROM $log_records WHERE cluster = :cluster "
        f"AND log_topic = :topic AND kind IN ('record', 'control') AND {PLACED} AND timestamp_ms <= :until_ms "
        "GROUP BY log_partition",
        cluster=cluster,
        topic=topic,
        until_ms=NEVER_MS if until_ms is None else until_ms,
    )
    return {row["log_partition"]: row["last_ms"] for row in rows}


def times_of_groups(tables: TableReader, cluster: str) -> tuple[int | None, int | None]:
    """Return the times of the first and the last record in the logs of groups; None: there is none."""
    (span,) = tables.rows(
        "SELECT min(first_ms) AS first_ms, max(last_ms) AS last_ms FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic IN :topics AND first_ms >= 0",
        cluster=cluster,
        topics=GROUP_TOPICS,
    )
    return span["first_ms"], span["last_ms"]


def whole_from_ms(tables: TableReader, cluster: str, lost: LostRecords) -> int | None:
    """Return the time of the first record behind which no partition of the logs of groups lacks an offset, be it
    compacted or ``lost`` (None: none is missing).
    """
    times, ends = list[int](), dict[tuple[str, int], int]()
    for row in tables.rows(
        "SELECT log_topic, log_partition, first_offset, last_offset, first_ms FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic IN :topics ORDER BY log_topic, log_partition, first_offset",
        cluster=cluster,
        topics=GROUP_TOPICS,
    ):
        # From -1 on: a partition that does not begin with offset 0 lacks its start.
        end = ends.get(PLACE(row), -1)
        if row["first_offset"] > end + 1:
            times.append(row["first_ms"] or 0)
        ends[PLACE(row)] = max(end, row["last_offset"])
    is_cut = any(last > ends.get(place, -1) for place, ranges in lost.ranges.items() for _, last in ranges)
    # What is lost behind the last record of a partition has no record after it from which answers could be whole again.
    return NEVER_MS if is_cut else max(times, default=None)


def last_times(tables: TableReader, cluster: str) -> dict[tuple[str, int], int]:
    """Return the latest time (ms) of each partition of the logs of groups, by topic and partition."""
    rows = tables.rows(
        "SELECT log_topic, log_partition, max(last_ms) AS last_ms FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic IN :topics AND last_ms >= 0 GROUP BY log_topic, log_partition",
        cluster=cluster,
        topics=GROUP_TOPICS,
    )
    return {PLACE(row): row["last_ms"] for row in rows}


def without_times(tables: TableReader, cluster: str) -> list[str]:
    """Return the partitions of the logs of groups of which some records have no time of their own, by name.

    Batches have both times and leader epochs, or neither: the log is only asked where ranges have no leader epoch.
    """
    given = {"cluster": cluster, "topics": GROUP_TOPICS}
    of_groups = "SELECT DISTINCT log_topic, log_partition FROM {} WHERE cluster = :cluster AND log_topic IN :topics "
    ranges = f"{of_groups.format('$log_ranges')} AND log_partition IS NOT NULL AND "
    places = {PLACE(row) for row in tables.rows(f"{ranges} coalesce(last_ms, -1) < 0", **given)}
    if any(tables.rows(f"{ranges} coalesce(leader_epoch, -1) < 0 LIMIT 1", **given)):
        of_log = f"{of_groups.format('$log_records')} AND {PLACED} AND kind = 'record'"
        untimed = f"{of_log} AND (timestamp_type = :in_value OR timestamp_ms < 0)"
        rows = tables.rows(untimed, **given, in_value=TIMESTAMP_TYPES[IN_VALUE])
        places |= {PLACE(row) for row in rows}
    return [log_name(*place) for place in sorted(places)]


@found_once
def lost_records(tables: TableReader, cluster: str, topics: Sequence[str] = GROUP_TOPICS) -> LostRecords:
    """Return the offsets that these logs lack, but for those that compaction removed, and the unreadable records."""
    known = lost_before_records(tables, cluster, topics)
    ranges = {place: [*spans] for place, spans in known.ranges.items()}
    for place, span in _lost_at_ends(tables, cluster, topics):
        ranges.setdefault(place, []).append(span)
    for place, end in ends_missing(tables, cluster).items() if GROUP_LOG in topics else ():
        if place not in ranges:
            # How much is missing is not known: the one offset that must have been there stands for it.
            ranges[place] = [(end.last + 1, end.last + 1)]
    return replace(known, ranges=ranges)


@found_once
def ends_missing(tables: TableReader, cluster: str) -> dict[Place, StoredEnd]:
    """Return the log partitions that have to go on behind their last record."""
    return missing_ends(tables, cluster, partial(lost_before_records, tables, cluster, (GROUP_LOG,)))


@found_once
def lost_before_records(tables: TableReader, cluster: str, topics: Sequence[str] = GROUP_TOPICS) -> LostRecords:
    """Return the same without what is lost behind the last record of each log partition: a later run may bring it."""
    lost = {
        place: list(_lost_in(list(runs)))
        for place, runs in groupby(
            tables.rows(
                "SELECT log_topic, log_partition, first_offset, last_offset, gaps, missing_offsets, damaged_offsets "
                "FROM $runs WHERE cluster = :cluster AND job = 'ingest' AND log_topic IN :topics "
                "AND log_partition IS NOT NULL ORDER BY log_topic, log_partition, run_id DESC",
                cluster=cluster,
                topics=topics,
            ),
            PLACE,
        )
    }
    for row in tables.rows(
        "SELECT log_topic, log_partition, min(first_offset) AS first_offset FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic IN :topics GROUP BY log_topic, log_partition "
        # Where the start was read, compaction removed what is not there; without it the first offsets were never given.
        "HAVING count(CASE WHEN has_start THEN 1 END) = 0 AND min(first_offset) > 0",
        cluster=cluster,
        topics=topics,
    ):
        lost.setdefault(PLACE(row), []).append((0, row["first_offset"] - 1))
    unreadable = unreadable_of_groups(tables, cluster, topics=topics)
    return LostRecords({place: ranges for place, ranges in lost.items() if ranges}, *unreadable)


def _lost_at_ends(tables: TableReader, cluster: str, topics: Sequence[str]) -> Iterator[tuple[Place, tuple[int, int]]]:
    """Yield the offsets that are lost behind the last record of log partitions: no run lists them among its gaps."""
    for row in list(
        known_rows(
            tables,
            "SELECT r.log_topic AS log_topic, r.log_partition AS log_partition, max(r.last_offset) AS last "
            "FROM $log_ranges AS r WHERE r.cluster = :cluster AND r.log_topic IN :topics AND EXISTS ("
            "SELECT 1 FROM $quarantine AS q WHERE q.cluster = :cluster AND q.part = 'damaged' "
            "AND q.log_topic = r.log_topic AND q.log_partition = r.log_partition) "
            "GROUP BY r.log_topic, r.log_partition",
            cluster=cluster,
            topics=topics,
        )
    ):
        place, last = PLACE(row), row["last"]
        lost = lost_behind(damage_of(tables, cluster, place), last)
        if lost is not None:
            yield place, (last + 1, lost)


def _lost_in(runs: list[Row]) -> Iterator[tuple[int, int]]:
    """Yield the offsets that are lost in a log partition, from its runs, the newest first.

    A run lists the gaps from its first offset on as they were then, so that it replaces what earlier ones list there.
    """
    told_from: int | None = None
    for run in runs:
        if run["first_offset"] is None:
            continue
        lost = [gap for gap in run["gaps"] or () if gap["cause"] in (GapCause.MISSING, GapCause.DAMAGED)]
        listed = sum(gap["last_offset"] - gap["first_offset"] + 1 for gap in lost)
        if listed < (run["missing_offsets"] or 0) + (run["damaged_offsets"] or 0):
            spans = [(run["first_offset"], run["last_offset"])]  # more gaps than a run lists
        else:
            spans = [(gap["first_offset"], gap["last_offset"]) for gap in lost]
        for first, last in spans:
            if told_from is None or first < told_from:
                yield first, last if told_from is None else min(last, told_from - 1)
        told_from = run["first_offset"] if told_from is None else min(told_from, run["first_offset"])


def log_reaches(tables: TableReader, cluster: str) -> dict[int, LogReach]:
    """Return what of each partition of the log of groups the tables have."""
    spans: dict[int, list[LogSpan]] = defaultdict(list)
    for row in tables.rows(
        "SELECT log_partition, first_offset, last_offset, last_ms FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic = :topic",
        cluster=cluster,
        topic=GROUP_LOG,
    ):
        last_ms = -1 if row["last_ms"] is None else row["last_ms"]
        spans[row["log_partition"]].append(LogSpan(row["first_offset"], row["last_offset"], last_ms))
    unread = unread_commits(tables, cluster)
    return {
        number: LogReach.of(of_partition, _last_lost(tables, cluster, number, of_partition), unread.get(number))
        for number, of_partition in spans.items()
    }


def _last_lost(tables: TableReader, cluster: str, number: int, spans: list[LogSpan]) -> int:
    """Return the highest offset of a partition that is lost; -1: none."""
    # Without a gap between its spans nothing is lost: to tell the causes of gaps takes a pass over the log.
    if len(LogReach.of(spans).spans) == 1:
        return -1
    place = (GROUP_LOG, number)
    return gaps_below(tables, cluster, place, None, damage_of(tables, cluster, place)).lost
