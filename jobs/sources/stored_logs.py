"""What is known of the logs as a whole, from the tables: topics at their end, and how far they were read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from coordinator_core.audit.findings.group_history import ShareLogs
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.wire.offset_gaps import GapCause
from jobs.sources.files import GROUP_TOPICS, SHARE_TOPICS
from jobs.tables.reader import TableReader

PLACE: Final = itemgetter("log_topic", "log_partition")


class LogFacts(NamedTuple):
    """What is known of the logs of a cluster as a whole, as ``GroupHistory.gather`` takes it.

    ``partitions``: the number of partitions by topic, at the end. ``lost``: what the logs of groups lack.
    """

    partitions: Mapping[str, int]
    share_logs: ShareLogs
    lost: LostRecords

    @classmethod
    def read(cls, tables: TableReader, cluster: str, shares: ShareLogs | None = None) -> LogFacts:
        """Read them from the tables; ``shares`` if more is known of the share state log than ``share_logs`` reads."""
        shares = share_logs(tables, cluster) if shares is None else shares
        return cls(partition_counts(tables, cluster), shares, lost_records(tables, cluster))


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


def lost_records(tables: TableReader, cluster: str) -> LostRecords:
    """Return the offsets that the logs of groups lack, but for those that compaction removed."""
    found = {
        place: list(_lost_in(list(runs)))
        for place, runs in groupby(
            tables.rows(
                "SELECT log_topic, log_partition, first_offset, last_offset, gaps, missing_offsets, damaged_offsets "
                "FROM $runs WHERE cluster = :cluster AND job = 'ingest' AND log_topic IN :topics "
                "AND log_partition IS NOT NULL ORDER BY log_topic, log_partition, run_id DESC",
                cluster=cluster,
                topics=GROUP_TOPICS,
            ),
            PLACE,
        )
    }
    for row in tables.rows(
        "SELECT log_topic, log_partition, min(first_offset) AS first_offset FROM $log_ranges "
        "WHERE cluster = :cluster AND log_topic IN :topics GROUP BY log_topic, log_partition "
        "HAVING count(CASE WHEN has_start THEN 1 END) = 0 AND min(first_offset) > 0",
        cluster=cluster,
        topics=GROUP_TOPICS,
    ):
        found.setdefault(PLACE(row), []).append((0, row["first_offset"] - 1))
    return LostRecords({place: ranges for place, ranges in found.items() if ranges})


def _lost_in(runs: list[Mapping[str, Any]]) -> Iterator[tuple[int, int]]:
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
