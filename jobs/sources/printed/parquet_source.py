"""Reads Parquet files with the columns of Spark's Kafka source in any process, one task for each file.

Spark reads the same files where it runs the steps (``kafka_columns``), and gives the same rows.
"""

import json
import os
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_core.cluster.image import MOST_PARTITIONS
from coordinator_core.errors import InputError
from coordinator_core.records import GROUP_LOG
from jobs.sources.delta_folders import delta_tables, outside_of_tables, refuse_part
from jobs.sources.dump_batches import ROWS_A_BATCH, SCHEMA, dumped_batch
from jobs.sources.packed import is_packed
from jobs.sources.printed import sink_files
from jobs.sources.printed.json_lines import time_ms
from jobs.sources.printed.printed_rows import MICROS, NANOS, SECONDS, Row, from_base64, known_names, place_of
from jobs.sources.printed.sink_files import require_unique

READ: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


class ParquetReader(NamedTuple):
    """The files of a dump. Rows without a topic are of ``topic``; those of others than ``topics`` are left out (None:
    none are).
    """

    files: Sequence[str]
    topic: str
    topics: frozenset[str] | None

    def partitions(self) -> Sequence[str]:
        """Return the files that have rows."""
        return [file for file in self.files if os.path.getsize(file)]

    def size(self, partition: str) -> int:
        """Return the size of a file in bytes."""
        return os.path.getsize(partition)

    def read(self, partition: str) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file.

        Raises:
            InputError: it cannot be read, or has no key or value.
        """
        try:
            with pq.ParquetFile(partition) as file:
                require_unique(known_names(file.schema_arrow.names), partition)
                for rows in file.iter_batches(ROWS_A_BATCH):
                    yield from self._wanted(self._dumped(rows, partition))
        except (pa.ArrowException, OSError) as error:
            cause = "it is packed: unpack it" if is_packed(partition) else " ".join(str(error).split())
            raise InputError(f"{partition}: cannot be read as parquet: {cause}") from error

    def _wanted(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        kept = rows
        if self.topics is not None:
            kept = rows.filter(pc.is_in(rows.column("log_topic"), pa.array(sorted(self.topics))))
        if kept.num_rows:
            yield kept

    def _dumped(self, rows: pa.RecordBatch, file: str) -> pa.RecordBatch:
        columns_here = zip(known_names(rows.schema.names), rows.columns, strict=True)
        given = {name: _plain(column) for name, column in columns_here}
        for name in ("key", "value"):
            if name not in given:
                raise InputError(f"{file}: column '{name}' is missing (columns: {', '.join(given) or 'none'})")
            given[name] = _bytes(given[name], f"{file}: column '{name}'")
        named = place_of(file)
        topic: object = named.topic or self.topic
        if "topic" in given:
            topic = pc.fill_null(given["topic"].cast(pa.string()), self.topic)
        columns: dict[str, object] = {
            "kind": "record",
            "key": given["key"],
            "value": given["value"],
            "log_topic": topic,
            "log_partition": named.partition,
            "log_offset": _whole(given, "offset", file),
            "outcome": "unknown",
            "source": file,
            "extra": _extra(given),
        }
        if "partition" in given:
            # One without the other names no place in a log.
            numbers, offsets = _whole(given, "partition", file), columns["log_offset"]
            is_placed = pc.and_(pc.is_valid(numbers), pc.is_valid(offsets))
            columns["log_partition"] = pc.if_else(is_placed, numbers, None)
            columns["log_offset"] = pc.if_else(is_placed, offsets, None)
        if "timestamp" in given:
            times = _millis(given, file)
            columns["timestamp_ms"] = pc.if_else(pc.greater(times, 0), times, None)  # 0 and less stand for none
        if "timestampType" in given:
            columns["timestamp_type"] = _type_names(given["timestampType"])
        if "headers" in given and pa.types.is_nested(given["headers"].type):
            columns["headers"] = given["headers"].cast(SCHEMA.field("headers").type)
        return dumped_batch(rows.num_rows, columns)


def lacks_positions(file: str) -> bool:
    """Return whether a Parquet file has records and does not say where they are, be it by the names of folders.

    One that cannot be read, or has no keys, is refused by who reads it.
    """
    try:
        names = known_names(pq.read_schema(file).names)
    except (pa.ArrowException, OSError):
        return False
    return "key" in names and not ("offset" in names and ("partition" in names or place_of(file).partition is not None))


def parquet_rows(path: str) -> Iterator[Row]:
    """Yield the rows of one file as those of printed records; raises InputError as ``ParquetReader`` does."""
    if lacks_positions(path):
        yield from sink_files.parquet_rows(path)
        return
    for batch in ParquetReader([path], GROUP_LOG, None).read(path):
        for row in batch.drop_columns(["headers"]).to_pylist():
            yield {name: value for name, value in row.items() if value is not None}


def delta_files(place: str) -> list[str]:
    """Return the files of a Delta table as it is now, without those that it has replaced.

    Raises:
        InputError: it cannot be read, or rows of its files are marked as deleted.
    """
    from deltalake import DeltaTable  # not at the top: most runs read no Delta table

    try:
        table = DeltaTable(place)
        features = table.protocol().reader_features or ()
        names = {uri.rpartition("/")[2] for uri in table.file_uris()}
    except Exception as error:
        raise InputError(f"{place}: cannot be read as delta: {' '.join(str(error).split())}") from error
    if "deletionVectors" in features:
        raise InputError(f"{place}: a Delta table with deletion vectors: write it as Parquet, or let Spark ingest it")
    # By their names, which are unique: paths are encoded there, and some names of folders twice.
    files = [str(file) for file in sorted(Path(place).rglob("*.parquet")) if file.name in names]
    if len(files) != len(names):
        raise InputError(f"{place}: {len(names) - len(files)} of {len(names)} files of the Delta table are not there")
    return files


def parquet_below(place: str) -> list[str]:
    """Return the file itself, or the Parquet files below a folder, also in folders that Spark passes over.

    Of Delta tables there, those that are part of them now.

    Raises:
        InputError: a Delta table cannot be read, or the folder is part of one.
    """
    if os.path.isfile(place):
        return [place]
    refuse_part(place)
    files = [str(file) for file in Path(place).rglob("*") if file.suffix in (".parquet", ".json") and file.is_file()]
    tables = delta_tables(files)
    loose = (file for file in outside_of_tables(files, tables) if file.endswith(".parquet"))
    return sorted({*loose, *(file for table in tables for file in delta_files(table))})


def _plain(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _bytes(column: pa.Array, name: str) -> pa.Array:
    """Return keys or values as bytes: they are, or are text in base64."""
    if str(column.type) in ("binary", "large_binary", "binary_view"):
        return column
    if not _is_text(column.type):
        raise InputError(f"{name} must be binary or base64, not {column.type}")
    return pa.array([from_base64(text, name) or None if text else None for text in column.to_pylist()], pa.binary())


def _is_text(of: pa.DataType) -> bool:
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of) or pa.types.is_string_view(of))


def _whole(given: Mapping[str, pa.Array], name: str, file: str) -> pa.Array:
    """Return whole numbers, also those that are stored as texts or with fractions of 0; -1: there is none."""
    try:
        numbers = given[name].cast(pa.int64())
    except pa.ArrowException as error:
        raise InputError(f"{file}: column '{name}': {' '.join(str(error).split())}") from error
    least, most = pc.min_max(numbers).values()
    if least.is_valid and (least.as_py() < -1 or (name == "partition" and most.as_py() >= MOST_PARTITIONS)):
        raise InputError(f"{file}: column '{name}': it has {least if least.as_py() < -1 else most}")
    return pc.if_else(pc.less(numbers, 0), None, numbers)


def _millis(given: Mapping[str, pa.Array], file: str) -> pa.Array:
    """Return times in ms since the epoch (see ``printed_rows.millis``); one without a time zone (pandas writes such) is
    in UTC.
    """
    times = given["timestamp"]
    if _is_text(times.type) and not pc.all(pc.match_substring_regex(times, r"^-?\d+$")).as_py():
        return pa.array([time_ms(text) for text in times.to_pylist()], pa.int64())
    if pa.types.is_timestamp(times.type):
        # Not safe: the parts of a millisecond that other writers have go, as Kafka's times have none.
        return times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())
    numbers = _whole(given, "timestamp", file)
    in_seconds = pc.and_(pc.greater_equal(numbers, SECONDS), pc.less(numbers, 10 * SECONDS))
    return pc.case_when(
        pc.make_struct(in_seconds, pc.greater_equal(numbers, NANOS), pc.greater_equal(numbers, MICROS)),
        pc.multiply(numbers, 1000),
        pc.divide(numbers, 1_000_000),
        pc.divide(numbers, 1000),
        numbers,
    )


def _type_names(types: pa.Array) -> pa.Array:
    if _is_text(types.type):
        return types
    known = pc.is_in(types, pa.array([0, 1], types.type))
    # A number of no type, such as -1, becomes null: what a null takes is null.
    return pa.array(TIMESTAMP_TYPES).take(pc.if_else(known, types, None))


def _extra(given: Mapping[str, pa.Array]) -> pa.Array | None:
    """Return all other columns as a map of texts by name; None if there are none."""
    others = {name: column.to_pylist() for name, column in given.items() if name not in READ}
    if not others:
        return None
    rows = zip(*others.values(), strict=True)
    texts = [[(name, _text(value)) for name, value in zip(others, row, strict=True)] for row in rows]
    return pa.array(texts, SCHEMA.field("extra").type)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return json.dumps(value, default=str, separators=(",", ":"))
