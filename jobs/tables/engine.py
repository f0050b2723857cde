"""The two engines over the tables, DataFusion in this process and Spark, and the only choice between them.

By place: this process reads and writes what is in a folder of its own machine, and reads what is in an object store.
By feature: what delta-rs cannot read is for Spark. By size: what is within the ``EngineLimits`` is made here, because a
job that Spark plans and runs takes longer than the reading of a small table; more is for Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import pyarrow as pa

from jobs.settings import EngineLimits
from jobs.tables.reader import TableReader, Value, can_open, is_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from jobs.tables.folder_reader import FolderReader, UnsupportedTableError
    from jobs.tables.spark_reader import SparkReader

T = TypeVar("T")

Rows: TypeAlias = "DataFrame | pa.Table"
"""Rows to write: many, which Spark computes, or few, which are here."""

Batches: TypeAlias = "Iterable[pa.RecordBatch]"


def reads_here(location: str, remote: str | None) -> bool:
    """Return whether this process can read the tables of a question; ``remote``: the Spark that the settings name.

    A folder that is not on this machine may be one of that Spark's.
    """
    is_folder_elsewhere = remote is not None and "://" not in location and not Path(location).exists()
    return can_open(location) and not is_folder_elsewhere


def works_here(spark: SparkSession, location: str) -> bool:
    """Return whether this process takes part in the steps of a night.

    The tables are in a folder of this machine, and Spark runs in a process beside this one: both see the same files.
    """
    return is_folder(location) and (master(spark) or "").startswith("local")


def master(spark: SparkSession) -> str | None:
    """Return the master of a Spark in a process beside this one; None: it is elsewhere.

    Through Spark Connect it is not asked for: serverless compute answers with an error.
    """
    from pyspark.sql.utils import is_remote  # not at the top: answers from folders need no Spark

    return None if is_remote() else spark.conf.get("spark.master", None)


class Engine:
    """Runs the SQL of relations over the tables at one location, as they were when it was made.

    ``here`` reads them in this process; None: only Spark does. ``through_spark`` makes Spark's reader, once, when it is
    needed, and is given the error if this process cannot read a table.
    """

    def __init__(
        self,
        here: FolderReader | None,
        through_spark: Callable[[UnsupportedTableError | None], SparkReader],
        limits: EngineLimits | None = None,
    ) -> None:
        self._here = here
        self._through_spark = through_spark
        self._why: UnsupportedTableError | None = None
        self.limits = limits or EngineLimits()

    @cached_property
    def _spark(self) -> SparkReader:
        return self._through_spark(self._why)

    @property
    def location(self) -> str:
        """The folder, URI or catalog schema of the tables."""
        return (self._here or self._spark).location

    def exists(self, table: str) -> bool:
        """Return whether the table exists; see ``TableReader``."""
        return self._either(lambda reader: reader.exists(table))

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, Any]]:
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
        """Return an engine over the same tables that is Spark alone."""
        return Engine(None, self._through_spark, self.limits)

    def made(self, sql: str, schema: StructType, **values: Value) -> Rows:
        """Return the rows of a query, with these columns and types, to be written to a table."""
        rows = self._folded_here(sql, (), iter, schema, values)
        return self._spark.frame(sql, schema, **values) if rows is None else rows

    def fold(
        self,
        sql: str,
        by: Sequence[str],
        order: Sequence[str],
        function: Callable[[Batches], Iterator[pa.RecordBatch]],
        schema: StructType,
        **values: Value,
    ) -> Rows:
        """Return what a function makes of the rows of a query, with these columns and types, to be written to a table.

        The function takes batches in which rows with the same ``by`` follow each other, in ``order``, nulls first.
        """
        rows = self._folded_here(sql, (*by, *order), function, schema, values)
        return self._spark.folded(sql, by, order, function, schema, **values) if rows is None else rows

    def _folded_here(
        self,
        sql: str,
        order: Sequence[str],
        function: Callable[[Batches], Iterator[pa.RecordBatch]],
        schema: StructType,
        values: Mapping[str, Value],
    ) -> pa.Table | None:
        """Return what this process makes of a query; None: it cannot, or it would be too much to have in memory."""
        types, most = _in_arrow(schema), self.limits.staged_bytes

        def collected(reader: FolderReader) -> pa.Table | None:
            made, size = list[pa.RecordBatch](), 0
            for batch in reader.folded(sql, order, function, types, **values):
                made.append(batch)
                # Columns of nulls alone may be the same memory in all batches.
                size += sum(column.nbytes for column in batch.columns if column.null_count < len(column))
                if size > most:
                    return None
            return pa.Table.from_batches(made, types)

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


def _in_arrow(schema: StructType) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema  # not at the top: answers from folders need no Spark

    return to_arrow_schema(schema)
