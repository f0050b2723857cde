"""Simulate and write one log partition of a scenario, without Spark. The Spark job runs many of these in parallel."""

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from coordinator_core.errors import InputError
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.simulator.ground_truth import Row
from coordinator_core.simulator.group_course import share_states, simulation
from coordinator_core.simulator.log import Piece, metadata_log
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.shard import Shard
from coordinator_core.simulator.share_state import ShareStates
from coordinator_core.simulator.topic_plan import plan_topics
from coordinator_core.wire.batches import read_columns

SEGMENT_BYTES = 100 << 20
"""Kafka's default ``offsets.topic.segment.bytes``."""


class WrittenPartition(NamedTuple):
    """Counts of one log partition that was written."""

    topic: str
    partition: int
    records: int
    commits: int
    rebalances: int


def new_folder(out: Path) -> None:
    """Create the output folder. Raise InputError if it exists and is not empty."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: the output folder is not empty: name a new or an empty folder")
    (out / "truth").mkdir(parents=True, exist_ok=True)


def write_metadata(scenario: Scenario, seed: int, out: Path, shape: str) -> WrittenPartition:
    """Write the metadata log of the simulated cluster."""
    topic = LOG_TOPICS[Family.METADATA]
    with _writer(out, topic, 0, shape) as writer:
        for piece in metadata_log(plan_topics(scenario, seed)):
            writer.write(piece)
    return WrittenPartition(topic, 0, writer.records, 0, 0)


def write_partition(
    scenario: Scenario, seed: int, family: Family, partition: int, out: Path, shape: str
) -> WrittenPartition:
    """Simulate one partition of a coordinator topic. Write its log, and its ground truth as JSON lines.

    A file gets its name only when it is complete. A second attempt writes the same bytes, so a task may be retried.
    """
    plan = plan_topics(scenario, seed)
    shard: Shard | ShareStates
    if family is Family.SHARE:
        shard = share_states(scenario, plan, seed, partition)
    else:
        shard = simulation(scenario, plan, seed, partition, family)
    rebalances = 0
    topic = LOG_TOPICS[family]
    truth = out / "truth" / f"{topic.strip('_')}-{partition:05d}.jsonl"
    with _writer(out, topic, partition, shape) as writer, _whole(truth) as lines:
        for piece in shard.run():
            writer.write(piece)
            rebalances += _write_truth(shard.take_truth(), lines)
        rebalances += _write_truth(shard.take_truth(), lines)
        rebalances += _write_truth(shard.last_truth(), lines)
    return WrittenPartition(topic, partition, writer.records, shard.commit_count, rebalances)


def simulate_here(scenario: Scenario, seed: int, out: Path, shape: str) -> Iterator[WrittenPartition]:
    """Simulate the scenario in this process, one partition after the other. Yield the counts of each partition."""
    new_folder(out)
    yield write_metadata(scenario, seed, out, shape)
    for family, partition in scenario.logs:
        yield write_partition(scenario, seed, family, partition, out, shape)


def _write_truth(rows: Iterable[Row], stream: IO[bytes]) -> int:
    rebalances = 0
    for row in rows:
        stream.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        rebalances += row["kind"] == "rebalance"
    return rebalances


@contextmanager
def _whole(file: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing; it gets its name only when it is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # In the same folder a rename is one step; with the process in its name, two attempts do not share a file.
    partial = file.with_name(f".{file.name}.{os.getpid()}")
    with partial.open("wb") as stream:
        yield stream
    partial.replace(file)


def _writer(out: Path, topic: str, partition: int, shape: str) -> "_Segments | _KafkaRows":
    if shape == "segments":
        return _Segments(out / f"{topic}-{partition}")
    return _KafkaRows(out / "records" / f"{topic.strip('_')}-{partition:05d}.parquet", topic, partition)


class _Segments(ExitStack):
    """Writes segment files as a broker does; a new segment begins when the last one is full."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.records = 0
        self._folder = folder
        self._room = 0
        self._stream: IO[bytes] | None = None

    def __exit__(self, *details: Any) -> bool | None:
        if self._stream is None:  # a partition that nothing was written to has an empty segment
            self.enter_context(_whole(self._folder / f"{0:020d}.log"))
        return super().__exit__(*details)

    def write(self, piece: Piece) -> None:
        if self._stream is None or len(piece.data) > self._room:
            self.close()
            self._stream = self.enter_context(_whole(self._folder / f"{piece.base_offset:020d}.log"))
            self._room = SEGMENT_BYTES
        self._stream.write(piece.data)
        self._room -= len(piece.data)
        self.records += piece.records


KAFKA_ROWS = pa.schema(
    {
        "key": pa.binary(),
        "value": pa.binary(),
        "topic": pa.string(),
        "partition": pa.int32(),
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us", "UTC"),
        "timestampType": pa.int32(),
    }
)
"""The columns of Spark's Kafka source."""


class _KafkaRows(ExitStack):
    """Writes the log as rows of Spark's Kafka source, to a Parquet file."""

    def __init__(self, file: Path, topic: str, partition: int) -> None:
        super().__init__()
        self.records = 0
        self._topic = topic
        self._partition = partition
        self._stream = self.enter_context(pq.ParquetWriter(self.enter_context(_whole(file)), KAFKA_ROWS))

    def write(self, piece: Piece) -> None:
        data = piece.data
        for part in read_columns(lambda position, size: data[position : position + size], len(data)):
            if isinstance(part, pa.RecordBatch):
                self._stream.write_batch(self._rows(part))
        self.records += piece.records

    def _rows(self, part: pa.RecordBatch) -> pa.RecordBatch:
        rows = part.num_rows
        columns = [
            part.column("key"),
            part.column("value"),
            pa.repeat(self._topic, rows),
            pa.repeat(pa.scalar(self._partition, pa.int32()), rows),
            part.column("offset"),
            # A number becomes a time in its own unit first, and then in that of Spark.
            part.column("timestamp").cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
            pa.repeat(pa.scalar(0, pa.int32()), rows),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=KAFKA_ROWS)
