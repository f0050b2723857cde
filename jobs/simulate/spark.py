"""Simulation as a Spark job: one task for each log partition, which writes its own files."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from coordinator_core.simulator.scenario import Scenario
from jobs.simulate.partition import WrittenPartition, new_folder, write_metadata, write_partition
from jobs.tables.spark_reader import spark_types

WRITTEN: Final = pa.schema(
    {"topic": pa.string(), "partition": pa.int32(), **dict.fromkeys(("records", "commits", "rebalances"), pa.int64())}
)
"""Columns of the result: one row for each log partition that was written."""


def run(spark: SparkSession, scenario: Scenario, seed: int, out: Path, shape: str) -> list[WrittenPartition]:
    """Simulate the scenario into the folder ``out``, which all workers must reach. Return what was written.

    Raises:
        InputError: the folder is not empty.
    """
    new_folder(out)
    metadata = write_metadata(scenario, seed, out, shape)
    rows = partitions(spark, scenario, seed, out, shape).orderBy("topic", "partition").collect()
    return [metadata, *(WrittenPartition(**row.asDict()) for row in rows)]


def partitions(spark: SparkSession, scenario: Scenario, seed: int, out: Path, shape: str) -> DataFrame:
    """Return rows of ``WRITTEN``; the log partitions are simulated and written when an action runs."""
    count = len(scenario.logs)
    task = task_of(scenario.model_dump_json(), seed, str(out), shape)
    return spark.range(0, count, 1, count).mapInArrow(task, spark_types(WRITTEN))


def task_of(
    scenario: str, seed: int, out: str, shape: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that simulates logs.

    Its input rows have the column ``id``: indexes into ``Scenario.logs``; it yields rows of ``WRITTEN``. ``scenario``
    is the model as JSON.
    """

    def simulate(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        model = Scenario.model_validate_json(scenario)
        logs = model.logs
        for batch in batches:
            for number in batch.column("id").to_pylist():
                family, partition = logs[number]
                written = write_partition(model, seed, family, partition, Path(out), shape)
                yield pa.RecordBatch.from_pylist([written._asdict()], schema=WRITTEN)

    return simulate
