"""Some of the commits of each partition over time, from the tables: as ``TrailFold`` keeps them from log files."""

from collections.abc import Sequence
from typing import Any, Final

from coordinator_core.audit.folds.commit_times import HOUR_MS, CommitPoint, CommitTrail, begin_of_trail, trail_length
from coordinator_core.records import GROUP_LOG
from jobs.relations.commits import KEY, in_order
from jobs.relations.groups import RowKind
from jobs.tables.reader import TableReader

LONGEST_TRANSACTION_MS: Final = 900_000
"""``transaction.max.timeout.ms`` of brokers, unless it is set: a commit holds at most so long after its record."""

SPAN: Final = """
SELECT min(s.first.timestamp_ms) AS first_ms, max(s.last.timestamp_ms) AS last_ms FROM $commit_summaries AS s
WHERE s.cluster = :cluster AND s.hour_ms IS NULL AND s.first.timestamp_ms >= 0
"""
MOST_COMMITS: Final = 2_000_000
"""So many commits at the end of the log are put in order: it takes 5 s of a processor, and memory for each."""
HOURS: Final = """
SELECT hour_ms, CAST(sum(written) AS BIGINT) AS commits FROM $commit_summaries
WHERE cluster = :cluster AND hour_ms > :since_ms GROUP BY hour_ms ORDER BY hour_ms DESC
"""
OF_KEY: Final = f"group_id, {KEY}"
COLUMNS: Final = ("topic", "partition", "log_partition", "time_ms", "log_offset", "committed", "number")
WANTED: Final = f"cluster = :cluster AND log_topic = '{GROUP_LOG}' AND timestamp_ms >= {{begin_ms}} AND {{among}}"
POINTS: Final = f"""
{in_order(OF_KEY, WANTED)}, steps_of_keys AS (
  SELECT {OF_KEY}, log_offset, effective, CASE WHEN NOT is_tombstone THEN committed_offset END AS committed,
    is_tombstone AND lag(is_tombstone, 1, FALSE) OVER of_key AS is_gone,
    -- Another broker's clock may be behind: the time of a point is never before its record, or the commit before it.
    max(greatest(timestamp_ms, held_ms)) OVER (PARTITION BY {OF_KEY} ORDER BY effective, log_offset
      ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS time_ms
  FROM kept WINDOW of_key AS (PARTITION BY {OF_KEY} ORDER BY effective, log_offset)
), counted AS (
  SELECT *, row_number() OVER (PARTITION BY {OF_KEY} ORDER BY effective, log_offset) AS number,
    time_ms - time_ms % {{length_ms}} AS since_ms FROM steps_of_keys WHERE NOT is_gone
), ends_of_intervals AS (
  SELECT *, lag(since_ms, 1, -1) OVER of_key AS since_before, lead(since_ms, 1, -1) OVER of_key AS since_after
  FROM counted WINDOW of_key AS (PARTITION BY {OF_KEY} ORDER BY number)
)
SELECT group_id, {", ".join(COLUMNS)} FROM ends_of_intervals
WHERE since_ms >= {{since_ms}} AND (since_ms <> since_before OR since_ms <> since_after)
"""
"""The first and the last commit of each interval; a tombstone that removes nothing is none."""


def trails_by_text(tables: TableReader, cluster: str) -> dict[str, RowKind]:
    """Return the commits of each group over time, a point in each row; none where no commit has a time."""
    ((first_ms, last_ms),) = tables.tuples(SPAN, cluster=cluster)
    if first_ms is None:
        return {}
    length_ms = trail_length(first_ms, last_ms)
    since_ms = begin_of_trail(last_ms, length_ms)
    commits = 0
    for hour_ms, of_hour in tables.tuples(HOURS, cluster=cluster, since_ms=since_ms - HOUR_MS):
        commits += of_hour
        if commits > MOST_COMMITS:
            # The hour that is one too many is left out as a whole: sums do not say where in it the limit is.
            since_ms = hour_ms + HOUR_MS
            break
    # A commit of a transaction holds from its marker on: what is shown may have its record as long before as one lasts.
    text = POINTS.format(
        among="{among}", length_ms=length_ms, since_ms=since_ms, begin_ms=since_ms - LONGEST_TRANSACTION_MS
    )
    return {"trails": RowKind(text, COLUMNS, _one_point)}


def _one_point(row: Sequence[Any]) -> CommitTrail:
    topic, partition, log_partition, *point = row
    return CommitTrail(topic, partition, log_partition, (CommitPoint(*point),))
