"""The Spark data source ``json_lines``: reads files with ``json_lines.read``, one task for each file.

Option ``files``: a JSON list of paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobs.sources.dump_batches import SPARK_SCHEMA, dumped_batches
from jobs.sources.printed import json_lines


class JsonLines(DataSource):
    """The data source; see the module."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``spark.read.format``."""
        return "json_lines"

    def schema(self) -> StructType:
        """Return the columns of a dump."""
        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> JsonLinesReader:
        """Return a reader for the options."""
        return JsonLinesReader(json.loads(self.options["files"]))


class JsonLinesReader(DataSourceReader):
    """Plans one partition for each file, and reads one."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files

    def partitions(self) -> Sequence[InputPartition]:
        """Return one partition for each file: the ``place`` of a row is its line number."""
        return [InputPartition(file) for file in self.files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one file."""
        file: str = partition.value
        return dumped_batches({**row, "source": file} for row in json_lines.read(Path(file)))
