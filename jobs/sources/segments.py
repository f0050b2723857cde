"""Reads raw segment files of coordinator logs: each task reads a byte range in bounded memory, in Arrow batches.

KRaft snapshots are read as well. Their records have no log offset: ``place`` is their number in the snapshot, from 0.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from types import MappingProxyType
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import LogFormatError
from coordinator_core.wire.batch_format import TIMESTAMP_TYPES, Damage, DamageKind
from coordinator_core.wire.framing import layout
from coordinator_core.wire.transactions import TransactionOutcome, holes, markers, outcomes
from jobs.sources.absent_segments import with_absent
from jobs.sources.copies import without_tails
from jobs.sources.dump_batches import dumped_batch, dumped_batches
from jobs.sources.files import METADATA_TOPIC, LogFile, find_logs

SPLIT_BYTES: Final = 64 << 20
"""Ranges of a file are at least this long, so that the work of a task is long beside its start."""
TASK_BYTES: Final = 4 << 20
"""Small ranges are put together up to this size, as a task for each of a hundred small files would cost more."""
LOOK_AHEAD_BYTES: Final = 2 << 20
"""Bytes after its range in which a task looks for the markers of transactions that are open at the end of the range."""

LENGTH_AT: Final = 8
"""Where a batch says how many bytes follow that number: behind its offset."""

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
"""Columns with the same name in the batches of the core."""

OF_BATCH: Final = (
    "batch_base",
    "batch_last",
    "leader_epoch",
    "compression",
    "producer_id",
    "producer_epoch",
    "sequence",
    "is_transactional",
)
"""Columns that only the batch of a record tells."""

RENAMED: Final = {
    "log_offset": "offset",
    "timestamp_ms": "timestamp",
    "batch_base": "batch_base_offset",
    "batch_last": "batch_last_offset",
    "place": "batch_position",
}


@dataclass(frozen=True)
class Range:
    """A byte range of one file, and the file that continues the log."""

    log: LogFile
    start: int
    stop: int
    following: LogFile | None


@dataclass(frozen=True)
class Ranges:
    """The input of one task: a byte range, or several small ones."""

    ranges: tuple[Range, ...]


class SegmentsReader:
    """Plans byte ranges of files, and reads one.

    ``paths``: folders, files or tar archives. ``topic``: the topic of files outside a topic's folder. ``split_bytes``:
    files are split into ranges of at least this size. ``edges``: where, for files whose layout is known, by name.
    ``starts``: the byte at which a file begins, by name; 0 for all others.
    """

    def __init__(
        self,
        paths: Sequence[str],
        topics: frozenset[str],
        topic: str,
        split_bytes: int = SPLIT_BYTES,
        edges: Mapping[str, Sequence[int]] = MappingProxyType({}),
        starts: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        self.paths, self.topics, self.topic, self.split_bytes = paths, topics, topic, split_bytes
        self.edges, self.starts = dict(edges), dict(starts)

    def behind(self, starts: Mapping[str, int]) -> "SegmentsReader":
        """Return a reader that begins some files, by name, at other bytes than the first."""
        return SegmentsReader(self.paths, self.topics, self.topic, self.split_bytes, self.edges, starts)

    def logs(self) -> list[LogFile]:
        """Return the files, by topic, partition and offset."""
        return with_absent(without_tails(find_logs(self.paths, topics=self.topics, snapshots=True)))

    def partitions(self) -> Sequence[Ranges]:
        """Return the ranges by topic, partition and offset. Small files share a task: each task has a fixed cost."""
        logs = self.logs()
        ranges = [
            Range(log, start, stop, following if stop == log.size and _continues(log, following) else None)
            # A transaction may end in the next segment: the task of the last range of a file has to know which one
            # that is.
            for log, following in pairwise([*(log for log in logs if not log.is_snapshot), None])
            if log is not None
            for start, stop in self._ranges(log)
        ]
        ranges += [Range(log, 0, log.size, None) for log in logs if log.is_snapshot]
        return [Ranges(tuple(some)) for some in _shared(ranges, min(self.split_bytes, TASK_BYTES))]

    def _ranges(self, log: LogFile) -> Iterable[tuple[int, int]]:
        start = self.starts.get(log.name, 0)
        if not is_split(log, self.split_bytes):
            return [(start, log.size)] if start < log.size or not log.size else []
        edges = self.edges.get(log.name)
        if edges is None or edges[-1] != log.size:  # it has grown since
            with log.open() as read_at:
                edges = layout(read_at, log.size, self.split_bytes, name=log.name).edges
        return pairwise([start, *(edge for edge in edges if edge > start)])

    def size(self, partition: Ranges) -> int:
        """Return how many bytes of its files a task reads."""
        return sum(wanted.stop - wanted.start for wanted in partition.ranges)

    def read(self, partition: Ranges) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return chain.from_iterable(read_range(wanted, self.topic) for wanted in partition.ranges)


def is_split(log: LogFile, split_bytes: int = SPLIT_BYTES) -> bool:
    """Return whether a file is read in ranges. A member of an archive is not: each task would read all before it."""
    return not log.member and log.size > split_bytes


def _shared(ranges: Iterable[Range], task_bytes: int) -> Iterator[list[Range]]:
    """Yield groups of adjacent ranges of at most ``task_bytes`` together."""
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


def read_range(wanted: Range, topic: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range; transactional rows have their outcome if the look-ahead shows it.

    ``topic`` is the topic of files outside a topic's folder. Damaged bytes become damaged rows. A gap between batches
    may be caused by compaction or by missing data, which only the whole log can show: no outcome is decided across it.
    """
    log = wanted.log
    # One part is held back: what follows it may end its transactions, or show that offsets are missing behind it.
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
    """Yield the parts of a range. A file that is not a log becomes damage, so that the other files are still read."""
    try:
        yield from log.parts_within(start, stop)
    except LogFormatError as error:
        with log.open() as read_at:
            data = read_at(0, min(log.size, 1 << 20))
        yield Damage(DamageKind.FORMAT, 0, log.size, error.cause, data)


