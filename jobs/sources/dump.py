"""Opens dumps: files in any format, or a topic of a broker, as DataFrames with the columns ``tables.log.DUMPED``."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from coordinator_core.errors import GoneError, InputError
from coordinator_core.history.knowledge import without_positions
from coordinator_core.records import GROUP_LOG
from coordinator_core.wire.framing import Layout, layout
from jobs.sources.bounded_warnings import Warn
from jobs.sources.copies import tails_in_words, without_tails
from jobs.sources.delta_folders import delta_tables, refuse_part
from jobs.sources.dump_batches import LogSource, dumped_batches
from jobs.sources.files import (
    KNOWN_TOPICS,
    LOG_SUFFIX,
    SEGMENT,
    SNAPSHOT_SUFFIX,
    UNKNOWN_PARTITION,
    LogFile,
    files_below,
    find_logs,
    ignore,
    numbered,
    refuse_empty_files,
    refuse_other_topics,
)
from jobs.sources.printed import json_lines
from jobs.sources.printed.forms import is_printed
from jobs.sources.printed.logs import lacks_positions
from jobs.sources.printed.parquet_source import ParquetReader, parquet_below
from jobs.sources.printed.parquet_source import lacks_positions as lacks_positions_of_parquet
from jobs.sources.segments import SPLIT_BYTES, SegmentsReader, is_split
from jobs.sources.snapshot_files import is_snapshot
from jobs.tables import tasks
from jobs.tables.engine import Session, runs_steps, started

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


WALKED_HERE_BYTES: Final = 256 << 20
"""Bytes of segments over which this process walks, as that takes less than the start of tasks does."""

WALKED_BYTES: Final = WALKED_HERE_BYTES // tasks.ALONE_BYTES
"""Bytes over whose headers a walk takes as long as the reading of one byte of records, about."""


def layouts(session: Session, segments: Sequence[LogFile], split_bytes: int = SPLIT_BYTES) -> dict[str, Layout]:
    """Return by name the layout of each segment that is split, or followed by another of its log partition.

    The segments are sorted by log partition and offset.
    """
    followed = {before.name for before, _ in _neighbours(segments)}
    # Headers are walked over only where a file is divided among tasks, or its end may overlap the next segment.
    wanted = [log for log in segments if log.size and (log.name in followed or is_split(log, split_bytes))]
    size = sum(log.size for log in wanted)
    # Small ones this process walks over: that takes less than the start of tasks does.
    by_whom = session if size > WALKED_HERE_BYTES else None
    return dict(tasks.done(by_whom, wanted, partial(_walk, split_bytes=split_bytes), size // WALKED_BYTES))


def _walk(segments: Sequence[LogFile], split_bytes: int) -> list[tuple[str, Layout]]:
    found = []
    for log in segments:
        with log.open() as read_at:
            found.append((log.name, layout(read_at, log.size, split_bytes, name=log.name)))
    return found


def have_overlaps(segments: Sequence[LogFile], known: Mapping[str, Layout]) -> bool:
    """Return whether a segment may have records that the next one has, too. Where headers do not tell, it may."""
    return any(
        not known[before.name].is_clear or known[before.name].highest >= int(after.segment.partition(".")[0])
        for before, after in _neighbours(segments)
        if before.size and after.size
    )


def _neighbours(segments: Sequence[LogFile]) -> Iterator[tuple[LogFile, LogFile]]:
    """Yield each segment with the next one of its log partition."""
    for before, after in pairwise(segments):
        if (before.topic, before.partition) == (after.topic, after.partition):
            yield before, after


JSON_LINES_SUFFIXES: Final = (".jsonl", ".ndjson")
LIVE_SCHEME: Final = "kafka://"
DEFAULT_TOPIC: Final = GROUP_LOG


class DumpFormat(StrEnum):
    """The format of a dump."""

    SEGMENTS = "segments"
    PARQUET = "parquet"
    DELTA = "delta"
    JSON_LINES = "json_lines"
    LIVE = "live"


class DumpExtent(NamedTuple):
    """The first offset of a dump in one log partition; ``partition`` None: any partition of the topic."""

    topic: str
    partition: int | None
    first_offset: int


class Kafka(NamedTuple):
    """How to read from a broker.

    ``config``: settings of librdkafka. ``ranges``: offsets to read by partition, [from, to); empty: all. ``since``: by
    topic and partition, the first offset that was not ingested before.
    """

    config: Mapping[str, str] = MappingProxyType({})
    ranges: Mapping[int, tuple[int | None, int | None]] = MappingProxyType({})
    since: Mapping[str, Mapping[int, int]] = MappingProxyType({})


ALL_OF_IT: Final = Kafka()


class Dump(NamedTuple):
    """An opened dump.

    ``load`` returns the rows in Spark, with the columns ``tables.log.DUMPED``. ``detailed``: they have batches and
    transactions. ``extents``: the log partitions in the dump, rows without a position are not counted; None: not known
    yet. ``distinct``: no position occurs twice. ``given``: topic and partition of each log partition that is known to
    be part of the dump, also of one without a record. ``source``: reads the dump in any process; None: only Spark can.
    """

    load: Callable[[], DataFrame]
    detailed: bool
    extents: list[DumpExtent] | None
    distinct: bool
    given: frozenset[tuple[str, int]] = frozenset()
    source: LogSource | None = None


def open_dump(
    session: Session,
    paths: Sequence[str],
    *,
    dump_format: DumpFormat | None = None,
    topic: str = DEFAULT_TOPIC,
    topics: Iterable[str] = KNOWN_TOPICS,
    kafka: Kafka = ALL_OF_IT,
    warn: Warn = ignore,
) -> list[Dump]:
    """Open the dumps at these paths: one for each format, and one for each live broker.

    ``dump_format``: the format of all paths; None: detected. ``topic``: topic of records without one. ``topics``: only
    records of these topics are read. ``warn`` is told what is left out, and what printed records lack.

    Raises:
        InputError: a path does not exist or has no known format, a table has no key or value, or all records are of
            other topics.
    """
    by_format: dict[DumpFormat, list[str]] = {}
    for path in paths:
        # A Spark Connect server has its own working directory.
        whole = path if "://" in path else os.path.abspath(path)
        by_format.setdefault(dump_format or format_of(whole), []).append(whole)
    live = [_open_live(session, path, kafka) for path in by_format.pop(DumpFormat.LIVE, [])]
    return [*live, *(_open(session, found, files, topic, sorted(topics), warn) for found, files in by_format.items())]


def live_servers(paths: Iterable[str]) -> list[str]:
    """Return the brokers (``HOST:PORT[,HOST:PORT]``) of each cluster among the paths, once."""
    live = (path.removeprefix(LIVE_SCHEME) for path in paths if path.startswith(LIVE_SCHEME))
    return list(dict.fromkeys(path.partition("/")[0] for path in live))


def _open_live(session: Session, url: str, kafka: Kafka) -> Dump:
    from jobs.sources.kafka_broker import KafkaLogReader, topic_partitions

    servers, _, topic = url.removeprefix(LIVE_SCHEME).partition("/")
    if not servers or not topic:
        raise InputError(f"invalid URL {url!r}: use {LIVE_SCHEME}HOST:PORT[,HOST:PORT]/TOPIC")
    if "@" in servers:
        raise InputError(f"invalid URL: use {LIVE_SCHEME}HOST:PORT/TOPIC; user and password are settings (kafka.*)")
    config = {**kafka.config, "bootstrap.servers": servers}
    since = kafka.since.get(topic, {})
    source = KafkaLogReader(topic, config, kafka.ranges, since)
    # Empty partitions can be recognized only if all partitions are read.
    partitions = [] if kafka.ranges else topic_partitions(config, topic)
    # What the tables cannot have yet is read once, and compared with nothing.
    extents = [DumpExtent(topic, number, since.get(number, 0)) for number in partitions]
    given = frozenset((topic, number) for number in partitions)
    return Dump(_frame(session, source), False, extents or [DumpExtent(topic, None, 0)], True, given, source)


def _open(
    session: Session, dump_format: DumpFormat, files: list[str], topic: str, topics: list[str], warn: Warn
) -> Dump:
    if dump_format is DumpFormat.SEGMENTS:
        return _open_segments(session, files, topic, topics, warn)
    if dump_format is DumpFormat.JSON_LINES:
        listed = [file for path in files for file in files_below(path) if file == path or _holds_json(file)]
        _require_text(listed)
        source = JsonLinesReader(listed, frozenset(topics))
        _refuse_other_topics(files[0], JsonLinesReader(listed, None), topics)
        # A process that reads the dump itself finds out by itself what Spark finds here.
        load = _frame(session, source)
        extents, distinct = _surveyed(load()) if runs_steps(session) else (None, False)
        return Dump(load, False, extents, distinct, source=source)
    is_table = dump_format in (DumpFormat.PARQUET, DumpFormat.DELTA)
    if is_table and not runs_steps(session) and not any("://" in file for file in files):
        listed = [file for path in files for file in parquet_below(path)]
        _require_text(listed)
        if not any(map(lacks_positions_of_parquet, listed)):
            tables = ParquetReader(listed, topic, frozenset(topics))
            _refuse_other_topics(files[0], ParquetReader(listed, topic, None), topics)
            return Dump(_frame(session, tables), False, None, False, source=tables)
    for path in filter(os.path.isdir, files if dump_format is DumpFormat.PARQUET else ()):
        refuse_part(path)
        if found := delta_tables(files_below(path)):
            raise InputError(f"{found[0]}: a Delta table in the folder {path}: name the table")
    from jobs.sources import kafka_columns  # not at the top: only Spark reads tables

    rows = kafka_columns.read(started(session), files, topic, topics, is_delta=dump_format is DumpFormat.DELTA)
    return Dump(lambda: rows, False, *_surveyed(rows))


def _refuse_other_topics(path: str, source: LogSource, topics: Collection[str]) -> None:
    """Raise InputError if a dump has records, and none is of these topics. It is read up to the first that is."""
    others: set[str] = set()
    for batch in (batch for task in source.partitions() for batch in source.read(task)):
        found = set(batch.column("log_topic").unique().to_pylist())
        if None in found or found & set(topics):
            return
        others |= found
    refuse_other_topics(path, others, topics)


def _require_text(names: Iterable[str]) -> None:
    """Raise InputError if the name of a file is no text: tables have it beside each record."""
    for name in names:
        if not name.isascii() and name.encode("utf-8", "replace").decode() != name:
            raise InputError(f"{os.fsencode(name)!r}: the name of a file or folder is not in UTF-8: rename it")


def _surveyed(rows: DataFrame) -> tuple[list[DumpExtent], bool]:
    """Return the extents of a dump, and whether it has each position once. Only the positions are read."""
    from jobs.sources.in_spark import survey  # not at the top: most runs need no Spark

    found = survey(rows)
    return [DumpExtent(*extent[:3]) for extent in found], all(is_distinct for *_, is_distinct in found)


def _frame(session: Session, source: LogSource) -> Callable[[], DataFrame]:
    def load() -> DataFrame:
        from jobs.sources.in_spark import rows_of  # not at the top: most runs need no Spark

        return rows_of(started(session), source)

    return load


def _open_segments(session: Session, files: list[str], topic: str, topics: list[str], warn: Warn) -> Dump:
    logs = without_tails(find_logs(files, topics=topics, snapshots=True, warn=warn))
    _require_text(log.name for log in logs)
    for tail in tails_in_words(logs):
        warn(tail)
    for lack in without_positions(numbered(logs)):
        warn(lack)
    refuse_empty_files(files, logs)
    segments = [log for log in logs if not log.is_snapshot]
    known = layouts(session, segments)
    edges = {log.name: known[log.name].edges for log in segments if is_split(log)}
    extents: dict[tuple[str, int], DumpExtent] = {}
    folders: dict[tuple[str, int], set[str]] = {}
    for log in segments:
        place = (log.topic or topic, log.partition)
        first = int(log.segment[:20]) if SEGMENT.fullmatch(log.segment) else 0
        extents.setdefault(place, DumpExtent(*place, first))
        folders.setdefault(place, set()).add(log.name.removesuffix(log.segment))
    # Brokers name segments by their first offset; a file with another name may be a copy of a segment. A copy that was
    # taken while a segment grew may go on into the next one.
    named = all(SEGMENT.fullmatch(log.segment) for log in segments)
    snapshots = [(log.partition, log.segment) for log in logs if log.is_snapshot]
    once = len(set(snapshots)) == len(snapshots)
    is_of_one_copy = named and once and all(len(of_log) == 1 for of_log in folders.values())
    distinct = is_of_one_copy and not have_overlaps(segments, known)
    given = frozenset(place for place in extents if place[1] != UNKNOWN_PARTITION)
    reader = SegmentsReader(files, frozenset(topics), topic, SPLIT_BYTES, edges)
    return Dump(_frame(session, reader), True, list(extents.values()), distinct, given, reader)


def require_there(path: str) -> None:
    """Raise GoneError, which is an InputError, where there is nothing at a path; URIs are not looked at."""
    if "://" not in path and not Path(path).exists():
        raise GoneError(f"{path}: no such file or directory")


def format_of(path: str) -> DumpFormat:
    """Return the format of the dump at a path. For URIs only the URI itself is looked at.

    A folder has one format. JSON lines next to segments or tables are not part of the dump. What is none of the others
    is read as segments are, and is refused there with what it is.

    Raises:
        InputError: the path does not exist, or is an empty file.
    """
    if path.startswith(LIVE_SCHEME):
        return DumpFormat.LIVE
    if "://" in path:
        return DumpFormat.JSON_LINES if _is_json(path) else DumpFormat.PARQUET
    require_there(path)
    place = Path(path)
    if place.is_file():
        return _format_of_file(path)
    # Looked for first: a Delta table has Parquet files, of which some are no part of it any more.
    if (place / "_delta_log").is_dir():
        return DumpFormat.DELTA
    if any(file for suffix in (LOG_SUFFIX, SNAPSHOT_SUFFIX) for file in place.rglob(f"*{suffix}")):
        return DumpFormat.SEGMENTS
    table = next(place.rglob("*.parquet"), None)
    return _format_of_printed(path) if table is None else _format_of_parquet(str(table))


def _format_of_printed(path: str) -> DumpFormat:
    """Return how the printed records below a folder are read: JSON in which all have positions in Spark's tasks."""
    printed = list(filter(is_printed, files_below(path)))
    is_placed = printed and all(_is_json_lines(file) and not lacks_positions(file) for file in printed)
    return DumpFormat.JSON_LINES if is_placed else DumpFormat.SEGMENTS


