"""Steps of the committed offsets of a group: forward, set back, reset, removed; who did it, and why.

A record of a commit does not name the member that committed. The member that owned the partition at that position of
the log is its owner: brokers take commits only from members (but for administrators, and for consumers that assign
themselves partitions while the group has no members).
"""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Final, NamedTuple

from coordinator_core.audit.findings.resets import EmptyTimes
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.removals import (
    DELETED,
    EXPIRED_OR_DELETED,
    GROUP_ENDED,
    TOPIC_DELETED,
    EmptySpans,
    done_by,
    how_removed,
    removal_window,
    shows_deletions,
    told_by_lines,
    with_group,
)
from coordinator_core.audit.offsets.runs import CommitRun, GroupCommits, Held
from coordinator_core.durations import duration
from coordinator_core.groups.end_offsets import are_two_topics
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.history_writer import END_NOT_SEEN
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow
from coordinator_core.records import GROUP_LOG, LogPosition


class StepKind(StrEnum):
    """What a step did to the committed offset of a partition."""

    FIRST = "first"
    FORWARD = "forward"
    UNMOVED = "unmoved"
    REWOUND = "rewound"
    RESET = "reset"
    REMOVED = "removed"


class StepCause(StrEnum):
    """Why an offset went back, was set, or was removed."""

    OUTSIDE = "administrator or consumer outside the group"
    TAKEOVER = "another member took over"
    NOT_OWNER = "commit of a member that did not own the partition"
    TOPIC_CREATED_AGAIN = "topic created again"
    GROUP_DELETED = "group deleted"
    GROUP_EXPIRED = "group expired"
    GROUP_ENDED = "group deleted or expired"
    TOPIC_DELETED = "topic deleted"
    EXPIRED = "expired"
    DELETED = "offsets deleted"
    UNKNOWN = "unknown"


REQUESTS: Final = {
    StepCause.OUTSIDE: ("OffsetCommit", "AlterShareGroupOffsets"),
    StepCause.DELETED: ("OffsetDelete", "DeleteShareGroupOffsets"),
    StepCause.GROUP_DELETED: ("DeleteGroups",),
}
"""The requests that may have changed an offset, by the cause of the step."""


class CommitStep(NamedTuple):
    """One step of the committed offset of one partition. Commits that go forward one after the other are one step."""

    group_id: Annotated[str, "the group"]
    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    kind: Annotated[str, "first, forward, unmoved, rewound, reset or removed"]
    since: Annotated[LogPosition, "the first commit of the step (removed: the tombstone)"]
    until: Annotated[LogPosition, "the last commit of the step"]
    commits: Annotated[int, "number of commits; removed: 0"]
    offset_before: Annotated[int | None, "offset committed before the step; null: none, as far as the log shows"]
    offset_after: Annotated[int | None, "offset committed after the step; null: removed"]
    offsets_per_second: Annotated[
        float | None, "forward: from the commit before the step to its last one; null: other steps"
    ]
    owner: Annotated[str | None, "member that owned the partition then; null: the log does not prove one"]
    client_id: Annotated[str | None, "client id of that member"]
    epoch: Annotated[int | None, "member epoch (classic: generation) in which the member got the partition"]
    others: Annotated[
        tuple[str, ...], "other members that had the partition at the same time: the log does not say who committed"
    ]
    cause: Annotated[str | None, "why, for other steps than forward and unmoved; unknown: see `missing`"]
    detail: Annotated[str | None, "what the log says about the cause"]
    history_complete: Annotated[
        bool, "true if no record is missing since the commit before the step, up to the one behind it"
    ]
    missing: Annotated[str | None, "what would decide what is unknown; null: nothing is missing"]
    committer: Annotated[
        str | None, "member that the commits themselves name in their metadata, as franz-go does; null: they name none"
    ]


class _Owner(NamedTuple):
    """``missing``: why no member is known."""

    member_id: str | None = None
    client_id: str | None = None
    epoch: int | None = None
    missing: str | None = None
    others: tuple[str, ...] = ()


