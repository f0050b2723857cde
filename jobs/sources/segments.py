"""The Spark data source ``segments``: raw segment files of coordinator logs, planned by log partition and file.

Options: ``paths`` (a JSON list of directories, files or tar archives), ``topics`` (a JSON list; those that can be
decoded unless given), ``topic`` (of files that lie in no topic's folder) and ``splitBytes`` (files are cut into ranges
of at least this size). Each task reads its range in bounded memory and yields Arrow batches.

KRaft snapshots are read as well. Their records have no offset in the log: their ``place`` is their number in the
snapshot, from 0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coordinator_core.errors import LogFormatError
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.batch_format import TIMESTAMP_TYPES, Damage, DamageKind
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.framing import boundaries
from coordinator_core.wire.transactions import holes, markers, outcomes
from jobs.sources.dump_batches import SPARK_SCHEMA, dumped_batch, dumped_batches
from jobs.sources.files import KNOWN_TOPICS, METADATA_TOPIC, UNKNOWN_PARTITION, LogFile, find_logs

SPLIT_BYTES: Final = 64 << 20
TASK_BYTES: Final = 4 << 20
LOOK_AHEAD_BYTES: Final = 2 << 20
"""How far behind a range its task looks for the markers of transactions that are still open at its end."""

TIMESTAMP_TYPE_NAMES: Final = pa.array([TIMESTAMP_TYPES[code] for code in (-1, 0, 1)])

UNTOUCHED: Final = (
    "key",
    "value",
    "headers",
    "leader_epoch",
    "compression",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
    "control_type",
    "coordinator_epoch",
    "kind",
)
"""Columns that are called as the reader calls them."""

RENAMED: Final = {
    "log_offset": "offset",
    "timestamp_ms": "timestamp",
    "batch_base": "batch_base_offset",
    "batch_last": "batch_last_offset",
    "place": "batch_position",
}


@dataclass(frozen=True)
class Range:
    """Bytes of one file, and the file that continues the log."""

    log: LogFile
    start: int
    stop: int
    following: LogFile | None


@dataclass(frozen=True)
class Ranges(InputPartition):
    """What one task reads: a range, or several small ones."""

    ranges: tuple[Range, ...]


class SegmentsSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What ``spark.read.format`` calls it."""
        return "segments"

    def schema(self) -> StructType:
        """The columns of a dump."""
        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> SegmentsReader:
        """The reader of these options."""
        return SegmentsReader(
            json.loads(self.options["paths"]),
            frozenset(json.loads(self.options.get("topics", "null")) or KNOWN_TOPICS),
            self.options.get("topic", LOG_TOPICS[Family.GROUP]),
            int(self.options.get("splitBytes", SPLIT_BYTES)),
        )


