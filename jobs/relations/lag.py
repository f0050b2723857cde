"""The lag of groups at snapshots of the end offsets, and what their commits show at a time, from the tables.

One text finds for each group, partition and moment the last commits before it. Only these few are judged in Python, by
the functions of the core that judge them from log files (``coordinator_core.audit.offsets.burrow``).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Final, TypeAlias

import pyarrow as pa

from coordinator_core.audit.offsets.burrow import (
    WINDOW,
    ActivityPoint,
    LagPoint,
    LagStatus,
    LogReach,
    TimedCommit,
    activity_point,
    after,
    group_lag,
    lag_point,
    point_order,
)
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import GROUP_LOG
from jobs.relations.commits import KEY as GROUP_KEY
from jobs.relations.commits import in_order
from jobs.relations.logs import log_reaches
from jobs.relations.positions import stored_position
from jobs.tables.reader import Row, TableReader
from jobs.tables.row_reader import reader

Batches: TypeAlias = "Iterable[pa.RecordBatch]"

KEY: Final = ("group_id", "log_partition", "topic", "partition")
OF_KEY: Final = ", ".join(KEY)
SAME_TOPIC: Final = "c.topic = e.topic AND c.partition = e.partition"
HELD: Final = ("held_ms", "log_offset", "timestamp_ms", "committed_offset", "topic_id")
"""A commit, and from when on it holds (ms)."""
OF_HELD: Final = ", ".join(HELD)
COMMIT: Final = (*HELD, "earlier_end", "later_end")
SO_FAR: Final = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
LAST_ONES: Final = f"ROWS BETWEEN {WINDOW - 1} PRECEDING AND CURRENT ROW"

OF_LOG: Final = "cluster = :cluster AND log_topic = :log"

# Ends sort before commits of the same time for ``earlier_end`` and behind them for ``later_end``: an end of that very
# time bounds the commit on both sides. In ``held`` commits come first: a moment sees those of its own time.
POINTS: Final = f"""
{in_order(f"group_id, {GROUP_KEY}", OF_LOG)},
known AS (
  {{ends}}
), snapshots AS (
  SELECT *, min(end_offset) OVER (PARTITION BY topic, partition, topic_id ORDER BY time_ms {LAST_ONES}) AS lowest_end,
    lag(end_offset) OVER (PARTITION BY topic, partition, topic_id ORDER BY time_ms) AS end_before,
    lag(time_ms) OVER (PARTITION BY topic, partition, topic_id ORDER BY time_ms) AS previous_ms,
    lead(time_ms) OVER (PARTITION BY topic, partition ORDER BY time_ms) AS next_ms,
    lead(time_ms, 2) OVER (PARTITION BY topic, partition ORDER BY time_ms) AS second_ms
  FROM known
), commits AS (
  SELECT {OF_KEY}, {OF_HELD} FROM kept AS c LEFT SEMI JOIN known AS e ON {SAME_TOPIC}
), between_ends AS (
  SELECT *,
    last_value(known_end) IGNORE NULLS OVER (
      PARTITION BY topic, partition ORDER BY held_ms, is_end DESC {SO_FAR}) AS earlier_end,
    first_value(known_end) IGNORE NULLS OVER (
      PARTITION BY topic, partition ORDER BY held_ms, is_end ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
    ) AS later_end
  FROM (
    SELECT {OF_KEY}, {OF_HELD}, NULL AS known_end, 0 AS is_end FROM commits
    UNION ALL SELECT NULL, NULL, topic, partition, time_ms, NULL, NULL, NULL, NULL, end_offset, 1 FROM known
  ) AS both_kinds
), recent_ones AS (
  SELECT {OF_KEY}, held_ms, log_offset,
    array_agg(named_struct({", ".join(f"'{name}', {name}" for name in COMMIT)})) OVER (
      PARTITION BY {OF_KEY} ORDER BY held_ms, log_offset {LAST_ONES}) AS recent
  FROM between_ends WHERE is_end = 0
), moments AS (
  SELECT {", ".join(f"c.{name} AS {name}" for name in KEY)}, e.time_ms AS time_ms, e.end_offset AS end_offset,
    e.topic_id AS topic_id, e.lowest_end AS lowest_end, e.end_before AS end_before, e.previous_ms AS previous_ms,
    {{shown}} AS is_shown
  FROM (SELECT DISTINCT {OF_KEY} FROM commits) AS c JOIN snapshots AS e ON {SAME_TOPIC} WHERE {{wanted}}
), both AS (
  SELECT {OF_KEY}, held_ms AS time_ms, log_offset, recent, 0 AS is_end, NULL AS end_offset, NULL AS topic_id,
    NULL AS lowest_end, NULL AS end_before, NULL AS previous_ms, FALSE AS is_shown
  FROM recent_ones
  UNION ALL SELECT {OF_KEY}, time_ms, NULL, NULL, 1, end_offset, topic_id, lowest_end, end_before, previous_ms, is_shown
  FROM moments
), held AS (
  SELECT {OF_KEY}, time_ms, end_offset, topic_id, lowest_end, end_before, previous_ms, is_end, is_shown,
    last_value(recent) IGNORE NULLS OVER (
      PARTITION BY {OF_KEY} ORDER BY time_ms, is_end, log_offset {SO_FAR}) AS recent,
    coalesce(time_ms < max(CASE WHEN is_end = 0 THEN time_ms END) OVER (PARTITION BY {OF_KEY}), FALSE) AS is_followed
  FROM both
)
SELECT * FROM held WHERE is_end = 1
"""
"""A row for each group, partition and wanted moment: what is judged then.

