"""Offset commits, the bulk of a log, made in bulk: what all commits of a stream share is encoded once.

A member that runs and owns partitions commits all of them periodically, in one batch. The committed offset depends on
the time alone, so the offsets of a new owner continue where the former owner stopped. With transactions each commit is
one transaction, and a marker ends it after a while.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from coordinator_core.records import RecordType
from coordinator_core.simulator.commit_batches import (
    OPEN,
    Batches,
    CommitChunk,
    Ints,
    Markers,
    StreamColumns,
    Transactions,
    producers,
    value_parts,
)
from coordinator_core.simulator.topic_plan import TopicPlan
from coordinator_core.wire.batch_writer import varint
from coordinator_core.wire.control import ABORT, COMMIT
from coordinator_core.wire.record_codec import encode_key

TopicPartition = tuple[str, int]
OwnedPartition = tuple[str, str | None, int]
"""Topic name, topic id (None: the client knows none) and partition."""
Committed = dict[TopicPartition, tuple[int, int]]
"""Offset and time of the last valid commit, by partition."""

CHUNK_ROWS = 200_000
"""Commits are made about this many at a time."""
NEVER = 1 << 62
BLOCKS_BITS = 20
"""One log partition has at most 2**BLOCKS_BITS blocks of producers."""


@dataclass(frozen=True, slots=True)
class SimulatedTransaction:
    """A transaction that has not ended: its group, its producer, its beginning, and the partitions to commit."""

    group_id: str
    producer_id: int
    since_ms: int
    partitions: tuple[TopicPartition, ...]

    def without(self, gone: Callable[[str, str], bool]) -> "SimulatedTransaction":
        """Return the transaction without the partitions of each group and topic for which ``gone`` is true."""
        return replace(
            self, partitions=tuple(partition for partition in self.partitions if not gone(self.group_id, partition[0]))
        )


@dataclass(slots=True, eq=False)
class CommitStream:
    """The commits of one member from ``first_ms`` on, until it is closed.

    ``heads`` and ``tails`` are the bytes before the offset and after the time of each record; ``speeds`` and ``since``
    define the offsets: that many records in 1,000 s, since that time (ms). ``bytes`` is the size of a batch without its
    header. ``written`` counts its commits that are in the log, ``ended`` the transactions among them whose time is
    over; ``gone`` has the topics whose offsets were removed since.
    """

    group_id: str
    partitions: Sequence[TopicPartition]
    heads: list[bytes]
    tails: list[bytes]
    speeds: list[int]
    since: list[int]
    bytes: int
    every_ms: int
    first_ms: int
    transactions: Transactions | None = None
    until_ms: int = NEVER
    last_ms: int = NEVER
    crashed: bool = False
    written: int = 0
    ended: int = 0
    gone: set[str] = field(default_factory=set)

    def close(self, now: int, *, once_more: bool = False, crashed: bool = False) -> None:
        """Stop the commits now, with ``once_more`` after a last commit; if ``crashed``, the open transaction is
        not committed. A commit of this very millisecond may be in the log already; it stays there.
        """
        written_ms = self.first_ms + (self.written - 1) * self.every_ms
        self.until_ms, self.crashed = max(now, written_ms + 1) if self.written else now, crashed
        if once_more and not self._busy_at(now):
            self.last_ms = now

    def _regular(self, until: int) -> int:
        """How many of the commits made every so often come before a time."""
        # Rounded up, as the first one is at ``first_ms`` itself.
        return max(0, -(-(min(until, self.until_ms) - self.first_ms) // self.every_ms))

    @property
    def last_number(self) -> int:
        """Return the number of the one commit outside the rhythm, -1 if none is."""
        return self._regular(NEVER) if self.last_ms < NEVER else -1

    def _count(self, until: int) -> int:
        return self._regular(until) + (self.last_ms < until)

    def _busy_at(self, now: int) -> bool:
        """Whether a transaction is under way."""
        before = self._regular(now) - 1
        lasts_ms = self.transactions.lasts_ms if self.transactions is not None else 0
        return before >= 0 and self.first_ms + before * self.every_ms + lasts_ms >= now

    def _times(self, first: int, end: int) -> Ints:
        """When these commits are made; the last one may be out of turn."""
        numbers = np.arange(first, end)
        return np.where(numbers == self.last_number, self.last_ms, self.first_ms + numbers * self.every_ms)

    def span(self, until: int) -> tuple[int, int]:
        """Return the first number and the number after the last of the commits before ``until`` that no call
        returned before.
        """
        first, self.written = self.written, self._count(until)
        if self.transactions is None:
            self.ended = self.written
        return first, self.written

    def markers(self, until: int) -> Markers:
        """Return the ends of transactions before ``until`` that no call returned before."""
        over, outcomes = self._ends(self.ended, self.written)
        # The ends are in order: a transaction is over before the next one begins, as scenarios ensure.
        count = int(np.searchsorted(over, until))
        decided = np.flatnonzero(outcomes[:count] != OPEN)
        marked = Markers(over[decided], self.ended + decided, outcomes[decided])
        self.ended += count
        return marked

    def _ends(self, first: int, end: int) -> tuple[Ints, Ints]:
        """When the transactions of these commits are over, and how they end."""
        assert self.transactions is not None
        outcomes = self.transactions.outcomes(first, end)
        times = self._times(first, end)
        over = times + self.transactions.lasts_ms
        if self.crashed:
            left = over > self.until_ms
            outcomes = np.where(left & (outcomes == COMMIT), ABORT, outcomes)
            over = np.where(left, times + self.transactions.timeout_ms, over)
        return over, outcomes

    def committed(self) -> Iterator[tuple[TopicPartition, tuple[int, int]]]:
        """Yield the last commit of each partition: partition, offset and time."""
        last = self.ended - 1
        if self.transactions is not None and last >= 0:
            held = np.flatnonzero(self._ends(0, self.ended)[1] == COMMIT)
            last = int(held[-1]) if len(held) else -1
        if last >= 0:
            time_ms = int(self._times(last, last + 1)[0])
            for partition, speed, since in zip(self.partitions, self.speeds, self.since, strict=True):
                if partition[0] not in self.gone:
                    yield partition, (max(time_ms - since, 0) * speed // 1_000_000, time_ms)

    def first_offset(self, now: int) -> int:
        """Return the offset of its first partition at this time."""
        return max(now - self.since[0], 0) * self.speeds[0] // 1_000_000

    def open_transactions(self) -> Iterator[SimulatedTransaction]:
        """Yield its transactions in the log that have not ended, or never will."""
        if self.transactions is None or not self.written:
            return
        outcomes = self._ends(0, self.written)[1]
        open_ = np.concatenate([np.flatnonzero(outcomes[: self.ended] == OPEN), np.arange(self.ended, self.written)])
        ids, _ = producers(np.full(len(open_), self.transactions.block), open_, outcomes[open_] == OPEN)
        kept = tuple(partition for partition in self.partitions if partition[0] not in self.gone)
        for number, producer_id in zip(open_.tolist(), ids.tolist(), strict=True):
            if kept:
                yield SimulatedTransaction(self.group_id, producer_id, int(self._times(number, number + 1)[0]), kept)

    @property
    def is_over(self) -> bool:
        """Whether no commit and no marker follows."""
        return self.until_ms < NEVER and self.ended == self._count(NEVER)


@dataclass(slots=True)
class CommitStreams:
    """The commits to one log partition; ``count`` of them are in the log."""

    plan: TopicPlan
    partition: int = 0
    streams: list[CommitStream] = field(default_factory=list)
    count: int = 0
    _blocks: int = 0
    _over: dict[str, Committed] = field(default_factory=dict)
    _left_open: list[SimulatedTransaction] = field(default_factory=list)
    _known: dict[tuple[str, int, OwnedPartition], tuple[bytes, bytes, int]] = field(default_factory=dict)

    def open(
        self,
        group_id: str,
        owned: Sequence[OwnedPartition],
        every_ms: int,
        first_ms: int,
        transactions: Transactions | None = None,
    ) -> CommitStream:
        """Begin the commits of a member for the partitions that it owns."""
        heads, tails, length = [], [], 0
        for index, partition in enumerate(owned):
            head, tail, size = self._pieces(group_id, index, partition)
            heads.append(head)
            tails.append(tail)
            length += size
        names = [topic for topic, _, _ in owned]
        stream = CommitStream(
            group_id=group_id,
            partitions=[(topic, partition) for topic, _, partition in owned],
            heads=heads,
            tails=tails,
            speeds=[round(self.plan.rates.get(name, 0.0) * 1_000) for name in names],
            since=[self.plan.created_ms.get(name, first_ms) for name in names],
            bytes=length,
            every_ms=every_ms,
            first_ms=first_ms,
            transactions=transactions,
        )
        self.streams.append(stream)
        return stream

    def next_block(self) -> int:
        """Return a block of producers that is unique in the cluster."""
        self._blocks += 1
        return self.partition << BLOCKS_BITS | self._blocks

    def note(self, group_id: str, partition: TopicPartition, offset: int, time_ms: int) -> None:
        """Take in an offset that was committed by a request of its own."""
        self._over.setdefault(group_id, {})[partition] = (offset, time_ms)

    def committed(self) -> dict[str, Committed]:
        """Return the offset and time of the last commit of each partition, by group."""
        last = {group_id: dict(commits) for group_id, commits in self._over.items()}
        for stream in self.streams:
            _take(last.setdefault(stream.group_id, {}), stream)
        return last

    def open_transactions(self) -> list[SimulatedTransaction]:
        """Return the transactions in the log that have not ended."""
        return [
            *self._left_open,
            *(transaction for stream in self.streams for transaction in stream.open_transactions()),
        ]

    def forget(self, gone: Callable[[str, str], bool]) -> None:
        """Forget the offsets of each group and topic for which ``gone`` is true."""
        for stream in self.streams:
            stream.gone.update(topic for topic, _ in stream.partitions if gone(stream.group_id, topic))
        self._left_open = [commit for commit in (left.without(gone) for left in self._left_open) if commit.partitions]
        for group_id, commits in self._over.items():
            self._over[group_id] = {key: commit for key, commit in commits.items() if not gone(group_id, key[0])}

    def chunks(self, until: int) -> Iterator[CommitChunk]:
        """Yield the commits before this time, in order of time."""
        spans = np.array([stream.span(until) for stream in self.streams], np.int64).reshape(-1, 2)
        counts = spans[:, 1] - spans[:, 0]
        marked = [
            (number, stream.markers(until))
            for number, stream in enumerate(self.streams)
            if stream.transactions is not None
        ]
        if counts.any() or any(len(markers.times) for _, markers in marked):
            columns = _columns(self.streams)
            streams = np.repeat(np.arange(len(spans)), counts)
            # Stream s has commits spans[s, 0] to spans[s, 1]. All streams' commits lie one after the other; the
            # repeated term moves each stretch of the running number to where its own numbers begin.
            numbers = np.arange(len(streams)) + np.repeat(spans[:, 0] - np.cumsum(counts) + counts, counts)
            batches = Batches(columns.times(streams, numbers), streams, numbers, np.full(len(streams), OPEN))
            batches = batches.with_markers(marked)
            # By time, and at one time by stream: markers, which stand behind all commits, go to those of their stream.
            order = np.lexsort((batches.streams, batches.times))
            # Chunks are cut by batches: records by streams is the mean number of records in one.
            size = max(1, CHUNK_ROWS * len(self.streams) // len(columns.heads))
            for low in range(0, len(order), size):
                chunk = CommitChunk(batches.take(order[low : low + size]), columns)
                self.count += chunk.commits
                yield chunk
        self._drop_finished()

    def _drop_finished(self) -> None:
        kept = []
        for stream in self.streams:
            if stream.is_over:
                _take(self._over.setdefault(stream.group_id, {}), stream)
                self._left_open += stream.open_transactions()
            else:
                kept.append(stream)
        self.streams = kept

    def _pieces(self, group_id: str, index: int, owned: OwnedPartition) -> tuple[bytes, bytes, int]:
        """What stands before the offset and after the time of the record at a place of its batch; the record's size."""
        pieces = self._known.get((group_id, index, owned))
        if pieces is None:
            topic, topic_id, partition = owned
            key = encode_key(RecordType.OFFSET_COMMIT, {"group": group_id, "topic": topic, "partition": partition})
            before, middle, after = value_parts(topic_id)
            size = len(before) + 8 + len(middle) + 8 + len(after)
            # Its attributes and its time after that of the batch, both 0; then its offset after the base offset.
            body = b"\0\0" + varint(index) + varint(len(key)) + key + varint(size)
            record = varint(len(body) + size + 1)
            pieces = record + body + before, after + b"\0", len(record) + len(body) + size + 1
            self._known[group_id, index, owned] = pieces
        return pieces


