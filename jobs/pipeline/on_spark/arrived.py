"""The way of rows from Spark to the typed tables.

Where the tables are in a folder here, tasks write the files of all tables. Elsewhere only Spark can write, one table
at a time, and not every cluster can keep a DataFrame in between: the rows of all tables go to ``arrived``, and from
there to their tables, so that the dump is read once all the same. They go there as Arrow streams of many rows of one
table: a row with a column for each table would carry the nulls of all others, a hundred times the bytes of the log.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from jobs.pipeline import typed_tables
from jobs.pipeline.decode_arrow import TYPED, TableRows, typed_rows
from jobs.pipeline.row_identity import Identify
from jobs.sources.dump_batches import LogSource
from jobs.sources.in_spark import in_tasks
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import ARRIVED
from jobs.tables.spark_reader import spark_types


def write(tables: Tables, rows: DataFrame, transaction: str, identify: Identify | None = None) -> None:
    """Append what rows of the log become. They are read once, and decoded on the way.

    ``rows`` have the columns of ``log_records``, with all keys and values, or those from which ``identify`` makes them.
    """
    sent = _flat(rows)

    def typed(batch: pa.RecordBatch) -> TableRows:
        given = _nested(batch)
        return typed_rows(given if identify is None else identify(given))

    if written_files.can_be_committed(tables, TYPED.values()):
        typed_tables.commit(tables, written_files.write_files(sent, tables.location, typed), transaction)
        return
    _through_arrived(
        tables, sent.mapInArrow(lambda batches: pack(batches, typed), spark_types(ARRIVED.schema)), transaction
    )


def write_in_tasks(tables: Tables, source: LogSource, identify: Identify, transaction: str) -> None:
    """Append what a dump becomes of which the tables have no record; its rows never leave the Python workers."""

    def packed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return pack(map(identify, batches), typed_rows)

    arrived = in_tasks(tables.spark, source, packed, ARRIVED.schema)
    if arrived is not None:
        _through_arrived(tables, arrived, transaction)


def _through_arrived(tables: Tables, rows: DataFrame, transaction: str) -> None:
    """Append rows of ``arrived`` to the tables that they are of."""
    tables.create(ARRIVED)
    tables.replace(ARRIVED, rows)
    arrived = tables.read(ARRIVED)
    # A table without new rows gets no commit: each one costs a second, and readers would take it for a change.
    filled = {row.table for row in arrived.select("table").distinct().collect()}
    # In the same order as ``typed_tables.commit``, and for the same reason.
    for name, table in TYPED.items():
        if name in filled:
            streams = arrived.where(F.col("table") == name).select("rows")
            tables.append(table, streams.mapInArrow(unpack, spark_types(table.schema)), transaction)
    tables.clear(ARRIVED)


def _flat(rows: DataFrame) -> DataFrame:
    """Return the rows with their nested columns as JSON.

    Spark limits the bytes of a batch for Python. For that it measures a nested column again with each row of the
    batch, which took more time than all other work of the JVM; other columns cost little.
    """
    return rows.withColumns({name: F.to_json(name) for name in NESTED})


def _nested(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows that ``_flat`` has made as they were before."""
    for name, restored in NESTED.items():
        column = batch.column(name)
        texts = column.to_pylist() if column.null_count < len(column) else [None] * len(column)
        values = [None if text is None else restored(json.loads(text)) for text in texts]
        field = LOG_RECORDS.schema.field(name)
        batch = batch.set_column(batch.schema.get_field_index(name), field, pa.array(values, field.type))
    return batch


def _headers(given: list[dict[str, str] | None]) -> list[dict[str, object] | None]:
    """Return record headers from Spark's JSON, which leaves out what is null."""
    return [
        None
        if header is None
        else {"key": header.get("key"), "value": b64decode(header["value"]) if "value" in header else None}
        for header in given
    ]


def _extra(given: dict[str, str | None]) -> list[tuple[str, str | None]]:
    """Return other columns of a dump from Spark's JSON."""
    return list(given.items())


NESTED: Final[dict[str, Callable[[Any], object]]] = {"headers": _headers, "extra": _extra}
"""The nested columns of ``log_records``, and how to get their values back from JSON."""


def identified_rows(rows: DataFrame, identify: Identify) -> DataFrame:
    """Return rows of a dump as rows of ``log_records``, for Spark to compare them with others."""

    def identified(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return (identify(_nested(batch)) for batch in batches)

    return _flat(rows).mapInArrow(identified, spark_types(LOG_RECORDS.schema))


def pack(batches: Iterable[pa.RecordBatch], typed: Callable[[pa.RecordBatch], TableRows]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all tables that rows of the log become, as rows of ``arrived``."""
    waiting: dict[str, list[pa.RecordBatch]] = {}
    for batch in batches:
        for table, rows in typed(batch):
            for some in _pieces(rows):
                of_table = waiting.setdefault(table.name, [])
                of_table.append(some)
                if sum(each.nbytes for each in of_table) >= STREAM_BYTES:
                    yield _packed(table.name, waiting.pop(table.name))
    for name, of_table in waiting.items():
        yield _packed(name, of_table)


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows in Arrow streams of one table; the inverse of ``pack``."""
    for batch in batches:
        for stream in batch.column("rows"):
            with pa.ipc.open_stream(stream.as_buffer()) as rows:
                yield from rows


def _pieces(rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Divide rows so that none is much larger than ``STREAM_BYTES``, and one of the table ``arrived`` neither."""
    length = max(1, rows.num_rows * STREAM_BYTES // max(rows.nbytes, STREAM_BYTES))
    for start in range(0, rows.num_rows, length):
        yield rows.slice(start, length)


def _packed(name: str, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Return a row of ``arrived``."""
    # One batch: hundreds of nested columns cost some kilobytes in each, whatever they hold.
    rows = pa.Table.from_batches(batches).combine_chunks()
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    values = {"table": [name], "count": [rows.num_rows], "rows": [bytes(out.getvalue())]}
    return pa.RecordBatch.from_pydict(values, _ARRIVED)


STREAM_BYTES: Final = 8 << 20
"""Bytes of the rows in one row of ``arrived``, before they are compressed."""

_ARRIVED: Final = ARRIVED.schema
