"""Read new segments and write the files of the typed tables in the same task.

The rows of the log never leave the Python worker, where the data source ``segments`` hands each of them to the JVM,
which hands it back to be decoded. It is for a dump of which the tables have no record yet: what is in them already,
only Spark finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from pyspark.sql import Row, SparkSession

from jobs.pipeline.decode_arrow import typed_rows
from jobs.sources.files import SNAPSHOT_SUFFIX
from jobs.sources.segments import SegmentsReader
from jobs.tables.written_files import WRITTEN, write_task

SPARK_SEED: Final = 42
"""The seed of Spark's ``xxhash64``."""


def write_files(spark: SparkSession, segments: SegmentsReader, location: str, cluster: str, run_id: str) -> list[Row]:
    """Write what segments become, and return the files as rows of ``WRITTEN``; each task has some ranges of them.

    ``location``: the folder of the tables.
    """
    ranges = segments.partitions()
    if not ranges:
        return []

    def rows(tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for number in task.column("id").to_pylist():
                for batch in segments.read(ranges[number]):
                    yield identified(batch, cluster, run_id)

    def write(tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_task(rows(tasks), location, typed_rows)

    return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(write, WRITTEN).collect()


def identified(dumped: pa.RecordBatch, cluster: str, run_id: str) -> pa.RecordBatch:
    """Return rows of a dump with the columns of ``log_records``, as ``ingest`` makes them in Spark.

    Columns that are null for all rows are left out.
    """
    given = {
        "cluster": pa.repeat(cluster, dumped.num_rows),
        "run_id": pa.repeat(run_id, dumped.num_rows),
        "record_type": _record_types(dumped),
        "stray": _strays(dumped),
        "key_hash": _key_hashes(dumped.column("key")),
    }
    columns = dict(zip(dumped.schema.names, dumped.columns, strict=True))
    return pa.RecordBatch.from_pydict(columns | given)


def _record_types(rows: pa.RecordBatch) -> pa.Array:
    """Return the first two bytes of each record's key as a signed int16; null for shorter keys and other rows."""
    key = rows.column("key")
    is_typed = pc.and_(pc.equal(rows.column("kind"), "record"), pc.greater_equal(pc.binary_length(key), 2))
    is_typed = pc.fill_null(is_typed, False)
    first_two = pc.if_else(is_typed, pc.binary_slice(key, 0, 2), pa.scalar(b"\0\0", key.type))
    numbers = np.frombuffer(b"".join(first_two.to_pylist()), ">i2").astype(np.int16)
    return pc.if_else(is_typed, pa.array(numbers), pa.scalar(None, pa.int16()))


def _strays(rows: pa.RecordBatch) -> pa.Array:
    """Return what identifies the rows that have no log position; see ``stray`` of ``log_records``."""
    unplaced = rows.column("log_offset").is_null()
    stray = pc.or_(unplaced, rows.column("log_partition").is_null())
    if not pc.any(stray).as_py():
        return pa.nulls(rows.num_rows, pa.string())
    source = rows.column("source")
    is_snapshot = pc.ends_with(source, SNAPSHOT_SUFFIX)
    name = pc.if_else(is_snapshot, pc.replace_substring_regex(source, "^.*/", ""), source)
    place = pc.if_else(unplaced, rows.column("place").cast(pa.string()), pa.scalar(None, pa.string()))
    joined = pc.binary_join_element_wise(name, place, "#", null_handling="skip")
    return pc.if_else(stray, joined, pa.scalar(None, pa.string()))


def _key_hashes(keys: pa.Array) -> pa.Array:
    """Return Spark's ``xxhash64`` of each key; null for no key."""
    hashes = [0 if key is None else xxhash.xxh64_intdigest(key, SPARK_SEED) for key in keys.to_pylist()]
    signed = pa.array(np.array(hashes, np.uint64).view(np.int64))
    return pc.if_else(keys.is_valid(), signed, pa.scalar(None, pa.int64()))
