"""Record batches of commits, and the markers of their transactions, encoded many at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from struct import Struct
from typing import NamedTuple

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.record_fields.offset_commit import OffsetCommitValue
from coordinator_core.records import RecordType
from coordinator_core.wire.batch_format import (
    CONTROL_BIT,
    CRC_FROM_V2,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_BIT,
)
from coordinator_core.wire.batch_writer import NewRecord, record_bytes
from coordinator_core.wire.control import ABORT, COMMIT, encode_marker
from coordinator_core.wire.record_codec import encode_value

Ints = NDArray[np.int64]

OPEN = -1
"""The outcome of a transaction that never ends; the other outcomes are ``ABORT`` and ``COMMIT``."""
EPOCHS = 32_766
"""After this many transactions a producer gets another id, because its epochs are used up."""
_BLOCK_BITS = 24
_STRAY = 1 << (_BLOCK_BITS - 1)


@dataclass(frozen=True, slots=True)
class Transactions:
    """The outcomes of one member's transactions: each lasts ``lasts_ms``, and ends at random.

    ``block`` identifies its producers. Of 2**32 transactions ``aborts`` are aborted and ``left_open`` never end. If the
    process crashes, its transaction is aborted ``timeout_ms`` after it began. As of transaction version 2 (KIP-890)
    each transaction has its own producer epoch, and its marker has the next one.
    """

    block: int
    seed: int
    lasts_ms: int
    timeout_ms: int
    aborts: int
    left_open: int

    def outcomes(self, first: int, end: int) -> Ints:
        """Return ``COMMIT``, ``ABORT`` or ``OPEN`` for each of the transactions from ``first`` to before ``end``."""
        lots = drawn(np.array(self.seed, np.uint64), np.arange(first, end))
        aborted = lots < self.left_open + self.aborts
        return np.where(lots < self.left_open, OPEN, np.where(aborted, ABORT, COMMIT))


def producers(blocks: Ints, numbers: Ints, left_open: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the producer ids and epochs of transactions; one that is left open has a producer of its own."""
    # A producer has one transaction at a time: behind one that never ends, its next ones could not begin. So those have
    # ids of their own, from the upper half of the block.
    first = blocks << _BLOCK_BITS
    ids = np.where(left_open, first + _STRAY + numbers % _STRAY, first + numbers // EPOCHS)
    return ids, np.where(left_open, 0, numbers % EPOCHS)


def drawn(seeds: NDArray[np.uint64], numbers: Ints) -> Ints:
    """Return random numbers from 0 to below 2**32: the upper halves of SplitMix64's numbers with these seeds at
    these places.
    """
    # SplitMix64 adds the same number at each step: so the state at any place is one product, without those before it.
    state = seeds + (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    lots: Ints = ((state ^ (state >> np.uint64(31))) >> np.uint64(32)).astype(np.int64)
    return lots


VALUE_VERSION = 4
_INT64 = Struct(">q")
_OFFSET_MARK, _TIME_MARK = 0x0101010101010101, 0x0202020202020202
_MARKERS = [record_bytes(NewRecord(0, 0, *encode_marker(kind, 0)), 0, 0) for kind in (ABORT, COMMIT)]
"""The only record in the batch of each marker; both have the same size."""


@cache
def value_parts(topic_id: str | None) -> tuple[bytes, bytes, bytes]:
    """Return the value's bytes before its offset, between offset and time, and after the time; the first two
    never change.
    """
    value: OffsetCommitValue = {"offset": _OFFSET_MARK, "leaderEpoch": 0, "metadata": "", "commitTimestamp": _TIME_MARK}
    if topic_id is not None:
        value["topicId"] = topic_id
    before, rest = encode_value(RecordType.OFFSET_COMMIT, VALUE_VERSION, value).split(_INT64.pack(_OFFSET_MARK), 1)
    middle, after = rest.split(_INT64.pack(_TIME_MARK), 1)
    return before, middle, after


class Markers(NamedTuple):
    """The ends of a stream's transactions: the time, the number of the commit, and ``COMMIT`` or ``ABORT``."""

    times: Ints
    numbers: Ints
    ends: Ints


class Batches(NamedTuple):
    """Columns of some batches: the time, the stream, the number of its commit, and what the batch ends.

    A batch of commits ends nothing (``OPEN``); a marker's is ``COMMIT`` or ``ABORT``.
    """

    times: Ints
    streams: Ints
    numbers: Ints
    ends: Ints

    def with_markers(self, marked: Iterable[tuple[int, Markers]]) -> "Batches":
        """Return these batches and those of the markers, given by stream."""
        others = [Batches(each.times, np.full(len(each.times), stream), *each[1:]) for stream, each in marked]
        return Batches(*(np.concatenate(columns) for columns in zip(self, *others, strict=True))) if others else self

    def take(self, chosen: Ints) -> "Batches":
        """Return the batches at these indexes."""
        return Batches(*(column[chosen] for column in self))


@dataclass(frozen=True, slots=True)
class StreamColumns:
    """Columns about all streams that do not change while a window is written; records of stream s begin at
    ``first[s]``.

    ``sizes`` and ``bytes`` are records and bytes of a batch; ``begins`` and ``every`` say when commits are made,
    ``last`` and ``last_ms`` the number and time of the one commit outside this rhythm. ``blocks``, ``seeds`` and
    ``left_open`` are those of ``Transactions``; a block of -1 means no transactions.
    """

    heads: pa.Array
    tails: pa.Array
    speeds: Ints
    since: Ints
    first: Ints
    sizes: Ints
    bytes: Ints
    begins: Ints
    every: Ints
    last: Ints
    last_ms: Ints
    blocks: Ints
    seeds: NDArray[np.uint64]
    left_open: Ints

    def times(self, streams: Ints, numbers: Ints) -> Ints:
        """Return the times of these commits, in ms."""
        regular = self.begins[streams] + numbers * self.every[streams]
        return np.where(numbers == self.last[streams], self.last_ms[streams], regular)

    def producers(self, streams: Ints, numbers: Ints) -> tuple[Ints, Ints]:
        """Return producer ids and epochs of the transactions of these commits; -1 where there is none."""
        blocks = self.blocks[streams]
        # The lots of ``Transactions.outcomes`` again: both have to call the same transactions open.
        left_open = drawn(self.seeds[streams], numbers) < self.left_open[streams]
        ids, epochs = producers(blocks, numbers, left_open)
        return np.where(blocks < 0, -1, ids), np.where(blocks < 0, -1, epochs)


class CommitChunk:
    """Some batches, in order of time."""

    def __init__(self, batches: Batches, columns: StreamColumns) -> None:
        self.times = batches.times
        self._is_marker = batches.ends != OPEN
        self.sizes = np.where(self._is_marker, 1, columns.sizes[batches.streams])
        self.records = int(self.sizes.sum())
        self.commits = self.records - int(self._is_marker.sum())
        self._batches = batches
        self._columns = columns

    def encode(self, bases: Ints, leader_epochs: Ints) -> tuple[memoryview, Ints]:
        """Return the bytes of all batches, and the index where each begins, with the end of the last one at the end.

        ``bases`` and ``leader_epochs`` have a base offset and a leader epoch for each batch.
        """
        # Three levels: batches, records, bytes. ``record_ends`` counts records up to the end of each batch;
        # ``batch_of_record`` and ``place_in_batch`` have one number for each record.
        record_ends = np.cumsum(self.sizes)
        batch_of_record = np.repeat(np.arange(len(self.sizes)), self.sizes)
        place_in_batch = np.arange(record_ends[-1]) - np.repeat(record_ends - self.sizes, self.sizes)
        joined = pc.binary_join_element_wise(
            self._headers(bases, leader_epochs, place_in_batch == 0),
            self._records(batch_of_record, place_in_batch),
            b"",
        )
        # Arrow has put header, record, record, ... side by side: its data buffer is the segment. A batch begins where
        # its first record does, as the header stands before that.
        _, record_edges, data = joined.buffers()
        starts = np.frombuffer(record_edges, np.int32)[np.concatenate([[0], record_ends])].astype(np.int64)
        # A copy, as nobody may write into Arrow's buffers.
        octets = np.frombuffer(data, np.uint8)[: starts[-1]].copy()
        view = memoryview(octets.data)
        crcs = [crc32c.crc32c(view[low + CRC_FROM_V2 : high]) for low, high in pairwise(starts.tolist())]
        crc_bytes = np.array(crcs, ">u4").view(np.uint8).reshape(-1, 4)
        # The index has a row for each batch and a column for each of the 4 bytes of its CRC, which end where the bytes
        # that it covers begin.
        octets[starts[:-1, None] + np.arange(CRC_FROM_V2 - 4, CRC_FROM_V2)] = crc_bytes
        return view, starts

    def _records(self, batch_of_record: Ints, place_in_batch: Ints) -> pa.Array:
        """Return the bytes of every record, in order; both arguments have one number for each of them."""
        columns, batches = self._columns, self._batches
        is_marker = self._is_marker[batch_of_record]
        batch_of_commit = batch_of_record[~is_marker]
        row = place_in_batch[~is_marker] + columns.first[batches.streams][batch_of_commit]
        time_ms = batches.times[batch_of_commit]
        index = pa.array(row)
        commits = pc.binary_join_element_wise(
            columns.heads.take(index),
            _int64(np.maximum(time_ms - columns.since[row], 0) * columns.speeds[row] // 1_000_000),
            value_parts(None)[1],
            _int64(time_ms),
            columns.tails.take(index),
            b"",
        )
        if not is_marker.any():
            return commits
        # Commits and the two markers in one array, of which each record takes its own: the next commit, or a marker
        # behind the last commit, ABORT (0) before COMMIT (1).
        source = np.cumsum(~is_marker) - 1
        source[is_marker] = len(commits) + batches.ends[batch_of_record[is_marker]]
        return pa.concat_arrays([commits, pa.array(_MARKERS, pa.binary())]).take(pa.array(source))

    def _headers(self, bases: Ints, leader_epochs: Ints, is_first: NDArray[np.bool_]) -> pa.Array:
        """The header of its batch before each first record, before the others nothing; the CRC is still to come."""
        batches, marks = self._batches, self._is_marker
        headers = np.zeros(len(bases), HEADER)
        headers["base_offset"], headers["count"], headers["magic"] = bases, self.sizes, 2
        headers["leader_epoch"] = leader_epochs
        sizes = np.where(marks, len(_MARKERS[0]), self._columns.bytes[batches.streams])
        headers["length"] = sizes + HEADER_SIZE - LOG_OVERHEAD
        headers["last_offset_delta"] = self.sizes - 1
        headers["base_timestamp"] = headers["max_timestamp"] = self.times
        ids, epochs = self._columns.producers(batches.streams, batches.numbers)
        # KIP-890: the broker ends a transaction with the producer's next epoch.
        headers["producer_id"], headers["producer_epoch"] = ids, epochs + marks
        headers["base_sequence"] = np.where(marks | (ids < 0), -1, 0)
        headers["attributes"] = np.where(ids < 0, 0, TRANSACTIONAL_BIT) | np.where(marks, CONTROL_BIT, 0)
        # Only the first record of a batch has a header; the others have an empty one, so the edge does not move.
        edges = np.concatenate([[0], np.cumsum(is_first) * HEADER_SIZE]).astype(np.int32)
        return pa.Array.from_buffers(pa.binary(), len(is_first), [None, pa.py_buffer(edges), pa.py_buffer(headers)])


def _int64(values: Ints) -> pa.Array:
    packed = pa.py_buffer(np.ascontiguousarray(values.astype(">i8")))
    return pa.Array.from_buffers(pa.binary(8), len(values), [None, packed]).cast(pa.binary())
