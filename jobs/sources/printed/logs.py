"""Printed records as the logs that they are of: one log for each partition, in the order of its offsets.

Several files may be parts of one log, such as those of a sink. Records without a position, such as those that a console
consumer prints, get the partition that follows from their key, where an internal topic has ``PARTITIONS`` of them, and
the number of their line in it instead of an offset: files of such lines are merged by the times in the records.
"""

import heapq
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import DecodeError, InputError
from coordinator_core.groups.log_partition import log_partition_of, placing_key
from coordinator_core.history.knowledge import PARTITIONS
from coordinator_core.records import GROUP_LOG, Family
from coordinator_core.wire.batch_format import Damage, DamageKind, Kind
from coordinator_core.wire.kafka_text import NOT_PRINTED
from coordinator_core.wire.log_columns import LOG_COLUMNS
from coordinator_core.wire.record_codec import decode_key, decode_value
from jobs.sources.printed.forms import read
from jobs.sources.printed.printed_rows import (
    FAMILIES,
    NOT_PRINTED_BYTES,
    SEGMENT,
    TIMESTAMP_CODES,
    Row,
    damaged,
    place_of,
)

FIRST_OFFSET: Final = 1
"""Of a log that was printed without offsets: 0 would say that nothing was before."""

OF_LINES: Final = f"{FIRST_OFFSET:020}.lines"
"""Stands for the name of a segment where the offsets of a log are numbers of lines: so tables know it, too."""

KEPT: Final = 4
"""Number of sets of files that a process keeps."""

ROWS_A_BATCH: Final = 10_000

HEAD: Final = 100
"""Rows of which one has an offset where a file has offsets."""

RENAMED: Final = {
    "offset": "log_offset",
    "timestamp": "timestamp_ms",
    "batch_base_offset": "batch_base",
    "batch_last_offset": "batch_last",
    "batch_position": "place",
}
"""The columns of ``LOG_COLUMNS`` that ``DUMPED`` calls otherwise."""

TIMES: Final = ("commitTimestamp", "currentStateTimestamp", "assignmentTimestamp", "writeTimestamp")
"""Fields that are the time of their record, to some milliseconds."""

UNKNOWN: Final = {
    "timestamp": -1,
    "timestamp_type": -1,
    "producer_id": -1,
    "producer_epoch": -1,
    "base_sequence": -1,
    "leader_epoch": -1,
    "compression": "none",
    "batch_base_offset": -1,
    "batch_last_offset": -1,
    "batch_position": -1,
    "is_transactional": False,
}
"""What a row of ``LOG_COLUMNS`` has where the text has nothing."""


class PrintedLog(NamedTuple):
    """A log partition that was printed: ``partition`` None: which one is not known. ``segment``: as brokers name it.

    ``is_numbered``: the text has no positions, so that its offsets are numbers of records. ``files``: where it is.
    """

    topic: str
    partition: int | None
    segment: str
    rows: pa.Table
    damages: tuple[tuple[int, Damage], ...]
    is_numbered: bool
    files: tuple[str, ...]

    @property
    def name(self) -> str:
        """The path that a broker would give its first segment."""
        folder = self.topic if self.partition is None else f"{self.topic}-{self.partition}"
        return f"{folder}/{self.segment}"

    def parts(self) -> Iterator[pa.RecordBatch | Damage]:
        """Yield its records as Arrow batches with the columns ``LOG_COLUMNS``, and the lines that are not records."""
        begin = 0
        for number, damage in self.damages:
            yield from self.rows.slice(begin, number - begin).to_batches(ROWS_A_BATCH)
            yield damage
            begin = number
        yield from self.rows.slice(begin).to_batches(ROWS_A_BATCH)


class PrintedLogs(NamedTuple):
    """The logs in a set of files, by topic and partition; ``notes`` say what the files lack."""

    logs: tuple[PrintedLog, ...] = ()
    notes: tuple[str, ...] = ()


def printed_logs(paths: Sequence[str]) -> PrintedLogs:
    """Return the logs in files of printed records.

    Raises:
        InputError: a file cannot be read, or two of them have different records at one position.
        OSError: a file cannot be read.
    """
    return _logs(tuple((path, (state := os.stat(path)).st_size, state.st_mtime_ns) for path in paths))


