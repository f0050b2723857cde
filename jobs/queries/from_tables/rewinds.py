"""The commits of one group that went back, from the tables; ``audit.findings.commits`` finds the same in a log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_core.audit.findings.resets import PartitionRewind
from coordinator_core.records import LogPosition
from jobs.relations.commits import in_order
from jobs.tables.reader import TableReader

KEY: Final = "log_topic, log_partition, topic, partition"
IN_ORDER: Final = in_order(KEY, "cluster = :cluster AND group_id = :group_id")

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
