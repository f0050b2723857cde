"""Why an offset was removed: as far as its tombstone, the age of the commit and deleted topics prove it, and by the
lines of brokers' application logs.

A tombstone is the same whether its offset expired, a request deleted it, or its topic or group was deleted. The broker
says what it removes before it writes the tombstones, on the same thread: a line and its tombstones have nearly the same
time, of the same clock. The coordinator's log has no principal and no host of a request. The authorizer writes both
(``kafka-authorizer.log``), at level DEBUG for what it allows, before the request is handled.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from coordinator_core.audit.folds.witness import BrokerLines, is_between
from coordinator_core.broker_log.all_files import SLACK_MS
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.cluster.topic_changes import TOPIC_CLEANUP_MS
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import LogPosition

SHORTEST_RETENTION_MS: Final = 60_000
"""Least offsets.retention.minutes that a broker accepts: an offset that was removed earlier did not expire."""

GROUP_DELETED: Final = "group deleted"
GROUP_EXPIRED: Final = "group expired"
GROUP_ENDED: Final = "group deleted or expired"
"""How an offset was removed together with its group: a coordinator ends a group whose last offsets expire, too."""
WITH_GROUP: Final = (GROUP_DELETED, GROUP_ENDED)
TOPIC_DELETED: Final = "topic deleted"
EXPIRED: Final = "expired"
DELETED: Final = "deleted"
EXPIRED_OR_DELETED: Final = "expired or deleted"
"""How an offset was removed where its tombstone does not tell."""
OR_WITH_TOPIC: Final = ", or removed with its topic"
"""Added where it is not known whether the topic was deleted."""


class EmptySpans:
    """Since when a classic group was empty: its offsets expire by the time at which it became so, and not by that of
    their commits (KIP-211). A group whose members a record does not tell may have been empty.
    """

    def __init__(self, epochs: Iterable[GroupEpochRow]) -> None:
        self._spans = [
            (row.opened, None if row.ended is None else row.ended.offset)
            for row in epochs
            if row.group_type == GroupType.CLASSIC and not row.members
        ]

    def how(self, how: str, at: LogPosition) -> str:
        """Return how an offset was removed, where ``how`` rests on its age alone: in an empty group each offset may
        have expired with a tombstone at this position, however young it is.
        """
        may_expire = any(
            opened.partition == at.partition
            and opened.offset < at.offset <= (at.offset if end is None else end)
            and (at.timestamp_ms < 0 or at.timestamp_ms - opened.timestamp_ms >= SHORTEST_RETENTION_MS)
            for opened, end in self._spans
        )
        return {DELETED: EXPIRED_OR_DELETED, GROUP_DELETED: GROUP_ENDED}.get(how, how) if may_expire else how


def removal_window(deleted_ms: Any) -> tuple[Any, Any]:
    """Return between which times of the coordinator's clock the offsets of a topic are removed that was deleted at this
    time of the controller's clock: numbers, or columns of them.
    """
    return deleted_ms - CLOCK_TOLERANCE_MS, deleted_ms + (TOPIC_CLEANUP_MS + CLOCK_TOLERANCE_MS)


def shows_deletions(reach: TopicReach, removed_ms: int) -> bool:
    """Whether the deletion of a topic with which an offset was removed at this time (-1: unknown) would be known."""
    return removed_ms >= 0 and reach.covers(max(removed_ms - TOPIC_CLEANUP_MS - CLOCK_TOLERANCE_MS, 0), removed_ms)


def how_removed(age_ms: int | None, *, past_expiry: bool) -> str:
    """Return what a tombstone proves that was written for neither a deleted group nor a deleted topic.

    ``age_ms`` is the time since the commit, None if that is not known; ``past_expiry``: the expiry that the commit
    itself names had passed. Of another commit a request must have removed what is too young to expire.
    """
    if past_expiry:
        return EXPIRED
    return DELETED if age_ms is not None and age_ms < SHORTEST_RETENTION_MS else EXPIRED_OR_DELETED


def with_group(how: str) -> str:
    """Return how an offset was removed of which a tombstone of its group follows at the same time.

    ``how`` is what its own tombstone proves, or what another tombstone of the group at that time has made of it.
    """
    if how in WITH_GROUP:
        return how
    return GROUP_DELETED if how == DELETED else GROUP_ENDED


def or_with_topic(how: str, reach: TopicReach, removed_ms: int) -> str:
    """Return how an offset was removed, with ``OR_WITH_TOPIC`` if a topic may have been deleted unseen.

    ``how`` is how it was removed if the topic was not deleted, ``removed_ms`` the time of the tombstone.
    """
    is_open = how in (DELETED, EXPIRED_OR_DELETED) and not shows_deletions(reach, removed_ms)
    return f"{how}{OR_WITH_TOPIC}" if is_open else how


AT_ONCE_MS = 50
"""Tombstones are written at most so long after the line about them; real brokers (3.9 to 4.4): within 2 ms."""


def how_by_lines(how: str, lines: BrokerLines, topic: str, partition: int, at: LogPosition, reach: TopicReach) -> str:
    """Return how the offset of a partition was removed with this tombstone, as far as topics and brokers' logs say so.

    ``how`` is what the log of groups proves; ``reach``: over which times each deletion of a topic is known.
    """
    told, line = told_by_lines(how, lines, topic, partition, at)
    return told if line is not None else or_with_topic(how, reach, at.timestamp_ms)


def told_by_lines(
    how: str, lines: BrokerLines, topic: str, partition: int, at: LogPosition
) -> tuple[str, BrokerEvent | None]:
    """Return how an offset was removed, and the line that says so; ``how`` it was as the log proves, if none does."""
    if how == GROUP_ENDED and (line := _near(lines.of_kind[EventKind.GROUP_DELETED], at)) is not None:
        return GROUP_DELETED, line
    if how in (EXPIRED, EXPIRED_OR_DELETED, DELETED) and (line := _deleted_topic(lines, topic, at)) is not None:
        return TOPIC_DELETED, line
    if how not in (EXPIRED_OR_DELETED, DELETED, GROUP_ENDED):
        return how, None
    if (line := _expired_offset(lines, topic, partition, at)) is not None:
        return GROUP_EXPIRED if how == GROUP_ENDED else EXPIRED, line
    if how != GROUP_ENDED and (line := _removed_by_request(lines, topic, partition, at)) is not None:
        return DELETED, line
    return how, None


def _expired_offset(lines: BrokerLines, topic: str, partition: int, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that the offset of a partition expired with this tombstone.

    A line about this offset alone is written at level DEBUG. At INFO, one says when what had expired was removed.
    """
    of_offset = lines.of_offset.get((topic, partition), [])
    if of_offset and all(line.timestamp_ms is None for line in of_offset):
        return _near(of_offset, at)
    return _near(of_offset, at) or _at_once(lines.of_kind[EventKind.CLEANED_UP], at)


