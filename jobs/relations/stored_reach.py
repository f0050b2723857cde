"""What of the log of groups the tables have, to tell which commit held at a time."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from coordinator_core.audit.offsets.lag import LogReach, LogSpan
from coordinator_core.records import LOG_TOPICS, Family
from jobs.relations.stored_gaps import damage_of, gaps_below
from jobs.tables.reader import TableReader

GROUP_LOG: Final = LOG_TOPICS[Family.GROUP]


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
    return {number: _reach(tables, cluster, number, found) for number, found in spans.items()}


def _reach(tables: TableReader, cluster: str, number: int, spans: list[LogSpan]) -> LogReach:
    reach = LogReach.of(spans)
    if len(reach.spans) == 1:
        return reach
    place = (GROUP_LOG, number)
    return LogReach.of(spans, gaps_below(tables, cluster, place, None, damage_of(tables, cluster, place)).lost)
