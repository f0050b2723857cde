"""Which nights lacked records that a later night has taken in, though they had been written before."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from jobs.tables.reader import Row, TableReader

READ: Final = """
SELECT run_id, log_topic, log_partition, min(first_offset) AS first_offset, max(last_offset) AS last_offset,
  min(first_ms) AS first_ms, max(last_ms) AS last_ms
FROM $log_ranges WHERE cluster = :cluster GROUP BY run_id, log_topic, log_partition
"""
"""What each run has added of a log partition."""


def late_records(tables: TableReader, cluster: str, nights: Sequence[str]) -> dict[str, list[str]]:
    """Return by night the log partitions of which it lacked records that a later one has.

    They lie before the last offset that the night had read; of a partition of which it had nothing, they are older than
    its newest record. ``nights`` are ids in order of time; a night without such records is left out.
    """
    if not tables.exists("log_ranges"):
        return {}
    rows = list(tables.rows(READ, cluster=cluster))
    found = {night: _late(rows, until) for night, until in pairwise(nights)}
    return {night: late for night, late in found.items() if late}


def _late(rows: Sequence[Row], until: str) -> list[str]:
    """Return the log partitions of which runs from ``until`` on have records from before what earlier runs have."""
    last: dict[tuple[str, int], int] = {}
    newest_ms = -1
    for row in rows:
        if row["run_id"] < until:
            place = row["log_topic"], row["log_partition"]
            last[place] = max(row["last_offset"], last.get(place, -1))
            newest_ms = max(newest_ms, row["last_ms"] or -1)
    late = set()
    for row in rows:
        place = row["log_topic"], row["log_partition"]
        if row["run_id"] >= until and (
            row["first_offset"] <= last[place]
            if place in last
            else row["first_ms"] is not None and row["first_ms"] <= newest_ms
        ):
            late.add(place)
    return [f"{topic}-{partition}" for topic, partition in sorted(late)]
