"""The groups of one log partition, fed with its records in the order of the log.

What is lost of a log may be about any of its groups, and the end of a transaction names none: both reach from here all
groups that they are about. Questions to log files and the watch of a growing log feed this one text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.folds.commits import PassedCommits
from coordinator_core.audit.folds.group_folds import GroupFolds
from coordinator_core.history.coverage import Hole
from coordinator_core.history.grounds import lost_offsets, unreadable_record
from coordinator_core.history.lost_records import UnreadableOffsets
from coordinator_core.records import AnyRecord, LogPosition
from coordinator_core.wire.record_decoder import UnreadableRecord


class FoldedGroup(Protocol):
    """A group with its folds, and what becomes of the rows that these make."""

    folds: GroupFolds

    def keep(self, final: Sequence[AuditedRow]) -> None:
        """Take the rows, if any, that became final with what the folds were fed."""


Folded = TypeVar("Folded", bound=FoldedGroup)


@dataclass(slots=True)
class PartitionFolds(Generic[Folded]):
    """The groups of a log partition as far as it was read.

    ``begin`` makes a group when something is said of it first. ``hole`` is the last place that may have said anything
    of any group. ``writing`` has by producer id the groups to which its open transaction commits.
    """

    begin: Callable[[str], Folded]
    groups: dict[str, Folded] = field(default_factory=dict)
    hole: Hole | None = None
    unreadable: UnreadableOffsets = field(default_factory=UnreadableOffsets)
    writing: dict[int, set[str]] = field(default_factory=dict)

    def feed(
        self,
        record: AnyRecord,
        sizes: tuple[int, int],
        batch_base: int,
        leader_epoch: int,
        producer_id: int | None,
        passed: PassedCommits = (),
    ) -> Folded:
        """Take in the next record, as ``GroupFolds.feed`` does, behind the commits that were passed over before it;
        return its group.
        """
        group = self._of(record.group_id)
        if producer_id is not None:
            self.writing.setdefault(producer_id, set()).add(record.group_id)
        if passed:
            group.folds.pass_over(record, passed)
        group.keep(group.folds.feed(record, sizes, batch_base, leader_epoch, producer_id))
        return group

    def end_transaction(self, producer_id: int, *, committed: bool, ended_ms: int) -> list[Folded]:
        """Take in the marker that ends the transaction of a producer; return the groups to which it commits."""
        ended = [self.groups[each] for each in self.writing.pop(producer_id, ()) if each in self.groups]
        for group in ended:
            group.folds.commits.end_transaction(producer_id, committed=committed, ended_ms=ended_ms)
        return ended

    def lose_offsets(self, partition: int, first: int, last: int, time_ms: int) -> None:
        """Take in that the records of these offsets are lost, before one of this time: whatever they said, and the
        ends of transactions.
        """
        self._lose(Hole(LogPosition(partition, last, time_ms), lost_offsets(first, last)))
        for group in self.groups.values():
            group.folds.commits.give_up_transactions()
        self.writing.clear()

    def lose_record(self, record: UnreadableRecord) -> None:
        """Take in a record that cannot be decoded: without a key that tells its group, it may be of any."""
        self.unreadable.note(record.group_id, record.at.offset, is_commit=record.is_commit)
        if record.group_id is None:
            self._lose(Hole(record.at, unreadable_record(record.at.offset)))
        else:
            group = self._of(record.group_id)
            group.keep(group.folds.audit.lose_record(record.at, is_commit=record.is_commit))

    def _lose(self, hole: Hole) -> None:
        self.hole = hole
        for group in self.groups.values():
            group.keep(group.folds.audit.lose(hole))

    def _of(self, group_id: str) -> Folded:
        group = self.groups.get(group_id)
        if group is None:
            group = self.groups[group_id] = self.begin(group_id)
            # What was lost before its first record here may have been about this group, too.
            if self.hole is not None:
                group.keep(group.folds.audit.lose(self.hole))
        return group
