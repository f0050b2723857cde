"""The Spark data source ``json_lines``: the files of ``json_lines.read``, one task a file.

Option: ``files``, a JSON list of paths.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobs.sources import json_lines
from jobs.sources.dump_batches import SPARK_SCHEMA, dumped_batches


class JsonLines(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What ``spark.read.format`` calls it."""
        return "json_lines"

    def schema(self) -> StructType:
        """The columns of a dump."""
        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> JsonLinesReader:
        """The reader of these options."""
        return JsonLinesReader(json.loads(self.options["files"]))


class JsonLinesReader(DataSourceReader):
    """Reads a file."""

    def __init__(self, files: Sequence[str]) -> None:
        self.files = files

    def partitions(self) -> Sequence[InputPartition]:
        """One a file: a line's number is its place."""
        return [InputPartition(file) for file in self.files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one file."""
        file: str = partition.value
        return dumped_batches({**row, "source": file} for row in json_lines.read(Path(file)))
