"""Lag of the groups of a running cluster, by Burrow's rules: the last commits against the end offsets of now."""

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_core.audit.offsets.burrow import (
    WINDOW,
    LagPoint,
    LagStatus,
    LogReach,
    LogSpan,
    TimedCommit,
    UnreadCommits,
    group_status,
    lag_point,
    note_unread,
    with_ends,
)
from coordinator_core.groups.end_offsets import EndOffset, are_two_topics
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.watch.events import LagStatusRow

MOST_NAMED: Final = 5
"""An event names at most this many partitions."""
YOUNG_MS: Final = 60_000
YOUNG: Final = f"{WINDOW} commits, or a minute of them: a new owner's first ones have pauses that mean nothing"


class Lags:
    """The last commits of each group and partition, and the last end offsets that were read of each partition."""

    def __init__(self) -> None:
        self.points: dict[str, list[LagPoint]] = {}
        """The lag of each group at the newest reading, by group id."""
        self._commits: dict[str, dict[TopicPartition, deque[TimedCommit]]] = {}
        self._ends: dict[TopicPartition, deque[EndOffset]] = {}
        self._unread: dict[tuple[str, TopicPartition], list[UnreadCommits]] = {}

    def feed(self, record: OffsetCommitRecord) -> None:
        """Take in a commit, or the tombstone of one."""
        partition = TopicPartition(record.key["topic"], record.key["partition"])
        value = record.value
        # The next record tells the offset again, whatever the one said that could not be read.
        self._unread.pop((record.group_id, partition), None)
        if value is None:
            of_group = self._commits.get(record.group_id, {})
            of_group.pop(partition, None)
            if not of_group:
                self._commits.pop(record.group_id, None)
            return
        commit = TimedCommit(record.at.timestamp_ms, record.at, value["offset"], value.get("topicId"))
        self.take(record.group_id, partition, commit)

    def lose(self, record: UnreadableRecord) -> None:
        """Take in a commit that cannot be decoded: until the next one, the lag is not known."""
        if record.key is not None and record.group_id is not None:
            partition = TopicPartition(record.key["topic"], record.key["partition"])
            note_unread(self._unread, record.group_id, partition, record.at)

    def take(self, group_id: str, partition: TopicPartition, commit: TimedCommit) -> None:
        """Take in the next commit of a partition."""
        of_group = self._commits.setdefault(group_id, {})
        known = of_group.get(partition)
        if known is None:
            known = of_group[partition] = deque(maxlen=WINDOW)
        known.append(commit)

    def window(self, group_id: str) -> list[tuple[TopicPartition, list[TimedCommit]]]:
        """Return the last commits of a group, by partition."""
        return [(partition, list(commits)) for partition, commits in self._commits.get(group_id, {}).items()]

    def partitions(self) -> set[TopicPartition]:
        """Return all partitions with a committed offset."""
        return {partition for of_group in self._commits.values() for partition in of_group}

    @property
    def ends(self) -> dict[TopicPartition, EndOffset]:
        """The newest end offset of each partition."""
        return {partition: known[-1] for partition, known in self._ends.items()}

    def read(self, time_ms: int, ends: Mapping[TopicPartition, EndOffset], end_ms: int) -> Iterator[LagStatusRow]:
        """Take end offsets as of a time; yield each group whose status is known then. ``before`` is not filled in.

        ``end_ms``: up to when the logs of groups were read.
        """
        for partition, end in ends.items():
            known = self._ends.setdefault(partition, deque(maxlen=WINDOW))
            # Those of an earlier topic of this name say nothing of this one.
            if known and are_two_topics(known[-1].topic_id, end.topic_id):
                known.clear()
            known.append(end)
        # End offsets are asked of partitions with a commit: when its last one is removed nobody renews them.
        for partition in self._ends.keys() - self.partitions():
            del self._ends[partition]
        self.points = {}
        for group_id, of_group in self._commits.items():
            points = [
                point
                for partition, commits in of_group.items()
                if partition in ends and (point := self._point(group_id, partition, commits, end_ms)) is not None
            ]
            self.points[group_id] = points
            told = [_told(each, of_group[TopicPartition(each.topic, each.partition)][0].time_ms) for each in points]
            status = group_status([each.status for each in told])
            if status is not None:
                behind = sorted((each for each in told if each.status != LagStatus.OK), key=_badness, reverse=True)
                lag = sum(map(_lag, points))
                yield LagStatusRow(group_id, status, None, time_ms, lag, len(points), tuple(behind[:MOST_NAMED]))

    def _point(
        self, group_id: str, partition: TopicPartition, commits: deque[TimedCommit], end_ms: int
    ) -> LagPoint | None:
        known = self._ends[partition]
        reach = LogReach([LogSpan(0, commits[-1].at.offset, end_ms)], unread=self._unread)
        lowest = min(end.offset for end in known)
        # A commit behind the reading of the ends would look as if it were ahead of them.
        recent = with_ends([commit for commit in commits if commit.time_ms <= known[-1].time_ms] or commits, known)
        return lag_point(group_id, partition, recent, known[-1], lowest, reach, is_followed=False)


def _told(point: LagPoint, first_ms: int) -> LagPoint:
    """Return what an event says of a partition with these first commits: Burrow's rules judge two of them already."""
    is_young = point.window < WINDOW and point.timestamp_ms - first_ms < YOUNG_MS
    if is_young and point.status in (LagStatus.WARN, LagStatus.STOP, LagStatus.STALL):
        return point._replace(status=LagStatus.UNKNOWN, missing=YOUNG)
    return point


def _badness(point: LagPoint) -> tuple[bool, int]:
    """The order of what an event names: what is known to be bad, then what is furthest behind."""
    return point.status != LagStatus.UNKNOWN, _lag(point)


def _lag(point: LagPoint) -> int:
    return point.lag or 0