NO_OWNER: Final = _Owner()
NAMELESS: Final = _Owner(
    missing="the owner: the log has topic ids without names; give the metadata log, or a snapshot of the cluster"
)
UNSEEN: Final = _Owner(missing="the owner: the log shows no member that had this partition at this position")
NOT_SHOWN_SINCE: Final = _Owner(missing="the owner: records are missing since the log showed who had the partition")
GAP_BEFORE_FIRST: Final = "earlier records: an offset may have been committed before"
GAP_BEFORE_REMOVAL: Final = "the commit that it removed: the log does not have it any more"
GAP_SINCE: Final = "records since the commit before: there may have been other commits in between"
BEGIN_IN_DOUBT: Final = "records before: the step may have begun earlier"
END_IN_DOUBT: Final = "records since: the step may have gone on"
TOPICS_MISSING: Final = "whether the topic was deleted: the metadata log does not show that time"
SAME_TOMBSTONES: Final = (
    "whether it expired or a request deleted it: both write the same tombstones; the log file of the broker tells"
)
EPOCH_MISSING: Final = "since which epoch its owner had the partition: it may have lost it and got it back"
TWO_OWNERS: Final = "which of its owners committed: both had the partition, and commits of both are taken"
REQUESTS_MISSING: Final = "why the member went back: the log file of the consumer tells"


class _Reason(NamedTuple):
    cause: StepCause | None = None
    detail: str | None = None
    missing: str | None = None


NO_REASON: Final = _Reason()
_CARRIED_ON: Final = _Reason(
    StepCause.TOPIC_CREATED_AGAIN, "the commits before went on from the offset of the topic that was deleted"
)
"""A consumer commits its position in the old topic until its next metadata tells that the topic is another one."""


class _Step(NamedTuple):
    """A run with what was around it: whether the log proves that the group was empty, the owner, and the member that
    the commits name.

    ``is_alone``: the step is one record, as it does not go forward from the commit before. ``in_doubt``: records are
    lost since the owner was assigned the partition. A step that goes on behind them is still one step.
    """

    run: CommitRun
    kind: StepKind
    is_alone: bool
    was_empty: bool
    last_owner: _Owner
    in_doubt: bool
    committer: str | None

    @property
    def owner(self) -> _Owner:
        """Return the owner at the first commit, as far as the log proves it."""
        return NOT_SHOWN_SINCE if self.in_doubt else self.last_owner

    def continues(self, later: "_Step") -> bool:
        """Return whether the later run is the same step."""
        these = (self.kind, self.was_empty, self.last_owner, self.committer)
        both = these == (later.kind, later.was_empty, later.last_owner, later.committer)
        return both and not self.is_alone and not later.is_alone

    def with_later(self, later: "_Step") -> "_Step":
        """Return this step with a later run of the same step."""
        run, more = self.run, later.run
        return self._replace(run=run._replace(last=more.last, commits=run.commits + more.commits, offset=more.offset))


class LifeReaders(NamedTuple):
    """Which subtopologies read a topic, by the name of the topic, in the life of a streams group that began at this
    offset: a group that was deleted and created again may have another topology.
    """

    since: int
    by_topic: Mapping[str, frozenset[str]]


def commit_steps(history: GroupHistory, commits: GroupCommits, readers: Sequence[LifeReaders] = ()) -> list[CommitStep]:
    """Return the steps of every partition, by topic and partition, each in the order of the log.

    ``readers`` has the lives of a streams group, in their order.
    """
    owners = _Owners(history, readers)
    is_joined = any(row.group_type != GroupType.CONNECT for row in history.epochs)  # those are in another log
    empty = EmptyTimes(history.epochs, history.lost)
    steps: dict[TopicPartition, list[_Step]] = defaultdict(list)
    maker = _RowMaker(history, commits)
    removed: dict[TopicPartition, int] = {}
    for run in commits.runs:
        if run.offset is None:
            last = removed.get(run.partition, -1)
            removed[run.partition] = run.last.offset
            if run.before is None and maker.is_whole(run.first.partition, last, run.last):
                continue  # there was nothing to remove
        of_partition = steps[run.partition]
        was_empty = empty.proven_at(run.first)
        kind, is_alone = _kind(run, was_empty=was_empty, is_joined=is_joined)
        owner, in_doubt = (NO_OWNER, False) if was_empty else owners.at(run.partition, run.first)
        committer = owners.known_member(run.metadata)
        step = _Step(run, kind, is_alone, was_empty, owner, in_doubt, committer)
        if of_partition and of_partition[-1].continues(step):
            of_partition[-1] = of_partition[-1].with_later(step)
        else:
            of_partition.append(step)
    return [row for _, of_partition in sorted(steps.items()) for row in maker.rows(of_partition)]


