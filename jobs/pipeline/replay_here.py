"""The input of a small replay, read by this process: a night with few new records of groups takes no Spark job for it.

The rows are those that ``replay`` otherwise gathers with Spark, in the same order.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple

from jobs.pipeline.rebuilds import Span
from jobs.pipeline.replay_arrow import INPUT, Input
from jobs.relations import stored_unreadable
from jobs.relations.stored_unreadable import OF_STATE
from jobs.settings import EngineLimits
from jobs.sources.files import GROUP_TOPICS, REPLAYED_TOPICS
from jobs.tables.log import PLACED
from jobs.tables.reader import TableReader

NEW: Final = "cluster = :cluster AND run_id > :done AND run_id <= :upto AND log_topic IN :topics"
NEW_RECORDS: Final = f"$group_records WHERE {NEW} AND {PLACED}"
NEW_HOURS: Final = f"$commit_summaries WHERE {NEW} AND hour_ms IS NOT NULL AND cardinality(beside) > 0"

NEW_UNREADABLE: Final = f"{stored_unreadable.UNREADABLE} AND run_id > :done AND run_id <= :upto AND {OF_STATE}"

SIZES: Final = (
    f"SELECT count(*) AS number, 0 AS bytes FROM {NEW_UNREADABLE}",
    f"SELECT count(*) AS number, sum(bytes_of(value)) AS bytes FROM {NEW_RECORDS}",
    f"SELECT sum(cardinality(beside)) AS number, 0 AS bytes FROM {NEW_HOURS}",
)
RECORDS: Final = (
    f"SELECT log_topic, group_id, log_partition, log_offset, timestamp_ms, batch_base, key, value FROM {NEW_RECORDS}"
)
UNREADABLE: Final = f"SELECT log_topic, group_id, log_partition, log_offset, timestamp_ms FROM {NEW_UNREADABLE}"
COMMITS: Final = f"SELECT log_topic, group_id, log_partition, topic, partition, beside FROM {NEW_HOURS}"
TOUCHED: Final = f"""
FROM $group_states AS s JOIN (
  SELECT log_topic, group_id FROM {NEW_RECORDS} UNION SELECT log_topic, group_id FROM {NEW_HOURS}
  UNION SELECT log_topic, group_id FROM {NEW_UNREADABLE}
) AS n ON s.log_topic = n.log_topic AND s.group_id = n.group_id WHERE s.cluster = :cluster
"""
STATES: Final = f"""
SELECT s.log_topic AS log_topic, s.group_id AS group_id, s.log_partition AS log_partition, s.log_offset AS log_offset,
  s.timestamp_ms AS timestamp_ms, s.state AS state {TOUCHED}
