"""Where the answers come from: log files as they are given, or tables that a night has made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.api import CoordinatorAudit
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


class StoredTables:
    """Answers from the tables that nights have made of logs; what ingest refuses is the answer to each question."""

    def __init__(self, spark: SparkSession, place: Path, *nights: Sequence[Path]) -> None:
        self._options = ["--tables", str(place)]
        self._refusal: Answer | None = None
        audit = CoordinatorAudit(spark, str(place), CLUSTER)
        for given in nights:
            try:
                audit.ingest(*map(str, given))
            except InputError as error:
                self._refusal = Answer([], str(error), 1)
                return
            audit.decode()
            audit.replay()
            audit.keep_offsets()
            audit.audit()

    def ask(self, question: Question) -> Answer:
        """Run the command on the tables."""
        return self._refusal or asked(question.arguments, self._options)
