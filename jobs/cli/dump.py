"""``dump``: print the records of log segments, without Spark."""

import sys
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, StrEnum
from typing import Annotated, BinaryIO, TypeVar

import pyarrow as pa
import typer

from coordinator_core.errors import DecodeError, InputError
from coordinator_core.history.knowledge import without_positions
from coordinator_core.records import GROUP_LOG
from coordinator_core.whole_numbers import DIGITS, whole_number
from coordinator_core.wire.batch_format import (
    HEADER_SIZE,
    MAGIC_AT,
    BatchHeader,
    Damage,
    DamageKind,
    ReadAt,
    read_header,
)
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batches import read_columns, read_rows
from coordinator_core.wire.json_lines import Lines, Place, lines
from coordinator_core.wire.kafka_text import FORMATTERS, batch_line, formatted, record_line
from coordinator_core.wire.log_columns import LogRow
from jobs.cli.arrow_start import start_without_pandas
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.formatting import visible
from jobs.sources.copies import folder_of
from jobs.sources.files import KNOWN_TOPICS, SNAPSHOT, LogFile, find_logs, numbered, refuse_empty_files

T = TypeVar("T")

MAIN_TOPIC = GROUP_LOG
ITEMS_AHEAD = 2
"""Batches that a thread reads while the one before them is written."""
ROWS_A_WRITE = 4096
"""Rows that are formatted and written at once: few enough to stay in the cache of the processor."""


class Format(StrEnum):
    """Output format."""

    JSONL = "jsonl"
    KAFKA = "kafka"


Formatter = Enum("Formatter", {name: name for name in ("dump-log", *FORMATTERS)}, type=str)  # type: ignore[misc]


