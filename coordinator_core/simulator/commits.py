"""Plain offset commits, the bulk of a log, made in bulk: what stays the same of a commit is encoded once.

A member that lives and owns partitions commits all of them every so often, in one batch. How far it is, is a function
of time alone, so that offsets go on where another owner left them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from struct import Struct

import crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.records import Fields, RecordType
from coordinator_core.simulator.topics import TopicPlan
from coordinator_core.wire.batch_format import CRC_FROM_V2, HEADER, HEADER_SIZE, LOG_OVERHEAD
from coordinator_core.wire.batch_writer import varint
from coordinator_core.wire.row import encode_key, encode_value

Ints = NDArray[np.int64]
TopicPartition = tuple[str, int]

CHUNK_ROWS = 200_000
"""About so many commits are made at a time."""
VALUE_VERSION = 4
NEVER = 1 << 62
_INT64 = Struct(">q")
_OFFSET_MARK, _TIME_MARK = 0x0101010101010101, 0x0202020202020202


@dataclass(slots=True, eq=False)
class CommitStream:
    """The commits of one member from ``next_ms`` on, until it is closed.

    ``heads`` and ``tails`` are what stands before the offset and after the time of each of its records; ``speeds`` and
    ``since`` say how far the partitions are: so many records in 1,000 s, since that time. ``bytes`` is the size of a
    batch without its header.
    """

    group_id: str
    partitions: Sequence[TopicPartition]
    heads: list[bytes]
    tails: list[bytes]
    speeds: list[int]
    since: list[int]
    bytes: int
    every_ms: int
    next_ms: int
    until_ms: int = NEVER
    last_ms: int = NEVER
    done_ms: int = -1

    def close(self, now: int, *, once_more: bool) -> None:
        """The member commits no more, or at this moment once more."""
        self.until_ms = now
        self.last_ms = now if once_more else NEVER

    def turns(self, until: int) -> tuple[int, int, int]:
        """What it commits before ``until``, each told once: the first time, how many times, and 1 if once more."""
        first, end = self.next_ms, min(until, self.until_ms)
        count = max(0, -(-(end - first) // self.every_ms))
        more = int(self.last_ms < until)
        if count:
            self.next_ms += count * self.every_ms
            self.done_ms = self.next_ms - self.every_ms
        if more:
            self.done_ms, self.last_ms = self.last_ms, NEVER
        return first, count, more

    def committed(self) -> Iterator[tuple[TopicPartition, tuple[int, int]]]:
        """What it committed last: partition, offset and time."""
        if self.done_ms >= 0:
            for partition, speed, since in zip(self.partitions, self.speeds, self.since, strict=True):
                yield partition, (max(self.done_ms - since, 0) * speed // 1_000_000, self.done_ms)

    @property
    def is_over(self) -> bool:
        """Whether nothing is to come."""
        return self.next_ms >= self.until_ms and self.last_ms == NEVER


@dataclass(slots=True)
class CommitStreams:
    """All that is committed to one log partition."""

    plan: TopicPlan
    streams: list[CommitStream] = field(default_factory=list)
    count: int = 0
    _ended: dict[str, dict[TopicPartition, tuple[int, int]]] = field(default_factory=dict)
    _keys: dict[tuple[str, str, int], bytes] = field(default_factory=dict)

    def open(
        self, group_id: str, owned: Sequence[tuple[str, str | None, int]], every_ms: int, first_ms: int
    ) -> CommitStream:
        """A member begins to commit what it owns: topics with their ids (None: clients that know none), partitions."""
        heads, tails, length = [], [], 0
        for index, (topic, topic_id, partition) in enumerate(owned):
            key = self._key(group_id, topic, partition)
            before, middle, after = _value(topic_id)
            size = len(before) + 8 + len(middle) + 8 + len(after)
            body = b"\0\0" + varint(index) + varint(len(key)) + key + varint(size)
            record = varint(len(body) + size + 1)
            heads.append(record + body + before)
            tails.append(after + b"\0")
            length += len(record) + len(body) + size + 1
        names = [topic for topic, _, _ in owned]
        stream = CommitStream(
            group_id,
            [(topic, partition) for topic, _, partition in owned],
            heads,
            tails,
            [round(self.plan.rates.get(name, 0.0) * 1_000) for name in names],
            [self.plan.created_ms.get(name, first_ms) for name in names],
            length,
            every_ms,
            first_ms,
        )
        self.streams.append(stream)
        return stream

    def committed(self) -> dict[str, dict[TopicPartition, tuple[int, int]]]:
        """Offset and time of what was written last for each partition, by group."""
        last = {group_id: dict(commits) for group_id, commits in self._ended.items()}
        for stream in self.streams:
            last.setdefault(stream.group_id, {}).update(stream.committed())
        return last

    def forget(self, gone: Callable[[str, str], bool]) -> None:
        """Offsets are gone: those of a group and topic for which ``gone`` holds."""
        for stream in self.streams:
            if any(gone(stream.group_id, topic) for topic, _ in stream.partitions):
                self._ended.setdefault(stream.group_id, {}).update(stream.committed())
                stream.done_ms = -1
        for group_id, commits in self._ended.items():
            self._ended[group_id] = {each: commit for each, commit in commits.items() if not gone(group_id, each[0])}

    def chunks(self, until: int) -> Iterator[CommitChunk]:
        """What is committed before a time, in order of time."""
        turns = np.array([stream.turns(until) for stream in self.streams], np.int64).reshape(-1, 3)
        if turns[:, 1:].any():
            static = _Static.of(self.streams)
            numbers = np.repeat(np.arange(len(turns)), turns[:, 1])
            within = np.arange(len(numbers)) - np.repeat(np.cumsum(turns[:, 1]) - turns[:, 1], turns[:, 1])
            last = np.flatnonzero(turns[:, 2])
            times = np.concatenate([turns[numbers, 0] + within * static.every[numbers], static.done[last]])
            numbers = np.concatenate([numbers, last])
            order = np.lexsort((numbers, times))
            size = max(1, CHUNK_ROWS * len(self.streams) // len(static.heads))
            for low in range(0, len(order), size):
                chosen = order[low : low + size]
                chunk = CommitChunk(times[chosen], numbers[chosen], static)
                self.count += chunk.records
                yield chunk
        self._drop_finished()

    def _drop_finished(self) -> None:
        kept = []
        for stream in self.streams:
            if stream.is_over:
                self._ended.setdefault(stream.group_id, {}).update(stream.committed())
            else:
                kept.append(stream)
        self.streams = kept

    def _key(self, group_id: str, topic: str, partition: int) -> bytes:
        name = (group_id, topic, partition)
        key = self._keys.get(name)
        if key is None:
            fields = {"group": group_id, "topic": topic, "partition": partition}
            key = self._keys[name] = encode_key(RecordType.OFFSET_COMMIT, fields)
        return key


@cache
def _value(topic_id: str | None) -> tuple[bytes, bytes, bytes]:
    """The value before its offset, between that and its time, and after; the first two are always the same."""
    value: Fields = {"offset": _OFFSET_MARK, "leaderEpoch": 0, "metadata": "", "commitTimestamp": _TIME_MARK}
    if topic_id is not None:
        value["topicId"] = topic_id
    before, rest = encode_value(RecordType.OFFSET_COMMIT, VALUE_VERSION, value).split(_INT64.pack(_OFFSET_MARK), 1)
    middle, after = rest.split(_INT64.pack(_TIME_MARK), 1)
    return before, middle, after


@dataclass(frozen=True, slots=True)
class _Static:
    """What does not change while a window is written, of all streams: records of stream s begin at ``first[s]``.

    ``sizes`` and ``bytes`` are records and bytes of a batch, ``done`` the time of the commit made once more.
    """

    heads: pa.Array
    tails: pa.Array
    speeds: Ints
    since: Ints
    first: Ints
    sizes: Ints
    bytes: Ints
    every: Ints
    done: Ints

    @classmethod
    def of(cls, streams: Sequence[CommitStream]) -> _Static:
        sizes, lengths, every, done = (
            np.array(column, np.int64)
            for column in zip(
                *((len(stream.heads), stream.bytes, stream.every_ms, stream.done_ms) for stream in streams), strict=True
            )
        )
        heads, tails = (
            pa.array([piece for stream in streams for piece in getattr(stream, name)], pa.binary())
            for name in ("heads", "tails")
        )
        speeds, since = (
            np.array([number for stream in streams for number in getattr(stream, name)], np.int64)
            for name in ("speeds", "since")
        )
        return cls(heads, tails, speeds, since, np.cumsum(sizes) - sizes, sizes, lengths, every, done)


class CommitChunk:
    """Some batches of commits in order of time: batch i is one of stream ``numbers[i]`` at ``times[i]``."""

    def __init__(self, times: Ints, numbers: Ints, static: _Static) -> None:
        self.times = times
        self.sizes = static.sizes[numbers]
        self.records = int(self.sizes.sum())
        self._numbers = numbers
        self._static = static

    def encode(self, bases: Ints) -> tuple[memoryview, Ints]:
        """The bytes of all batches, given their base offsets, and where each begins (and the last one ends)."""
        static, sizes = self._static, self.sizes
        ends = np.cumsum(sizes)
        of = np.repeat(np.arange(len(sizes)), sizes)
        within = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes)
        row, at = within + static.first[self._numbers][of], self.times[of]
        offsets = np.maximum(at - static.since[row], 0) * static.speeds[row] // 1_000_000
        index = pa.array(row)
        joined = pc.binary_join_element_wise(
            self._headers(bases, within == 0),
            static.heads.take(index),
            _int64(offsets),
            _value(None)[1],
            _int64(at),
            static.tails.take(index),
            b"",
        )
        _, edges, data = joined.buffers()
        starts = np.frombuffer(edges, np.int32)[np.concatenate([[0], ends])].astype(np.int64)
        octets = np.frombuffer(data, np.uint8)[: starts[-1]].copy()
        view = memoryview(octets.data)
        crcs = [crc32c.crc32c(view[low + CRC_FROM_V2 : high]) for low, high in pairwise(starts.tolist())]
        crc_bytes = np.array(crcs, ">u4").view(np.uint8).reshape(-1, 4)
        octets[starts[:-1, None] + np.arange(CRC_FROM_V2 - 4, CRC_FROM_V2)] = crc_bytes
        return view, starts

    def _headers(self, bases: Ints, is_first: NDArray[np.bool_]) -> pa.Array:
        """The header of its batch before each first record, before the others nothing; the CRC is still to come."""
        headers = np.zeros(len(bases), HEADER)
        headers["base_offset"], headers["count"], headers["magic"] = bases, self.sizes, 2
        headers["length"] = self._static.bytes[self._numbers] + HEADER_SIZE - LOG_OVERHEAD
        headers["last_offset_delta"] = self.sizes - 1
        headers["base_timestamp"] = headers["max_timestamp"] = self.times
        for name in ("producer_id", "producer_epoch", "base_sequence"):
            headers[name] = -1
        edges = np.concatenate([[0], np.cumsum(is_first) * HEADER_SIZE]).astype(np.int32)
        return pa.Array.from_buffers(pa.binary(), len(is_first), [None, pa.py_buffer(edges), pa.py_buffer(headers)])


def _int64(values: Ints) -> pa.Array:
    packed = pa.py_buffer(np.ascontiguousarray(values.astype(">i8")))
    return pa.Array.from_buffers(pa.binary(8), len(values), [None, packed]).cast(pa.binary())
