"""End offsets of data partitions, as snapshots show them, and how far a committed offset is behind one."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.groups.offsets import TopicPartition


class EndOffset(NamedTuple):
    """The end offset of a partition at a time, as a snapshot shows it. ``topic_id``: None if it is not known."""

    time_ms: int
    offset: int
    topic_id: str | None = None


NewestEnds: TypeAlias = Mapping[TopicPartition, EndOffset]
"""The newest end offset of each partition of which one is known."""


def are_two_topics(topic_id: str | None, other_id: str | None) -> bool:
    """Return whether these are surely the ids of two topics, of which one was deleted and the other made again."""
    return None not in (topic_id, other_id) and topic_id != other_id


def records_behind(end: EndOffset, offset: int, committed_ms: int, topic_id: str | None = None) -> int | None:
    """Return the lag of an offset that was committed at a time (ms; -1: not known), in records.

    It is negative where the offset lies beyond the end of its partition, as kafka-consumer-groups prints it; 0 where
    the end may be older than the commit, as far as clocks tell. None: no offset, or that of an earlier topic of this
    name.
    """
    if offset < 0 or are_two_topics(topic_id, end.topic_id):
        return None
    is_older = committed_ms < 0 or end.time_ms - committed_ms < CLOCK_TOLERANCE_MS
    return max(0, end.offset - offset) if is_older else end.offset - offset
