"""What the coordinator of one log partition writes and what its members commit, put together to record batches."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.simulator.commits import CommitBatch, CommitStreams
from coordinator_core.simulator.topics import TopicPlan
from coordinator_core.wire.batch_writer import NewRecord, encode_batch, frame
from coordinator_core.wire.row import encode_key, encode_value

PIECE_BYTES = 4 << 20
"""About so much of a log is handed out at a time."""


class Piece(NamedTuple):
    """Whole record batches that follow one another in a log: their bytes, and how many records they hold."""

    data: bytes
    base_offset: int
    records: int


@dataclass(slots=True, eq=False)
class GroupBatch:
    """What one operation of the coordinator wrote; ``base_offset`` is known once it is in the log."""

    time_ms: int
    records: Sequence[CoordinatorRecord]
    partition: int
    base_offset: int = -1

    def position(self, index: int) -> LogPosition:
        """Where one of the records lies."""
        return LogPosition(self.partition, self.base_offset + index, self.time_ms)


@dataclass(slots=True)
class PartitionLog:
    """The log of one partition of ``__consumer_offsets``, in order of time."""

    commits: CommitStreams
    partition: int
    end_offset: int = 0
    waiting: list[GroupBatch] = field(default_factory=list)

    def append(self, time_ms: int, records: Sequence[CoordinatorRecord]) -> GroupBatch:
        """The next batch of the coordinator."""
        batch = GroupBatch(time_ms, records, self.partition)
        self.waiting.append(batch)
        return batch

    def pieces(self, until: int) -> Iterator[Piece]:
        """All that was written before a time; everything up to then has to be known."""
        waiting, self.waiting = self.waiting, []
        written, size, base = [], 0, self.end_offset
        # Of one time, commits come first: who loses a partition then has still committed.
        merged: Iterator[CommitBatch | GroupBatch] = heapq.merge(
            self.commits.batches(until), waiting, key=lambda batch: batch.time_ms
        )
        for batch in merged:
            data = self._commits(batch) if isinstance(batch, CommitBatch) else self._group(batch)
            written.append(data)
            size += len(data)
            if size >= PIECE_BYTES:
                yield Piece(b"".join(written), base, self.end_offset - base)
                written, size, base = [], 0, self.end_offset
        if written:
            yield Piece(b"".join(written), base, self.end_offset - base)

    def _commits(self, batch: CommitBatch) -> bytes:
        base, time_ms, count = self.end_offset, batch.time_ms, batch.count
        self.end_offset += count
        return frame(
            batch.body,
            base_offset=base,
            last_offset=base + count - 1,
            count=count,
            base_timestamp=time_ms,
            max_timestamp=time_ms,
        )

    def _group(self, batch: GroupBatch) -> bytes:
        batch.base_offset = base = self.end_offset
        self.end_offset += len(batch.records)
        return encode_batch(
            [encoded(record, base + index, batch.time_ms) for index, record in enumerate(batch.records)]
        )


def encoded(record: CoordinatorRecord, offset: int, time_ms: int) -> NewRecord:
    """A record as it goes into a batch."""
    value = None if record.value is None else encode_value(record.type, record.value_version or 0, record.value)
    return NewRecord(offset, time_ms, encode_key(record.type, record.key), value)


def metadata_log(plan: TopicPlan) -> Iterator[Piece]:
    """The log of ``__cluster_metadata``, each step of the topics one batch."""
    offset = 0
    for step in plan.steps:
        records = [
            NewRecord(
                offset + index,
                step.time_ms,
                None,
                encode_value(record.type, record.version, record.value, Family.METADATA),
            )
            for index, record in enumerate(step.records)
        ]
        yield Piece(encode_batch(records, leader_epoch=1), offset, len(records))
        offset += len(records)
