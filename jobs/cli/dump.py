"""``coordinator-audit dump``: what lies in log segments, without Spark."""

from __future__ import annotations

import sys
from base64 import b64encode
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from enum import Enum, StrEnum
from importlib.abc import MetaPathFinder
from typing import Annotated, Any, BinaryIO, TypeVar

import pyarrow as pa
import typer

from coordinator_core.errors import DecodeError, InputError
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.batch_format import (
    HEADER_SIZE,
    MAGIC_AT,
    BatchHeader,
    Damage,
    DamageKind,
    ReadAt,
    read_header,
)
from coordinator_core.wire.batches import read_columns, read_rows
from coordinator_core.wire.json_lines import Place, lines
from coordinator_core.wire.kafka_text import FORMATTERS, batch_line, formatted, record_line
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.sources.files import KNOWN_TOPICS, SNAPSHOT, LogFile, find_logs, refuse_empty_files

T = TypeVar("T")

MAIN_TOPIC = LOG_TOPICS[Family.GROUP]
ITEMS_AHEAD = 2
ROWS_A_WRITE = 4096
"""Text is put together and written in pieces that stay in the processor's cache, and in memory that is used again."""


class Format(StrEnum):
    """What is printed."""

    JSONL = "jsonl"
    KAFKA = "kafka"


Formatter = Enum("Formatter", {name: name for name in ("dump-log", *FORMATTERS)}, type=str)  # type: ignore[misc]


def dump(
    context: typer.Context,
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Directories, tar archives or segment files (.log).")
    ],
    jsonl: Annotated[bool, typer.Option("--jsonl", help="One JSON object a record (the default).")] = False,
    style: Annotated[
        Format, typer.Option("--format", metavar="|".join(Format), help="kafka: as Kafka's own tools print it.")
    ] = Format.JSONL,
    formatter: Annotated[
        Formatter,
        typer.Option(
            metavar="|".join(each.value for each in Formatter),
            help="With --format kafka: kafka-dump-log, or one of Kafka's console formatters.",
        ),
    ] = Formatter["dump-log"],
    topic: Annotated[
        str | None,
        typer.Option(metavar="TOPIC", help=f"Which topic of a directory or archive; {MAIN_TOPIC} if there, else all."),
    ] = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Print the records of log segments, those of a log partition in offset order.

    Damaged batches are reported on standard error and left out; then the exit code is 1.
    """
    if jsonl and style is Format.KAFKA:
        raise typer.BadParameter("--jsonl and --format kafka exclude each other")
    console = Console.of(context)
    _leave_pandas_out()
    logs = [log for path in paths for log in _chosen(path, topic, console)]
    refuse_empty_files(paths, logs)
    printer = Printer(console, sys.stdout.buffer)
    with console.progress(sum(log.size for log in logs), "dump") as advance:
        for log in logs:
            with log.open() as read_at:
                watched = _watched(read_at, advance)
                if style is Format.JSONL:
                    printer.json_lines(log, watched)
                elif formatter is Formatter["dump-log"]:
                    printer.dump_log(log, watched)
                else:
                    printer.formatted(log, watched, formatter.value)
    printer.out.flush()
    for gap in printer.gaps:
        print(gap, file=sys.stderr)
    if printer.lost:
        raise typer.Exit(1)


class _NoPandas(MetaPathFinder):
    """Has no pandas to offer."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
        """Refuses that one module."""
        if fullname == "pandas":
            raise ModuleNotFoundError("not needed here", name=fullname)


def _leave_pandas_out() -> None:
    """With the first array it makes pyarrow imports pandas, if that is installed: half of what dump takes to start.

    The question is put to it while there is none; it asks again when somebody wants something of pandas.
    """
    nothing = _NoPandas()
    sys.meta_path.insert(0, nothing)
    try:
        pa.array([0])
    finally:
        sys.meta_path.remove(nothing)


def _chosen(path: str, topic: str | None, console: Console) -> list[LogFile]:
    """The segments at one path. Lines do not name their topic, so of a directory's topics the main one is taken."""
    logs = find_logs([path], topics=KNOWN_TOPICS if topic is None else [topic])
    found = sorted({log.topic for log in logs})
    if topic is None and MAIN_TOPIC in found and len(found) > 1:
        others = ", ".join(name or "folders without a topic's name" for name in found if name != MAIN_TOPIC)
        console.note(f"{path}: printing {MAIN_TOPIC}; there is also {others} (choose with --topic)")
        return [log for log in logs if log.topic == MAIN_TOPIC]
    return logs


