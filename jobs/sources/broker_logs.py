"""Brokers' application logs (``server.log``): finds the files, and reads what they say of the group coordinator.

Files may be rotated, compressed, and of several brokers; a line that two files have is read once. A file is read in
blocks, and only the lines with the coordinator's own prefix are looked at.
"""

import codecs
import glob
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import chain, islice
from typing import IO, Final
from zoneinfo import ZoneInfo

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.json_texts import json_entries
from coordinator_core.broker_log.lines import NEEDLES, LineReader, has_prefix, time_of_line, times_of_entry
from coordinator_core.broker_log.times import WrittenTime
from coordinator_core.errors import InputError, UsageError
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import SEGMENT
from jobs.sources.left_beside import FOLDER
from jobs.sources.packed import DAMAGED, opened

BLOCK: Final = 1 << 22
"""Bytes that are read at a time, and searched for the coordinator's lines before any line is cut out."""
MOST_LINE: Final = 1 << 16
"""Bytes of a line that are read; the rest of a longer one is passed over."""
MOST_SAMPLED: Final = 200
"""Times of a file that show how exact its times are."""
AT_ONCE: Final = 1000
"""Entries of a document that are read at a time."""
DOCUMENT: Final = re.compile(rb"\{|\[\s*[\[{]")
NOT_UNDERSTOOD: Final = "{}:{}: this line has '{}' and is not understood; such lines of the file: {}"
WITHOUT_TIMES: Final = (
    "{}:{}: this line has no time that is understood (a date as 2026-11-23 19:26:00,123, and no other that leaves open "
    "which number is the month); such lines of the file: {}"
)
NEEDLE: Final = re.compile(b"|".join(map(re.escape, NEEDLES)))
OFFSET: Final = re.compile(r"(?P<sign>[+-])(?P<hours>[01][0-9]|2[0-3]):?(?P<minutes>[0-5][0-9])")

Zone = Callable[[int], int]
"""From a local time, ms as if its zone were UTC, to what must be added to get UTC (ms)."""


def parse_zone(text: str) -> Zone:
    """Return the zone of this name: that of a place (``Europe/Berlin``), ``UTC`` or an offset (``+02:00``).

    Raises:
        UsageError: there is no such zone.
    """
    offset = OFFSET.fullmatch(text)
    if offset is not None:
        span = timedelta(hours=int(offset["hours"]), minutes=int(offset["minutes"]))
        zone: timezone | ZoneInfo = timezone(-span if offset["sign"] == "-" else span)
    else:
        try:
            zone = ZoneInfo(text)
        except (ValueError, OSError, LookupError):
            raise UsageError(f"invalid zone {text!r}: use a name as Europe/Berlin, or an offset as +02:00") from None

    def to_utc_ms(local_ms: int) -> int:
        # Python counts within a zone by what its clocks show, whenever they were changed in between.
        at = datetime(1970, 1, 1, tzinfo=zone) + timedelta(milliseconds=local_ms)
        ahead = at.utcoffset() or timedelta(0)
        return -round(ahead.total_seconds() * 1000)

    return to_utc_ms


def find_broker_logs(paths: Iterable[str | os.PathLike[str]]) -> list[str]:
    """Return the files that these paths name: files, all files in folders, and what patterns with ``*`` match.

    Segments of Kafka's own logs are left out.

    Raises:
        InputError: a path does not exist, or a pattern matches nothing.
    """
    files: list[str] = []
    for path in (os.fspath(path) for path in paths):
        if os.path.isdir(path):
            files += _below(path)
        elif os.path.exists(path):
            files.append(path)
        else:
            matching = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
            if not matching:
                raise InputError(f"{path}: no such file")
            for match in matching:
                files += _below(match) if os.path.isdir(match) else [match]
    return list(dict.fromkeys(files))


def _below(folder: str) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        # In place, as os.walk goes into what is left: folders of partitions have segments, and those may be large.
        folders[:] = sorted(name for name in folders if FOLDER.fullmatch(name) is None)
        for name in sorted(files):
            if SEGMENT.fullmatch(name) is None:
                yield os.path.join(place, name)


def read_broker_logs(
    paths: Iterable[str | os.PathLike[str]], warn: Warn, zone: Zone | None = None
) -> Iterator[BrokerEvent]:
    """Yield what the files below these paths say of the coordinator, and the first and last line with a time of each.

    ``zone`` is that of lines without one; None: their ``timestamp_ms`` is null. ``warn`` is called for files that are
    damaged, for lines that have a part of a message and are not understood, or no time that is, and for a path without
    a line of the coordinator at a level below WARN: a log of another kind, or one that leaves most out.

    Raises:
        InputError: a path does not exist, or cannot be read.
    """
    seen: set[int] = set()
    for given in (os.fspath(path) for path in paths):
        informs = False
        for file in find_broker_logs([given]):
            reader, untimed = LineReader(file), list[int]()
            for event in _of_file(file, reader, warn):
                if event.local_ms is None:
                    untimed.append(event.line)
                # A file that was copied or rotated has the same lines under another name.
                at = (event.file, event.line) if event.local_ms is None else event.written
                known = hash((event.broker_id, at, event.kind, event.group_id, event.member_id, event.text))
                if event.kind in (EventKind.FILE_BEGINS, EventKind.FILE_ENDS) or known not in seen:
                    seen.add(known)
                    yield event if zone is None else _in_zone(event, zone)
            informs |= reader.informs
            if reader.first_not_understood is not None:
                line, part = reader.first_not_understood
                warn(NOT_UNDERSTOOD.format(file, line, part, reader.not_understood))
            if untimed:
                warn(WITHOUT_TIMES.format(file, untimed[0], len(untimed)))
        if not informs:
            warn(f"{given}: no line of the group coordinator at level INFO, which are those that say who left, and why")


