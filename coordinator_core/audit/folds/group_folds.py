"""All folds that follow one group, fed together: its audit, its commits, and the sizes of its records, in bytes as a
broker counts them.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from coordinator_core.audit.audited_rows import AuditedRow
from coordinator_core.audit.folds.commit_times import CommitCount, CommitCountFold, CommitTrail
from coordinator_core.audit.folds.commits import CommitFold, OpenTransaction, PartitionCommits, PassedCommits
from coordinator_core.audit.folds.group_history import RecordSize
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.groups.group import GROUP_ENDS
from coordinator_core.records import LOG_TOPICS, AnyRecord, Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import HEADER_SIZE

VARINT_STEPS = (1 << 6, 1 << 13, 1 << 20, 1 << 27)
"""A zigzag varint takes a byte more from each of these values on."""


def record_bytes(key_bytes: int, value_bytes: int, offset_delta: int) -> int:
    """Return the bytes of a record within its batch (record batch v2), uncompressed and without headers.

    Attributes, time and number of headers take a byte each: a coordinator writes no headers, and the records of a batch
    within a few milliseconds. ``value_bytes`` is 0 for a tombstone, whose length takes one byte, too.
    """
    fields = (offset_delta, key_bytes, value_bytes)
    body = 3 + sum(map(_varint_bytes, fields)) + key_bytes + value_bytes
    return _varint_bytes(body) + body


def _varint_bytes(value: int) -> int:
    return 1 + bisect_right(VARINT_STEPS, value)


@dataclass(slots=True)
class SizeMemory:
    """All that a fold of record sizes keeps: the largest ones, and base offset, records and bytes of the last batch."""

    largest: list[RecordSize] = field(default_factory=list)
    batch: tuple[int, int, int] = (-1, 0, 0)


class RecordSizeFold:
    """The largest record of each type, and the largest batch, of one group; fed in log order."""

    __slots__ = ("_base", "_batch", "_largest", "_log_topic")

    def __init__(self, family: Family, memory: SizeMemory | None = None) -> None:
        """Begin, or go on with the ``memory`` that an earlier fold left."""
        memory = memory or SizeMemory()
        self._log_topic = LOG_TOPICS[family]
        self._largest = {record.record_type: record for record in memory.largest}
        self._base, *batch = memory.batch
        self._batch = (batch[0], batch[1])

    @property
    def memory(self) -> SizeMemory:
        """What a later fold needs to go on."""
        return SizeMemory(list(self._largest.values()), (self._base, *self._batch))

    def feed(self, record_type: int, key_bytes: int, value_bytes: int, at: LogPosition, batch_base: int) -> None:
        """Take in a record, in the batch that begins at offset ``batch_base``; a tombstone has no bytes of value."""
        base = batch_base if batch_base >= 0 else at.offset
        records, total = self._batch if base == self._base else (0, HEADER_SIZE)
        size = record_bytes(key_bytes, value_bytes, at.offset - base)
        self._base, self._batch = base, (records + 1, total + size)
        self._keep(RecordSize(self._log_topic, record_type, HEADER_SIZE + size, 1, at))
        self._keep(RecordSize(self._log_topic, None, total + size, records + 1, at._replace(offset=base)))

    def sizes(self) -> Iterator[RecordSize]:
        """Yield the largest ones."""
        yield from self._largest.values()

    def _keep(self, record: RecordSize) -> None:
        known = self._largest.get(record.record_type)
        if known is None or known.size < record.size:
            self._largest[record.record_type] = record


FoldedRow = AuditedRow | PartitionCommits | CommitCount | CommitTrail | OpenTransaction | RecordSize


@dataclass(slots=True)
class GroupFolds:
    """The folds of one group; ``counts`` of its commits over time only where they are shown."""

    audit: GroupAudit
    sizes: RecordSizeFold
    commits: CommitFold = field(default_factory=CommitFold)
    counts: CommitCountFold | None = None

    def feed(
        self, record: AnyRecord, sizes: tuple[int, int], batch_base: int, leader_epoch: int, producer_id: int | None
    ) -> list[AuditedRow]:
        """Take in the next record of the group; return the rows that it makes final.

        ``sizes`` are the bytes of its key and of its value, ``producer_id`` is given in a transaction.
        """
        final = self.audit.feed(record, leader_epoch)
        if record.type <= RecordType.OFFSET_COMMIT:
            self.commits.feed(record, producer_id)
            if record.value is not None and self.counts is not None:
                self.counts.feed(record.at.timestamp_ms)
        else:
            if record.value is None and record.type in GROUP_ENDS:
                # It comes behind the tombstones of the group's offsets, of which it tells only now why they were
                # written.
                self.commits.group_deleted(record.at)
            self.sizes.feed(record.type, *sizes, record.at, batch_base)
        return final

    def pass_over(self, record: AnyRecord, passed: PassedCommits) -> None:
        """Take in commits of the partition of ``record``, the next one, that go forward between it and the one before.
        Members, epochs and rules see all that they change from these two.
        """
        self.commits.pass_over((record.key["topic"], record.key["partition"]), passed)
        if self.counts is not None:
            for time_ms in passed[0].tolist():
                self.counts.feed(time_ms)

    def open_rows(self) -> Iterator[FoldedRow]:
        """Yield the rows of what is open as of the last record, and the sums of the commits and sizes."""
        return chain[FoldedRow](
            self.audit.open_rows(),
            self.commits.partitions(),
            () if self.counts is None else self.counts.rows(),
            self.commits.trails(),
            self.commits.transactions(),
            self.sizes.sizes(),
        )
