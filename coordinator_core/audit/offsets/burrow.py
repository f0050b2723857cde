"""Lag of a group through time, at the moments for which a snapshot proves the end offsets, with Burrow's status.

Burrow's rules (linkedin/Burrow at ced55ba, core/internal/evaluator/caching.go, ``calculatePartitionStatus``) judge the
last ten commits of a partition, each with its lag at that time. Between two snapshots the end offset is known within
bounds: it was not below that of the snapshot before, and not above that of the next one. Where these bounds leave more
than one status, the status is unknown, and ``missing`` names the ones that are possible.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Annotated, Final, NamedTuple, TypeAlias

from coordinator_core.groups.end_offsets import EndOffset, are_two_topics, records_behind
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import LogPosition

WINDOW: Final = 10
"""Number of last commits, and of last end offsets, that are judged (``intervals`` in Burrow)."""


class LagStatus(StrEnum):
    """Burrow's status of a partition; UNKNOWN is none of Burrow's."""

    OK = "OK"
    WARN = "WARN"
    STOP = "STOP"
    STALL = "STALL"
    REWIND = "REWIND"
    UNKNOWN = "UNKNOWN"


class Activity(StrEnum):
    """What the commits of a partition alone show, without end offsets.

    SILENT: no commit for longer than the whole window took; the consumer may have stopped, or has nothing to commit.
    IDLE_OR_STALLED: it commits the same offset again and again.
    """

    MOVING = "MOVING"
    IDLE_OR_STALLED = "IDLE_OR_STALLED"
    SILENT = "SILENT"
    REWIND = "REWIND"
    UNKNOWN = "UNKNOWN"


class GroupStatus(StrEnum):
    """Burrow's status of a group: OK, WARN, or ERR if a partition has another status than OK and WARN."""

    OK = "OK"
    WARN = "WARN"
    ERR = "ERR"


def group_status(statuses: Collection[str]) -> GroupStatus | None:
    """Return the status of a group from those of its partitions; None: not known, as that of a partition is not.

    A status that is not known may be the worst one, unless a partition has that.
    """
    if any(status not in (LagStatus.OK, LagStatus.WARN, LagStatus.UNKNOWN) for status in statuses):
        return GroupStatus.ERR
    if not statuses or LagStatus.UNKNOWN in statuses:
        return None
    return GroupStatus.WARN if LagStatus.WARN in statuses else GroupStatus.OK


class TimedCommit(NamedTuple):
    """A commit of one partition and when it began to hold; ``offset``: None for a tombstone.

    ``end_before`` and ``end_after``: the end offsets of the snapshots around it; None: there is none.
    """

    time_ms: int
    at: LogPosition
    offset: int | None
    topic_id: str | None = None
    end_before: int | None = None
    end_after: int | None = None


class LagPoint(NamedTuple):
    """The lag of one group in one partition at the time of one snapshot of the end offsets."""

    group_id: Annotated[str, "the group"]
    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    timestamp_ms: Annotated[int, "when the snapshot was taken, ms since the epoch"]
    end_offset: Annotated[int, "end offset of the partition then"]
    committed_offset: Annotated[int | None, "offset that was committed then; null: none, or not known"]
    committed: Annotated[LogPosition | None, "the commit that proves it; null: none"]
    lag: Annotated[int | None, "records between the two, negative if the offset is beyond the end; null: not known"]
    produced: Annotated[int | None, "records written since the snapshot before; null: there is none of this topic"]
    consumed: Annotated[int | None, "by how much the committed offset moved since then; null: not known"]
    status: Annotated[str, "Burrow's status: OK, WARN, STOP, STALL or REWIND; UNKNOWN: see `missing`"]
    window: Annotated[int, "number of commits that the status rests on, at most 10"]
    missing: Annotated[str | None, "what is not known, and what would decide it; null: nothing is missing"]


class ActivityPoint(NamedTuple):
    """What the commits of one group in one partition show at a time."""

    group_id: Annotated[str, "the group"]
    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    timestamp_ms: Annotated[int, "the time, ms since the epoch"]
    committed_offset: Annotated[int | None, "offset that was committed then; null: not known"]
    committed: Annotated[LogPosition | None, "the commit that proves it; null: not known"]
    activity: Annotated[str, "MOVING, IDLE_OR_STALLED, SILENT or REWIND; UNKNOWN: see `missing`"]
    window: Annotated[int, "number of commits that it rests on, at most 10"]
    missing: Annotated[str | None, "what is not known, and what would decide it; null: nothing is missing"]