def _kind(run: CommitRun, *, was_empty: bool, is_joined: bool) -> tuple[StepKind, bool]:
    """Return the kind, and whether the run is a step of its own. ``is_joined``: the group has had members.

    A group that no member joins is used by consumers that assign themselves partitions: they commit while it is empty.
    """
    before, first = run.before, run.first_offset
    if first is None:
        return StepKind.REMOVED, True
    if before is None or are_two_topics(before.topic_id, run.topic_id):
        return StepKind.FIRST, True
    if first < before.offset:
        return StepKind.RESET if was_empty else StepKind.REWOUND, True
    return StepKind.RESET if was_empty and is_joined else StepKind.FORWARD, False


class _Owners:
    """Which member owned a partition at a position of the log."""

    def __init__(self, history: GroupHistory, readers: Sequence[LifeReaders]) -> None:
        self._readers = readers
        self._clients = {row.member_id: row.client_id for row in history.memberships}
        self._intervals: dict[tuple[str, str, int], list[AssignmentRow]] = defaultdict(list)
        self._has_nameless = False
        generations = (row for row in history.epochs if row.group_type == GroupType.CLASSIC)
        self._generations = sorted((row.opened.offset, _end(row)) for row in generations)
        self._left = {row.member_id: row.left for row in history.memberships}
        self._lost = history.lost
        for row in history.assignments:
            if row.kind == "current" and row.role in ("partition", "active"):
                name = row.subtopology if row.topic is None else row.topic
                self._has_nameless |= name is None
                self._intervals[row.role, name or "", row.partition].append(row)

    def known_member(self, metadata: str | None) -> str | None:
        """Return the metadata of a commit if it is the id of a member of the group: franz-go writes its own."""
        return metadata if metadata in self._clients else None

    def at(self, partition: TopicPartition, at: LogPosition) -> tuple[_Owner, bool]:
        """Return the owner, of several the one that got the partition last, with the others beside it; and whether
        records are lost that may have changed owners.
        """
        life = bisect_right(self._readers, at.offset, key=lambda readers: readers.since) - 1
        tasks = self._readers[life].by_topic.get(partition.topic, ()) if life >= 0 else ()
        names = (("partition", partition.topic), *(("active", task) for task in sorted(tasks)))
        rows = [row for name in names for row in self._intervals.get((*name, partition.partition), ())]
        holding = [row for row in rows if _holds(row, at)]
        holding = holding or [row for row in rows if self._is_giving_up(row, at)]
        if holding:
            row = max(holding, key=lambda span: (span.since.offset, span.member_id))
            others = tuple(sorted({span.member_id for span in holding} - {row.member_id}))
            missing = TWO_OWNERS if others else EPOCH_MISSING if row.epoch is None else None
            owner = _Owner(row.member_id, self._clients.get(row.member_id), row.epoch, missing, others)
            return owner, any(self._is_in_doubt(span, at) for span in holding)
        return NAMELESS if self._has_nameless else UNSEEN, False

    def _is_in_doubt(self, row: AssignmentRow, at: LogPosition) -> bool:
        """Return whether records are lost since the log showed that a member had the partition; a generation of a
        classic group shows it of all its members.
        """
        shown = max([row.since.offset, *(opened for opened, _ in self._last_generation(at))])
        return self._lost.any_within(GROUP_LOG, at.partition, shown + 1, at.offset)

    def _is_giving_up(self, row: AssignmentRow, at: LogPosition) -> bool:
        """Return whether the present generation took the partition from a member that is still in it, without
        another owner since: a cooperative client commits once more as it gives it up (KIP-429).
        """
        if row.group_type != GroupType.CLASSIC or row.until is None or row.until.partition != at.partition:
            return False
        present = [opened for opened, ended in self._last_generation(at) if ended > at.offset]
        left = self._left.get(row.member_id)
        was_taken = row.until.offset < at.offset and present == [row.until.offset]
        return was_taken and (left is None or left.offset > at.offset)

    def _last_generation(self, at: LogPosition) -> Sequence[tuple[int, float]]:
        """Return where the last generation of a classic group up to a record began and ended; empty: there is none."""
        end = bisect_right(self._generations, (at.offset, math.inf))
        return self._generations[max(end - 1, 0) : end]