``{{ends}}``: the end offsets that are known, with the columns ``END``. ``{{shown}}``: the condition on those whose rows
are wanted; ``{{wanted}}``: the same with the one before each, which tells what changed. They may name ``next_ms``
and ``second_ms``, the times of the partition's next two.

- ``snapshots``: each end offset with the lowest of the last ones, and the one before, of the same topic id: those of an
  earlier topic of this name say nothing of this one.
- ``between_ends``: each commit with the end offsets of the snapshots around it. Ends and commits are rows of one window
  for this, as a join by ``<`` would compare all pairs; ``recent_ones`` has each with the last ones up to it.
- ``held``: commits and moments in one window again: a moment has the list of the last commit before it.
"""

END: Final = ("topic", "partition", "time_ms", "end_offset", "topic_id")
"""Columns of an end offset: of a partition at a time (ms)."""

STORED_ENDS: Final = """
SELECT topic, partition, timestamp_ms AS time_ms, end_offset, topic_id FROM $end_offsets
WHERE cluster = :cluster AND end_offset IS NOT NULL"""

SINCE: Final = {"shown": "e.time_ms >= :since", "wanted": "(e.time_ms >= :since OR e.next_ms >= :since)"}
"""The end offsets from a time on."""
NEWEST: Final = {
    "shown": "(e.next_ms IS NULL OR e.next_ms > :at)",
    "wanted": "e.time_ms <= :at AND (e.second_ms IS NULL OR e.second_ms > :at)",
}
"""The newest end offset of each partition at a time."""

LAG_SINCE: Final = POINTS.format(ends=STORED_ENDS, **SINCE)
"""What is judged at each snapshot from a time (``:since``, ms) on."""

LAG_AT: Final = POINTS.format(
    ends=f"""{STORED_ENDS}
  UNION ALL SELECT DISTINCT topic, partition, CAST(:at AS BIGINT), CAST(NULL AS BIGINT), CAST(NULL AS STRING)
  FROM kept AS c
  LEFT ANTI JOIN (SELECT * FROM ({STORED_ENDS}) AS all_ends WHERE time_ms <= :at) AS e ON {SAME_TOPIC}""",
    **NEWEST,
)
"""What is judged at the newest snapshot up to a time (``:at``, ms): of a partition without one at that time itself."""

COMMITS_AT: Final = POINTS.format(
    ends="SELECT DISTINCT topic, partition, CAST(:at AS BIGINT) AS time_ms, CAST(NULL AS BIGINT) AS end_offset, "
    "CAST(NULL AS STRING) AS topic_id FROM kept",
    **NEWEST,
)
"""What is judged at a time (``:at``, ms) from commits alone."""

COMMITS_OF_ALL: Final = f"""
{in_order(f"group_id, {GROUP_KEY}", OF_LOG)}
SELECT group_id, log_partition, topic, partition, {OF_HELD} FROM kept ORDER BY log_partition, group_id
"""
"""The commits from which ``burrow.group_lag`` finds the lag at end offsets that are not in the tables."""
COMMITS_OF_GROUP: Final = COMMITS_OF_ALL.replace(OF_LOG, f"{OF_LOG} AND group_id = :group_id")
"""Those of one group."""

NO_END: Final = "an end offset of the partition at this time or before it (command snapshot)"

MOST_ROWS: Final = 10_000
"""Rows of a batch that a fold gives."""


def lag_rows(
    reaches: Mapping[int, LogReach], schema: pa.Schema, **columns: str
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the fold of ``LAG_SINCE`` or ``LAG_AT``, by ``KEY`` and time, to rows of ``lag_history``.

    ``reaches``: what of each log partition is there. ``columns`` are the same in all rows.
    """

    def judged(rows: Iterable[Row]) -> Iterator[Row]:
        for _, moments in groupby(rows, itemgetter(*KEY)):
            before: LagPoint | None = None
            for row in moments:
                if row["end_offset"] is None:
                    yield from _without_end(row, reaches)
                    continue
                point = _lag_point(row, reaches)
                # The moment before the wanted ones comes along unshown: what changed is told against it.
                if point is not None and row["is_shown"]:
                    yield _plain(point if row["previous_ms"] is None else after(point, row["end_before"], before))
                before = point

    return _fold(judged, schema, columns)