def lacks_positions(path: str) -> bool:
    """Return whether there are records in a file of them, and no log partition or offset of the first ones."""
    records = [row for row in islice(read(path), HEAD) if row["kind"] == Kind.RECORD.value]
    return bool(records) and not any({"log_partition", "log_offset"} <= row.keys() for row in records)


@lru_cache(maxsize=KEPT)
def _logs(files: tuple[tuple[str, int, int], ...]) -> PrintedLogs:
    logs: dict[tuple[str, int | None], _Collected] = defaultdict(_Collected)
    unplaced: dict[str, Iterator[tuple[int, Row]]] = {}
    marked: Counter[str] = Counter()
    for path, _, _ in files:
        rows = read(path)
        head = [*islice(rows, HEAD)]
        if any(row.get("log_offset") is not None for row in head):
            for row in chain(head, rows):
                logs[_place(row, path)].add(row, path)
                marked[path] += _is_marked(row)
        elif head:
            unplaced[path] = _timed(chain(head, rows), path)
    # Within a file these times only rise (``_timed``), which a merge rests on.
    for _, row in heapq.merge(*unplaced.values(), key=lambda timed: timed[0]):
        collected = logs[row["log_topic"], row["log_partition"]]
        if collected.count and not collected.is_numbered:
            raise InputError(
                f"{row['source']}: printed without positions, beside {collected.files[0]}, which has those of the same "
                "log: give one of them"
            )
        collected.is_numbered = True
        collected.add({**row, "log_offset": FIRST_OFFSET + collected.count}, row["source"])
        marked[row["source"]] += _is_marked(row)
    order = sorted(logs, key=lambda place: (place[0], -1 if place[1] is None else place[1]))
    return PrintedLogs(tuple(logs[place].log(*place) for place in order), tuple(_notes(marked)))


def _is_marked(row: Row) -> bool:
    """Return whether the text does not have all fields of a record."""
    return NOT_PRINTED_BYTES in (row.get("extra") or ())


def _notes(marked: Mapping[str, int]) -> Iterator[str]:
    """Yield what the files lack, in sentences."""
    if files := [path for path, count in marked.items() if count]:
        yield (
            f"{_named(files)}: the tool did not print all fields of its records ({sum(marked.values())} of them): they "
            f"are empty or {NOT_PRINTED!r} here; kafka-dump-log of the broker's release prints all of them"
        )


