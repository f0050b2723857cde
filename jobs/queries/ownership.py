"""Which intervals of ownership belong to a topic or connector, and which of them hold at a moment."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import GivenTopics
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.groups.group import Group
from coordinator_core.groups.owners import Owner
from coordinator_core.groups.streams.sources import only_readers, readers
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.rows import AssignmentRow
from coordinator_core.records import LogPosition
from jobs.queries.interface import OwnedBy
from jobs.relations.moment import AsOf


def owned_by(name: str, groups: Iterable[Group], *, has_partition_of_task: bool = True) -> OwnedBy:
    """Return the selection for a topic or connector; ``groups`` have the topologies that say which tasks read it.

    ``has_partition_of_task``: the topic is known to have the partitions; otherwise only tasks count that read no other
    topic.
    """
    which = readers if has_partition_of_task else only_readers
    reading = {
        group.group_id: frozenset(which(group.state.topology, name))
        for group in groups
        if isinstance(group.state, StreamsGroup)
    }
    return OwnedBy(name, {group_id: subtopologies for group_id, subtopologies in reading.items() if subtopologies})


def interval_of(owner: Owner, rows: Iterable[AssignmentRow], moment: AsOf) -> AssignmentRow | None:
    """Return the interval in which the owner has the partition at the moment; None if the history has none.

    ``rows`` are those of ``OwnedBy``. A member that is asked to give up a partition has it until it did.
    """
    partition = -1 if owner.partition is None else owner.partition
    role = owner.role.removeprefix("revoking ")
    intervals_then = [
        row
        for row in rows
        if (row.group_id, row.member_id, row.partition) == (owner.group_id, owner.member_id, partition)
        and row.role == ("partition" if role in ("assigned", "revoking") else role)
        and _holds(row, moment)
    ]
    return max(intervals_then, key=lambda row: row.since.offset, default=None)


class ReadInterval(NamedTuple):
    """An interval, and when it began and ended for the topic: a task may be older, or outlive it.

    ``since`` is None where the interval began before the partition; ``until_ms`` is the time at which the member, or
    the partition, ended.
    """

    row: AssignmentRow
    since: LogPosition | None
    until: LogPosition | None
    until_ms: int | None


def of_partition(row: AssignmentRow, lives: Iterable[TopicInterval] | None) -> list[ReadInterval]:
    """Return what of an interval belongs to the topic: of a task, the times at which the partition of its number was
    there.

    ``lives`` has the times of the topic in their order, None if topics are unknown.
    """
    if row.subtopology is None or lives is None:
        return [ReadInterval(row, row.since, row.until, None if row.until is None else row.until.timestamp_ms)]
    parts = []
    for begun, ended in _times_of(row.partition, lives):
        overlaps = (row.until is None or row.until.timestamp_ms > begun.timestamp_ms) and (
            ended is None or ended.timestamp_ms > row.since.timestamp_ms
        )
        if overlaps:
            # The task may be why the partition is known to be there; the metadata log has another clock.
            is_whole = begun.timestamp_ms <= row.since.timestamp_ms + CLOCK_TOLERANCE_MS
            outlives = ended is not None and (row.until is None or row.until.timestamp_ms > ended.timestamp_ms)
            end = ended if outlives else row.until
            parts.append(
                ReadInterval(
                    row,
                    row.since if is_whole else None,
                    None if outlives else row.until,
                    None if end is None else end.timestamp_ms,
                )
            )
    return parts


def is_topic_shown(part: ReadInterval, topics: GivenTopics, last_ms: int | None) -> bool:
    """Return whether each change of topics is known while a task lasted; other intervals do not rest on that.

    ``last_ms`` is the time of the last record in the logs of groups.
    """
    since_ms, reach = part.row.since.timestamp_ms, topics.reach
    if part.row.subtopology is None or topics.is_listed:
        return True
    if part.until_ms is None:
        return reach.since_ms <= since_ms and reach.covers_end(last_ms or 0)
    return reach.covers(since_ms, part.until_ms)


def _times_of(partition: int, lives: Iterable[TopicInterval]) -> Iterator[tuple[LogPosition, LogPosition | None]]:
    """Yield when a partition began and ended; a topic that is created again has others."""
    begun: LogPosition | None = None
    for life in lives:
        there = life.partitions > partition
        begun = begun if not there or begun is not None else life.since
        # A topic that only changed, as by more partitions, goes on: its partition has not ended.
        if begun is not None and life.ended_by != "changed":
            yield begun, life.until
            begun = None


def partitions_at(lives: Iterable[TopicInterval], moment: AsOf) -> int:
    """Return how many partitions a topic has at a moment, a time or the end of the log; 0: it is not there."""
    return next((life.partitions for life in lives if _holds(life, moment)), 0)


def _holds(interval: AssignmentRow | TopicInterval, moment: AsOf) -> bool:
    """Return whether the moment lies within an interval."""
    return _has_begun(interval.since, moment) and not (
        interval.until is not None and _has_begun(interval.until, moment)
    )


def _has_begun(at: LogPosition, moment: AsOf) -> bool:
    """Return whether the record lies before the moment."""
    if moment.time_ms is not None:
        return at.timestamp_ms <= moment.time_ms
    end = moment.offsets.get(at.partition)
    return end is None or at.offset < end


def in_order(rows: Iterable[AssignmentRow]) -> Iterator[AssignmentRow]:
    """Yield intervals by partition, then by the time at which they begin."""
    yield from sorted(rows, key=lambda row: (row.partition, row.since.timestamp_ms, row.group_id, row.since.offset))