class SegmentsReader(DataSourceReader):
    """Plans ranges of files, and reads one."""

    def __init__(self, paths: Sequence[str], topics: frozenset[str], topic: str, split_bytes: int) -> None:
        self.paths, self.topics, self.topic, self.split_bytes = paths, topics, topic, split_bytes

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges, in the order of topic, partition and offset; small files share a task, which costs more."""
        logs = find_logs(self.paths, topics=self.topics, snapshots=True)
        ranges = [
            Range(log, start, stop, following if stop == log.size and _continues(log, following) else None)
            for log, following in pairwise([*(log for log in logs if not log.is_snapshot), None])
            if log is not None
            for start, stop in _ranges(log, self.split_bytes)
        ]
        ranges += [Range(log, 0, log.size, None) for log in logs if log.is_snapshot]
        return [Ranges(tuple(some)) for some in _shared(ranges, min(self.split_bytes, TASK_BYTES))]

    def read(self, partition: Ranges) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """The rows of one task."""
        return chain.from_iterable(read_range(wanted, self.topic) for wanted in partition.ranges)


def _shared(ranges: Iterable[Range], task_bytes: int) -> Iterator[list[Range]]:
    """Neighbours as long as they are smaller than that together."""
    together: list[Range] = []
    size = 0
    for wanted in ranges:
        more = wanted.stop - wanted.start
        if together and size + more > task_bytes:
            yield together
            together, size = [], 0
        together.append(wanted)
        size += more
    if together:
        yield together


def _continues(log: LogFile, following: LogFile | None) -> bool:
    return following is not None and (log.topic, log.partition) == (following.topic, following.partition)


def _ranges(log: LogFile, split_bytes: int) -> Iterable[tuple[int, int]]:
    """A member of an archive stays whole: each task would have to read the archive up to its range."""
    if log.member or log.size <= split_bytes:
        return [(0, log.size)]
    with log.open() as read_at:
        return list(pairwise(boundaries(read_at, log.size, split_bytes)))


def read_range(wanted: Range, topic: str) -> Iterator[pa.RecordBatch]:
    """The rows of a range, each transactional one with its outcome as far as the look-ahead shows it.

    ``topic`` is that of files that lie in no topic's folder. Bytes that are no batch come as damaged rows. A hole
    between batches may be compaction's work or lost data, which only the whole log shows: beyond it nothing is decided.
    """
    log = wanted.log
    held: pa.RecordBatch | None = None
    for part in _parts(log, wanted.start, wanted.stop):
        if held is not None:
            yield _dumped(held, log, topic, [part])
        if isinstance(part, Damage):
            yield _damaged(part, log, topic)
        held = None if isinstance(part, Damage) else part
    if held is not None:
        yield _dumped(held, log, topic, _parts_behind(wanted))


def _parts(log: LogFile, start: int, stop: int) -> Iterator[pa.RecordBatch | Damage]:
    """A file that is no log at all is damage too: the others of the dump are read all the same."""
    with log.open() as read_at:
        try:
            yield from read_columns(read_at, log.size, start, stop, name=log.name)
        except LogFormatError as error:
            data = read_at(0, min(log.size, 1 << 20))
            yield Damage(DamageKind.FORMAT, 0, log.size, error.cause, data)


def _parts_behind(wanted: Range) -> list[pa.RecordBatch | Damage]:
    log, start = (wanted.log, wanted.stop) if wanted.stop < wanted.log.size else (wanted.following, 0)
    return [] if log is None else list(_parts(log, start, min(start + LOOK_AHEAD_BYTES, log.size)))


def _outcomes(columns: pa.RecordBatch, behind: Sequence[pa.RecordBatch | Damage]) -> pa.Array:
    """The outcomes as far as these rows and what lies behind them show."""
    ends, gaps = markers(columns), holes(columns)
    last = columns.column("batch_last_offset")[-1].as_py()
    for part in behind:
        if isinstance(part, Damage) or part.column("batch_base_offset")[0].as_py() > last + 1:
            gaps.append(last + 1)
        if isinstance(part, Damage):
            break
        ends += markers(part)
        gaps += holes(part)
        last = part.column("batch_last_offset")[-1].as_py()
    return outcomes(columns, ends, holes=gaps)


def _place_of(log: LogFile, topic: str) -> dict[str, str | int | None]:
    partition = None if log.partition == UNKNOWN_PARTITION else log.partition
    if log.is_snapshot:
        topic, partition = METADATA_TOPIC, partition or 0
    return {"log_topic": log.topic or topic, "log_partition": partition, "source": log.name}


def _damaged(damage: Damage, log: LogFile, topic: str) -> pa.RecordBatch:
    row = _place_of(log, topic) | {
        "kind": "damaged",
        "value": damage.data,
        "batch_base": damage.base_offset if damage.base_offset >= 0 and not log.is_snapshot else None,
        "batch_last": damage.last_offset if damage.last_offset >= 0 and not log.is_snapshot else None,
        "place": damage.position,
        "error": f"{damage.size} bytes: {damage.cause}",
    }
    return next(dumped_batches([row]))


def _dumped(
    columns: pa.RecordBatch, log: LogFile, topic: str, behind: Sequence[pa.RecordBatch | Damage]
) -> pa.RecordBatch:
    given = {name: columns.column(name) for name in UNTOUCHED}
    given |= {name: columns.column(theirs) for name, theirs in RENAMED.items()}
    given["timestamp_type"] = TIMESTAMP_TYPE_NAMES.take(pc.add(columns.column("timestamp_type"), 1))
    # A batch that compaction has emptied stands at its last offset; of a control batch it is not known what it said.
    given["log_offset"] = pc.coalesce(given["log_offset"], given["batch_last"])
    emptied = pc.and_(columns.column("is_control"), pc.is_null(given["control_type"]))
    given["control_type"] = pc.if_else(emptied, "UNKNOWN", given["control_type"])
    given["outcome"] = _outcomes(columns, behind)
    if log.is_snapshot:
        given |= {"place": given["log_offset"], "log_offset": None, "batch_base": None, "batch_last": None}
    return dumped_batch(columns.num_rows, given | _place_of(log, topic))
