"""The records of one log partition, straight from segment files, for commands that need no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from coordinator_core.errors import DecodeError, UnknownTypeError
from coordinator_core.records import AnyRecord, Family, LogPosition
from coordinator_core.wire.batch_format import Damage, Kind
from coordinator_core.wire.record_decoder import RecordDecoder
from jobs.sources.files import FIRST_SEGMENT, LogPart

Warn = Callable[[str], None]


class LogRow(NamedTuple):
    """A record as bytes, or a control record: then ``control_type`` is its name, None if its bytes do not tell."""

    kind: str
    offset: int
    timestamp: int
    key: bytes
    value: bytes | None
    control_type: str | None
    is_transactional: bool
    producer_id: int
    leader_epoch: int
    batch_base_offset: int


def by_partition(logs: Iterable[LogPart]) -> dict[Family, dict[int, list[LogPart]]]:
    """Logs by family and partition, each in the order given."""
    partitions: dict[Family, dict[int, list[LogPart]]] = {family: {} for family in Family}
    for log in logs:
        partitions[log.family].setdefault(log.partition, []).append(log)
    return partitions


class LogReader:
    """The records of one partition, from its segment files in the order of their offsets.

    What cannot be read or decoded is told to ``warn`` and left out; ``losses`` counts how often bytes of the log gave
    no record.
    """

    def __init__(self, files: Sequence[LogPart], warn: Warn) -> None:
        self._files = files
        self._warn = warn
        self.losses = 0
        self._decoder = RecordDecoder(self.family)

    @property
    def partition(self) -> int:
        """The partition that the files are of."""
        return self._files[0].partition

    @property
    def family(self) -> Family:
        """What its records are."""
        return self._files[0].family

    @property
    def from_start(self) -> bool:
        """Whether the first file with anything in it is named as the partition's first segment."""
        return next((file.segment == FIRST_SEGMENT for file in self._files if file.size), False)

    def rows(self, time_ms: int | None = None) -> Iterator[LogRow]:
        """Records and control records, each once where dumps overlap, before the first one later than ``time_ms``.

        A file that has another record than one before it at the same offset is of another log, such as another
        cluster's: from there on it is left out, and so are all others of its folder.
        """
        last = -1
        overlap = _Overlap(self._files)
        strange: set[str] = set()
        for number, file in enumerate(self._files):
            folder = file.name.rpartition("/")[0]
            if folder in strange:
                continue
            for row in self._rows_of(file):
                if row.offset <= last:
                    if overlap.contradicts(row):
                        self._warn(
                            f"{file.name} offset {row.offset}: not the record that a file before it has there; "
                            f"this is another log, and left out"
                        )
                        strange.add(folder)
                        break
                    continue
                if time_ms is not None and row.timestamp > time_ms:
                    return
                overlap.note(number, row)
                last = row.offset
                yield row

    def _rows_of(self, file: LogPart) -> Iterator[LogRow]:
        for part in file.parts():
            if isinstance(part, Damage):
                self.losses += 1
                self._warn(f"{file.name} at byte {part.position}: {part.cause} ({part.size} bytes left out)")
            else:
                yield from _rows(part)

    def records(self, time_ms: int | None = None) -> Iterator[AnyRecord]:
        """The decoded records, without control records."""
        for row in self.rows(time_ms):
            record = self.decoded(row) if row.kind == Kind.RECORD.value else None
            if record is not None:
                yield record

    def decoded(self, row: LogRow) -> AnyRecord | None:
        """The record in a row; None, and a warning, if it cannot be decoded."""
        file = self._files[0]
        at = LogPosition(file.partition, row.offset, row.timestamp)
        try:
            return self._decoder.record(at, row.key, row.value, row.batch_base_offset)
        except DecodeError as error:
            # Most types of the metadata log say nothing of topics, and have no schema here.
            if file.family is not Family.METADATA or not isinstance(error, UnknownTypeError):
                self._warn(f"{file.topic}-{file.partition} offset {row.offset}: {error}")
            return None


class _Overlap:
    """What a file has of the offsets with which the next one begins: the same records, if they are of one log."""

    def __init__(self, files: Sequence[LogPart]) -> None:
        bases = [int(digits) if (digits := file.segment.partition(".")[0]).isdecimal() else 0 for file in files]
        self._next = [*bases[1:], None]
        self._seen: dict[int, int] = {}

    def note(self, number: int, row: LogRow) -> None:
        """A record of the file of that number."""
        beginning = self._next[number]
        if beginning is not None and row.offset >= beginning:
            self._seen[row.offset] = self._print(row)

    def contradicts(self, row: LogRow) -> bool:
        """Whether a file before had another record at this offset."""
        return self._seen.get(row.offset, self._print(row)) != self._print(row)

    @staticmethod
    def _print(row: LogRow) -> int:
        return hash((row.timestamp, row.key, row.value))


def _rows(batch: pa.RecordBatch) -> Iterator[LogRow]:
    """The rows of a record batch of LOG_COLUMNS, without those that stand for an emptied batch."""
    columns = [batch.column(name).to_pylist() for name in LogRow._fields]
    key = LogRow._fields.index("key")
    columns[key] = [each or b"" for each in columns[key]]
    return (row for row in map(LogRow._make, zip(*columns, strict=True)) if row.kind != Kind.EMPTY.value)
