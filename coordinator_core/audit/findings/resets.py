"""Committed offsets that are set back: by two jobs that commit for one group id by turns, or while a group had no
members (``kafka-consumer-groups --reset-offsets`` and its like).

Flink, Beam and MirrorMaker commit without joining the group. Each job writes offsets that go up, and the commits of one
are below those of the other: the committed offset jumps back and forth. No administrator resets offsets so: what is set
back each time goes up, too.

The request of a commit names member and generation, the record does not. What the log proves is that the group had no
members: such a commit came from an administrator, or from a consumer that assigns itself partitions and does not join.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from operator import attrgetter
from typing import Annotated, Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commits import MOST_KEPT, PartitionCommits
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import GROUP_LOG, LogPosition

MORE_REWINDS: Final[Callable[[PartitionCommits], int]] = attrgetter("more_rewinds")
OF_TURNS: Final = 0.9
"""In this part of the turns both offsets have gone up since the turn before; a job may be restarted in between."""


def taken_by_turns(history: GroupHistory, limits: Thresholds) -> dict[tuple[str, int], PartitionCommits]:
    """Return the partitions, by topic name and number, of which two writers that take turns set the offset back.

    Who does not join commits only while the group has no members: one of these that goes back commits out of order.
    """
    empty = EmptyTimes(history.epochs, history.lost)
    taken = {}
    for commits in history.commits:
        if len(commits.rewinds) >= limits.commit_turns:
            rewinds = tuple(rewind for rewind in commits.rewinds if not empty.had_members(rewind.at))
            goes_up = [last.before > one.before and last.after > one.after for one, last in pairwise(rewinds)]
            if len(rewinds) >= limits.commit_turns and sum(goes_up) >= OF_TURNS * len(goes_up):
                taken[commits.topic, commits.partition] = commits._replace(rewinds=rewinds)
    return taken


def cut_text(commits: Iterable[PartitionCommits], more_of: Callable[[PartitionCommits], int]) -> str:
    """Return the words for what is not kept of partitions, of which each has ``more_of``; empty: all is kept."""
    more = [count for each in dict.fromkeys(commits) if (count := more_of(each))]
    if not more:
        return ""
    return f"; the first {MOST_KEPT} of a partition are kept: {counted(len(more), 'partition')} had {sum(more)} more"


MADE_AGAIN: Final = "; or the topic was made again meanwhile, which the metadata log of that time would show"


def made_again(history: GroupHistory, commit: PartitionCommits, first_ms: int, last_ms: int) -> str | None:
    """Return words where nothing tells whether the topic of a commit was made again between two times; None: it was, or
    may have been, by the two clocks. Brokers before 4.1 record no topic id with a commit.
    """
    topics = history.topics
    if commit.topic_id is not None:
        return ""
    # Where the log shows all of that time, its first creation came before the commit, whatever the two clocks say.
    is_known = topics.reach.covers(max(first_ms, 0), last_ms)
    if topics.began_within(commit.topic, first_ms, last_ms, again=is_known):
        return None
    return "" if is_known else MADE_AGAIN


def by_turns(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for all partitions that two writers commit by turns."""
    taken = [*taken_by_turns(history, limits).values()]
    if not taken:
        return
    turns = [rewind for commits in taken for rewind in commits.rewinds]
    first = taken[0]
    names = first_of([f"{commits.topic}-{commits.partition}" for commits in taken], 3)
    # The median: one wide jump, as after a job's restart, does not change it.
    apart = sorted(rewind.before - rewind.after for rewind in turns)[len(turns) // 2]
    more = sum(map(MORE_REWINDS, taken))
    yield history.finding(
        FindingKind.COMMITS_BY_TURNS,
        len(turns) + more,
        f"two jobs commit in turn for this group: {counted(len(taken), 'partition')} ({names}) went back "
        f"{len(turns) + more} times and forth again, by {apart} offsets mostly, the first of "
        f"{first.topic}-{first.partition} from {first.rewinds[0].before} to {first.rewinds[0].after}"
        f"{cut_text(taken, MORE_REWINDS)}; each overwrites what the other has committed, and reads on from there once "
        "it starts again",
        [rewind.at for rewind in turns],
        threshold=limits.commit_turns,
        subject=first.topic if len({commits.topic for commits in taken}) == 1 else None,
        # What came after the last one that is kept was written as before.
        until_ms=max(commits.last.timestamp_ms for commits in taken) if more else None,
    )


class PartitionRewind(NamedTuple):
    """A commit of a partition with a lower offset than the commit before it."""

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    before: Annotated[int, "offset committed before"]
    after: Annotated[int, "offset committed now"]
    at: Annotated[LogPosition, "the commit"]


class OffsetReset(NamedTuple):
    """The partitions whose offsets were set back at one time, while the group had no members."""

    at: Annotated[LogPosition, "the first of the commits"]
    partitions: Annotated[tuple[PartitionRewind, ...], "what was set back, by topic and partition"]

    @property
    def offsets(self) -> int:
        """Return by how many offsets they went back in total: these records are read again."""
        return sum(partition.before - partition.after for partition in self.partitions)

    @property
    def detail(self) -> str:
        """Return a sentence about it."""
        first = self.partitions[0]
        return (
            f"while the group had no members, {counted(len(self.partitions), 'committed offset')} went back by "
            f"{self.offsets} in total, the first of {first.topic}-{first.partition} from {first.before} to "
            f"{first.after}: an administrator or a consumer outside the group did it"
        )


class EmptyTimes:
    """When the log proves that a group had no members.

    A group without a record of its own is a simple group: it never has members. Lost records may have shown members.
    Epochs of Connect groups on KIP-848 do not count: commits are in ``__consumer_offsets``, and the offsets of two logs
    cannot be compared.
    """

    def __init__(self, epochs: Iterable[GroupEpochRow], lost: LostRecords) -> None:
        self._lost = lost
        of_this_log = (row for row in epochs if row.group_type != GroupType.CONNECT)
        self._epochs = sorted(of_this_log, key=lambda row: row.opened.offset)
        self._starts = [row.opened.offset for row in self._epochs]

    def proven_at(self, at: LogPosition) -> bool:
        """Return whether the group had no members at this position of its log."""
        index = bisect_right(self._starts, at.offset) - 1
        if index < 0:
            is_known = not self._epochs or self._epochs[0].history_complete
            return is_known and not self._is_any_lost(0, at)
        epoch = self._epochs[index]
        # It is the last epoch that began before ``at``: once it has ended, there is none, and no member either.
        ended = epoch.ended if epoch.ended is not None and epoch.ended.offset < at.offset else None
        if not epoch.history_complete or (ended is None and epoch.members != ()):
            return False
        return not self._is_any_lost((ended or epoch.opened).offset, at)

    def had_members(self, at: LogPosition) -> bool:
        """Return whether the last epoch before this position had members, and lasts until there."""
        index = bisect_right(self._starts, at.offset) - 1
        epoch = self._epochs[index] if index >= 0 else None
        return epoch is not None and bool(epoch.members) and (epoch.ended is None or epoch.ended.offset >= at.offset)

    def _is_any_lost(self, first: int, at: LogPosition) -> bool:
        return self._lost.any_within(GROUP_LOG, at.partition, first, at.offset)


def rewinds_of(history: GroupHistory) -> Iterator[PartitionRewind]:
    """Yield the commits that went back, from a history that has commits."""
    for commits in history.commits:
        for rewind in commits.rewinds:
            yield PartitionRewind(commits.topic, commits.partition, rewind.before, rewind.after, rewind.at)


def offset_resets(history: GroupHistory, rewinds: Iterable[PartitionRewind]) -> list[OffsetReset]:
    """Return the resets among the commits of a group that went back (``rewinds``), in the order of the log.

    A commit is part of one only if the log proves that the group had no members: commits of an epoch whose members are
    not known are left out. One request writes all its commits at one time.
    """
    empty = EmptyTimes(history.epochs, history.lost)
    by_time: dict[int, list[PartitionRewind]] = defaultdict(list)
    for rewind in rewinds:
        if empty.proven_at(rewind.at):
            by_time[rewind.at.timestamp_ms].append(rewind)
    of_times = [
        OffsetReset(min((row.at for row in rows), key=lambda at: at.offset), tuple(sorted(rows)))
        for rows in by_time.values()
    ]
    return sorted(of_times, key=lambda reset: reset.at.offset)


def resets(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each reset of a group's offsets."""
    turns, doubts = taken_by_turns(history, limits), dict[LogPosition, str | None]()
    for commit in history.commits:
        for before, after in pairwise((commit.first, *(rewind.at for rewind in commit.rewinds))):
            until_ms = after.timestamp_ms + CLOCK_TOLERANCE_MS
            doubts[after] = made_again(history, commit, before.timestamp_ms, until_ms)
    of_one = (each for each in rewinds_of(history) if doubts[each.at] is not None)
    rewinds = (each for each in of_one if (each.topic, each.partition) not in turns)
    cut = cut_text((each for each in history.commits if (each.topic, each.partition) not in turns), MORE_REWINDS)
    for reset in offset_resets(history, rewinds):
        if reset.offsets > 0:
            topics = {partition.topic for partition in reset.partitions}
            yield history.finding(
                FindingKind.OFFSETS_RESET,
                reset.offsets,
                f"{reset.detail}{max(doubts[each.at] or '' for each in reset.partitions)}{cut}",
                [partition.at for partition in reset.partitions],
                subject=topics.pop() if len(topics) == 1 else None,
            )
