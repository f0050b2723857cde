"""Read new segments and write the files of the typed tables in the same task.

The rows of the log never leave the Python worker, where the data source ``segments`` hands each of them to the JVM,
which hands it back to be decoded. It is for a dump of which the tables have no record yet: what is in them already,
only Spark finds out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import Row, SparkSession

from jobs.pipeline.decode_arrow import typed_rows
from jobs.pipeline.row_identity import identified
from jobs.sources.segments import SegmentsReader
from jobs.tables.written_files import WRITTEN, write_task


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
