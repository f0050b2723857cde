"""The two engines over the tables, DataFusion in this process and Spark, and the only choice between them.

By place: this process reads and writes what is in a folder of its own machine or in an object store.
By feature: what delta-rs cannot read is for Spark. By size: what is within the ``EngineLimits`` is made here, because a
job that Spark plans and runs takes longer than the reading of a small table; more is for Spark.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeGuard, TypeVar

import pyarrow as pa

from coordinator_core.errors import InputError
from jobs.settings import EngineLimits
from jobs.tables.reader import Row, TableReader, Value, can_open, is_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from jobs.tables.folder_reader import FolderReader, UnsupportedTableError
    from jobs.tables.spark_reader import SparkReader

T = TypeVar("T")

WITHOUT_LIMIT: Final = 1 << 62
LEFT_TO_SPARK: Final = (
    *(
        "rows",
        "replayed_ranges",
        "replayed_parts",
        "staged_bytes",
        "staged_file_bytes",
        "findings_parts",
        "merged_bytes",
    ),
)
"""The limits above which a step is for Spark; the others say how much this process takes at a time."""

Rows: TypeAlias = "DataFrame | pa.Table"
"""Rows to write: many, which Spark computes, or few, which are here."""

Batches: TypeAlias = "Iterable[pa.RecordBatch]"

DATABRICKS: Final = "DATABRICKS_RUNTIME_VERSION"
"""Environment variable of notebooks and jobs on Databricks."""

Session: TypeAlias = "SparkSession | Callable[[], SparkSession] | None"
"""Spark, for tables: a session that runs the steps; one that starts when this process cannot do something by itself; or
None: there is none, and this process does everything.
"""


def is_empty(rows: Rows) -> bool:
    """Return whether there is no row to write."""
    return not rows.num_rows if isinstance(rows, pa.Table) else bool(rows.isEmpty())


def reads_here(location: str, remote: str | None) -> bool:
    """Return whether this process can read the tables of a question; ``remote``: the Spark that the settings name.

    A folder that is not on this machine may be one of that Spark's.
    """
    is_folder_elsewhere = remote is not None and "://" not in location and not Path(location).exists()
    return can_open(location) and not is_folder_elsewhere


def works_here(session: Session, location: str) -> bool:
    """Return whether this process takes part in the steps of a night.

    The tables are in a folder of this machine, and so are the files of Spark, if it runs: it is beside this process. Or
    they are in an object store, and Spark, which has credentials of its own for it, does not run.
    """
    if not runs_steps(session):
        return can_open(location)
    return is_folder(location) and is_beside(session)


def is_beside(session: SparkSession) -> bool:
    """Return whether Spark runs in a process beside this one, so that both have the same files.

    On Databricks they do not: a path is one of DBFS there, even if the driver is the only machine.
    """
    return DATABRICKS not in os.environ and (master(session) or "").startswith("local")


def runs_steps(session: Session) -> TypeGuard[SparkSession]:
    """Return whether Spark runs the steps: reads dumps, and makes what is too much for this process."""
    return session is not None and not callable(session)


def started(session: Session) -> SparkSession:
    """Return the session, started if it waits for that. Raise InputError if there is none."""
    if session is None:
        raise InputError(
            "this needs Spark: install coordinator-audit[spark] and Java 17, and leave engine.runner at auto or spark"
        )
    return session() if callable(session) else session


def limits_of(session: Session, limits: EngineLimits) -> EngineLimits:
    """Return the limits of this process: without a Spark it takes everything, in as many parts as needed."""
    if session is not None:
        return limits
    return replace(limits, **dict.fromkeys(LEFT_TO_SPARK, WITHOUT_LIMIT))


def is_elsewhere(session: Session) -> bool:
    """Return whether Spark is reached through Spark Connect."""
    if not runs_steps(session):
        return False
    from pyspark.sql.utils import is_remote  # not at the top: answers from folders need no Spark

    return bool(is_remote())


def master(session: SparkSession) -> str | None:
    """Return the master of a Spark in a process beside this one; None: it is elsewhere.

    Through Spark Connect it is not asked for: serverless compute answers with an error.
    """
    return None if is_elsewhere(session) else session.conf.get("spark.master", None)


class Engine:
    """Runs the SQL of relations over the tables at one location, as they were when it was made.

    ``here`` reads them in this process; None: only Spark does. ``through_spark`` makes Spark's reader, once, when it is
    needed, and is given the error if this process cannot read a table; None: there is no Spark.
    """

    def __init__(
        self,
        here: FolderReader | None,
        through_spark: Callable[[UnsupportedTableError | None], SparkReader] | None,
        limits: EngineLimits | None = None,
    ) -> None:
        self._here = here
        self._through_spark = through_spark
        self._why: UnsupportedTableError | None = None
        self.found: dict[object, Any] = {}
        self.limits = limits or EngineLimits()

    @cached_property
    def _spark(self) -> SparkReader:
        if self._through_spark is None:
            raise self._why or InputError("this needs Spark")
        return self._through_spark(self._why)

    @property
    def location(self) -> str:
        """The folder, URI or catalog schema of the tables."""
        return (self._here or self._spark).location

    def exists(self, table: str) -> bool:
        """Return whether the table exists; see ``TableReader``."""
        return self._either(lambda reader: reader.exists(table))

    def rows(self, sql: str, **values: Value) -> Iterator[Row]:
        """Yield the rows of a query; see ``TableReader``. A query whose tables all can be read here is read here."""
        return self._opened(lambda reader: reader.rows(sql, **values))

    def tuples(self, sql: str, **values: Value) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query as tuples; see ``TableReader``."""
        return self._opened(lambda reader: reader.tuples(sql, **values))

    def here(self, make: Callable[[FolderReader], T | None]) -> T | None:
        """Return what ``make`` makes of the tables in this process; None: it is for Spark."""
        from jobs.tables.folder_reader import UnsupportedTableError  # not at the top: workers have no use for it

        if self._here is None:
            return None
        try:
            return make(self._here)
        except UnsupportedTableError as error:
            self._why = error
            return None

    def up_to(self, most: int, count: str, **values: Value) -> Engine:
        """Return this engine if a query (one row, one number) counts at most ``most``, otherwise one of Spark alone."""
        if self._here is None:
            return self
        ((number,),) = self.tuples(count, **values)
        return self if (number or 0) <= most else self.in_spark()

    def parts(self, most: int, count: str, **values: Value) -> int | None:
        """Return in how many parts of at most ``most`` this process takes what a query counts (one row, one number).

        One at least; one, too, if only Spark reads the tables. None: it takes none of it.
        """
        if self._here is None:
            return 1
        ((number,),) = self.tuples(count, **values)
        if most <= 0:
            return 1 if (number or 0) <= most else None
        return max(1, -(-(number or 0) // most))

    def in_spark(self) -> Engine:
        """Return an engine over the same tables that is Spark alone; this one where there is no Spark."""
        return self if self._through_spark is None else Engine(None, self._through_spark, self.limits)

    def made(self, sql: str, schema: pa.Schema, **values: Value) -> Rows:
        """Return the rows of a query, with these columns and types, to be written to a table."""
        rows = self.folded_here(sql, (), iter, schema, values)
        return self._spark.frame(sql, schema, **values) if rows is None else rows

    def fold(
        self,
        sql: str,
        by: Sequence[str],
        order: Sequence[str],
        function: Callable[[Batches], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        **values: Value,
    ) -> Rows:
        """Return what a function makes of the rows of a query, with these columns and types, to be written to a table.

        The function takes batches in which rows with the same ``by`` follow each other, in ``order``, nulls first.
        """
        rows = self.folded_here(sql, (*by, *order), function, schema, values)
        return self._spark.folded(sql, by, order, function, schema, **values) if rows is None else rows

    def folded_here(
        self,
        sql: str,
        order: Sequence[str],
        function: Callable[[Batches], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        values: Mapping[str, Value],
    ) -> pa.Table | None:
        """Return what this process makes of a query; None: it cannot, or it would be too much to have in memory."""
        most = self.limits.staged_bytes

        def collected(reader: FolderReader) -> pa.Table | None:
            made, size = list[pa.RecordBatch](), 0
            for batch in reader.folded(sql, order, function, schema, **values):
                made.append(batch)
                # Columns of nulls alone may be the same memory in all batches.
                size += sum(column.nbytes for column in batch.columns if column.null_count < len(column))
                if size > most:
                    return None
            return pa.Table.from_batches(made, schema)

        return self.here(collected)

    def _either(self, ask: Callable[[TableReader], T]) -> T:
        """Return what this process answers, or Spark if this process cannot read the tables."""
        from jobs.tables.folder_reader import UnsupportedTableError

        if self._here is None:
            return ask(self._spark)
        try:
            return ask(self._here)
        except UnsupportedTableError as error:
            self._why = error
            return ask(self._spark)

    def _opened(self, question: Callable[[TableReader], Iterator[T]]) -> Iterator[T]:
        """Yield the answers to a question; the first of them opens the tables."""

        def opened(reader: TableReader) -> tuple[list[T], Iterator[T]]:
            rows = question(reader)
            return list(islice(rows, 1)), rows

        first, others = self._either(opened)
        yield from first
        yield from others
