"""Large realistic ``__consumer_offsets`` logs with a seed: ``python -m benchmarks.generate --out DIR``.

Every group has its own partitions and commits them all in one batch, as consumers do. Now and then a group rebalances
(its group records are written) or its offsets expire (tombstones). Commit records are put together a column at a time:
what does not change from commit to commit of a partition is encoded once.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.records import Fields, RecordType
from coordinator_core.wire.batch_writer import NewRecord, encode_batch, frame, varint
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import encode_key, encode_value

Ints = NDArray[np.int64]

START_MS = 1_760_000_000_000
MOST_PARTITIONS = 400
CHUNK_COMMITS = 200_000
SEGMENT_BYTES = 100 << 20
OFFSET_MARK, TIME_MARK = 0x0101010101010101, 0x0202020202020202
METADATA = ("", "", "", "app=orders;ts=1760000000", '{"ver":2,"host":"h-17"}', "смена 7")


@dataclass(frozen=True, slots=True)
class GeneratedGroup:
    """What is encoded once. Of each commit: what stands before the offset, between offset and time, and after."""

    name: str
    heads: list[bytes]
    middle: bytes
    tails: list[bytes]
    tombstones: list[NewRecord]
    rebalance: list[NewRecord]


def make_group(number: int, chance: np.random.Generator) -> GeneratedGroup:
    name = f"group-{number:05d}-{'abcdefgh'[number % 8]}"
    size = int(np.exp(chance.uniform(0, np.log(MOST_PARTITIONS + 1))))
    topics = [(f"topic-{chance.integers(500):03d}", uuid_text(chance.bytes(16))) for _ in range(1 + size // 64)]
    metadata = METADATA[number % len(METADATA)]
    heads, tails, tombstones, middle = [], [], [], b""
    for index in range(size):
        topic, topic_id = topics[index % len(topics)]
        key_fields = {"group": name, "topic": topic, "partition": index // len(topics)}
        key = encode_key(RecordType.OFFSET_COMMIT, key_fields)
        fields = {"offset": OFFSET_MARK, "leaderEpoch": number % 5, "metadata": metadata, "commitTimestamp": TIME_MARK}
        value = encode_value(RecordType.OFFSET_COMMIT, 4, {**fields, "topicId": topic_id})
        before, rest = value.split(OFFSET_MARK.to_bytes(8, "big"))
        middle, after = rest.split(TIME_MARK.to_bytes(8, "big"))
        body = b"\0\0" + varint(index) + varint(len(key)) + key + varint(len(value))
        heads.append(varint(len(body) + len(value) + 1) + body + before)
        tails.append(after + b"\0")
        tombstones.append(NewRecord(index, 0, key, None))
    return GeneratedGroup(name, heads, middle, tails, tombstones, rebalance(name, topics, size))


def rebalance(name: str, topics: list[tuple[str, str]], size: int) -> list[NewRecord]:
    """The records of a consumer group's join: member, epoch, targets, current assignments."""
    member = f"{name}-member-0001"
    shares = [{"topicId": topic_id, "partitions": list(range(1 + size // len(topics)))} for _, topic_id in topics]
    group_key = {"groupId": name}
    member_key = {"groupId": name, "memberId": member}
    joined: Fields = {
        "instanceId": None,
        "rackId": None,
        "clientId": f"{name}-client",
        "clientHost": "/10.1.2.3",
        "subscribedTopicNames": [topic for topic, _ in topics],
        "subscribedTopicRegex": "",
        "rebalanceTimeoutMs": 300_000,
        "serverAssignor": None,
    }
    current = [{**share, "assignmentEpochs": [1] * len(share["partitions"])} for share in shares]
    settled: Fields = {
        "memberEpoch": 1,
        "previousMemberEpoch": 0,
        "state": 0,
        "assignedPartitions": current,
        "partitionsPendingRevocation": [],
    }
    written = [
        (RecordType.CONSUMER_GROUP_MEMBER_METADATA, member_key, joined),
        (RecordType.CONSUMER_GROUP_METADATA, group_key, {"epoch": 1, "metadataHash": 1234567890123456789}),
        (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, member_key, {"topicPartitions": shares}),
        (
            RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
            group_key,
            {"assignmentEpoch": 1, "assignmentTimestamp": START_MS},
        ),
        (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, member_key, settled),
    ]
    return [
        NewRecord(index, 0, encode_key(kind, key), encode_value(kind, 0, value))
        for index, (kind, key, value) in enumerate(written)
    ]


class GeneratedSegments:
    """The files of one log partition; a new one begins when the last is full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.next_offset = 0
        self.room = 0
        self.parts: list[bytes] = []
        folder.mkdir(parents=True, exist_ok=True)

    def append(self, batch: bytes, records: int) -> None:
        """Adds a batch of so many records."""
        if len(batch) > self.room:
            self.flush()
            self.file = self.folder / f"{self.next_offset:020d}.log"
            self.file.write_bytes(b"")
            self.room = SEGMENT_BYTES
        self.parts.append(batch)
        self.room -= len(batch)
        self.next_offset += records

    def flush(self) -> None:
        """Writes what was added to the file."""
        if self.parts:
            with self.file.open("ab") as stream:
                stream.writelines(self.parts)
            self.parts = []


@dataclass(frozen=True, slots=True)
class GeneratedCommits:
    """The static parts of all groups' commit records; those of group g begin at ``first[g]``."""

    heads: pa.Array
    middles: pa.Array
    tails: pa.Array
    first: Ints
    sizes: Ints

    @classmethod
    def of(cls, groups: list[GeneratedGroup]) -> "GeneratedCommits":
        """The parts of these groups, in their order."""
        sizes = np.array([len(group.heads) for group in groups])
        heads, tails = ([piece for group in groups for piece in getattr(group, name)] for name in ("heads", "tails"))
        middles = pa.array([group.middle for group in groups], pa.binary())
        return cls(pa.array(heads, pa.binary()), middles, pa.array(tails, pa.binary()), np.cumsum(sizes) - sizes, sizes)

    def bodies(self, turns: Ints, times: Ints, chance: np.random.Generator) -> Iterator[memoryview]:
        """The records of one batch for each turn: group ``turns[i]`` commits at ``times[i]``."""
        sizes = self.sizes[turns]
        ends = np.cumsum(sizes)
        batch = np.repeat(np.arange(len(turns)), sizes)
        row = np.arange(ends[-1]) - np.repeat(ends - sizes, sizes) + self.first[turns][batch]
        offsets = (times[batch] - START_MS) * (1 + row % 7) // 10 + chance.integers(0, 50, len(row))
        pieces = (
            self.heads.take(pa.array(row)),
            _int64(offsets),
            self.middles.take(pa.array(turns[batch])),
            _int64(times[batch]),
            self.tails.take(pa.array(row)),
        )
        joined = pc.binary_join_element_wise(*pieces, b"")
        _, edges, data = joined.buffers()
        bounds = np.frombuffer(edges, np.int32)[np.concatenate([[0], ends])].tolist()
        view = memoryview(data)
        return (view[low:high] for low, high in pairwise(bounds))


def _int64(values: Ints) -> pa.Array:
    packed = pa.py_buffer(np.ascontiguousarray(values.astype(">i8")))
    return pa.Array.from_buffers(pa.binary(8), len(values), [None, packed]).cast(pa.binary())


def generate(out: Path, commits: int, groups: int, *, partitions: int = 1, seed: int = 1) -> int:
    """Writes the segments; returns how many records they hold."""
    chance = np.random.default_rng(seed)
    made = [make_group(number, chance) for number in range(groups)]
    logs = [GeneratedSegments(out / f"__consumer_offsets-{partition}") for partition in range(partitions)]
    log_of = [logs[log_partition_of(group.name, partitions)] for group in made]
    static = GeneratedCommits.of(made)
    now, left = START_MS, commits
    while left > 0:
        turns = chance.integers(0, groups, max(1, int(min(left, CHUNK_COMMITS) / static.sizes.mean())))
        times = now + np.cumsum(chance.integers(1, 40, len(turns)))
        now = int(times[-1])
        side_events = chance.random(len(turns))
        bodies = static.bodies(turns, times, chance)
        for turn, time, event, body in zip(turns.tolist(), times.tolist(), side_events.tolist(), bodies, strict=True):
            group, log = made[turn], log_of[turn]
            if event < 0.01:
                _append_records(log, group.rebalance, time)
            elif event > 0.998:
                _append_records(log, group.tombstones, time)
            count, base = len(group.heads), log.next_offset
            bounds = {"base_offset": base, "last_offset": base + count - 1, "count": count}
            log.append(frame(body, **bounds, base_timestamp=time, max_timestamp=time), count)
            left -= count
            if left <= 0:
                break
        for log in logs:
            log.flush()
    return sum(log.next_offset for log in logs)


def _append_records(log: GeneratedSegments, records: list[NewRecord], time: int) -> None:
    base = log.next_offset
    placed = [record._replace(offset=base + record.offset, timestamp=time) for record in records]
    log.append(encode_batch(placed), len(placed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=2_000_000, help="offset commits to write, about")
    parser.add_argument("--groups", type=int, default=2000, help="groups that commit them")
    parser.add_argument("--partitions", type=int, default=1, help="partitions of __consumer_offsets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True, help="directory to write into")
    given = parser.parse_args()
    records = generate(given.out, given.commits, given.groups, partitions=given.partitions, seed=given.seed)
    print(f"{records} records in {given.out}")


if __name__ == "__main__":
    main()
