"""Offsets that were set back while a group had no members: ``kafka-consumer-groups --reset-offsets`` and its like.

The request of a commit names member and generation, the record does not. What the log proves is that the group had no
members: such a commit came from an administrator, or from a consumer that assigns itself partitions and does not join.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.by_turns import MORE_REWINDS, cut_text, is_by_turns
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import GROUP_LOG, LogPosition


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
        ended = epoch.ended if epoch.ended is not None and epoch.ended.offset < at.offset else None
        if not epoch.history_complete or (ended is None and epoch.members != ()):
            return False
        return not self._is_any_lost((ended or epoch.opened).offset, at)

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
        OffsetReset(min((row.at for row in rows), key=_offset), tuple(sorted(rows))) for rows in by_time.values()
    ]
    return sorted(of_times, key=lambda reset: reset.at.offset)


def resets(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each reset of a group's offsets."""
    turns = {(each.topic, each.partition) for each in history.commits if is_by_turns(each, limits)}
    rewinds = (each for each in rewinds_of(history) if (each.topic, each.partition) not in turns)
    cut = cut_text((each for each in history.commits if (each.topic, each.partition) not in turns), MORE_REWINDS)
    for reset in offset_resets(history, rewinds):
        if reset.offsets > 0:
            topics = {partition.topic for partition in reset.partitions}
            yield history.finding(
                FindingKind.OFFSETS_RESET,
                reset.offsets,
                f"{reset.detail}{cut}",
                [partition.at for partition in reset.partitions],
                subject=topics.pop() if len(topics) == 1 else None,
            )


def _offset(at: LogPosition) -> int:
    return at.offset
