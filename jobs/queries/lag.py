"""The lag of a group over time, the same from log files and from tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coordinator_core.audit.offsets.burrow import LagPoint, LogReach, TimedCommit, lag_points
from coordinator_core.groups.offsets import TopicPartition
from jobs.sources.end_offsets import EndOffsets


def points(
    group_id: str, commits: Mapping[TopicPartition, Sequence[TimedCommit]], ends: EndOffsets, reach: LogReach
) -> Iterator[LagPoint]:
    """Yield the lag of each partition of one log partition at each snapshot; commits come in any order of time."""
    for partition, found in commits.items():
        ordered = sorted(found, key=lambda each: (each.time_ms, each.at.offset))
        yield from lag_points(group_id, partition, ordered, ends.get(partition, ()), reach)


def point_order(point: LagPoint) -> tuple[str, int, int]:
    """Return a key that orders by topic, partition and time."""
    return point.topic, point.partition, point.timestamp_ms
