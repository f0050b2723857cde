"""Plain offset commits, the bulk of a log, made in bulk: what stays the same of a commit is encoded once.

A member that lives and owns partitions commits all of them every so often, in one batch. How far it is, is a function
of time alone, so that offsets go on where another owner left them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import islice, pairwise
from struct import Struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.records import Fields, RecordType
from coordinator_core.simulator.topics import TopicPlan
from coordinator_core.wire.batch_writer import varint
from coordinator_core.wire.row import encode_key, encode_value

Ints = NDArray[np.int64]
TopicPartition = tuple[str, int]

CHUNK_ROWS = 200_000
"""About so many commits are made at a time."""
VALUE_VERSION = 4
_INT64 = Struct(">q")
_OFFSET_MARK, _TIME_MARK = 0x0101010101010101, 0x0202020202020202


@dataclass(slots=True)
class CommitStream:
    """The commits of one member from ``next_ms`` on, until it is closed.

    ``heads`` and ``tails`` are what stands before the offset and after the time of each of its records; ``speeds`` and
    ``since`` say how far the partitions are: so many records in 1,000 s, since that time.
    """

    group_id: str
    partitions: Sequence[TopicPartition]
    heads: list[bytes]
    tails: list[bytes]
    speeds: list[int]
    since: list[int]
    every_ms: int
    next_ms: int
    until_ms: int | None = None
    last_ms: int | None = None

    def close(self, now: int, *, once_more: bool) -> None:
        """The member commits no more, or at this moment once more."""
        self.until_ms = now
        self.last_ms = now if once_more else None

    def times(self, until: int) -> list[int]:
        """When it commits before ``until``, each time told once."""
        end = until if self.until_ms is None else min(until, self.until_ms)
        times = list(range(self.next_ms, end, self.every_ms))
        self.next_ms += len(times) * self.every_ms
        if self.last_ms is not None and self.last_ms < until:
            times.append(self.last_ms)
            self.last_ms = None
        return times

    def offsets(self, now: int) -> list[int]:
        """How far each partition is at a time."""
        return [max(now - since, 0) * speed // 1_000_000 for speed, since in zip(self.speeds, self.since, strict=True)]

    @property
    def is_over(self) -> bool:
        """Whether nothing is to come."""
        return self.until_ms is not None and self.next_ms >= self.until_ms and self.last_ms is None


class CommitBatch:
    """One batch of commits: all its records but their header."""

    __slots__ = ("body", "count", "time_ms")

    def __init__(self, time_ms: int, count: int, body: memoryview) -> None:
        self.time_ms = time_ms
        self.count = count
        self.body = body


@dataclass(slots=True)
class CommitStreams:
    """All that is committed to one log partition, and what was committed last by group."""

    plan: TopicPlan
    streams: list[CommitStream] = field(default_factory=list)
    last: dict[str, dict[TopicPartition, tuple[int, int]]] = field(default_factory=dict)
    count: int = 0
    _keys: dict[tuple[str, str, int], bytes] = field(default_factory=dict)

    def open(
        self, group_id: str, owned: Sequence[tuple[str, str | None, int]], every_ms: int, first_ms: int
    ) -> CommitStream:
        """A member begins to commit what it owns: topics with their ids (None: clients that know none), partitions."""
        heads, tails = [], []
        for index, (topic, topic_id, partition) in enumerate(owned):
            key = self._key(group_id, topic, partition)
            before, middle, after = _value(topic_id)
            size = len(before) + 8 + len(middle) + 8 + len(after)
            body = b"\0\0" + varint(index) + varint(len(key)) + key + varint(size)
            heads.append(varint(len(body) + size + 1) + body + before)
            tails.append(after + b"\0")
        names = [topic for topic, _, _ in owned]
        stream = CommitStream(
            group_id,
            [(topic, partition) for topic, _, partition in owned],
            heads,
            tails,
            [round(self.plan.rates.get(name, 0.0) * 1_000) for name in names],
            [self.plan.created_ms.get(name, first_ms) for name in names],
            every_ms,
            first_ms,
        )
        self.streams.append(stream)
        return stream

    def forget_topics(self, names: Collection[str]) -> None:
        """The offsets of these topics are gone."""
        for group_id, known in self.last.items():
            self.last[group_id] = {each: commit for each, commit in known.items() if each[0] not in names}

    def batches(self, until: int) -> Iterator[CommitBatch]:
        """What is committed before a time, in order of time."""
        turns = []
        for number, stream in enumerate(self.streams):
            times = stream.times(until)
            if times:
                turns += [(time, number) for time in times]
                self._note(stream, times[-1])
        turns.sort()
        if turns:
            static = _Static.of(self.streams)
            source = iter(turns)
            size = max(1, CHUNK_ROWS * len(self.streams) // len(static.heads))
            while chunk := list(islice(source, size)):
                yield from self._bodies(chunk, static)
        self.streams = [stream for stream in self.streams if not stream.is_over]

    def _note(self, stream: CommitStream, time: int) -> None:
        last = self.last.setdefault(stream.group_id, {})
        for partition, offset in zip(stream.partitions, stream.offsets(time), strict=True):
            last[partition] = (offset, time)

    def _bodies(self, turns: list[tuple[int, int]], static: _Static) -> Iterator[CommitBatch]:
        times, numbers = (np.array(column, np.int64) for column in zip(*turns, strict=True))
        sizes = static.sizes[numbers]
        ends = np.cumsum(sizes)
        of = np.repeat(np.arange(len(turns)), sizes)
        row = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes) + static.first[numbers][of]
        at = times[of]
        offsets = np.maximum(at - static.since[row], 0) * static.speeds[row] // 1_000_000
        index = pa.array(row)
        joined = pc.binary_join_element_wise(
            static.heads.take(index), _int64(offsets), _value(None)[1], _int64(at), static.tails.take(index), b""
        )
        _, edges, data = joined.buffers()
        bounds = np.frombuffer(edges, np.int32)[np.concatenate([[0], ends])].tolist()
        self.count += len(row)
        view = memoryview(data)
        for (time, _), size, (low, high) in zip(turns, sizes.tolist(), pairwise(bounds), strict=True):
            yield CommitBatch(time, size, view[low:high])

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
    """What does not change, of all streams: those of stream s begin at ``first[s]``."""

    heads: pa.Array
    tails: pa.Array
    speeds: Ints
    since: Ints
    first: Ints
    sizes: Ints

    @classmethod
    def of(cls, streams: Sequence[CommitStream]) -> _Static:
        sizes = np.array([len(stream.heads) for stream in streams], np.int64)
        heads, tails = (
            pa.array([piece for stream in streams for piece in getattr(stream, name)], pa.binary())
            for name in ("heads", "tails")
        )
        speeds, since = (
            np.array([number for stream in streams for number in getattr(stream, name)], np.int64)
            for name in ("speeds", "since")
        )
        return cls(heads, tails, speeds, since, np.cumsum(sizes) - sizes, sizes)


def _int64(values: Ints) -> pa.Array:
    packed = pa.py_buffer(np.ascontiguousarray(values.astype(">i8")))
    return pa.Array.from_buffers(pa.binary(8), len(values), [None, packed]).cast(pa.binary())
