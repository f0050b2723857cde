"""Reads Parquet files with the columns of Spark's Kafka source in any process, one task for each file.

Spark reads the same files where it runs the steps (``kafka_columns``), and gives the same rows.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from coordinator_core.errors import InputError
from jobs.sources.dump_batches import ROWS_A_BATCH, SCHEMA, dumped_batch
from jobs.sources.printed.printed_rows import place_of
from jobs.sources.printed.sink_files import require_unique

READ: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")


class ParquetReader(NamedTuple):
    """The files of a dump. Rows without a topic are of ``topic``; those of others than ``topics`` are left out."""

    files: Sequence[str]
    topic: str
    topics: frozenset[str]

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
                require_unique(file.schema_arrow.names, partition)
                for rows in file.iter_batches(ROWS_A_BATCH):
                    yield from self._wanted(self._dumped(rows, partition))
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{partition}: cannot be read as parquet: {' '.join(str(error).split())}") from error

    def _wanted(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        kept = rows.filter(pc.is_in(rows.column("log_topic"), pa.array(sorted(self.topics))))
        if kept.num_rows:
            yield kept

    def _dumped(self, rows: pa.RecordBatch, file: str) -> pa.RecordBatch:
        given = {name: rows.column(name) for name in rows.schema.names}
        for name in ("key", "value"):
            if name not in given:
                raise InputError(f"{file}: column '{name}' is missing (columns: {', '.join(given) or 'none'})")
            if str(given[name].type) not in ("binary", "large_binary", "binary_view"):
                raise InputError(f"{file}: column '{name}' must be binary, not {given[name].type}")
        named = place_of(file)
        topic: object = named.topic or self.topic
        if "topic" in given:
            topic = pc.fill_null(given["topic"].cast(pa.string()), self.topic)
        columns: dict[str, object] = {
            "kind": "record",
            "key": given["key"],
            "value": given["value"],
            "log_topic": topic,
            "log_partition": given["partition"].cast(pa.int32()) if "partition" in given else named.partition,
            "log_offset": given["offset"].cast(pa.int64()),
            "outcome": "unknown",
            "source": file,
            "extra": _extra(given),
        }
        if "timestamp" in given:
            columns["timestamp_ms"] = _millis(given["timestamp"])
        if "timestampType" in given:
            columns["timestamp_type"] = _type_names(given["timestampType"])
        if "headers" in given:
            columns["headers"] = given["headers"].cast(SCHEMA.field("headers").type)
        return dumped_batch(rows.num_rows, columns)


def lacks_positions(file: str) -> bool:
    """Return whether a Parquet file has records and does not say where they are, be it by the names of folders.

    One that cannot be read, or has no keys, is refused by who reads it.
    """
    try:
        names = pq.read_schema(file).names
    except (pa.ArrowException, OSError):
        return False
    return "key" in names and not ("offset" in names and ("partition" in names or place_of(file).partition is not None))


def parquet_below(place: str) -> list[str]:
    """Return the file itself, or the Parquet files below a folder, also in folders that Spark passes over."""
    if os.path.isfile(place):
        return [place]
    return sorted(str(file) for file in Path(place).rglob("*.parquet") if file.is_file())


def _millis(times: pa.Array) -> pa.Array:
    """Return times in ms since the epoch; one without a time zone (pandas writes such) is in UTC."""
    if not pa.types.is_timestamp(times.type):
        return times.cast(pa.int64())
    # Not safe: the parts of a millisecond that other writers have go, as Kafka's times have none.
    return times.cast(pa.timestamp("ms", times.type.tz), safe=False).cast(pa.int64())


def _type_names(types: pa.Array) -> pa.Array:
    if pa.types.is_string(types.type) or pa.types.is_large_string(types.type):
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
