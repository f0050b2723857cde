"""Where a watch reads; and segments below a folder, read while a broker writes them."""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import GoneError, InputError, LogFormatError
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Family
from coordinator_core.wire.batch_format import LOG_OVERHEAD, Damage, DamageKind, ReadAt
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.offset_gaps import OffsetGaps
from jobs.sources.bounded_warnings import Warn
from jobs.sources.copies import folder_of
from jobs.sources.files import FIRST_SEGMENT, LogFile, find_logs, ignore
from jobs.sources.log_reader import LogReader, LogRow, log_rows
from jobs.sources.segments import LENGTH_AT
from jobs.sources.topics import snapshot_before
from jobs.watch.followed_log import NO_ROW, LastRow, Reached, other_log
from jobs.watch.new_rows import LogPlace, NewRows

if TYPE_CHECKING:
    from jobs.watch.live_broker import Look, TakenSnapshot

LISTING_S: Final = 5.0
"""So often all folders are looked through."""
SILENT_S: Final = 10.0
"""A batch at the end of a log that is not whole for so long is said to be waited for."""
ANCHOR_BYTES: Final = 64
"""So many bytes before the place at which reading goes on must be those that were read."""
MOST_ROWS: Final = 50_000
"""About how many rows of a partition are given at a time; the rest comes with the next rows."""


@dataclass(slots=True)
class _Position:
    """Where reading goes on in a folder: at a byte of a segment, behind the bytes ``before``, which end a batch.

    ``waits``: at which byte a batch begins that is not whole, and when it has been so for too long.
    """

    segment: str = ""
    at: int = 0
    before: bytes = b""
    waits: tuple[int, float] = (-1, 0.0)


@dataclass(slots=True)
class _Reached:
    """How far a partition was read: the last row, and positions by folder, as a partition may have several copies.

    ``known`` is the last row until it was compared with the log, after a former watch has read it or where files are
    read again. ``is_lost``: what lies between it and the next rows cannot be read.
    """

    from_start: bool
    last: LastRow = NO_ROW
    known: LastRow | None = None
    is_lost: bool = False
    positions: dict[str, _Position] = field(default_factory=dict)

    def begin_again(self) -> None:
        """Read all files again: rows up to the last one are passed over by their offsets."""
        self.positions.clear()
        self.known = None if self.last == NO_ROW else self.last


class Source(Protocol):
    """Where new rows come from. What it answers here is what segments below folders do: they are no cluster that could
    be asked, each poll reads all that there is, and nothing is held open between two polls.
    """

    def identify(self) -> str:
        """Return what identifies the cluster; empty: nothing but its records does."""
        return ""

    @abstractmethod
    def begin(self, reached: Mapping[LogPlace, Reached]) -> None:
        """Begin where a former watch stopped, in partitions that it did not read at their first record."""

    @property
    def is_caught_up(self) -> bool:
        """Whether what was there at the beginning has been read."""
        return True

    @property
    def is_settled(self) -> bool:
        """Whether the rows of the last poll do not end in the middle of what a coordinator wrote at once: batches come
        as a whole.
        """
        return True

    @abstractmethod
    def poll(self) -> Iterator[NewRows]:
        """Yield what is new."""

    @abstractmethod
    def places(self) -> Collection[LogPlace]:
        """Return the log partitions that are there, empty ones included."""

    @property
    def has_all(self) -> bool:
        """Whether these are all partitions of their topics: folders do not tell."""
        return False

    def snapshot(self) -> TakenSnapshot | None:
        """Return topics and settings of the cluster as they are now; None: the source does not show them."""
        return None

    def look(self, partitions: Callable[[], Collection[TopicPartition]]) -> Look | None:
        """Return what brokers say of the cluster, and of these partitions, if something new is there; None: later, or
        never.
        """
        return None

    def close(self) -> None:
        """Let go of it."""
        return


