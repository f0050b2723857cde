"""How Spark reads a dump: the same tasks as any process does, as a Spark data source or in its Python workers.

The data source hands each row to the JVM, and plans where Spark runs: with Spark Connect, perhaps only Spark can reach
a broker. ``in_tasks`` plans in this process, and the rows stay in the worker for what a function makes of them.
"""

import pickle
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from jobs.sources.dump_batches import SCHEMA, LogSource
from jobs.tables.spark_reader import spark_types

OPTION = "source"


def rows_of(spark: SparkSession, source: LogSource) -> DataFrame:
    """Return the rows of a dump."""
    spark.dataSource.register(DumpSource)
    given = b64encode(pickle.dumps(source)).decode("ascii")
    return spark.read.format(DumpSource.name()).option(OPTION, given).load()


def in_tasks(
    spark: SparkSession,
    source: LogSource,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame | None:
    """Return what a function makes of the rows of a dump in each task. None: the dump is empty."""
    tasks = source.partitions()
    if not tasks:
        return None

    def rows(numbers: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in numbers:
            for number in batch.column("id").to_pylist():
                yield from source.read(tasks[number])

    # One number for each partition of Spark: it picks the task, whose description went there with the function.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(lambda batches: function(rows(batches)), spark_types(schema))


def survey(rows: DataFrame) -> list[tuple[str, int, int, bool]]:
    """Return topic, partition and first offset of each log partition, and whether each offset is there once."""
    found = rows.where("log_offset IS NOT NULL").groupBy("log_topic", "log_partition")
    once = F.count("log_offset") == F.count_distinct("log_offset")
    return [tuple(row) for row in found.agg(F.min("log_offset"), once).collect()]


class DumpSource(DataSource):
    """The data source. Option ``source``: a ``LogSource``, pickled, in base64."""

    @classmethod
    def name(cls) -> str:
        """Return the name for ``spark.read.format``."""
        return "coordinator_log"

    def schema(self) -> StructType:
        """Return the columns of a dump."""
        return spark_types(SCHEMA)

    def reader(self, schema: StructType) -> "DumpReader":
        """Return a reader for the option."""
        return DumpReader(pickle.loads(b64decode(self.options[OPTION])))


class DumpReader(DataSourceReader):
    """Plans the tasks of a source, and reads one."""

    def __init__(self, source: LogSource) -> None:
        self.source = source

    def partitions(self) -> Sequence[InputPartition]:
        """Return the tasks."""
        return [InputPartition(task) for task in self.source.partitions()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        return self.source.read(partition.value)
