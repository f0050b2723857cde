"""Read new segments, and decode them, in the same task; where a task can, it writes the files of the typed tables, too.

The rows of the log never leave the Python worker, where the data source ``segments`` hands each of them to the JVM,
which hands it back to be decoded. It is for a dump of which the tables have no record yet: what is in them already,
only Spark finds out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from jobs.pipeline.decode_arrow import typed_rows
from jobs.pipeline.row_identity import identified
from jobs.sources.segments import SegmentsReader
from jobs.tables.written_files import WRITTEN, write_task


def write_files(spark: SparkSession, segments: SegmentsReader, location: str, cluster: str, run_id: str) -> list[Row]:
    """Write what segments become, and return the files as rows of ``WRITTEN``.

    ``location``: the folder of the tables.
    """

    def write(rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return write_task(rows, location, typed_rows)

    files = in_tasks(spark, segments, cluster, run_id, write, WRITTEN)
    return [] if files is None else files.collect()


def in_tasks(
    spark: SparkSession,
    segments: SegmentsReader,
    cluster: str,
    run_id: str,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame | None:
    """Return what a function makes of the rows of segments, which have the columns of ``log_records``; each task reads
    some ranges. None: the segments are empty.
    """
    ranges = segments.partitions()
    if not ranges:
        return None

    def rows(tasks: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in tasks:
            for number in task.column("id").to_pylist():
                for batch in segments.read(ranges[number]):
                    yield identified(batch, cluster, run_id)

    return spark.range(0, len(ranges), 1, len(ranges)).mapInArrow(lambda tasks: function(rows(tasks)), schema)