def _format_of_parquet(path: str) -> DumpFormat:
    """Return how a Parquet file is read: with the columns of Spark's Kafka source as such, else as that of a sink."""
    return DumpFormat.SEGMENTS if lacks_positions_of_parquet(path) else DumpFormat.PARQUET


def _format_of_file(path: str) -> DumpFormat:
    if (path.endswith(".parquet") or _is_json(path)) and not os.path.getsize(path):
        raise InputError(f"{path}: the file is empty")
    if path.endswith(".parquet"):
        return _format_of_parquet(path)
    # Of a snapshot of the cluster, too: a night takes it in beside logs.
    is_placed = _is_json(path) and (is_snapshot(path) or (is_printed(path) and not lacks_positions(path)))
    return DumpFormat.JSON_LINES if is_placed else DumpFormat.SEGMENTS


def _is_json(path: str) -> bool:
    return path.removesuffix(".gz").endswith((*JSON_LINES_SUFFIXES, ".json"))


def _is_json_lines(path: str) -> bool:
    return path.removesuffix(".gz").endswith(JSON_LINES_SUFFIXES)


def _holds_json(path: str) -> bool:
    """Return whether a file of a folder is one of JSON lines, and has records."""
    return _is_json_lines(path) and is_printed(path)


class JsonLinesReader(NamedTuple):
    """The files of a dump of JSON lines, a task each: the ``place`` of a row is its line.

    Rows of other ``topics`` are left out (None: none are); those without a topic are not.
    """

    files: Sequence[str]
    topics: frozenset[str] | None

    def partitions(self) -> Sequence[str]:
        """Return the files."""
        return self.files

    def size(self, partition: str) -> int:
        """Return the size of a file in bytes."""
        return os.path.getsize(partition)

    def read(self, partition: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file."""
        rows = json_lines.read(partition)
        known = self.topics
        wanted = (row for row in rows if known is None or row.get("log_topic") is None or row["log_topic"] in known)
        return dumped_batches({**row, "source": partition} for row in wanted)