def _watched(read_at: ReadAt, advance: Callable[[int], None]) -> ReadAt:
    def read(position: int, size: int) -> bytes:
        data = read_at(position, size)
        advance(len(data))
        return data

    return read


class Printer:
    """Prints logs to a binary stream; ``lost`` counts the batches that could not be read.

    ``gaps`` is what kafka-dump-log says at its end, on standard error: where offsets do not follow each other.
    """

    def __init__(self, console: Console, out: BinaryIO) -> None:
        self.console = console
        self.out = out
        self.lost = 0
        self.gaps: list[str] = []

    def json_lines(self, log: LogFile, read_at: ReadAt) -> None:
        """One JSON object a record."""
        place = Place(log.partition, log.segment, log.family)
        errors: list[str] = []

        parts = _ahead(read_columns(read_at, log.size, name=log.name))
        for part in _ahead(part if isinstance(part, Damage) else lines(part, place) for part in parts):
            if isinstance(part, Damage):
                self.damaged(log, part)
                continue
            errors += part.errors
            for low in range(0, len(part.text), ROWS_A_WRITE):
                self.out.write(part.text.on_end(low, low + ROWS_A_WRITE))
        self.undecoded(log, errors)

    def dump_log(self, log: LogFile, read_at: ReadAt) -> None:
        """As kafka-dump-log prints it."""
        self.print(f"Dumping {log.name}")
        if log.segment == "bootstrap.checkpoint":
            self.print("KRaft bootstrap snapshot")
        elif named := SNAPSHOT.fullmatch(log.segment):
            self.print(f"Snapshot end offset: {int(named['end'])}, epoch: {int(named['epoch'])}")
        elif (first := log.segment.removesuffix(".log")).isdigit():
            self.print(f"Log starting offset: {int(first)}")
        batch: BatchHeader | None = None
        last, gaps = -1, []
        for row in read_rows(read_at, log.size, name=log.name):
            if isinstance(row, Damage):
                if row.kind is DamageKind.CRC and len(row.data) >= HEADER_SIZE and row.data[MAGIC_AT] == 2:
                    self.print(batch_line(read_header(row.data, 0, row.position), valid=False))
                self.damaged(log, row)
                continue
            header = row if isinstance(row, BatchHeader) else row.batch
            if header is not batch:
                batch = header
                self.print(batch_line(batch))
            if not isinstance(row, BatchHeader):
                if row.offset != last + 1:
                    gaps.append(f"  {last} is followed by {row.offset}")
                last = row.offset
                self.print(record_line(row, log.family))
        if gaps:
            self.gaps += [f"Non-consecutive offsets in {log.name}", *gaps]

    def formatted(self, log: LogFile, read_at: ReadAt, formatter: str) -> None:
        """As one of Kafka's console formatters prints it."""
        family, types = FORMATTERS[formatter]
        if log.topic and log.family is not family:
            raise InputError(f"{log.name}: not a log that Kafka's {formatter} formatter reads")
        errors: list[str] = []
        for row in read_rows(read_at, log.size, name=log.name):
            if isinstance(row, Damage):
                self.damaged(log, row)
            elif not isinstance(row, BatchHeader):
                try:
                    text = formatted(row, types, family)
                except DecodeError as error:
                    errors.append(f"offset {row.offset}: {error}")
                else:
                    if text is not None:
                        self.print(text)
        self.undecoded(log, errors)

    def print(self, text: str) -> None:
        """One line."""
        self.out.write(text.encode() + b"\n")

    def damaged(self, log: LogFile, damage: Damage) -> None:
        """Says what could not be read; a truncated tail is no failure."""
        self.lost += damage.kind is not DamageKind.TRUNCATED
        facts: dict[str, Any] = {"file": log.name, "position": damage.position, "cause": damage.cause}
        facts |= {"size": damage.size, "bytes": b64encode(damage.data).decode()} if self.console.json else {}
        self.console.warn(
            f"{log.name} at byte {damage.position}: {damage.cause} ({damage.size} bytes left out)", **facts
        )

    def undecoded(self, log: LogFile, errors: list[str]) -> None:
        """Says that records of a file did not decode."""
        if errors:
            facts = {"file": log.name, "records": len(errors), "cause": errors[0]}
            self.console.warn(f"{log.name}: {len(errors)} records did not decode, the first at {errors[0]}", **facts)


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, made in a thread while those before them are used."""
    with ThreadPoolExecutor(1) as thread:
        ahead = deque(thread.submit(next, items, None) for _ in range(ITEMS_AHEAD))
        while (item := ahead.popleft().result()) is not None:
            ahead.append(thread.submit(next, items, None))
            yield item