def _take(commits: Committed, stream: CommitStream) -> None:
    """Of several commits of a partition the latest holds, whenever its transaction ended."""
    for partition, (offset, time_ms) in stream.committed():
        if partition not in commits or commits[partition][1] <= time_ms:
            commits[partition] = (offset, time_ms)


def _columns(streams: Sequence[CommitStream]) -> StreamColumns:
    """Return the columns of these streams, one row a stream or a record as StreamColumns says."""

    def column(name: str) -> Ints:
        return np.array([getattr(stream, name) for stream in streams], np.int64)

    def column_of_records(name: str) -> Ints:
        return np.array([number for stream in streams for number in getattr(stream, name)], np.int64)

    def blobs_of_records(name: str) -> pa.Array:
        return pa.array([piece for stream in streams for piece in getattr(stream, name)], pa.binary())

    sizes = np.array([len(stream.heads) for stream in streams], np.int64)
    transactions = [stream.transactions for stream in streams]
    return StreamColumns(
        heads=blobs_of_records("heads"),
        tails=blobs_of_records("tails"),
        speeds=column_of_records("speeds"),
        since=column_of_records("since"),
        first=np.cumsum(sizes) - sizes,
        sizes=sizes,
        bytes=column("bytes"),
        begins=column("first_ms"),
        every=column("every_ms"),
        last=column("last_number"),
        last_ms=column("last_ms"),
        blocks=np.array([-1 if transaction is None else transaction.block for transaction in transactions], np.int64),
        seeds=np.array([0 if transaction is None else transaction.seed for transaction in transactions], np.uint64),
        left_open=np.array(
            [0 if transaction is None else transaction.left_open for transaction in transactions], np.int64
        ),
    )