def _in_zone(event: BrokerEvent, zone: Zone) -> BrokerEvent:
    if event.timestamp_ms is not None or event.local_ms is None:
        return event
    return event._replace(timestamp_ms=event.local_ms + zone(event.local_ms))


@dataclass(slots=True)
class _Extent:
    """The lines of a file with the earliest and the latest time: exports may have the newest line first."""

    first: tuple[int, WrittenTime] | None = None
    last: tuple[int, WrittenTime] | None = None

    def note(self, line: int, time: WrittenTime) -> None:
        at = (line, time)
        self.first = min(self.first or at, at, key=_local_ms)
        self.last = max(at, self.last or at, key=_local_ms)


def _local_ms(at: tuple[int, WrittenTime]) -> int:
    return at[1].local_ms or 0


def _of_file(path: str, reader: LineReader, warn: Warn) -> Iterator[BrokerEvent]:
    """Yield the events of one file; nothing for a file without a line of the coordinator."""
    extent, broker = _Extent(), None
    try:
        with opened(path) as stream:
            blocks = _blocks(
                stream, lambda error: warn(f"{path}: the file is damaged, and was read up to there: {error}")
            )
            for event in _of_blocks(blocks, reader, extent):
                broker = broker if event.broker_id is None else event.broker_id
                yield event
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if broker is not None and extent.first is not None and extent.last is not None:
        for kind, at in ((EventKind.FILE_BEGINS, extent.first), (EventKind.FILE_ENDS, extent.last)):
            bound = _bound(path, kind, at, broker)
            yield bound._replace(resolution_ms=max(bound.resolution_ms, reader.resolution_ms))


def _blocks(stream: IO[bytes], damaged: Callable[[Exception], None]) -> Iterator[bytes]:
    """Yield what a file has, in blocks that end with a line where lines are not too long; ``damaged`` is called where
    the rest of a compressed file cannot be read.
    """
    read, rest = getattr(stream, "read1", stream.read), b""
    while True:
        try:
            # A part at a time: what comes before the damage is read.
            part = read(BLOCK)
        except (*DAMAGED, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            damaged(error)
            part = b""
        if not part:
            break
        rest += part
        if len(rest) >= BLOCK:
            end = rest.rfind(b"\n") + 1 or len(rest)
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def _of_blocks(blocks: Iterator[bytes], reader: LineReader, extent: _Extent) -> Iterator[BrokerEvent]:
    first = next(blocks, b"")
    if _is_document(first):
        yield from _of_document(chain([first], blocks), reader, extent)
        return
    reader.note_times(time for _, time in islice(_times(enumerate(first.split(b"\n"))), MOST_SAMPLED))
    line = 1
    for block in chain([first], blocks):
        lines = block.rstrip(b"\n").split(b"\n")
        if (begin := next(_times(enumerate(lines, line)), None)) is not None:
            # The last time may be far from the end: a broker that starts writes its configuration over many lines.
            end = next(_times((line + at, lines[at]) for at in range(len(lines) - 1, -1, -1)), begin)
            extent.note(*begin)
            extent.note(*end)
        yield from reader.events(_with_needle(block, line))
        line += block.count(b"\n")


def _times(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, WrittenTime]]:
    for number, line in lines:
        time = time_of_line(line[:MOST_LINE].decode("utf-8", "replace"))
        if time.local_ms is not None:
            yield number, time


def _with_needle(block: bytes, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield the lines that the coordinator may have written, with their numbers."""
    line, counted_to, at = first_line, 0, 0
    while (needle := NEEDLE.search(block, at)) is not None:
        begin = block.rfind(b"\n", 0, needle.start()) + 1
        end = block.find(b"\n", needle.end())
        end = len(block) if end < 0 else end
        # Counted from where the last count ended, so that each byte of a block is counted once.
        line += block.count(b"\n", counted_to, begin)
        counted_to, at = begin, end
        yield line, block[begin : min(end, begin + MOST_LINE)].decode("utf-8", "replace").rstrip("\r")


def _is_document(block: bytes) -> bool:
    """Whether a file is one JSON document, over several lines or in one, and not an object in each line."""
    begin = block[:MOST_LINE].lstrip()
    if DOCUMENT.match(begin) is None:
        return False
    line, _, others = begin.partition(b"\n")
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return True
    return not others.strip()


def _of_document(blocks: Iterable[bytes], reader: LineReader, extent: _Extent) -> Iterator[BrokerEvent]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    entries = json_entries(map(decoder.decode, blocks), has_prefix)
    while some := list(islice(entries, AT_ONCE)):
        times = [time for entry in some for time in times_of_entry(entry)]
        if extent.first is None:
            reader.note_times(times[:MOST_SAMPLED])
        for time in times:
            if time.local_ms is not None:
                extent.note(1, time)
        yield from reader.events_of_entries(some)


def _bound(path: str, kind: EventKind, at: tuple[int, WrittenTime], broker: int | None) -> BrokerEvent:
    line, time = at
    return BrokerEvent(
        file=path,
        line=line,
        kind=str(kind),
        group_id=None,
        member_id=None,
        instance_id=None,
        epoch=None,
        reason=None,
        duration_ms=None,
        topic=None,
        partition=None,
        broker_id=broker,
        log_partition=None,
        level=None,
        written=time.text,
        local_ms=time.local_ms,
        timestamp_ms=None if time.local_ms is None or time.to_utc_ms is None else time.local_ms + time.to_utc_ms,
        text="",
        resolution_ms=time.resolution_ms,
    )