"""
RANGES: Final = """
SELECT log_topic, log_partition, first_offset, last_offset, leader_epoch, has_start FROM $log_ranges
WHERE cluster = :cluster AND log_topic IN :topics ORDER BY log_topic, log_partition, first_offset
"""

NOTHING: Final = Input(**dict.fromkeys(INPUT))  # type: ignore[arg-type]  # what a state knows of the log
LogPlace = tuple[str, int]


class _Range(NamedTuple):
    """A range of offsets that were read; ``since``: the first offset of the ranges without a gap up to it."""

    last: int
    since: int
    leader_epoch: int | None
    gap_follows: bool


class _Log(NamedTuple):
    """The ranges of one log partition, by their first offsets."""

    firsts: list[int]
    ranges: list[_Range]
    from_start: bool

    def place(self, row: Input) -> Input:
        """Return the row with what is known of the log at its offset; see ``log_ranges.coverage``."""
        index = bisect_right(self.firsts, row.log_offset) - 1
        if index < 0 or row.log_offset > self.ranges[index].last:
            return row
        found = self.ranges[index]
        return row._replace(
            leader_epoch=found.leader_epoch,
            unbroken_since=found.since,
            gap_follows=found.gap_follows and row.log_offset == found.last,
            from_start=self.from_start,
        )


def input_rows(tables: TableReader, limits: EngineLimits, cluster: str, span: Span) -> list[Input] | None:
    """Return the input of a replay of ``span`` without groups that begin again; None: it is for Spark.

    The rows of a group follow each other, its state first, then its records and commits in the order of the log.
    """
    given: dict[str, Any] = {"cluster": cluster, "done": span.done, "upto": span.upto}
    given |= {"topics": REPLAYED_TOPICS, "groups": GROUP_TOPICS}
    if not _is_small(tables, limits, span, given):
        return None
    logs = _logs(tables.rows(RANGES, **given))
    new = (*_records(tables, given), *_unreadable(tables, given), *_commits(tables, given))
    found = [_placed(row, logs) for row in new]
    found.sort(key=attrgetter("log_topic", "group_id", "log_partition", "log_offset"))
    states = {} if span.is_first else {_group(row): row for row in _states(tables, given)}
    rows = []
    for group, of_group in groupby(found, _group):
        if group in states:
            rows.append(states[group])
        rows += of_group
    return rows


def _is_small(tables: TableReader, limits: EngineLimits, span: Span, given: Mapping[str, Any]) -> bool:
    sizes = [next(iter(tables.rows(sql, **given))) for sql in SIZES]
    if not span.is_first:
        sizes += tables.rows(f"SELECT 0 AS number, sum(length(s.state)) AS bytes {TOUCHED}", **given)
    rows, size = (sum(each[name] or 0 for each in sizes) for name in ("number", "bytes"))
    (ranges,) = tables.rows("SELECT count(*) AS number FROM $log_ranges WHERE cluster = :cluster", **given)
    return rows <= limits.replayed_rows and size <= limits.replayed_bytes and ranges["number"] <= limits.replayed_ranges


def _group(row: Input) -> tuple[str, str]:
    return row.log_topic, row.group_id


def _records(tables: TableReader, given: Mapping[str, Any]) -> Iterator[Input]:
    return (NOTHING._replace(**row) for row in tables.rows(RECORDS, **given))


def _unreadable(tables: TableReader, given: Mapping[str, Any]) -> Iterator[Input]:
    return (NOTHING._replace(**row, is_unreadable=True) for row in tables.rows(UNREADABLE, **given))


def _commits(tables: TableReader, given: Mapping[str, Any]) -> Iterator[Input]:
    for row in tables.rows(COMMITS, **given):
        for each in row["beside"]:
            yield NOTHING._replace(
                log_topic=row["log_topic"],
                group_id=row["group_id"],
                log_partition=row["log_partition"],
                log_offset=each["log_offset"],
                timestamp_ms=each["timestamp_ms"],
                committed_topic=row["topic"],
                committed_partition=row["partition"],
                committed_topic_id=each["topic_id"],
            )


def _states(tables: TableReader, given: Mapping[str, Any]) -> Iterator[Input]:
    return (NOTHING._replace(**row) for row in tables.rows(STATES, **given))


def _logs(rows: Iterator[Mapping[str, Any]]) -> dict[LogPlace, _Log]:
    logs = {}
    for place, of_one in groupby(rows, itemgetter("log_topic", "log_partition")):
        mine = list(of_one)
        firsts = [row["first_offset"] for row in mine]
        ranges: list[_Range] = []
        for row, following in zip(mine, [*firsts[1:], None], strict=True):
            last, first = row["last_offset"], row["first_offset"]
            joins = bool(ranges) and ranges[-1].last == first - 1
            since = ranges[-1].since if joins else first
            ranges.append(_Range(last, since, row["leader_epoch"], following is not None and following > last + 1))
        logs[place] = _Log(firsts, ranges, any(row["has_start"] for row in mine))
    return logs


def _placed(row: Input, logs: Mapping[LogPlace, _Log]) -> Input:
    """Return a row as the fold takes it: with a time, and with what is known of the log at its place."""
    timed = row if row.timestamp_ms is not None else row._replace(timestamp_ms=-1)
    log = logs.get((row.log_topic, row.log_partition))
    return timed if log is None else log.place(timed)