class LogSpan(NamedTuple):
    """Offsets of a log partition without a gap, and the latest time (ms) of a record among them."""

    first: int
    last: int
    last_ms: int


LOG_ENDS: Final = "commits up to the snapshot: the log ends before it"
NOT_WHOLE: Final = "the offset that was committed then: the log lacks records"
UNREAD: Final = "the offset that was committed then: a later commit cannot be decoded"
NOT_KNOWN: Final = (NOT_WHOLE, UNREAD)
"""What leaves open which offset was committed."""
OTHER_TOPIC: Final = "an offset of this topic: the commit is for an earlier topic of this name"
ONE_COMMIT: Final = "a second commit: Burrow's rules compare commits"
POSSIBLE: Final = "end offsets nearer to the commits (command snapshot): Burrow's status is {}"


class UnreadCommits(NamedTuple):
    """Commits that cannot be decoded: the earliest time (ms, -1: none) and the last offset of them."""

    first_ms: int
    last: int


UnreadOfGroups: TypeAlias = Mapping[tuple[str, TopicPartition], Sequence[UnreadCommits]]
"""By group and partition, in the order of the log."""
MOST_UNREAD: Final = 100
"""So many commits of a partition that cannot be decoded are kept apart; the others count as one."""


def note_unread(
    unread: dict[tuple[str, TopicPartition], list[UnreadCommits]],
    group_id: str,
    partition: TopicPartition,
    at: LogPosition,
) -> None:
    """Take in a commit that cannot be decoded; commits come in the order of the log."""
    of_partition = unread.setdefault((group_id, partition), [])
    first_ms = at.timestamp_ms
    if len(of_partition) == MOST_UNREAD:
        first_ms = min(first_ms, of_partition.pop().first_ms)
    of_partition.append(UnreadCommits(first_ms, at.offset))


@dataclass(frozen=True)
class LogReach:
    """What of a log partition is there: spans in order, and the highest offset that is lost (-1: none).

    What compaction removed is not lost. ``unread``: the commits that cannot be decoded.
    """

    spans: Sequence[LogSpan] = ()
    lost: int = -1
    unread: UnreadOfGroups = field(default_factory=dict)

    @classmethod
    def of(cls, spans: Iterable[LogSpan], lost: int = -1, unread: UnreadOfGroups | None = None) -> "LogReach":
        """Return the reach of a log with these spans, given in any order; spans that touch are joined."""
        joined: list[LogSpan] = []
        for span in sorted(spans):
            if joined and span.first <= joined[-1].last + 1:
                before = joined[-1]
                joined[-1] = LogSpan(before.first, max(before.last, span.last), max(before.last_ms, span.last_ms))
            else:
                joined.append(span)
        return cls(joined, lost, unread or {})

    @property
    def last_ms(self) -> int:
        """Return the latest time of a record; -1: there is none."""
        return max((span.last_ms for span in self.spans), default=-1)

    def lacks(self, held: int | None, time_ms: int, *, is_followed: bool) -> str | None:
        """Return what is missing to prove that the commit at offset ``held`` (None: no commit) held at a time.

        ``is_followed``: a later commit of the partition is there. Compaction keeps the newest one.
        """
        if time_ms > self.last_ms:
            return LOG_ENDS
        # One span from the commit to the moment: each record in between is there, and none is another commit.
        start = 0 if held is None else held
        index = bisect_right(self.spans, start, key=lambda span: span.first) - 1
        if index >= 0 and self.spans[index].last >= start and self.spans[index].last_ms >= time_ms:
            return None
        # Compaction keeps the newest commit: without a later one here, and with nothing lost behind it, this one held.
        if held is not None and not is_followed and held > self.lost:
            return None
        return NOT_WHOLE

    def is_unread(self, group_id: str, partition: TopicPartition, held: int | None, time_ms: int) -> bool:
        """Return whether a commit that cannot be decoded may have replaced the one at offset ``held`` by a time."""
        after = -1 if held is None else held
        unread = self.unread.get((group_id, partition), ())
        return any(commits.last > after and commits.first_ms <= time_ms for commits in unread)


def group_lag(
    group_id: str,
    commits: Mapping[TopicPartition, Iterable[TimedCommit]],
    ends: Mapping[TopicPartition, Sequence[EndOffset]],
    reach: LogReach,
) -> Iterator[LagPoint]:
    """Yield the lag of each partition of a group in one log at each snapshot; its commits come in any order.

    ``ends`` of a partition are in order of time. For the parameters of one partition see ``lag_points``.
    """
    for partition, of_partition in commits.items():
        ordered = sorted(of_partition, key=lambda commit: (commit.time_ms, commit.at.offset))
        yield from lag_points(group_id, partition, ordered, ends.get(partition, ()), reach)


