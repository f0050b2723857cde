"""A dump: files of any shape, or a broker's topic, as a DataFrame with the columns ``tables.log.DUMPED``."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.errors import InputError
from coordinator_core.records import LOG_TOPICS, Family
from jobs.errors import one_line
from jobs.sources import kafka_columns
from jobs.sources.files import (
    KNOWN_TOPICS,
    LOG_SUFFIX,
    SEGMENT,
    SNAPSHOT_SUFFIX,
    UNKNOWN_PARTITION,
    find_logs,
    refuse_empty_files,
)
from jobs.sources.json_source import JsonLines
from jobs.sources.segments import SegmentsSource

JSON_LINES_SUFFIXES: Final = (".jsonl", ".ndjson")
LIVE_SCHEME: Final = "kafka://"
DEFAULT_TOPIC: Final = LOG_TOPICS[Family.GROUP]


class DumpFormat(StrEnum):
    """How a dump is written down."""

    SEGMENTS = "segments"
    PARQUET = "parquet"
    DELTA = "delta"
    JSON_LINES = "json_lines"
    LIVE = "live"


class DumpExtent(NamedTuple):
    """Where a dump begins in one log partition; None stands for any partition of the topic."""

    topic: str
    partition: int | None
    first_offset: int


class Kafka(NamedTuple):
    """How to read a broker: librdkafka settings, and the offsets wanted, [from, to) by partition; none: all.

    ``since`` are the first offsets that are new, by topic and partition.
    """

    config: Mapping[str, str] = MappingProxyType({})
    ranges: Mapping[int, tuple[int | None, int | None]] = MappingProxyType({})
    since: Mapping[str, Mapping[int, int]] = MappingProxyType({})


ALL_OF_IT: Final = Kafka()


class Dump(NamedTuple):
    """``rows`` have the columns ``tables.log.DUMPED``.

    ``detailed``: they know their batches and transactions. ``extents``: the log partitions in it (rows without a
    position apart). ``distinct``: no position occurs twice. ``given``: topic and partition of each log partition that
    is known to be part of the dump, whether it holds a record or not.
    """

    rows: DataFrame
    detailed: bool
    extents: list[DumpExtent]
    distinct: bool
    given: frozenset[tuple[str, int]] = frozenset()


def open_dump(
    spark: SparkSession,
    paths: Sequence[str],
    *,
    shape: DumpFormat | None = None,
    topic: str = DEFAULT_TOPIC,
    topics: Iterable[str] = KNOWN_TOPICS,
    kafka: Kafka = ALL_OF_IT,
) -> list[Dump]:
    """The dumps at these paths, one for each shape; ``shape`` says that all are of that one.

    ``topic`` is that of records which do not say; of other topics than ``topics`` nothing is read.

    Raises:
        InputError: a path that does not exist or holds nothing of these shapes, or a table without key or value.
    """
    by_shape: dict[DumpFormat, list[str]] = {}
    for path in paths:
        # A Spark Connect server works in a directory of its own.
        whole = path if "://" in path else os.path.abspath(path)
        by_shape.setdefault(shape or shape_of(whole), []).append(whole)
    live = [_open_live(spark, path, kafka) for path in by_shape.pop(DumpFormat.LIVE, [])]
    return [*live, *(_open(spark, found, files, topic, sorted(topics)) for found, files in by_shape.items())]


def _open_live(spark: SparkSession, url: str, kafka: Kafka) -> Dump:
    from jobs.sources.kafka_broker import KafkaLog, topic_partitions

    servers, _, topic = url.removeprefix(LIVE_SCHEME).partition("/")
    if not servers or not topic:
        raise InputError(f"{url}: {LIVE_SCHEME}HOST:PORT[,HOST:PORT]/TOPIC is wanted")
    spark.dataSource.register(KafkaLog)
    config = {**kafka.config, "bootstrap.servers": servers}
    options = {"topic": topic, "config": json.dumps(config)}
    if topic in kafka.since:
        options["since"] = json.dumps(kafka.since[topic])
    if kafka.ranges:
        options["ranges"] = json.dumps(kafka.ranges)
    rows = spark.read.format(KafkaLog.name()).options(**options).load()
    # The broker says which partitions are empty only if all of them were asked for.
    given = frozenset() if kafka.ranges else frozenset((topic, number) for number in topic_partitions(config, topic))
    return Dump(rows, False, [DumpExtent(topic, None, 0)], True, given)


def _open(spark: SparkSession, shape: DumpFormat, files: list[str], topic: str, topics: list[str]) -> Dump:
    if shape is DumpFormat.SEGMENTS:
        return _open_segments(spark, files, topic, topics)
    if shape is DumpFormat.JSON_LINES:
        spark.dataSource.register(JsonLines)
        listed = [file for path in files for file in _files(path, JSON_LINES_SUFFIXES)]
        rows = spark.read.format(JsonLines.name()).option("files", json.dumps(listed)).load()
    else:
        rows = _table(spark, shape, files, topic)
    rows = rows.where(F.col("log_topic").isin(topics) | F.col("log_topic").isNull())
    return Dump(rows, False, *_survey(rows))


def _open_segments(spark: SparkSession, files: list[str], topic: str, topics: list[str]) -> Dump:
    logs = find_logs(files, topics=topics, snapshots=True)
    refuse_empty_files(files, logs)
    spark.dataSource.register(SegmentsSource)
    options = {"paths": json.dumps(files), "topics": json.dumps(topics), "topic": topic}
    rows = spark.read.format(SegmentsSource.name()).options(**options).load()
    extents: dict[tuple[str, int], DumpExtent] = {}
    folders: dict[tuple[str, int], set[str]] = {}
    segments = [log for log in logs if not log.is_snapshot]
    for log in segments:
        place = (log.topic or topic, log.partition)
        first = int(log.segment[:20]) if SEGMENT.fullmatch(log.segment) else 0
        extents.setdefault(place, DumpExtent(*place, first))
        folders.setdefault(place, set()).add(log.name.removesuffix(log.segment))
    # Brokers name segments by their first offset; a file of another name may be a copy of one beside it.
    named = all(SEGMENT.fullmatch(log.segment) for log in segments)
    snapshots = [(log.partition, log.segment) for log in logs if log.is_snapshot]
    once = len(set(snapshots)) == len(snapshots)
    distinct = named and once and all(len(of_log) == 1 for of_log in folders.values())
    given = frozenset(place for place in extents if place[1] != UNKNOWN_PARTITION)
    return Dump(rows, True, list(extents.values()), distinct, given)


def _survey(rows: DataFrame) -> tuple[list[DumpExtent], bool]:
    """The extents of a dump, and whether it has each position once: a look at all positions, but at no payload."""
    found = (
        rows.where("log_offset IS NOT NULL")
        .groupBy("log_topic", "log_partition")
        .agg(F.min("log_offset"), F.count("log_offset") == F.count_distinct("log_offset"))
        .collect()
    )
    return [DumpExtent(topic, partition, first) for topic, partition, first, _ in found], all(row[3] for row in found)


def _table(spark: SparkSession, shape: DumpFormat, files: list[str], topic: str) -> DataFrame:
    """Parquet and Delta are for Spark to read, but it finds nothing below folders that begin with ``_`` or ``.``."""
    reader = spark.read.option("mergeSchema", "true")
    try:
        if shape is DumpFormat.DELTA:
            tables = [reader.format("delta").load(file) for file in files]
            return _union(kafka_columns.dumped(table, file, topic) for table, file in zip(tables, files, strict=True))
        named = [path for file in files for path in (_files(file, (".parquet",)) if _is_hidden(file) else [file])]
        rows = reader.parquet(*named)
        return kafka_columns.dumped(rows, ", ".join(files), topic)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{', '.join(files)}: cannot be read as {shape.value}: {one_line(error)}") from error


def _union(tables: Iterable[DataFrame]) -> DataFrame:
    first, *others = tables
    for table in others:
        first = first.unionByName(table)
    return first


def shape_of(path: str) -> DumpFormat:
    """The shape of what is at a path, by the names of files; a URI is left to Spark.

    A directory has one shape: beside segments and tables, JSON lines tell about the dump and are none.
    """
    if path.startswith(LIVE_SCHEME):
        return DumpFormat.LIVE
    if "://" in path:
        return DumpFormat.JSON_LINES if _is_json(path) else DumpFormat.PARQUET
    place = Path(path)
    if not place.exists():
        raise InputError(f"{path}: no such file or directory")
    if place.is_file():
        return _shape_of_file(path)
    if (place / "_delta_log").is_dir():
        return DumpFormat.DELTA
    found = {
        DumpFormat.SEGMENTS: any(
            file for suffix in (LOG_SUFFIX, SNAPSHOT_SUFFIX) for file in place.rglob(f"*{suffix}")
        ),
        DumpFormat.PARQUET: any(place.rglob("*.parquet")),
        DumpFormat.JSON_LINES: any(_files(path, JSON_LINES_SUFFIXES)),
    }
    shape = next((shape for shape, there in found.items() if there), None)
    if shape is None:
        raise InputError(f"{path}: no segments (*.log), Parquet, Delta or JSON lines (*.jsonl, *.ndjson) in it")
    return shape


def _shape_of_file(path: str) -> DumpFormat:
    if path.endswith(".parquet") or _is_json(path):
        if not os.path.getsize(path):
            raise InputError(f"{path}: an empty file")
        return DumpFormat.JSON_LINES if _is_json(path) else DumpFormat.PARQUET
    if path.endswith((LOG_SUFFIX, SNAPSHOT_SUFFIX)) or tarfile.is_tarfile(path):
        return DumpFormat.SEGMENTS
    raise InputError(f"{path}: neither a segment (*.log), an archive of segments, Parquet nor JSON lines by its name")


def _is_json(path: str) -> bool:
    return path.removesuffix(".gz").endswith((*JSON_LINES_SUFFIXES, ".json"))


def _files(path: str, suffixes: tuple[str, ...]) -> list[str]:
    """The file itself, or those below a directory, whatever the folders are called."""
    if os.path.isfile(path):
        return [path]
    files = sorted(str(file) for file in Path(path).rglob("*") if file.is_file())
    return [file for file in files if file.removesuffix(".gz").endswith(suffixes)]


def _is_hidden(path: str) -> bool:
    """Whether Spark would pass over files below this directory."""
    if not os.path.isdir(path):
        return False
    below = (file.relative_to(path).parts[:-1] for file in Path(path).rglob("*.parquet"))
    return any(part[0] in "_." and "=" not in part for parts in below for part in parts)