class GrowingLogs(Source):
    """The segments of all log partitions below some folders. Each ``poll`` gives what was appended since the last one.

    A batch is given once all of its bytes are there: a broker may be in the middle of writing it. So damage at the end
    of a log is told once a whole batch or another segment is behind it, and before that, that nothing was read for
    long. ``clock`` gives seconds.
    """

    def __init__(self, paths: Sequence[Path], warn: Warn, clock: Callable[[], float] = time.monotonic) -> None:
        self._paths = paths
        self._warn = warn
        self._clock = clock
        self._reached: dict[LogPlace, _Reached] = {}
        self._former: Mapping[LogPlace, Reached] = {}
        self._gone: set[LogPlace] = set()
        self._folders: list[str] = []
        self._compared: frozenset[str] = frozenset()
        self._times: list[int] = []
        self._until_s = -inf

    def begin(self, reached: Mapping[LogPlace, Reached]) -> None:
        """Begin where a former watch stopped; the metadata log is read from its beginning."""
        self._former = {place: end for place, end in reached.items() if place.family is not Family.METADATA}

    def places(self) -> list[LogPlace]:
        """Return the log partitions that are there now, empty ones included."""
        return [LogPlace(log.topic, log.family, log.partition) for log in find_logs(self._paths) if log.topic]

    def poll(self) -> Iterator[NewRows]:
        """Yield new rows by partition.

        The metadata log comes first, and is read to its end of now, while the others are read to their ends of before:
        a group's record never comes before the topics that it speaks of.

        Raises:
            InputError: a path does not exist, cannot be read, or has no segments; or the log is another one than that
                of the former watch.
        """
        logs = [log for log in self._listed() if log.topic]
        if (printed := next((log for log in logs if log.texts), None)) is not None:
            raise InputError(
                f"{printed.path}: records that were printed: a watch follows the segments that a broker writes, or the "
                "broker itself (kafka://HOST:PORT); what a text has is answered by findings or explain --log"
            )
        by_place = [
            (LogPlace(topic, some[0].family, partition), some)
            for (topic, partition), group in groupby(logs, key=lambda log: (log.topic, log.partition))
            if (some := list(group)) and any(not log.is_snapshot for log in some)
        ]
        gone, self._gone = self._gone, (self._reached.keys() | self._former.keys()) - dict(by_place).keys()
        for place in sorted(self._gone - gone):
            self._warn(f"{place}: its folder is not there any more, and nothing else of it is read until it is")
        is_gone = False
        for place, there in sorted(by_place, key=lambda each: (each[0].family is not Family.METADATA, each[0])):
            files = [log for log in there if not log.is_snapshot]
            reached = self._reached.get(place) or self._begun(place, files)
            try:
                if place.family is Family.METADATA:
                    self._compare_copies(files)
                if place not in self._reached and (snapshot := snapshot_before(there, files, self._warn)) is not None:
                    yield NewRows(place, [], reached.from_start, snapshot=snapshot)
                self._reached[place] = reached
                yield from self._appended(place, reached, files)
            except (GoneError, FileNotFoundError):
                # A broker has deleted a segment since it was listed, compacted it into an earlier one, or cut it.
                reached.begin_again()
                is_gone = True
                continue
            if reached.known is not None and files[-1].segment.partition(".")[0] <= f"{reached.known.offset:020}":
                raise InputError(other_log(place, reached.known.offset, "the log ends before"))
            reached.known = None
        if is_gone:
            yield from self.poll()

    def _listed(self) -> list[LogFile]:
        """Return the files that are there. A broker has thousands of folders: they are looked through again when others
        come or go beside those of the logs, and at times; else only those of the logs are.
        """
        if self._clock() < self._until_s and self._times == _times(self._folders):
            with suppress(InputError):
                return find_logs(self._folders, snapshots=True)
        found = find_logs(self._paths, snapshots=True)
        self._folders = [*dict.fromkeys(log.path if log.member else os.path.dirname(log.path) for log in found)]
        self._times, self._until_s = _times(self._folders), self._clock() + LISTING_S
        return found

    def _compare_copies(self, files: Sequence[LogFile]) -> None:
        """Raise InputError where a new copy of the metadata log is of another cluster: below, rows that a copy was read
        of are passed over in the others by their offsets alone.
        """
        folders = frozenset(map(folder_of, files))
        if len(folders) > 1 and not folders <= self._compared:
            for _ in LogReader(files, ignore).batches():
                pass
        self._compared |= folders

    def _begun(self, place: LogPlace, files: Sequence[LogFile]) -> _Reached:
        former = self._former.get(place)
        if former is None:
            return _Reached(files[0].segment == FIRST_SEGMENT)
        return _Reached(former.from_start, former.last, former.last)

    def _appended(self, place: LogPlace, reached: _Reached, files: Sequence[LogFile]) -> Iterator[NewRows]:
        # Of this poll only: brokers may have compacted what an earlier one has read, and the hole that follows.
        gaps = OffsetGaps(from_start=True)
        begins: dict[str, str] = {}
        there = defaultdict[str, list[str]](list)
        for file in files:
            there[folder_of(file)].append(file.segment)
            # Names of segments are offsets of 20 digits: as texts they are in the order of the log.
            if file.segment.partition(".")[0] <= f"{reached.last.offset:020}":
                begins[folder_of(file)] = file.segment
        for file in files:
            folder = folder_of(file)
            position = reached.positions.get(folder)
            # Where its segment is gone, compacted into an earlier one, or with a folder that has come back since, it is
            # looked for again.
            if position is None or position.segment not in there[folder]:
                position = reached.positions[folder] = _Position(begins.get(folder, ""))
            if file.segment < position.segment:
                continue
            if file.segment > position.segment:
                position = reached.positions[folder] = _Position(file.segment)
            # The others stop at the size of the listing: what they say of topics was in the metadata log before.
            size = os.stat(file.path).st_size if place.family is Family.METADATA else file.size
            whole = replace(file, size=size)
            yield from self._read(place, reached, position, whole, gaps, is_last=file.segment == there[folder][-1])

    def _read(
        self, place: LogPlace, reached: _Reached, position: _Position, file: LogFile, gaps: OffsetGaps, *, is_last: bool
    ) -> Iterator[NewRows]:
        with file.open() as read_at:
            if read_at(position.at - len(position.before), len(position.before)) != position.before:
                raise GoneError(f"{file.name}: other bytes were there a moment ago")
            # Zeros are the preallocated rest of a segment.
            if position.at >= file.size or not any(read_at(position.at, LOG_OVERHEAD)):
                return
            rows: list[LogRow] = []
            damages: list[Damage] = []
            for part in _parts(read_at, file, position.at):
                if isinstance(part, Damage):
                    damages.append(part)
                    continue
                if damages:
                    yield from _given(place, reached, rows)
                    rows = []
                    self._lose(reached, file, damages, gaps)
                if reached.known is not None:
                    self._compare(place, reached, part)
                new, known = [row for row in log_rows(part) if row.offset > reached.last.offset], len(gaps.lost)
                gaps.feed(part)
                for gone in gaps.lost[known:]:
                    # A compacted segment is read again from its start: holes below what was read are the cleaner's, or
                    # known.
                    if gone.last <= reached.last.offset:
                        continue
                    before = sum(row.offset < gone.first for row in new)
                    yield from _given(place, reached, rows + new[:before])
                    rows, new, reached.is_lost = [], new[before:], True
                rows += new
                if len(rows) >= MOST_ROWS:
                    yield from _given(place, reached, rows)
                    rows = []
                begin = pc.max(part.column("batch_position")).as_py()
                position.at = begin + LOG_OVERHEAD + int.from_bytes(read_at(begin + LENGTH_AT, 4), "big")
            size = min(position.at, ANCHOR_BYTES)
            position.before = read_at(position.at - size, size)
        yield from _given(place, reached, rows)
        if damages and is_last:
            self._wait(position, file, damages[0])
        elif damages:
            self._lose(reached, file, damages, gaps)

    def _lose(self, reached: _Reached, file: LogFile, damages: list[Damage], gaps: OffsetGaps) -> None:
        for damage in damages:
            gaps.note_damage(damage)
            self._warn(f"{file.name} at byte {damage.position}: {damage.cause} ({damage.size} bytes left out)")
        damages.clear()
        reached.is_lost = True

    def _wait(self, position: _Position, file: LogFile, damage: Damage) -> None:
        """Wait for what a broker may be writing; say so once if that takes too long."""
        at, until = position.waits
        if at != damage.position:
            position.waits = damage.position, self._clock() + SILENT_S
        elif self._clock() >= until:
            position.waits = at, inf
            self._warn(f"{file.name} at byte {at}: {damage.cause}: nothing behind it can be read, waiting for more")

    def _compare(self, place: LogPlace, reached: _Reached, part: pa.RecordBatch) -> None:
        """Compare the last row that was read with the one that is there; it may have been compacted since."""
        known = reached.known
        if known is None or pc.max(part.column("batch_last_offset")).as_py() < known.offset:
            return
        there = [LastRow.of(row) for row in log_rows(part) if row.offset == known.offset]
        if there and there[0] != known:
            raise InputError(other_log(place, known.offset, "another record is there"))
        reached.known = None


def _times(folders: Iterable[str]) -> list[int]:
    """Return when something last came to, or went from, the folders in which these are; nothing if one is gone."""
    try:
        return [os.stat(folder).st_mtime_ns for folder in sorted({os.path.dirname(folder) for folder in folders})]
    except FileNotFoundError:
        return []


def _parts(read_at: ReadAt, file: LogFile, start: int) -> Iterator[pa.RecordBatch | Damage]:
    try:
        yield from read_columns(read_at, file.size, start, name=file.name)
    except LogFormatError as error:
        yield Damage(DamageKind.FORMAT, 0, file.size, error.cause, b"")


def _given(place: LogPlace, reached: _Reached, rows: Sequence[LogRow]) -> Iterator[NewRows]:
    if rows:
        reached.last = LastRow.of(rows[-1])
        yield NewRows(place, rows, reached.from_start, reached.is_lost)
        reached.is_lost = False
