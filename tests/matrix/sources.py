"""Where the answers come from: log files as they are given, or tables that nights have made of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, NoReturn

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from coordinator_core.errors import InputError
from jobs.pipeline import decode, ingest, offsets, replay
from jobs.pipeline import findings as audit
from jobs.settings import load
from jobs.sources.dump import open_dump
from jobs.tables.delta import Tables
from tests.matrix.answers import Answer, Question, asked

CLUSTER = "default"
"""The name that metrics of log files have."""


class Files:
    """Answers from log files."""

    def __init__(self, given: Sequence[Path]) -> None:
        self._options = [part for each in given for part in ("--log", str(each))]

    def ask(self, question: Question) -> Answer:
        """Run the command on the files."""
        return asked(question.arguments, self._options)


class Broken:
    """Stands for tables whose nights ended in an error that is not meant for people."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def ask(self, question: Question) -> Answer:
        """Return the error, whatever the question."""
        return Answer([], f"{type(self._error).__name__}: {self._error}", 99)


class NeedsSparkError(BaseException):
    """A night needs a real Spark. It is not caught as an error of the tables."""


class ThisProcess:
    """Stands for Spark in nights of small logs, of which Spark only starts the tasks that read segments."""

    conf: ClassVar = {"spark.master": "local[1]"}

    def range(self, start: int, end: int, step: int, partitions: int) -> "_Tasks":
        """Return numbers, one for each task."""
        return _Tasks(range(start, end, step))

    def __getattr__(self, name: str) -> NoReturn:
        raise NeedsSparkError(name)


class _Tasks:
    def __init__(self, numbers: range) -> None:
        self._numbers = numbers
        self._rows: list[Row] = []

    def mapInArrow(self, task: Any, schema: Any) -> "_Tasks":  # noqa: N802 - the name that Spark has
        for number in self._numbers:
            given = pa.record_batch({"id": pa.array([number], pa.int64())})
            self._rows += (Row(**row) for batch in task(iter([given])) for row in batch.to_pylist())
        return self

    def collect(self) -> list[Row]:
        return self._rows


class StoredTables:
    """Answers from tables; ``nights`` are the paths that each night is given.

    What ingest refuses is the answer to each question. Raises NeedsSparkError: ``spark`` is this process, and a night
    needs more.
    """

    def __init__(self, spark: SparkSession | ThisProcess, place: Path, nights: Sequence[Sequence[Path]]) -> None:
        self._options = ["--tables", str(place)]
        self._refusal: Answer | None = None
        tables, settings = Tables(spark, str(place)), load(environment={})  # type: ignore[arg-type]
        for given in nights:
            try:
                ingest.run(tables, open_dump(tables.spark, [*map(str, given)]), CLUSTER)
            except (InputError, PySparkException) as error:
                self._refusal = Answer([], str(error), 1)
                return
            decode.run(tables)
            replay.run(tables, settings.audit)
            offsets.run(tables, None)
            audit.run(tables, settings.findings, "night")

    def ask(self, question: Question) -> Answer:
        """Run the command on the tables."""
        return self._refusal or asked(question.arguments, self._options)