def activity_rows(
    reaches: Mapping[int, LogReach], schema: pa.Schema, **columns: str
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return the fold of ``COMMITS_AT``, in any order, to the columns of ``ActivityPoint``; see ``lag_rows``."""

    def judged(rows: Iterable[Row]) -> Iterator[Row]:
        points = (_activity_point(row, reaches) for row in rows)
        return (_plain(point) for point in points if point is not None)

    return _fold(judged, schema, columns)


def stored_lag(tables: TableReader, cluster: str, group_id: str | None) -> list[LagPoint]:
    """Return the lag of a group, or of all (None), at the snapshots that the tables have, as ``point_order`` orders."""
    text = "SELECT * FROM $lag_history WHERE cluster = :cluster"
    rows = tables.rows(
        text if group_id is None else f"{text} AND group_id = :group_id", cluster=cluster, group_id=group_id
    )
    return sorted(map(reader(LagPoint), rows), key=point_order)


def lag_at(
    tables: TableReader, cluster: str, group_id: str | None, ends: Mapping[TopicPartition, Sequence[EndOffset]]
) -> list[LagPoint]:
    """Return the lag of a group, or of all (None), at these end offsets, as ``point_order`` orders."""
    points: list[LagPoint] = []
    reaches = log_reaches(tables, cluster)
    text = COMMITS_OF_ALL if group_id is None else COMMITS_OF_GROUP
    rows = tables.rows(text, cluster=cluster, log=GROUP_LOG, group_id=group_id)
    for (log_partition, group), of_group in groupby(rows, itemgetter("log_partition", "group_id")):
        commits: dict[TopicPartition, list[TimedCommit]] = defaultdict(list)
        for row in of_group:
            commits[TopicPartition(row["topic"], row["partition"])].append(_commit(log_partition, row))
        points += group_lag(group, commits, ends, reaches.get(log_partition, LogReach()))
    return sorted(points, key=point_order)


def _fold(
    judged: Callable[[Iterable[Row]], Iterator[Row]], schema: pa.Schema, columns: Mapping[str, str]
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def fold(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = judged(row for batch in batches for row in batch.to_pylist())
        # The rows come from a generator: a batch of them is in memory, however many groups there are.
        while some := [{**row, **columns} for row in islice(rows, MOST_ROWS)]:
            yield pa.RecordBatch.from_pylist(some, schema)

    return fold


def _plain(point: LagPoint | ActivityPoint) -> dict[str, object]:
    return {**point._asdict(), "committed": None if point.committed is None else point.committed._asdict()}


def _without_end(row: Row, reaches: Mapping[int, LogReach]) -> Iterator[Row]:
    point = _activity_point(row, reaches)
    if point is not None:
        yield {**_plain(point), "status": str(LagStatus.UNKNOWN), "missing": point.missing or NO_END}


def _lag_point(row: Row, reaches: Mapping[int, LogReach]) -> LagPoint | None:
    end = EndOffset(row["time_ms"], row["end_offset"], row["topic_id"])
    partition, reach = TopicPartition(row["topic"], row["partition"]), reaches.get(row["log_partition"], LogReach())
    return lag_point(
        row["group_id"], partition, _commits(row), end, row["lowest_end"], reach, is_followed=row["is_followed"]
    )


def _activity_point(row: Row, reaches: Mapping[int, LogReach]) -> ActivityPoint | None:
    partition, reach = TopicPartition(row["topic"], row["partition"]), reaches.get(row["log_partition"], LogReach())
    return activity_point(
        row["group_id"], partition, _commits(row), row["time_ms"], reach, is_followed=row["is_followed"]
    )


def _commits(row: Row) -> list[TimedCommit]:
    return [_commit(row["log_partition"], commit) for commit in row["recent"] or ()]


def _commit(log_partition: int, row: Row) -> TimedCommit:
    at = stored_position(log_partition, row["log_offset"], row["timestamp_ms"])
    around = row.get("earlier_end"), row.get("later_end")
    return TimedCommit(row["held_ms"], at, row["committed_offset"], row["topic_id"], *around)
