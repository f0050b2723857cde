"""Lag over time for the report: from the table ``lag_history``, or from points."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from jobs.report.data import LagLine
from jobs.tables.reader import Row, TableReader, known_rows

MOST_TIMES: Final = 200
"""The last snapshots that the report has."""
MOST_LINES: Final = 50
"""Partitions of a group: those with the highest lag."""

POINTS: Final = """
SELECT group_id, topic, partition, timestamp_ms, end_offset, committed_offset, lag, status FROM $lag_history
WHERE cluster = :cluster AND timestamp_ms >= :since ORDER BY group_id, topic, partition, timestamp_ms
"""


def stored_lags(tables: TableReader, cluster: str) -> dict[str, tuple[LagLine, ...]]:
    """Return the lag of the partitions of each group at the last snapshots, the highest lag first; empty: none."""
    # The last snapshots are found first: the table has the lag at all that were ever taken.
    times = [
        row["timestamp_ms"]
        for row in known_rows(
            tables,
            f"SELECT DISTINCT timestamp_ms FROM $lag_history WHERE cluster = :cluster "
            f"ORDER BY timestamp_ms DESC LIMIT {MOST_TIMES}",
            cluster=cluster,
        )
    ]
    if not times:
        return {}
    by_group: dict[str, tuple[LagLine, ...]] = {}
    rows = tables.rows(POINTS, cluster=cluster, since=min(times))
    for group_id, of_group in groupby(rows, itemgetter("group_id")):
        by_group[group_id] = lag_lines(of_group)
    return by_group


def lag_lines(points: Iterable[Mapping[str, object]]) -> tuple[LagLine, ...]:
    """Return the lag of the partitions of one group, the highest first; points are by topic, partition and time."""
    lines = [_line(list(of_one)[-MOST_TIMES:]) for _, of_one in groupby(points, itemgetter("topic", "partition"))]
    lines.sort(key=lambda line: (-max((lag for lag in line.lags if lag is not None), default=-1), line[:2]))
    return tuple(lines[:MOST_LINES])


def _line(points: list[Row]) -> LagLine:
    columns = ("timestamp_ms", "end_offset", "committed_offset", "lag", "status")
    series = (tuple(point[name] for point in points) for name in columns)
    return LagLine(points[0]["topic"], points[0]["partition"], *series)
