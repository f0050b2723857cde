"""The lag of one group over time, from the tables."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import Final

from coordinator_core.audit.offsets.burrow import LagPoint, LogReach, TimedCommit
from coordinator_core.errors import InputError
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import LogPosition
from jobs.queries.from_tables.rewinds import IN_ORDER
from jobs.queries.interface import NO_ENDS
from jobs.queries.lag import point_order, points
from jobs.relations.logs import log_reaches
from jobs.sources.end_offsets import EndOffsets
from jobs.tables.reader import TableReader
from jobs.tables.row_reader import reader

COMMITS: Final = f"""
{IN_ORDER}
SELECT log_partition, topic, partition, log_offset, timestamp_ms, held_ms, is_tombstone, committed_offset, topic_id
FROM kept ORDER BY log_partition, topic, partition, held_ms, log_offset
"""


def stored_lag(tables: TableReader, cluster: str, group_id: str) -> list[LagPoint]:
    """Return the lag at the snapshots that the tables have. Raise InputError if they have none."""
    if not tables.exists("lag_history"):
        raise InputError(NO_ENDS)
    rows = tables.rows(
        "SELECT * FROM $lag_history WHERE cluster = :cluster AND group_id = :group_id",
        cluster=cluster,
        group_id=group_id,
    )
    return sorted(map(reader(LagPoint), rows), key=point_order)


def lag_at(tables: TableReader, cluster: str, group_id: str, ends: EndOffsets) -> list[LagPoint]:
    """Return the lag at the snapshots with these end offsets."""
    found: list[LagPoint] = []
    reaches = log_reaches(tables, cluster)
    rows = tables.rows(COMMITS, cluster=cluster, group_id=group_id)
    for log_partition, of_log in groupby(rows, itemgetter("log_partition")):
        for partition, mine in groupby(of_log, lambda row: TopicPartition(row["topic"], row["partition"])):
            commits = [
                TimedCommit(
                    row["held_ms"],
                    LogPosition(log_partition, row["log_offset"], row["timestamp_ms"]),
                    None if row["is_tombstone"] else row["committed_offset"],
                    row["topic_id"],
                )
                for row in mine
            ]
            found += points(group_id, {partition: commits}, ends, reaches.get(log_partition, LogReach()))
    return sorted(found, key=point_order)