def _named(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _place(row: Row, path: str) -> tuple[str, int | None]:
    """Return the log that a row is of: what it says itself, else what the file's name says."""
    named = place_of(path)
    topic = row.get("log_topic") or named.topic or GROUP_LOG
    partition = row.get("log_partition")
    return topic, named.partition if partition is None and named.topic in ("", topic) else partition


def _timed(rows: Iterable[Row], path: str) -> Iterator[tuple[int, Row]]:
    """Yield rows without a position with the log that follows from their key, each after the highest time so far.

    What is not a record, or has no key that can be read, is said to be of the log of the row before; at the beginning,
    of the row behind.
    """
    highest, place = -1, _place({}, path)
    unknown: list[Row] = []
    for row in rows:
        topic = row.get("log_topic") or place[0]
        time_ms = row.get("timestamp_ms")
        if row["kind"] == Kind.RECORD.value:
            family = FAMILIES.get(topic, Family.GROUP)
            try:
                record_type, key = decode_key(row.get("key") or b"", family)
            except DecodeError as error:
                row = {**damaged(row.get("key") or b"", str(error), row["place"])}
            else:
                place = topic, log_partition_of(placing_key(key), PARTITIONS)
                time_ms = _time_of(row, record_type, family) if time_ms is None else time_ms
        highest = max(highest, -1 if time_ms is None else time_ms)
        unknown.append({**row, "timestamp_ms": time_ms, "source": path})
        if place[1] is not None:
            yield from ((highest, {**each, "log_topic": place[0], "log_partition": place[1]}) for each in unknown)
            unknown = []
    yield from ((highest, {**each, "log_topic": place[0], "log_partition": None}) for each in unknown)


def _time_of(row: Row, record_type: int, family: Family) -> int | None:
    """Return the time that a value names as that of its record."""
    value = row.get("value")
    if value is None:
        return None
    try:
        _, fields = decode_value(value, record_type, family)
    except DecodeError:
        return None
    return next((time_ms for name in TIMES if (time_ms := fields.get(name, -1)) >= 0), None)


class _Collected:
    """The rows of one log, as they come."""

    def __init__(self) -> None:
        self.count = 0
        self.is_numbered = False
        self._segment: str | None = None
        self._rows: list[Row] = []
        self._batches: list[pa.RecordBatch] = []
        self._damages: list[tuple[int, Damage]] = []
        self.files: list[str] = []

    def add(self, row: Row, path: str) -> None:
        """Take in a row of the text at a path."""
        if path not in self.files:
            self.files.append(path)
        if self._segment is None:
            self._segment = row.get("segment")
        if row["kind"] == "damaged":
            first, last = row.get("batch_base", -1), row.get("batch_last", -1)
            data = row["value"] or b""
            damage = Damage(DamageKind.FORMAT, row["place"], len(data), row["error"], data, first, last)
            self._damages.append((self.count, damage))
            return
        self.count += 1
        self._rows.append(_columns(row))
        if len(self._rows) >= ROWS_A_BATCH:
            self._flush()

    def _flush(self) -> None:
        self._batches.append(pa.RecordBatch.from_pylist(self._rows, schema=LOG_COLUMNS))
        self._rows = []

    def log(self, topic: str, partition: int | None) -> PrintedLog:
        """Return all rows in the order of their offsets, each once.

        Raises:
            InputError: two different records have one position.
        """
        self._flush()
        rows = pa.Table.from_batches(self._batches, LOG_COLUMNS)
        places = pc.coalesce(rows.column("offset"), rows.column("batch_last_offset"))
        offsets = places.combine_chunks().to_numpy(zero_copy_only=False) if rows.num_rows else np.empty(0, np.int64)
        damages = tuple(self._damages)
        if (np.diff(offsets) <= 0).any():
            order = np.argsort(offsets, kind="stable")
            rows, offsets = rows.take(pa.array(order)), offsets[order]
            # Where the lines were is not where they are in the log.
            damages = tuple((rows.num_rows, damage) for _, damage in damages)
            # again[i] is the number of a row with the offset of the row before it: one record in two files.
            again = np.flatnonzero(np.diff(offsets) == 0) + 1
            for number in again.tolist():
                if any(rows.column(name)[number] != rows.column(name)[number - 1] for name in ("key", "value")):
                    where = f"{', '.join(self.files)}: {topic}-{partition} offset {offsets[number]}"
                    raise InputError(f"{where}: two different records, so that these are not of one log")
            kept = np.delete(np.arange(len(offsets)), again)
            if len(again):
                # moved[n] is how many of the rows up to place n go, by which damage there moves to the front.
                moved = np.cumsum(np.isin(np.arange(len(offsets) + 1), again))
                damages = tuple((int(number - moved[number]), damage) for number, damage in damages)
                rows, offsets = rows.take(pa.array(kept)), offsets[kept]
        first = int(offsets[0]) if len(offsets) else 0
        segment = self._segment if self._segment and SEGMENT.fullmatch(self._segment) else f"{first:020}.log"
        segment = OF_LINES if self.is_numbered else segment
        return PrintedLog(topic, partition, segment, rows, damages, self.is_numbered, tuple(self.files))


def _columns(row: Row) -> Row:
    """Return a row of ``DUMPED`` as one of ``LOG_COLUMNS``."""
    columns: Row = {name: row[name] for name in LOG_COLUMNS.names if row.get(name) is not None}
    for name, dumped in RENAMED.items():
        if row.get(dumped) is not None:
            columns[name] = row[dumped]
    columns["timestamp_type"] = TIMESTAMP_CODES.get(row.get("timestamp_type") or "", -1)
    columns["is_control"] = row.get("is_control") or row["kind"] == Kind.CONTROL.value
    return UNKNOWN | columns