def _parts_behind(wanted: Range) -> list[pa.RecordBatch | Damage]:
    log, start = (wanted.log, wanted.stop) if wanted.stop < wanted.log.size else (wanted.following, 0)
    return [] if log is None else list(_parts(log, start, min(start + LOOK_AHEAD_BYTES, log.size)))


def _outcomes(columns: pa.RecordBatch, behind: Sequence[pa.RecordBatch | Damage]) -> pa.Array:
    """Return the outcomes of transactions, from these rows and the parts after them."""
    ends, gaps = markers(columns), holes(columns)
    last = columns.column("batch_last_offset")[-1].as_py()
    for part in behind:
        # A hole as much as damage: the marker that was there may have been the true one.
        if isinstance(part, Damage) or part.column("batch_base_offset")[0].as_py() > last + 1:
            gaps.append(last + 1)
        if isinstance(part, Damage):
            # Behind damage no marker is sure to be the one of a transaction before it.
            break
        ends += markers(part)
        gaps += holes(part)
        last = part.column("batch_last_offset")[-1].as_py()
    return outcomes(columns, ends, holes=gaps)


def _place_of(log: LogFile, topic: str) -> dict[str, str | int | None]:
    partition = log.partition
    if log.is_snapshot:
        topic, partition = METADATA_TOPIC, max(partition, 0)
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
    given |= {name: columns.column(decoded) for name, decoded in RENAMED.items()}
    names = pa.array([TIMESTAMP_TYPES[code] for code in sorted(TIMESTAMP_TYPES)])
    # The codes begin at -1, and indices at 0.
    given["timestamp_type"] = names.take(pc.add(columns.column("timestamp_type"), 1))
    # A batch that compaction has emptied gets its last offset. The type of an emptied control batch is unknown.
    given["log_offset"] = pc.coalesce(given["log_offset"], given["batch_last"])
    emptied = pc.and_(columns.column("is_control"), pc.is_null(given["control_type"]))
    given["control_type"] = pc.if_else(emptied, "UNKNOWN", given["control_type"])
    given["outcome"] = _outcomes(columns, behind)
    if log.texts:
        given |= _without_batch(columns, given)
    if log.is_snapshot:
        given |= {"place": given["log_offset"], "log_offset": None, "batch_base": None, "batch_last": None}
    return dumped_batch(columns.num_rows, given | _place_of(log, topic))


def _without_batch(columns: pa.RecordBatch, given: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """Return as null what printed rows do not tell of their batch and its transaction."""
    known = pc.greater_equal(columns.column("batch_base_offset"), 0)
    unknown = {name: pc.if_else(known, given[name], pa.scalar(None, given[name].type)) for name in OF_BATCH}
    return unknown | {"outcome": pc.if_else(known, given["outcome"], TransactionOutcome.UNKNOWN.value)}