def dump_command(
    context: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Folders, tar archives or segment files (.log).")
    ],
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object per record (the default).")] = False,
    style: Annotated[
        Format, typer.Option("--format", metavar="|".join(Format), help="kafka: the format of Kafka's own tools.")
    ] = Format.JSONL,
    formatter: Annotated[
        Formatter,
        typer.Option(
            metavar="|".join(each.value for each in Formatter),
            help="With --format kafka: dump-log (kafka-dump-log), or one of Kafka's console formatters.",
        ),
    ] = Formatter["dump-log"],
    topic: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC",
            help=f"Topic to print from a folder or archive; default: {MAIN_TOPIC} if present, otherwise all.",
        ),
    ] = None,
    doubles: Annotated[
        bool, typer.Option("--doubles", help="Print a record once for each copy of its log partition that has it.")
    ] = False,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Print the records of log segments, each log partition in offset order.

    Of several copies of a log partition, as of several brokers, a record is printed once, unless --doubles is given;
    each line of JSON names the folder of its copy, and what kafka-dump-log would print names its file. Damaged batches
    are reported on standard error and skipped; the exit code is then 1.
    """
    if jsonl and style is Format.KAFKA:
        raise typer.BadParameter("--jsonl and --format kafka cannot be used together")
    console = Console.of(context)
    start_without_pandas()
    logs = [log for path in paths for log in _chosen(path, topic, console)]
    refuse_empty_files(paths, logs)
    out = VisibleText(sys.stdout.buffer) if sys.stdout.isatty() else sys.stdout.buffer
    printer = Printer(console, out)
    copies = _places_with_copies(logs)
    printed: dict[tuple[str, int], set[int]] = {}
    with console.progress(sum(log.size for log in logs), "dump") as advance:
        for log in logs:
            place = log.topic, log.partition
            folder = folder_of(log) if place in copies else None
            seen = None if doubles or folder is None else printed.setdefault(place, set())
            if style is Format.JSONL:
                printer.json_lines(log, _parts(log, advance), folder, seen)
                continue
            with log.open() as read_at:
                watched = _watched(read_at, advance)
                if formatter is Formatter["dump-log"]:
                    printer.dump_log(log, watched, seen)
                else:
                    printer.formatted(log, watched, formatter.value, seen)
    printer.out.flush()
    for gap in printer.gaps:
        print(visible(gap), file=sys.stderr)
    if printer.lost:
        raise typer.Exit(1)


def _chosen(path: str, topic: str | None, console: Console) -> list[LogFile]:
    """Return the segments at one path. The output does not name topics, so only one topic of a folder is chosen."""
    logs = find_logs([path], topics=KNOWN_TOPICS if topic is None else [topic], warn=console.warn)
    for lack in without_positions(numbered(logs)):
        console.warn(lack)
    topics = sorted({log.topic for log in logs})
    if topic is None and MAIN_TOPIC in topics and len(topics) > 1:
        others = ", ".join(name or "segments outside a topic's folder" for name in topics if name != MAIN_TOPIC)
        console.note(f"{path}: printing {MAIN_TOPIC}; {path} also has {others} (choose with --topic)")
        return [log for log in logs if log.topic == MAIN_TOPIC]
    return logs


def _places_with_copies(logs: Iterable[LogFile]) -> set[tuple[str, int]]:
    """Return the log partitions of which these segments are in several folders."""
    folders: dict[tuple[str, int], set[str]] = {}
    for log in logs:
        if log.is_placed and not log.is_snapshot:
            folders.setdefault((log.topic, log.partition), set()).add(folder_of(log))
    return {place for place, of_place in folders.items() if len(of_place) > 1}


def _without_printed(rows: pa.RecordBatch, seen: set[int]) -> pa.RecordBatch:
    """Return the rows that no copy before had, and note them in ``seen``: a row is its offset, key and value."""
    is_new = []
    for row in zip(*(rows.column(name).to_pylist() for name in ("offset", "key", "value")), strict=True):
        # Hashes are kept, not rows: keys and values of a whole log would fill the memory.
        is_new.append(hash(row) not in seen)
        seen.add(hash(row))
    return rows.filter(pa.array(is_new, pa.bool_()))


def _is_new(row: LogRow, seen: set[int] | None) -> bool:
    """Return whether no copy before had a record, or a batch without records, and note it in ``seen``; None: it is."""
    if seen is None:
        return True
    known = hash((row.offset, row.key, row.value) if isinstance(row, LogRecord) else (row.base_offset, row.last_offset))
    is_new = known not in seen
    seen.add(known)
    return is_new


def _parts(log: LogFile, advance: Callable[[int], None]) -> Iterator[pa.RecordBatch | Damage]:
    """Yield the records of a log and its damage; ``advance`` is told how many bytes were read."""
    if log.texts:
        yield from log.parts()
        advance(log.size)
    else:
        with log.open() as read_at:
            yield from read_columns(_watched(read_at, advance), log.size, name=log.name)


def _watched(read_at: ReadAt, advance: Callable[[int], None]) -> ReadAt:
    def read(position: int, size: int) -> bytes:
        data = read_at(position, size)
        advance(len(data))
        return data

    return read


class VisibleText:
    """A terminal as a binary stream of whole lines: what could act on it is escaped."""

    def __init__(self, terminal: BinaryIO) -> None:
        self._terminal = terminal
        self.flush = terminal.flush

    def write(self, lines: bytes | memoryview) -> int:
        """Write lines of UTF-8."""
        text = bytes(lines).decode("utf-8", "backslashreplace")
        return self._terminal.write("\n".join(map(visible, text.split("\n"))).encode())


class Printer:
    """Prints logs to a binary stream.

    ``lost``: number of batches that could not be read. ``gaps``: lines about missing offsets, which kafka-dump-log
    prints at its end on standard error.
    """

    def __init__(self, console: Console, out: BinaryIO | VisibleText) -> None:
        self.console = console
        self.out = out
        self.lost = 0
        self.gaps: list[str] = []

    def json_lines(
        self,
        log: LogFile,
        of_log: Iterator[pa.RecordBatch | Damage],
        folder: str | None = None,
        seen: set[int] | None = None,
    ) -> None:
        """Print one JSON object for each record of a log, without those that are ``seen``.

        ``folder`` is that of a copy, where there are several.
        """
        place = Place(log.partition, log.segment, log.family, folder)
        errors: list[str] = []

        def rendered(part: pa.RecordBatch) -> Lines:
            return lines(part if seen is None else _without_printed(part, seen), place)

        # One thread reads batches, a second one makes their lines, and this one writes them.
        for part in _ahead(part if isinstance(part, Damage) else rendered(part) for part in _ahead(of_log)):
            if isinstance(part, Damage):
                self.damaged(log, part)
                continue
            errors += part.errors
            for low in range(0, len(part.text), ROWS_A_WRITE):
                self.out.write(part.text.on_end(low, low + ROWS_A_WRITE))
        self.undecoded(log, errors)

    def dump_log(self, log: LogFile, read_at: ReadAt, seen: set[int] | None = None) -> None:
        """Print the log in the format of kafka-dump-log, without the records that are ``seen``."""
        self.print(f"Dumping {log.name}")
        if log.segment == "bootstrap.checkpoint":
            self.print("KRaft bootstrap snapshot")
        elif named := SNAPSHOT.fullmatch(log.segment):
            self.print(f"Snapshot end offset: {int(named['end'])}, epoch: {int(named['epoch'])}")
        elif (first := whole_number(log.segment.removesuffix(".log")[-DIGITS:])) is not None:
            self.print(f"Log starting offset: {first}")
        batch: BatchHeader | None = None
        last, gaps = -1, []
        for row in read_rows(read_at, log.size, name=log.name):
            if isinstance(row, Damage):
                # kafka-dump-log prints the header of a batch whose checksum is wrong, too.
                if row.kind is DamageKind.CRC and len(row.data) >= HEADER_SIZE and row.data[MAGIC_AT] == 2:
                    self.print(batch_line(read_header(row.data, 0, row.position), valid=False))
                self.damaged(log, row)
                continue
            if isinstance(row, LogRecord):
                if row.offset != last + 1:
                    gaps.append(f"  {last} is followed by {row.offset}")
                last = row.offset
            if not _is_new(row, seen):
                continue
            header = row.batch if isinstance(row, LogRecord) else row
            if header is not batch:
                batch = header
                self.print(batch_line(batch))
            if isinstance(row, LogRecord):
                self.print(record_line(row, log.family))
        if gaps:
            self.gaps += [f"Non-consecutive offsets in {log.name}", *gaps]

    def formatted(self, log: LogFile, read_at: ReadAt, formatter: str, seen: set[int] | None = None) -> None:
        """Print the log in the format of one of Kafka's console formatters, without the records that are ``seen``."""
        family, types = FORMATTERS[formatter]
        if log.topic and log.family is not family:
            raise InputError(f"{log.name}: Kafka's formatter {formatter} does not read this log")
        errors: list[str] = []
        for row in read_rows(read_at, log.size, name=log.name):
            if isinstance(row, Damage):
                self.damaged(log, row)
            elif isinstance(row, LogRecord) and _is_new(row, seen):
                try:
                    text = formatted(row, types, family)
                except DecodeError as error:
                    errors.append(f"offset {row.offset}: {error}")
                else:
                    if text is not None:
                        self.print(text)
        self.undecoded(log, errors)

    def print(self, text: str) -> None:
        """Print one line."""
        self.out.write(text.encode() + b"\n")

    def damaged(self, log: LogFile, damage: Damage) -> None:
        """Warn about bytes that could not be read. A truncated end of the file does not count as a failure."""
        self.lost += damage.kind is not DamageKind.TRUNCATED
        facts: dict[str, object] = {"file": log.name, "position": damage.position, "cause": damage.cause}
        facts |= {"size": damage.size, "bytes": b64encode(damage.data).decode()} if self.console.json else {}
        self.console.warn(
            f"{log.name} at byte {damage.position}: {damage.cause} ({damage.size} bytes skipped)", **facts
        )

    def undecoded(self, log: LogFile, errors: list[str]) -> None:
        """Warn about records of a file that could not be decoded."""
        if errors:
            facts = {"file": log.name, "records": len(errors), "cause": errors[0]}
            self.console.warn(
                f"{log.name}: {len(errors)} records could not be decoded, the first at {errors[0]}", **facts
            )


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield the same items; a thread computes the next ones while the caller works."""
    # One thread: a generator cannot be asked again while it runs, and the items stay in their order.
    with ThreadPoolExecutor(1) as thread:
        ahead = deque(thread.submit(next, items, None) for _ in range(ITEMS_AHEAD))
        while (item := ahead.popleft().result()) is not None:
            ahead.append(thread.submit(next, items, None))
            yield item
