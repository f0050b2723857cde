"""What is known of the logs as a whole, from the tables: topics at their end, and how far they were read."""

from __future__ import annotations

from coordinator_core.audit.findings.group_history import ShareLogs
from jobs.sources.files import SHARE_TOPICS
from jobs.tables.reader import TableReader


def partition_counts(tables: TableReader, cluster: str) -> dict[str, int]:
    """Return the partition count of each topic that exists at the end of the metadata log."""
    rows = tables.rows(
        "SELECT topic, partitions FROM $topic_history WHERE cluster = :cluster AND until IS NULL", cluster=cluster
    )
    return {row["topic"]: row["partitions"] for row in rows}


def share_logs(tables: TableReader, cluster: str) -> ShareLogs:
    """Return the extent of the share state log in the tables."""
    rows = list(
        tables.rows(
            "SELECT log_partition, coalesce(max(last_ms), -1) AS last_ms, max(last_offset) AS last_offset, "
            "sum(records) AS records FROM $log_ranges WHERE cluster = :cluster AND log_topic IN :topics "
            "GROUP BY log_partition",
            cluster=cluster,
            topics=SHARE_TOPICS,
        )
    )
    whole = frozenset(row["log_partition"] for row in rows if row["records"] == row["last_offset"] + 1)
    return ShareLogs({row["log_partition"]: row["last_ms"] for row in rows}, whole)