def _end(row: GroupEpochRow) -> float:
    """Return the offset at which an epoch ended; infinite: it has not."""
    return math.inf if row.ended is None else row.ended.offset


def _holds(row: AssignmentRow, at: LogPosition) -> bool:
    in_log = row.since.partition == at.partition and row.since.offset <= at.offset
    return in_log and (row.until is None or row.until.offset > at.offset)


class _RowMaker:
    """Makes rows of the steps of a group, with their causes."""

    def __init__(self, history: GroupHistory, commits: GroupCommits) -> None:
        self._group_id = history.group_id
        self._lines = history.lines
        self._has_unseen_end = any(row.ended_by == END_NOT_SEEN for row in history.epochs)
        self._commits = commits
        self._lost = history.lost
        self._empty = EmptySpans(history.epochs)

    def rows(self, steps: Sequence[_Step]) -> Iterator[CommitStep]:
        """Yield the rows of the steps of one partition."""
        # ``old``: what was committed for the deleted topic; ``carries_on``: commits for the new one began there.
        old, carries_on = None, False
        for before, step, after in zip([None, *steps], steps, [*steps[1:], None], strict=False):
            reason = _CARRIED_ON if carries_on and step.kind is StepKind.REWOUND else self._cause(step, before)
            yield self._row(step, before, after, reason)
            held = None if step.run.before is None else step.run.before.offset
            if step.kind is StepKind.REMOVED:
                old, carries_on = held if reason.cause is StepCause.TOPIC_DELETED else None, False
            elif step.kind is StepKind.FIRST:
                old = held if reason.cause is StepCause.TOPIC_CREATED_AGAIN else old
                carries_on = old is not None and (step.run.first_offset or 0) >= old
            elif step.kind in (StepKind.REWOUND, StepKind.RESET):
                carries_on = False

    def _row(self, step: _Step, before: _Step | None, after: _Step | None, reason: _Reason) -> CommitStep:
        run, owner = step.run, step.owner
        cause, detail, missing = reason
        if cause in REQUESTS and (line := done_by(self._lines, REQUESTS[cause], run.first)) is not None:
            detail = "; ".join(part for part in (detail, f"by {line.reason} ({line.place})") if part)
        first = GAP_BEFORE_REMOVAL if run.offset is None else GAP_BEFORE_FIRST
        gap = None if self._is_proven(run) else first if run.before is None else GAP_SINCE
        bounds = [] if step.is_alone else self._doubts(step, before, after)
        is_complete = gap is None and not bounds
        tells_owner = owner.missing == TWO_OWNERS and step.committer is not None
        lacks = missing, gap, *bounds, None if tells_owner else owner.missing
        is_unmoved = step.kind is StepKind.FORWARD and run.before is not None and run.offset == run.before.offset
        return CommitStep(
            self._group_id,
            *run.partition,
            str(StepKind.UNMOVED if is_unmoved else step.kind),
            run.first,
            run.last,
            run.commits if run.offset is not None else 0,
            None if run.before is None else run.before.offset,
            run.offset,
            _rate(step),
            owner.member_id,
            owner.client_id,
            owner.epoch,
            owner.others,
            None if cause is None else str(cause),
            detail,
            is_complete,
            "; ".join(reason for reason in lacks if reason) or None,
            step.committer,
        )

    def _is_proven(self, run: CommitRun) -> bool:
        """Return whether no record is missing since the commit before the run."""
        return self.is_whole(run.first.partition, -1 if run.before is None else run.before.at.offset, run.last)

    def _doubts(self, step: _Step, before: _Step | None, after: _Step | None) -> list[str]:
        """Return in words where commits are missing that may be of a step that goes forward.

        Compaction keeps the last commit of a partition: behind it only what is lost counts.
        """
        last, end = step.run.last, None if after is None else after.run.first.offset
        found = [BEGIN_IN_DOUBT] if before is not None and self._may_be_other(before) else []
        is_lost = self._lost.any_within(GROUP_LOG, last.partition, last.offset + 1, end)
        return [*found, END_IN_DOUBT] if is_lost or (after is not None and self._may_be_other(after)) else found

    def _may_be_other(self, step: _Step) -> bool:
        """Return whether a step and its neighbour may be one, as records are missing that tell its kind or owner.

        Where the end of the group was not seen, all records may be there, and yet do not tell what its tasks read.
        """
        if not self._is_proven(step.run):
            return True
        is_owned = step.was_empty or step.owner.missing in (None, TWO_OWNERS)
        is_whole = self.is_whole(step.run.first.partition, -1, step.run.first) and not self._has_unseen_end
        return not is_owned and not is_whole

    def is_whole(self, partition: int, before: int, last: LogPosition) -> bool:
        """Return whether the log has each record behind the offset ``before`` up to the last one, and each is readable:
        one that is not may be a commit.
        """
        is_covered = self._commits.coverage.unbroken(partition, max(before, 0), last.offset)
        return is_covered and not self._lost.any_within(GROUP_LOG, partition, before + 1, last.offset)

    def _cause(self, step: _Step, before: _Step | None) -> _Reason:
        match step.kind:
            case StepKind.REMOVED:
                return self._of_removal(step.run.first, step.run.partition, step.run.before)
            case StepKind.FIRST if step.run.before is not None:
                return _Reason(StepCause.TOPIC_CREATED_AGAIN, "the commit names another topic id")
            case StepKind.FIRST if not step.was_empty:
                return NO_REASON
            case StepKind.FIRST | StepKind.RESET:
                return _Reason(StepCause.OUTSIDE, "the group had no members")
            case StepKind.REWOUND:
                return _of_rewind(step, before)
            case _:
                return NO_REASON

    def _of_removal(self, at: LogPosition, partition: TopicPartition, held: Held | None) -> _Reason:
        """Return why an offset was removed. A deleted group has its tombstone after those of its offsets."""
        now_ms = at.timestamp_ms
        age_ms = now_ms - held.committed_ms if held is not None and held.committed_ms >= 0 <= now_ms else None
        detail = None if age_ms is None else f"{duration(age_ms)} after the commit"
        how = how_removed(age_ms, past_expiry=held is not None and 0 <= held.expires_ms <= now_ms)
        windows = map(removal_window, self._commits.topic_ends.get(partition.topic, ()))
        # In the order of the log the group's tombstone comes behind those of its offsets, at the same time.
        if any(end.timestamp_ms == now_ms >= 0 and end.offset > at.offset for end in self._commits.group_ends):
            how = with_group(how)
        elif any(since <= now_ms <= until for since, until in windows):
            return _Reason(StepCause.TOPIC_DELETED)
        how, line = told_by_lines(self._empty.how(how, at), self._lines, *partition, at)
        if line is not None:
            places = (None if how == TOPIC_DELETED else detail, line.place)
            cause = StepCause.DELETED if how == DELETED else StepCause(how)
            return _Reason(cause, "; ".join(part for part in places if part))
        if how == DELETED and not shows_deletions(self._commits.reach, now_ms):
            return _Reason(StepCause.UNKNOWN, detail, TOPICS_MISSING)
        if how == DELETED:
            return _Reason(StepCause.DELETED, f"{detail}: no offset expires within a minute")
        if how == EXPIRED_OR_DELETED:
            return _Reason(StepCause.UNKNOWN, detail, SAME_TOMBSTONES)
        return _Reason(StepCause(how), detail, SAME_TOMBSTONES if how == GROUP_ENDED else None)


def _of_rewind(step: _Step, before: _Step | None) -> _Reason:
    owners = (step.owner.member_id, *step.owner.others)
    # The member that committed may have lost the partition before: then its owner is another one.
    if step.committer is not None and owners[0] is not None and step.committer not in owners:
        return _Reason(StepCause.NOT_OWNER, f"{step.committer} committed, {owners[0]} owned the partition")
    if step.owner.others:
        return _Reason(StepCause.UNKNOWN)
    member, earlier = step.owner.member_id, None if before is None else before.owner.member_id
    if member is None:
        return _Reason(StepCause.UNKNOWN)
    if earlier is not None and earlier != member:
        return _Reason(StepCause.TAKEOVER, f"{earlier} owned the partition at the commit before")
    return _Reason(StepCause.UNKNOWN, None, REQUESTS_MISSING)


def _rate(step: _Step) -> float | None:
    """Return offsets per second from the commit before a step to its last commit."""
    run = step.run
    if step.is_alone or run.before is None or run.offset is None:
        return None
    span_ms = run.last.timestamp_ms - run.before.at.timestamp_ms
    return round((run.offset - run.before.offset) * 1000 / span_ms, 3) if span_ms > 0 else None