def point_order(point: LagPoint) -> tuple[str, str, int, int]:
    """Return a key that orders by group, topic, partition and time."""
    return point.group_id, point.topic, point.partition, point.timestamp_ms


def lag_points(
    group_id: str, partition: TopicPartition, commits: Sequence[TimedCommit], ends: Sequence[EndOffset], reach: LogReach
) -> Iterator[LagPoint]:
    """Yield the lag at each snapshot, in order of time. ``commits`` and ``ends`` are in order of time.

    A time before the first commit has no row if the log proves that nothing was committed.
    """
    between = with_ends(commits, ends)
    times = [commit.time_ms for commit in between]
    before: LagPoint | None = None
    # Ends of an earlier topic of this name say nothing of what was written to this one.
    of_topics: dict[str | None, list[int]] = defaultdict(list)
    for end in ends:
        index = bisect_right(times, end.time_ms)
        is_followed = index < len(between)
        of_topic = of_topics[end.topic_id]
        of_topic.append(end.offset)
        lowest = min(of_topic[-WINDOW:])
        point = lag_point(
            group_id, partition, between[max(0, index - WINDOW) : index], end, lowest, reach, is_followed=is_followed
        )
        if point is not None:
            yield point if len(of_topic) == 1 else after(point, of_topic[-2], before)
        before = point


def with_ends(commits: Iterable[TimedCommit], ends: Sequence[EndOffset]) -> list[TimedCommit]:
    """Return the commits with the end offsets of the snapshots around each."""
    times = [end.time_ms for end in ends]
    timed = []
    for commit in commits:
        # A snapshot at the very time of a commit bounds it from both sides.
        later = bisect_left(times, commit.time_ms)
        earlier = bisect_right(times, commit.time_ms) - 1
        end_before = ends[earlier].offset if earlier >= 0 else None
        end_after = ends[later].offset if later < len(ends) else None
        timed.append(commit._replace(end_before=end_before, end_after=end_after))
    return timed


def lag_point(
    group_id: str,
    partition: TopicPartition,
    recent: Sequence[TimedCommit],
    end: EndOffset,
    lowest_end: int,
    reach: LogReach,
    *,
    is_followed: bool,
) -> LagPoint | None:
    """Return the lag at one snapshot, without what changed since the one before; None: nothing was committed then.

    ``recent``: the last commits up to then, at most ``WINDOW``. ``lowest_end``: the lowest of the last end offsets.
    ``is_followed``: a later commit is there.
    """
    held, window, missing = _window(group_id, partition, recent, end.time_ms, reach, is_followed=is_followed)
    if missing is None and not window:
        return None
    if held is not None and are_two_topics(held.topic_id, end.topic_id):
        missing = OTHER_TOPIC
    committed = held.offset if held is not None and missing not in NOT_KNOWN else None
    lag = None if committed is None or held is None else records_behind(end, committed, held.time_ms, held.topic_id)
    status, undecided = LagStatus.UNKNOWN, None
    if missing is None and lag is not None:
        status, undecided = _status(window, max(0, lag), lowest_end, end.time_ms)
    return LagPoint(
        group_id,
        *partition,
        end.time_ms,
        end.offset,
        committed,
        None if held is None or committed is None else held.at,
        lag,
        None,
        None,
        str(status),
        len(window),
        missing or undecided,
    )


def activity_point(
    group_id: str,
    partition: TopicPartition,
    recent: Sequence[TimedCommit],
    time_ms: int,
    reach: LogReach,
    *,
    is_followed: bool,
) -> ActivityPoint | None:
    """Return what the commits show at a time; None: nothing was committed then. Parameters: see ``lag_point``."""
    held, window, missing = _window(group_id, partition, recent, time_ms, reach, is_followed=is_followed)
    if missing is None and not window:
        return None
    known = held if missing not in NOT_KNOWN else None
    activity = Activity.UNKNOWN
    if missing is None and len(window) < 2:
        missing = ONE_COMMIT
    elif missing is None:
        activity = _activity(window, time_ms)
    return ActivityPoint(
        group_id,
        *partition,
        time_ms,
        None if known is None else known.offset,
        None if known is None else known.at,
        str(activity),
        len(window),
        missing,
    )


