"""The log of one partition: what its coordinator writes and its members commit, put together as record batches."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from coordinator_core.coordinator.memory import CoordinatorState
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import AnyRecord, Family, LogPosition, MetadataRecordType
from coordinator_core.simulator.brokers import MetadataRecord
from coordinator_core.simulator.bulk_commits import CommitStreams
from coordinator_core.simulator.commit_batches import CommitChunk
from coordinator_core.simulator.topic_plan import TopicPlan
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value


class Piece(NamedTuple):
    """Whole record batches that follow one another in a log: their bytes, and how many records they hold."""

    data: bytes
    base_offset: int
    records: int


@dataclass(slots=True, eq=False)
class GroupBatch:
    """What one operation of the coordinator wrote; ``base_offset`` is set once the batch is in the log."""

    time_ms: int
    records: Sequence[AnyRecord]
    partition: int
    leader_epoch: int = 0
    base_offset: int = -1

    def position(self, index: int) -> LogPosition:
        """Return the position of the record with this index."""
        return LogPosition(self.partition, self.base_offset + index, self.time_ms)


@dataclass(slots=True)
class PartitionLog:
    """The log of one partition of a coordinator's topic, in order of time."""

    commits: CommitStreams
    partition: int
    family: Family = Family.GROUP
    end_offset: int = 0
    leader_epoch: int = 0
    waiting: list[GroupBatch] = field(default_factory=list)
    _leaders: list[int] = field(default_factory=list)

    def lead(self, time_ms: int) -> None:
        """Let another broker lead the partition from this time on, with the next leader epoch."""
        self._leaders.append(time_ms)
        self.leader_epoch += 1

    def append(self, time_ms: int, records: Sequence[AnyRecord]) -> GroupBatch:
        """Append a batch of the coordinator and return it."""
        batch = GroupBatch(time_ms, records, self.partition, self.leader_epoch)
        self.waiting.append(batch)
        return batch

    def pieces(self, until: int) -> Iterator[Piece]:
        """Yield all that was written before this time; everything up to then has to be known.

        At equal times commits precede the coordinator's records: a member that loses a partition has committed before.
        """
        for chunk in self.commits.chunks(until):
            # Those of its last time wait: the next chunk may begin with commits of that time, which precede them.
            end = bisect_left(self.waiting, int(chunk.times[-1]), key=lambda batch: batch.time_ms)
            yield self._merged(chunk, self.waiting[:end])
            del self.waiting[:end]
        if self.waiting:
            base = self.end_offset
            yield Piece(b"".join([self._append(batch) for batch in self.waiting]), base, self.end_offset - base)
            self.waiting = []

    def _merged(self, chunk: CommitChunk, groups: Sequence[GroupBatch]) -> Piece:
        """A chunk of commits with the batches of the coordinator that come before its end."""
        base = self.end_offset
        commits = np.concatenate([[0], np.cumsum(chunk.sizes)])
        written = np.cumsum([0, *(len(batch.records) for batch in groups)])
        # before[i] is how many batches of the coordinator lie before batch i of commits: those of an earlier time.
        before = np.searchsorted([batch.time_ms for batch in groups], chunk.times, side="left")
        # What is committed at the very time of a change is before it, as it is before what coordinators write then.
        epochs = np.searchsorted(self._leaders, chunk.times, side="left")
        data, starts = chunk.encode(base + commits[:-1] + written[before], epochs)
        parts: list[bytes | memoryview] = []
        done = 0
        for index, batch in enumerate(groups):
            upto = int(np.searchsorted(chunk.times, batch.time_ms, side="right"))
            parts.append(data[starts[done] : starts[upto]])
            self.end_offset = base + int(commits[upto] + written[index])
            parts.append(self._append(batch))
            done = upto
        parts.append(data[starts[done] :])
        self.end_offset = base + int(commits[-1] + written[-1])
        return Piece(b"".join(parts), base, self.end_offset - base)

    def _append(self, batch: GroupBatch) -> bytes:
        batch.base_offset = base = self.end_offset
        self.end_offset += len(batch.records)
        return encode_batch(
            [self._encoded(record, base + index, batch.time_ms) for index, record in enumerate(batch.records)],
            leader_epoch=batch.leader_epoch,
        )

    def _encoded(self, record: AnyRecord, offset: int, time_ms: int) -> NewRecord:
        value = None
        if record.value is not None:
            value = encode_value(record.type, record.value_version or 0, record.value, self.family)
        return NewRecord(offset, time_ms, encode_key(record.type, record.key, self.family), value)


def metadata_log(plan: TopicPlan) -> Iterator[Piece]:
    """Yield the log of ``__cluster_metadata``, with one batch for each step of the topics.

    Controllers write a record that says nothing twice a second: here is the last one, as it shows that nothing changed.
    """
    offset = 0
    steps = [(step.time_ms, step.records) for step in plan.steps]
    for time_ms, written in [*steps, (plan.end_ms, (MetadataRecord(MetadataRecordType.NO_OP, 0, {}),))]:
        records = [
            NewRecord(
                offset + index, time_ms, None, encode_value(record.type, record.version, record.value, Family.METADATA)
            )
            for index, record in enumerate(written)
        ]
        yield Piece(encode_batch(records, leader_epoch=1), offset, len(records))
        offset += len(records)


@dataclass(slots=True)
class KeptRecords:
    """The records of groups in one log partition, in their order; those of offsets are left out."""

    family: Family
    records: list[AnyRecord] = field(default_factory=list)

    def append(self, records: Iterable[AnyRecord]) -> None:
        """Append what an operation wrote."""
        self.records += records

    def compact(self, until_ms: int) -> None:
        """Keep, of the records before this time, only the last one of each key, and no tombstones."""
        count = bisect_left(self.records, until_ms, key=lambda record: record.at.timestamp_ms)
        # A key keeps the place of its first record in a dict: so what is left is put in the order of the log again.
        last = {encode_key(record.type, record.key, self.family): record for record in self.records[:count]}
        self.records[:count] = sorted(
            (record for record in last.values() if record.value is not None), key=lambda record: record.at.offset
        )

    def load(self, former: CoordinatorState) -> CoordinatorState:
        """Return the state of a coordinator that has read the records, with the settings of the ``former`` one."""
        log = CoordinatorShard(family=self.family)
        fresh = type(former)(
            former.group_classes, former.config, former.partition, former.end_offset, log, profile=former.profile
        )
        # The settings of groups are in the metadata log, which every broker has.
        fresh.group_configs = former.group_configs
        for record in self.records:
            fresh.follow(record)
        return fresh
