"""End offsets from the snapshots that the tables have."""

from __future__ import annotations

from coordinator_core.groups.offsets import TopicPartition
from jobs.tables.reader import TableReader


def newest_ends(tables: TableReader, cluster: str, until_ms: int | None) -> dict[TopicPartition, int]:
    """Return the newest end offset of each partition that is not later than ``until_ms`` (None: any time)."""
    if not tables.exists("end_offsets"):
        return {}
    rows = tables.rows(
        "SELECT topic, partition, end_offset FROM (SELECT topic, partition, end_offset, "
        "row_number() OVER (PARTITION BY topic, partition ORDER BY timestamp_ms DESC) AS nth FROM $end_offsets "
        "WHERE cluster = :cluster AND end_offset IS NOT NULL AND timestamp_ms <= :until) AS newest WHERE nth = 1",
        cluster=cluster,
        until=(1 << 62) if until_ms is None else until_ms,
    )
    return {TopicPartition(row["topic"], row["partition"]): row["end_offset"] for row in rows}