def _window(
    group_id: str,
    partition: TopicPartition,
    recent: Sequence[TimedCommit],
    time_ms: int,
    reach: LogReach,
    *,
    is_followed: bool,
) -> tuple[TimedCommit | None, Sequence[TimedCommit], str | None]:
    """Return the commit that held at a time, the commits of its topic since the last tombstone, and what is missing to
    prove it.
    """
    held = recent[-1] if recent else None
    held_at = None if held is None else held.at.offset
    missing = reach.lacks(held_at, time_ms, is_followed=is_followed)
    if missing != NOT_WHOLE and reach.is_unread(group_id, partition, held_at, time_ms):
        missing = UNREAD
    ends = (
        index
        for index, commit in enumerate(recent)
        if commit.offset is None or (held is not None and are_two_topics(commit.topic_id, held.topic_id))
    )
    return held, recent[max(ends, default=-1) + 1 :], missing


def after(point: LagPoint, end_before: int, before: LagPoint | None) -> LagPoint:
    """Return the point with what was written and consumed since the snapshot before, which had this end offset.

    ``before`` is the point of that snapshot; None: nothing was committed then.
    """
    offsets = point.committed_offset, None if before is None else before.committed_offset
    consumed = None if offsets[0] is None or offsets[1] is None else offsets[0] - offsets[1]
    return point._replace(produced=point.end_offset - end_before, consumed=consumed)


# --- Burrow's rules --------------------------------------------------------------------------------------------------


def _status(window: Sequence[TimedCommit], lag: int, lowest_end: int, now_ms: int) -> tuple[LagStatus, str | None]:
    """Return the status, or what is missing for it. The rules are tried in Burrow's order."""
    # Before Burrow's own order: no lag is OK there, even where the commits have stopped.
    if lag == 0:
        return LagStatus.OK, None
    if len(window) < 2:
        return LagStatus.UNKNOWN, ONE_COMMIT
    offsets = [point.offset or 0 for point in window]
    if _is_silent(window, now_ms) and lowest_end > offsets[-1]:
        return LagStatus.STOP, None
    if _is_rewound(offsets):
        return LagStatus.REWIND, None
    lags = [_lag_bounds(point) for point in window]
    possible = _if_ever_zero(lags, LagStatus.STALL if min(offsets) == max(offsets) else None)
    if len(possible) == 1:
        return possible[0], None
    return LagStatus.UNKNOWN, POSSIBLE.format(" or ".join(possible))


def _activity(window: Sequence[TimedCommit], now_ms: int) -> Activity:
    offsets = [point.offset or 0 for point in window]
    if _is_rewound(offsets):
        return Activity.REWIND
    if _is_silent(window, now_ms):
        return Activity.SILENT
    return Activity.IDLE_OR_STALLED if min(offsets) == max(offsets) else Activity.MOVING


def _is_silent(window: Sequence[TimedCommit], now_ms: int) -> bool:
    """Return whether there was no commit for longer than the whole window took."""
    return now_ms - window[-1].time_ms > window[-1].time_ms - window[0].time_ms


Bounds = tuple[int, int | None]
"""The least and the greatest lag that a commit can have left; None: no bound."""


def _lag_bounds(commit: TimedCommit) -> Bounds:
    offset, low, high = commit.offset or 0, commit.end_before, commit.end_after
    if low is not None and high is not None and high < low:  # the topic was created again
        return 0, None
    return max(0, (low or 0) - offset), None if high is None else max(0, high - offset)


def _if_ever_zero(lags: Sequence[Bounds], stalled: LagStatus | None) -> list[LagStatus]:
    """Return the statuses that are possible. Lag that was zero once is OK; lag that never falls is a warning."""
    if any(high == 0 for _, high in lags):
        return [LagStatus.OK]
    may_be_zero = any(low == 0 for low, _ in lags)
    if stalled is not None:
        return [LagStatus.OK, stalled] if may_be_zero else [stalled]
    # It fell for sure where the most that is possible is less than the least that was possible before.
    if any(high is not None and high < low for (low, _), (_, high) in pairwise(lags)):
        return [LagStatus.OK]
    rises = all(high is not None and low >= high for (_, high), (low, _) in pairwise(lags))
    return [LagStatus.WARN] if rises and not may_be_zero else [LagStatus.OK, LagStatus.WARN]


def _is_rewound(offsets: Sequence[int]) -> bool:
    """Return whether the offset never got back to its value before its first decrease; later ones do not count."""
    for index, (before, offset) in enumerate(pairwise(offsets), 1):
        if offset < before:
            return all(later < before for later in offsets[index:])
    return False
