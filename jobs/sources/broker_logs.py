"""Brokers' application logs (``server.log``): finds the files, and reads what they say of the group coordinator.

Files may be rotated, compressed, and of several brokers; a line that two files have is read once. A file is read in
blocks, and only the lines with the coordinator's own prefix are looked at.
"""

from __future__ import annotations

import bz2
import glob
import gzip
import io
import lzma
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import IO, Any, Final
from zoneinfo import ZoneInfo

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.lines import NEEDLES, events, time_of_line
from coordinator_core.broker_log.times import WrittenTime
from coordinator_core.errors import InputError, UsageError
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import FOLDER, SEGMENT

BLOCK: Final = 1 << 22
"""Bytes that are read at a time, and searched for the coordinator's lines before any line is cut out."""
MOST_LINE: Final = 1 << 16
"""Bytes of a line that are read; the rest of a longer one is passed over."""
MOST_FIRST_LINES: Final = 200
"""Lines at the beginning and the end of a block in which a time is looked for."""
NEEDLE: Final = re.compile(b"|".join(map(re.escape, NEEDLES)))
OPENERS: Final[tuple[tuple[bytes, Any], ...]] = (
    (b"\x1f\x8b", gzip.GzipFile),
    (b"BZh", bz2.BZ2File),
    (b"\xfd7zXZ\x00", lzma.LZMAFile),
)
OFFSET: Final = re.compile(r"(?P<sign>[+-])(?P<hours>\d\d):?(?P<minutes>\d\d)")

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
        folders[:] = sorted(name for name in folders if FOLDER.fullmatch(name) is None)
        for name in sorted(files):
            if SEGMENT.fullmatch(name) is None:
                yield os.path.join(place, name)


def read_broker_logs(
    paths: Iterable[str | os.PathLike[str]], warn: Warn, zone: Zone | None = None
) -> Iterator[BrokerEvent]:
    """Yield what the files below these paths say of the coordinator, and the first and last line with a time of each.

    ``zone`` is that of lines without one; None: their ``timestamp_ms`` is null. ``warn`` is called for files that are
    damaged, and for a path without any line of the coordinator: a log of another kind, or at a level above INFO.

    Raises:
        InputError: a path does not exist, or cannot be read.
    """
    seen: set[int] = set()
    for given in (os.fspath(path) for path in paths):
        found_any = False
        for file in find_broker_logs([given]):
            for event in _of_file(file, warn):
                found_any = True
                # A file that was copied or rotated has the same lines under another name.
                known = hash((event.broker_id, event.written, event.kind, event.group_id, event.member_id, event.text))
                if event.kind in (EventKind.FILE_BEGINS, EventKind.FILE_ENDS) or known not in seen:
                    seen.add(known)
                    yield event if zone is None else _in_zone(event, zone)
        if not found_any:
            warn(f"{given}: no line of the group coordinator; it is written at level INFO by Kafka's server.log")


def _in_zone(event: BrokerEvent, zone: Zone) -> BrokerEvent:
    if event.timestamp_ms is not None or event.local_ms is None:
        return event
    return event._replace(timestamp_ms=event.local_ms + zone(event.local_ms))


@dataclass(slots=True)
class _Extent:
    """The first and the last line of a file that have a time."""

    first: tuple[int, WrittenTime] | None = None
    last: tuple[int, WrittenTime] | None = None

    def note(self, block: bytes, first_line: int) -> None:
        if self.first is None:
            self.first = _timed(enumerate(block.split(b"\n", MOST_FIRST_LINES)[:MOST_FIRST_LINES], first_line))
        lines = block.rstrip(b"\n").rsplit(b"\n", MOST_FIRST_LINES)
        end = first_line + block.rstrip(b"\n").count(b"\n")
        self.last = _timed((end - back, line) for back, line in enumerate(reversed(lines))) or self.last


def _timed(lines: Iterable[tuple[int, bytes]]) -> tuple[int, WrittenTime] | None:
    for number, line in lines:
        time = time_of_line(line[:MOST_LINE].decode("utf-8", "replace"))
        if time.local_ms is not None:
            return number, time
    return None


def _of_file(path: str, warn: Warn) -> Iterator[BrokerEvent]:
    """Yield the events of one file; nothing for a file without a line of the coordinator."""
    extent, last, broker = _Extent(), b"", None
    try:
        with _opened(path) as stream:
            for first_line, block in _blocks(stream):
                if extent.first is None:
                    extent.note(block, first_line)
                last_line, last = first_line, block
                for event in _of_block(block, first_line, path):
                    broker = event.broker_id
                    yield event
    except (EOFError, OSError, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise InputError(f"{path}: {error.strerror or error}") from None
        warn(f"{path}: the file is damaged, and was read up to there: {error}")
    if last:
        extent.note(last, last_line)
    if broker is not None and extent.first is not None and extent.last is not None:
        yield _bound(path, EventKind.FILE_BEGINS, extent.first, broker)
        yield _bound(path, EventKind.FILE_ENDS, extent.last, broker)


def _opened(path: str) -> IO[bytes]:
    with open(path, "rb") as stream:
        magic = stream.read(6)
    opener = next((opener for prefix, opener in OPENERS if magic.startswith(prefix)), None)
    opened: IO[bytes] = (opener or io.FileIO)(path)
    return opened


def _blocks(stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines with the number of their first line; a line that is too long is cut."""
    line, rest = 1, b""
    while block := stream.read(BLOCK):
        end = block.rfind(b"\n") + 1
        if not end:
            rest = (rest + block)[:BLOCK]
            continue
        whole, rest = rest + block[:end], block[end:]
        yield line, whole
        line += whole.count(b"\n")
    if rest:
        yield line, rest


def _of_block(block: bytes, first_line: int, path: str) -> Iterator[BrokerEvent]:
    line, counted, at = first_line, 0, 0
    while (needle := NEEDLE.search(block, at)) is not None:
        begin = block.rfind(b"\n", 0, needle.start()) + 1
        end = block.find(b"\n", needle.end())
        end = len(block) if end < 0 else end
        line += block.count(b"\n", counted, begin)
        counted, at = begin, end
        text = block[begin : min(end, begin + MOST_LINE)].decode("utf-8", "replace").rstrip("\r")
        yield from events(text, path, line)


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
    )