def _deleted_topic(lines: BrokerLines, topic: str, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that the topic was deleted, and its offsets with this tombstone.

    Lines of Kafka 4.2 and before name partitions (``topic-0``), others topics.
    """
    name = re.compile(rf"(?<![\w.-]){re.escape(topic)}(?:-\d+)?(?![\w.-])")
    return _at_once((line for line in lines.of_kind[EventKind.OFFSETS_DELETED] if name.search(line.reason or "")), at)


def _removed_by_request(lines: BrokerLines, topic: str, partition: int, at: LogPosition) -> BrokerEvent | None:
    """Return the line that says that a request deleted this offset of the group with this tombstone. Coordinators since
    Kafka 4.0 do not write it.
    """
    name = re.compile(rf"(?<![\w.-]){re.escape(f'{topic}-{partition}')}(?![\w.-])")
    return _near([line for line in lines.of_kind[EventKind.OFFSETS_REMOVED] if name.search(line.reason or "")], at)


def _near(lines: Sequence[BrokerEvent], at: LogPosition) -> BrokerEvent | None:
    """Return the line written about the time of a record; where no line has a time, the only one."""
    if lines and all(line.timestamp_ms is None for line in lines):
        return lines[0] if len(lines) == 1 else None
    first_ms, last_ms = at.timestamp_ms - SLACK_MS, at.timestamp_ms + SLACK_MS
    return next((line for line in lines if is_between(line, first_ms, last_ms)), None)


def _at_once(lines: Iterable[BrokerEvent], at: LogPosition) -> BrokerEvent | None:
    """Return the line of this log partition that was written just before a record.

    The coordinator before Kafka 4.0 writes one for all its partitions, when it has written the records.
    """
    return next((line for line in lines if _is_at_once(line, at)), None)


def _is_at_once(line: BrokerEvent, at: LogPosition) -> bool:
    if line.log_partition is None:
        return is_between(line, at.timestamp_ms, at.timestamp_ms + (line.duration_ms or 0) + AT_ONCE_MS)
    return line.log_partition == at.partition and is_between(line, at.timestamp_ms - AT_ONCE_MS, at.timestamp_ms)


def done_by(lines: BrokerLines, requests: Sequence[str], at: LogPosition) -> BrokerEvent | None:
    """Return the line of the request, one of these kinds, with which a record was written; None: no line tells, or
    several principals asked for it at that time.
    """
    ends = tuple(f": {request}" for request in requests)
    near = [
        line
        for line in lines.of_kind[EventKind.REQUEST_ALLOWED]
        if (line.reason or "").endswith(ends) and is_between(line, at.timestamp_ms - SLACK_MS, at.timestamp_ms)
    ]
    return near[-1] if len({line.reason for line in near}) == 1 else None
