"""Where a watch reads; and segments below a folder, read while a broker writes them."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from coordinator_core.errors import InputError
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Family
from coordinator_core.wire.batch_format import LOG_OVERHEAD, Damage, ReadAt
from coordinator_core.wire.batches import read_columns
from coordinator_core.wire.offset_gaps import OffsetGaps
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import FIRST_SEGMENT, LogFile, find_logs
from jobs.sources.log_reader import LogRow, log_rows
from jobs.watch.followed_log import LastRow, Reached, other_log
from jobs.watch.new_rows import LogPlace, NewRows

if TYPE_CHECKING:
    from jobs.watch.live_broker import Look, TakenSnapshot

WALK_BYTES: Final = 1 << 20
"""How many bytes of a segment are walked at a time to find the end of its last whole batch."""
MOST_ROWS: Final = 50_000
"""About how many rows of a partition are given at a time; the rest comes with the next rows."""


@dataclass(slots=True)
class _Reached:
    """How far a partition was read: a byte position in a segment, and the last offset seen.

    ``known`` is the last row that a former watch read, until it was compared with the log. ``is_lost``: what lies
    between that offset and the next rows cannot be read.
    """

    segment: str
    from_start: bool
    position: int = 0
    offset: int = -1
    known: LastRow | None = None
    is_lost: bool = False


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

    A batch is given once all of its bytes are there: a broker may be in the middle of writing it. A segment that was
    compacted meanwhile is read again, and rows up to the last offset seen are left out.
    """

    def __init__(self, paths: Sequence[Path], warn: Warn) -> None:
        self._paths = paths
        self._warn = warn
        self._reached: dict[LogPlace, _Reached] = {}
        self._former: Mapping[LogPlace, Reached] = {}

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
        logs = [log for log in find_logs(self._paths) if log.topic]
        if (printed := next((log for log in logs if log.texts), None)) is not None:
            raise InputError(
                f"{printed.path}: records that were printed: a watch follows the segments that a broker writes, or the "
                "broker itself (kafka://HOST:PORT); what a text has is answered by findings or explain --log"
            )
        by_place = [
            (LogPlace(topic, some[0].family, partition), some)
            for (topic, partition), group in groupby(logs, key=lambda log: (log.topic, log.partition))
            if (some := list(group))
        ]
        is_gone = False
        for place, files in sorted(by_place, key=lambda each: (each[0].family is not Family.METADATA, each[0])):
            reached = self._reached.get(place)
            if reached is None:
                reached = self._reached[place] = self._begun(place, files)
            try:
                yield from self._appended(place, reached, files)
            except FileNotFoundError:
                # A broker has deleted a segment since it was listed, or compacted it into an earlier one: all are read
                # again, and what was read is passed over by its offsets.
                reached.segment, is_gone = "", True
                continue
            if reached.known is not None:
                raise InputError(other_log(place, reached.known.offset, "the log ends before"))
        if is_gone:
            yield from self.poll()

    def _begun(self, place: LogPlace, files: Sequence[LogFile]) -> _Reached:
        first, former = files[0].segment, self._former.get(place)
        if former is None:
            return _Reached(first, first == FIRST_SEGMENT)
        last = former.last
        before = [file.segment for file in files if file.segment.partition(".")[0] <= f"{last.offset:020}"]
        return _Reached(max(before, default=first), former.from_start, 0, last.offset, last)

    def _appended(self, place: LogPlace, reached: _Reached, files: Sequence[LogFile]) -> Iterator[NewRows]:
        # Of this poll only: brokers may have compacted what an earlier one has read, and the hole that follows.
        gaps = OffsetGaps(from_start=True)
        for number, file in enumerate(files):
            if file.segment < reached.segment:
                continue
            # Names of segments are offsets of 20 digits: as texts they are in the order of the log.
            if file.segment > reached.segment or file.size < reached.position:
                reached.segment, reached.position = file.segment, 0
            # The others stop at the size of the listing: what they say of topics was in the metadata log before.
            size = os.stat(file.path).st_size if place.family is Family.METADATA else file.size
            yield from self._read(place, reached, file, size, gaps, is_last=number == len(files) - 1)

    def _read(
        self, place: LogPlace, reached: _Reached, file: LogFile, size: int, gaps: OffsetGaps, *, is_last: bool
    ) -> Iterator[NewRows]:
        with file.open() as read_at:
            # Only the last segment is still written to; in another one a batch that is cut is damage, and is told.
            stop = whole_batches(read_at, reached.position, size) if is_last else size
            if stop <= reached.position:
                return
            rows: list[LogRow] = []
            for part in read_columns(read_at, stop, reached.position, stop, name=file.name):
                if isinstance(part, Damage):
                    self._warn(f"{file.name} at byte {part.position}: {part.cause} ({part.size} bytes left out)")
                    yield from _given(place, reached, rows)
                    rows, reached.is_lost = [], True
                    continue
                if reached.known is not None:
                    self._compare(place, reached, part)
                new, known = [row for row in log_rows(part) if row.offset > reached.offset], len(gaps.lost)
                gaps.feed(part)
                for gone in gaps.lost[known:]:
                    # A compacted segment is read again from its start: holes below what was read are the cleaner's, or
                    # known.
                    if gone.last <= reached.offset:
                        continue
                    before = sum(row.offset < gone.first for row in new)
                    yield from _given(place, reached, rows + new[:before])
                    rows, new, reached.is_lost = [], new[before:], True
                rows += new
                if len(rows) >= MOST_ROWS:
                    yield from _given(place, reached, rows)
                    rows = []
            reached.position = stop
        yield from _given(place, reached, rows)

    def _compare(self, place: LogPlace, reached: _Reached, part: pa.RecordBatch) -> None:
        """Compare the last row that was read with the one that is there; it may have been compacted since."""
        known = reached.known
        if known is None or pc.max(part.column("batch_last_offset")).as_py() < known.offset:
            return
        there = [LastRow.of(row) for row in log_rows(part) if row.offset == known.offset]
        if there and there[0] != known:
            raise InputError(other_log(place, known.offset, "another record is there"))
        reached.known = None


def _given(place: LogPlace, reached: _Reached, rows: Sequence[LogRow]) -> Iterator[NewRows]:
    if rows:
        reached.offset = rows[-1].offset
        yield NewRows(place, rows, reached.from_start, reached.is_lost)
        reached.is_lost = False


def whole_batches(read_at: ReadAt, start: int, size: int) -> int:
    """Return the position behind the last whole batch between two byte positions of a segment.

    A batch begins with its base offset (8 bytes) and the number of bytes that follow (4 bytes).
    """
    position = start
    while position + LOG_OVERHEAD <= size:
        block = read_at(position, min(WALK_BYTES, size - position))
        at = 0
        while at + LOG_OVERHEAD <= len(block):
            length = int.from_bytes(block[at + 8 : at + LOG_OVERHEAD], "big", signed=True)
            # Zeros are the preallocated rest of a segment, and have no length.
            if length <= 0 or position + at + LOG_OVERHEAD + length > size:
                return position + at
            at += LOG_OVERHEAD + length
        if at == 0:
            return position
        position += at
    return position
