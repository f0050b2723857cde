"""All folds that follow one group, fed together: its audit, its commits, and the sizes of its records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.folds.commit_counts import CommitCount, CommitCountFold
from coordinator_core.audit.folds.commit_rows import OpenTransaction, PartitionCommits
from coordinator_core.audit.folds.commit_trail import CommitTrail
from coordinator_core.audit.folds.commits import CommitFold
from coordinator_core.audit.folds.group_history import RecordSize
from coordinator_core.audit.folds.record_sizes import RecordSizeFold
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.records import AnyRecord, RecordType

FoldedRow = AuditedRow | PartitionCommits | CommitCount | CommitTrail | OpenTransaction | RecordSize


@dataclass(slots=True)
class GroupFolds:
    """The folds of one group."""

    audit: GroupAudit
    sizes: RecordSizeFold
    commits: CommitFold = field(default_factory=CommitFold)
    counts: CommitCountFold = field(default_factory=CommitCountFold)

    def feed(
        self, record: AnyRecord, sizes: tuple[int, int], batch_base: int, leader_epoch: int, producer_id: int | None
    ) -> list[AuditedRow]:
        """Take in the next record of the group; return the rows that it makes final.

        ``sizes`` are the bytes of its key and of its value, ``producer_id`` is given in a transaction.
        """
        final = self.audit.feed(record, leader_epoch)
        if record.type <= RecordType.OFFSET_COMMIT:
            self.commits.feed(record, producer_id)
            if record.value is not None:
                self.counts.feed(record.at.timestamp_ms)
        else:
            if record.value is None and record.type in GROUP_ENDS:
                self.commits.group_deleted(record.at)
            self.sizes.feed(record.type, *sizes, record.at, batch_base)
        return final

    def open_rows(self) -> Iterator[FoldedRow]:
        """Yield the rows of what is open as of the last record, and the sums of the commits and sizes."""
        return chain[FoldedRow](
            self.audit.open_rows(),
            self.commits.partitions(),
            self.counts.counts(),
            self.commits.trails(),
            self.commits.transactions(),
            self.sizes.sizes(),
        )
