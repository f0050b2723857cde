"""The records of one log partition from segment files, for commands that do not use Spark."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import DecodeError, EarlyAccessError, InputError, UnknownTypeError
from coordinator_core.history.coverage import ignored_in_words
from coordinator_core.records import COMMIT_TYPES, LOG_TOPICS, AnyRecord, Family, LogPosition
from coordinator_core.wire.batch_format import Damage, DamageKind, Kind
from coordinator_core.wire.offset_gaps import OffsetGaps
from coordinator_core.wire.primitives import INT16
from coordinator_core.wire.record_codec import key_type
from coordinator_core.wire.record_decoder import RecordDecoder, UnreadableRecord
from coordinator_core.wire.value_times import lack_times
from jobs.sources.bounded_warnings import BoundedWarnings, Warn
from jobs.sources.copies import tails_in_words
from jobs.sources.files import FIRST_SEGMENT, ignore, log_name, numbered
from jobs.sources.log_parts import LogPart

COMPACTED = (Family.GROUP, Family.CONNECT)
"""The logs that brokers compact: the others lose their beginning to a snapshot, and nothing else."""

MOST_ROWS: Final = 1 << 20
MOST_BYTES: Final = 96 << 20
"""Rows of a file that are given together, and their bytes: of many rows, most can be dealt with as columns."""
ROWS_AT_A_TIME: Final = 1 << 13
"""So many rows are made at a time, as each takes some kilobytes."""

COMMIT_KEYS: Final = tuple(INT16.pack(kind) for kind in COMMIT_TYPES)
"""How the keys of offset commits begin."""


def are_commits(keys: pa.Array) -> pa.Array:
    """Return which keys of a log of groups, as bytes, are those of offset commits."""
    return pc.is_in(pc.binary_slice(keys, 0, 2), value_set=pa.array(COMMIT_KEYS, pa.binary()))


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

    @property
    def sizes(self) -> tuple[int, int]:
        """The bytes of its key and of its value."""
        return len(self.key), len(self.value or b"")


def by_partition(logs: Iterable[LogPart]) -> dict[Family, dict[int, list[LogPart]]]:
    """Logs by family and partition, each in the order given."""
    partitions: dict[Family, dict[int, list[LogPart]]] = {family: {} for family in Family}
    for log in logs:
        partitions[log.family].setdefault(log.partition, []).append(log)
    return partitions


class LogReader:
    """The records of one partition, from its segment files in the order of their offsets.

    What cannot be read or decoded is told to ``warn`` and left out; of each cause the first ones, and a number of the
    others. ``gaps`` are the offsets without a record as far as
    was read, ``losses`` counts those that are lost, and ``damages`` how often bytes of the log gave no record.
    ``lacks_times`` tells whether a record had no time of its own. ``missing_end`` is what ``lose_end`` was told.
    """

    def __init__(self, files: Sequence[LogPart], warn: Warn, group_id: str | None = None) -> None:
        """``group_id``: nothing is said of the records of other groups that cannot be decoded. None: of all groups."""
        self._files = files
        self._group_id = group_id
        self._warn = warn
        self._faults = BoundedWarnings(str(self), warn)
        self._ignored: dict[int, tuple[int, int]] = {}
        self.losses = self.damages = 0
        self.lacks_times = False
        self.missing_end: str | None = None
        self._tells_early_access = False
        self.gaps = self._no_gaps()
        self._decoder = RecordDecoder(self.family)

    def __str__(self) -> str:
        """The name of the partition, as that of its folder."""
        return log_name(self._files[0].topic or LOG_TOPICS[self.family], self.partition)

    @property
    def place(self) -> tuple[str, int]:
        """The topic of its kind of log, and the partition that the files are of."""
        return LOG_TOPICS[self.family], self.partition

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

    @property
    def is_numbered(self) -> bool:
        """Whether it was printed without positions, so that records may be missing before each one."""
        return bool(numbered(self._files))

    def may_hide_ends(self, end: int | None) -> bool:
        """Return whether transactions may have ended below ``end`` that a dump by a consumer does not show: it lacks
        offsets, or has none at all.
        """
        return self.is_numbered or self.gaps.may_hide_ends(end)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows as Arrow batches of ``LOG_COLUMNS``, each row once where dumps overlap.

        Where offsets are lost a new batch begins, and ``losses`` counts them before it is given. A file that has
        another record than one before it at the same offset is of another log, such as another cluster's: from there on
        it is left out, and so are all others of its folder.

        Raises:
            InputError: there are two metadata logs. A controller never changes what it has written, so that all logs
                beside them are of two clusters, too, and nothing tells which partition is whose.
        """
        try:
            yield from self._batches()
        finally:
            self.finish_warnings()

    def again(self) -> "LogReader":
        """Return a reader of the same files that says nothing."""
        return LogReader(self._files, ignore)

    def lose_end(self, reason: str | None) -> None:
        """Note that records are missing behind the last one, and why, after the log was read; None: nothing tells it.

        Where others are lost, nothing is known of the groups at its end.
        """
        if reason is not None and not self.gaps.lost:
            self.missing_end = reason
            self.gaps.note_missing_end()

    def finish_warnings(self) -> None:
        """Warn of how often the causes occurred that were warned of, and of the types of records that were ignored; for
        records decoded after the last batch.
        """
        self._faults.finish()
        for record_type, (first, count) in self._ignored.items():
            self._warn(ignored_in_words(str(self), record_type, first, count))
        self._ignored.clear()

    def _batches(self) -> Iterator[pa.RecordBatch]:
        # The files may be read again: each pass finds the gaps anew.
        self.losses, self.gaps = 0, self._no_gaps()
        overlap = _Overlap(self._files)
        strange: set[str] = set()
        for tail in tails_in_words(self._files):
            self._warn(tail)
        for number, file in enumerate(self._files):
            folder = file.name.rpartition("/")[0]
            if folder in strange:
                continue
            for part in self._parts_of(file):
                new, contradicting = overlap.new_rows(part, number)
                if contradicting is not None:
                    other = f"{file.name} offset {contradicting}: not the record that a file before it has there"
                    if self.family is Family.METADATA and folder != self._files[0].name.rpartition("/")[0]:
                        raise InputError(f"{other}: it is of another cluster; give the logs of one cluster at a time")
                    self._warn(f"{other}; this is another log, and left out")
                    strange.add(folder)
                    break
                yield from self._between_losses(new)
        self.gaps.finish()

    def _parts_of(self, file: LogPart) -> Iterator[pa.RecordBatch]:
        for part in _joined(file.parts()):
            if isinstance(part, Damage):
                self.damages += 1
                self.gaps.note_damage(part)
                of_bytes = f" at byte {part.position}: {part.cause} ({part.size} bytes left out)"
                message = f": {part.cause}" if part.kind is DamageKind.ABSENT else of_bytes
                self._faults.add(f"{file.name}{message}", f"{part.cause} (bytes left out)")
            else:
                yield part

    def _between_losses(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self.lacks_times = self.lacks_times or bool(lack_times(rows).any())
        begin = 0
        for number in self.gaps.feed(rows):
            if number > begin:
                yield rows.slice(begin, number - begin)
            begin = number
            self.losses += 1
        if rows.num_rows > begin:
            yield rows.slice(begin)

    def _no_gaps(self) -> OffsetGaps:
        return OffsetGaps(from_start=self.from_start, is_compacted=self.family in COMPACTED)

    def rows(self, time_ms: int | None = None) -> Iterator[LogRow]:
        """Records and control records, before the first one later than ``time_ms``; see ``batches``."""
        for batch in self.batches():
            for row in log_rows(batch):
                if time_ms is not None and row.timestamp > time_ms:
                    return
                yield row

    def records(self, time_ms: int | None = None) -> Iterator[AnyRecord]:
        """Yield the decoded records, without control records."""
        for row in self.rows(time_ms):
            record = self.decoded(row)
            if record is not None:
                yield record

    def decoded(self, row: LogRow) -> AnyRecord | None:
        """Return the record in a row; None for a control record, and after a warning for one that cannot be decoded."""
        record = self.read(row)
        return None if isinstance(record, UnreadableRecord) else record

    def read(self, row: LogRow) -> AnyRecord | UnreadableRecord | None:
        """Return the record in a row, or after a warning what is known of it if it cannot be decoded.

        None: a control record, or one of a type that has no schema. Those of the metadata log say nothing of topics;
        in the other logs a broker that does not know a type ignores its records (KIP-915).
        """
        if row.kind != Kind.RECORD.value:
            return None
        file = self._files[0]
        at = LogPosition(file.partition, row.offset, row.timestamp)
        try:
            return self._decoder.record(at, row.key, row.value, row.batch_base_offset)
        except DecodeError as error:
            if isinstance(error, UnknownTypeError):
                if file.family is not Family.METADATA:
                    first, count = self._ignored.get(record_type := key_type(row.key), (row.offset, 0))
                    self._ignored[record_type] = first, count + 1
                return None
            unreadable = self._decoder.unreadable(at, row.key, error)
            if self._group_id is not None and unreadable.group_id not in (None, self._group_id):
                return unreadable
            if not isinstance(error, EarlyAccessError):
                self._faults.add(f"{file.topic}-{file.partition} offset {row.offset}: {error}", str(error))
            elif not self._tells_early_access:  # the same text for each log, so that it is said once
                self._tells_early_access = True
                self._warn(str(error))
            return unreadable


class _Overlap:
    """What the files before have of the offsets with which the next one begins: the same records, if of one log."""

    def __init__(self, files: Sequence[LogPart]) -> None:
        bases = [int(digits) if (digits := file.segment.partition(".")[0]).isdecimal() else 0 for file in files]
        self._next = [*bases[1:], None]
        self._seen: dict[int, int] = {}
        self._last = -1

    def new_rows(self, rows: pa.RecordBatch, number: int) -> tuple[pa.RecordBatch, int | None]:
        """Those rows of the file of that number that no file before had, and the offset of one that contradicts."""
        offsets = pc.coalesce(rows.column("offset"), rows.column("batch_last_offset"))
        # Offsets rise within a file: those that are known come first, and their number is where the new ones begin.
        known = int(pc.sum(pc.less_equal(offsets, self._last)).as_py() or 0)
        for row in log_rows(rows.slice(0, known)):
            if self._seen.get(row.offset, _fingerprint(row)) != _fingerprint(row):
                return rows.slice(0, 0), row.offset
        new = rows.slice(known)
        if new.num_rows:
            self._last = offsets[-1].as_py()
            self._note(new, offsets.slice(known), self._next[number])
        return new, None

    def _note(self, rows: pa.RecordBatch, offsets: pa.Array, beginning: int | None) -> None:
        """Keep what the next file may have again."""
        if beginning is not None and self._last >= beginning:
            # Only what the next file may repeat, from the offset of its name on, is worth a comparison, and memory.
            again = rows.filter(pc.greater_equal(offsets, beginning))
            self._seen |= {row.offset: _fingerprint(row) for row in log_rows(again)}


def _fingerprint(row: LogRow) -> int:
    return hash((row.timestamp, row.key, row.value))


def _joined(parts: Iterable[pa.RecordBatch | Damage]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the parts of a file, with rows that follow each other together, as far as they are not too many."""
    held: list[pa.RecordBatch] = []
    for part in parts:
        is_damage = isinstance(part, Damage)
        if held and (is_damage or _are_many([*held, part])):
            yield _one(held)
            held = []
        if is_damage:
            yield part
        else:
            held.append(part)
    if held:
        yield _one(held)


def _are_many(parts: Sequence[pa.RecordBatch]) -> bool:
    return bool(sum(map(len, parts)) > MOST_ROWS or sum(part.nbytes for part in parts) > MOST_BYTES)


def _one(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return parts[0] if len(parts) == 1 else pa.Table.from_batches(parts).combine_chunks().to_batches()[0]


def filled(part: pa.RecordBatch) -> pa.RecordBatch:
    """Return a part without the rows that stand for an emptied batch; mostly it has none, and is not copied."""
    has_row = pc.not_equal(part.column("kind"), Kind.EMPTY.value)
    return part if pc.all(has_row).as_py() else part.filter(has_row)


def log_rows(batch: pa.RecordBatch) -> Iterator[LogRow]:
    """The rows of a record batch of LOG_COLUMNS, without those that stand for an emptied batch."""
    key = LogRow._fields.index("key")
    for begin in range(0, batch.num_rows, ROWS_AT_A_TIME):
        some = batch.slice(begin, ROWS_AT_A_TIME)
        columns = [some.column(name).to_pylist() for name in LogRow._fields]
        columns[key] = [blob or b"" for blob in columns[key]]
        yield from (row for row in map(LogRow._make, zip(*columns, strict=True)) if row.kind != Kind.EMPTY.value)
