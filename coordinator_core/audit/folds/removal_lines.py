"""Which line of a broker's application log says why a committed offset was removed.

A tombstone is the same whether its offset expired, a request deleted it, or its topic or group was deleted. The broker
says what it removes before it writes the tombstones, on the same thread: a line and its tombstones have nearly the same
time, of the same clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from coordinator_core.audit.folds.removals import (
    DELETED,
    EXPIRED,
    EXPIRED_OR_DELETED,
    GROUP_DELETED,
    GROUP_ENDED,
    GROUP_EXPIRED,
    TOPIC_DELETED,
    or_with_topic,
)
from coordinator_core.audit.folds.witness import BrokerLines, is_between
from coordinator_core.broker_log.all_files import SLACK_MS
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.records import LogPosition

AT_ONCE_MS = 50
"""Tombstones are written at most so long after the line about them; real brokers (3.9 to 4.4): within 2 ms."""


def how_by_lines(how: str, lines: BrokerLines, topic: str, partition: int, at: LogPosition, reach: TopicReach) -> str:
    """Return how the offset of a partition was removed with this tombstone, as far as topics and brokers' logs say so.

    ``how`` is what the log of groups proves; ``reach``: over which times each deletion of a topic is known.
    """
    if how == GROUP_ENDED and deleted_group(lines, at) is not None:
        return GROUP_DELETED
    if how in (EXPIRED_OR_DELETED, DELETED, GROUP_ENDED) and expired_offset(lines, topic, partition, at) is not None:
        return GROUP_EXPIRED if how == GROUP_ENDED else EXPIRED
    if how not in (EXPIRED_OR_DELETED, DELETED):
        return how
    if deleted_topic(lines, topic, at) is not None:
        return TOPIC_DELETED
    if removed_by_request(lines, topic, partition, at) is not None:
        return DELETED
    return or_with_topic(how, reach, at.timestamp_ms)


def expired_offset(lines: BrokerLines, topic: str, partition: int, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that the offset of a partition expired with this tombstone; None: there is none.

    A line about this offset alone is written at level DEBUG. At INFO, one says when what had expired was removed.
    """
    of_offset = lines.of_offset.get((topic, partition), [])
    if of_offset and all(line.timestamp_ms is None for line in of_offset):
        return of_offset[0] if len(of_offset) == 1 else None
    near = (line for line in of_offset if _is_near(line, at))
    return next(near, None) or _at_once(lines.of_kind[EventKind.CLEANED_UP], at)


def deleted_topic(lines: BrokerLines, topic: str, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that the topic was deleted, and its offsets with this tombstone; None: there is none.

    Lines of Kafka 4.2 and before name partitions (``topic-0``), others topics.
    """
    name = re.compile(rf"(?<![\w.-]){re.escape(topic)}(?:-\d+)?(?![\w.-])")
    return _at_once((line for line in lines.of_kind[EventKind.OFFSETS_DELETED] if name.search(line.reason or "")), at)


def deleted_group(lines: BrokerLines, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that a request deleted the group with this tombstone; None: there is none."""
    deletions = lines.of_kind[EventKind.GROUP_DELETED]
    if deletions and all(line.timestamp_ms is None for line in deletions):
        return deletions[0] if len(deletions) == 1 else None
    return next((line for line in deletions if _is_near(line, at)), None)


def _is_near(line: BrokerEvent, at: LogPosition) -> bool:
    return is_between(line, at.timestamp_ms - SLACK_MS, at.timestamp_ms + SLACK_MS)


def removed_by_request(lines: BrokerLines, topic: str, partition: int, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that a request deleted this offset of the group with this tombstone; None: there is
    none. Coordinators since Kafka 4.0 do not write it.
    """
    name = _in_list(f"{topic}-{partition}")
    named = [line for line in lines.of_kind[EventKind.OFFSETS_REMOVED] if name.search(line.reason or "")]
    if named and all(line.timestamp_ms is None for line in named):
        return named[0] if len(named) == 1 else None
    return next((line for line in named if _is_near(line, at)), None)


def _in_list(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")


def _at_once(lines: Iterable[BrokerEvent], at: LogPosition) -> BrokerEvent | None:
    """Return the line of this log partition that was written just before a record.

    The coordinator before Kafka 4.0 writes one for all its partitions, when it has written the records.
    """
    return next((line for line in lines if _is_at_once(line, at)), None)


def _is_at_once(line: BrokerEvent, at: LogPosition) -> bool:
    if line.log_partition is None:
        return is_between(line, at.timestamp_ms, at.timestamp_ms + (line.duration_ms or 0) + AT_ONCE_MS)
    return line.log_partition == at.partition and is_between(line, at.timestamp_ms - AT_ONCE_MS, at.timestamp_ms)
