"""The commits of one group that went back, from the tables; ``audit.findings.commits`` finds the same in a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_core.audit.findings.resets import PartitionRewind
from coordinator_core.records import LogPosition
from jobs.queries.from_tables.commits import COMMITTED, COUNTS
from jobs.tables.reader import TableReader

KEY: Final = "log_topic, log_partition, topic, partition"
PLACE: Final = "m.log_topic = {0}.log_topic AND m.log_partition = {0}.log_partition"

IN_ORDER: Final = f"""
WITH mine AS (
  SELECT {KEY}, log_offset, timestamp_ms, is_tombstone, committed_offset, topic_id, commit_timestamp, expire_timestamp,
    CASE WHEN outcome = '{COMMITTED}' THEN producer_id END AS producer_id
  FROM $offset_commits
  WHERE cluster = :cluster AND group_id = :group_id AND log_offset IS NOT NULL AND {COUNTS}
), ends AS (
  SELECT log_topic, log_partition, producer_id, log_offset AS marker, timestamp_ms AS marker_ms FROM $log_records
  WHERE cluster = :cluster AND is_transactional AND control_type IN ('COMMIT', 'ABORT')
), ended AS (
  SELECT m.log_topic, m.log_partition, m.log_offset, min(e.marker) AS marker, min(e.marker_ms) AS marker_ms
  FROM mine AS m
  JOIN ends AS e ON {PLACE.format("e")} AND m.producer_id = e.producer_id AND m.log_offset < e.marker
  GROUP BY m.log_topic, m.log_partition, m.log_offset
), steps AS (
  SELECT m.*, coalesce(n.marker, m.log_offset) AS effective, coalesce(n.marker_ms, m.timestamp_ms) AS held_ms
  FROM mine AS m
  LEFT JOIN ended AS n ON {PLACE.format("n")} AND m.log_offset = n.log_offset
), overtaken AS (
  SELECT *, max(log_offset) OVER (PARTITION BY {KEY} ORDER BY effective, log_offset
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS newest_before FROM steps
), kept AS (
  SELECT * FROM overtaken WHERE newest_before IS NULL OR newest_before < log_offset
)"""
"""The commits of a group that hold, as ``kept``. A transactional commit counts from the marker that ends its
transaction, unless a later commit came before it."""

REWINDS: Final = f"""
{IN_ORDER}, compared AS (
  SELECT *, lag(committed_offset) OVER (PARTITION BY {KEY} ORDER BY effective, log_offset) AS before_offset,
    lag(is_tombstone) OVER (PARTITION BY {KEY} ORDER BY effective, log_offset) AS before_tombstone,
    lag(topic_id) OVER (PARTITION BY {KEY} ORDER BY effective, log_offset) AS before_topic_id
  FROM kept
)
SELECT topic, partition, log_partition, log_offset, timestamp_ms, before_offset, committed_offset FROM compared
WHERE NOT is_tombstone AND NOT coalesce(before_tombstone, TRUE) AND committed_offset < before_offset
  AND NOT coalesce(topic_id <> before_topic_id, FALSE)
"""


def stored_rewinds(tables: TableReader, cluster: str, group_id: str) -> Iterator[PartitionRewind]:
    """Yield the commits of a group with a lower offset than the commit before."""
    for row in tables.rows(REWINDS, cluster=cluster, group_id=group_id):
        at = LogPosition(row["log_partition"], row["log_offset"], row["timestamp_ms"])
        yield PartitionRewind(row["topic"], row["partition"], row["before_offset"], row["committed_offset"], at)
