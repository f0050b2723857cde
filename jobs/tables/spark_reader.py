"""Tables of a catalog, or of a location that only Spark can open, read through Spark."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Final

import pyarrow as pa
from deltalake import Schema
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from coordinator_core.errors import InputError
from jobs.tables.conflicts import TableCommit
from jobs.tables.reader import (
    KEPT_ANSWERS,
    KEPT_ROWS,
    Dialect,
    MissingTableError,
    Value,
    missing_table,
    sql_name,
    sql_text,
    with_names,
)
from jobs.tables.spark_errors import one_line
from jobs.tables.table import sql_type

MISSING: Final = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND")
"""Spark's error conditions for a missing table."""


DIALECT: Final = Dialect(sql_text, bytes_of="octet_length({})", each_of="explode({})", numbers="sequence({})")


def spark_types(columns: Iterable[pa.Field]) -> StructType:
    """Return columns with Spark's types and their comments. Delta writes a schema as Spark does."""
    return StructType.fromJson(json.loads(Schema.from_arrow(pa.schema(columns)).to_json()))


def columns_of(rows: DataFrame) -> pa.Schema:
    """Return the columns of rows in Spark with Arrow's types."""
    return to_arrow_schema(rows.schema)


def in_spark(condition: str, values: Mapping[str, Value]) -> Column:
    """Return a condition that is written for a ``TableReader`` as one for the rows of a DataFrame."""
    return F.expr(with_names(condition, str, values, DIALECT))


def sent(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Return the rows in Spark.

    In one piece: classic Spark leaves out all rows behind a batch of Arrow that has none. Spark Connect does not take
    the columns of no rows from Arrow.
    """
    return spark.createDataFrame(rows.combine_chunks() if rows.num_rows else [], spark_types(rows.schema))


def read(spark: SparkSession, location: str, table: str) -> DataFrame:
    """Return all rows of a table.

    Raises:
        MissingTableError: the table does not exist.
        InputError: the table cannot be read.
    """
    name = sql_name(location, table)
    try:
        rows = spark.table(name)
        rows.schema  # noqa: B018  Spark Connect reports a missing table only when asked for its columns
    except Exception as error:
        if isinstance(error, PySparkException) and error.getCondition() in MISSING:
            raise missing_table(location, table) from error
        raise InputError(f"table {name} cannot be read: {one_line(error)}") from error
    return rows


def commits(spark: SparkSession, name: str, most: int) -> list[TableCommit]:
    """Return the last commits of a table, the newest first."""
    return [
        TableCommit(row.version, round(row.timestamp.timestamp() * 1000), row.operation, row.userMetadata)
        for row in spark.sql(f"DESCRIBE HISTORY {name} LIMIT {most}").collect()
    ]


def details(spark: SparkSession, name: str) -> Mapping[str, Any]:
    """Return what Delta tells of a table: its properties and files."""
    (row,) = spark.sql(f"DESCRIBE DETAIL {name}").collect()
    found: Mapping[str, Any] = row.asDict()
    return found


class SparkReader:
    """Reads tables with Spark SQL; ``location``: the folder, URI or catalog schema of the tables.

    ``given``: texts that are read instead of tables, by the names of these. What was read once is not read again, as a
    reader is of the tables as they were: the same few rows are behind many questions about one group.
    """

    def __init__(self, spark: SparkSession, location: str, given: Mapping[str, str] | None = None) -> None:
        self._spark = spark
        self._given = given or {}
        self.found: dict[object, Any] = {}
        self._known: set[str] = set()
        self._kept: dict[str, list[Mapping[str, object]]] = {}
        self.location = location

    def exists(self, table: str) -> bool:
        """Return whether the table exists. Raise InputError if it exists but cannot be read."""
        try:
            self._name(table)
        except MissingTableError:
            return False
        return True

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, object]]:
        """Yield the rows of a query; see ``TableReader``."""
        text = self._text(sql, values)
        if text in self._kept:
            return iter(self._kept[text])
        rows = (row.asDict(recursive=True) for row in self._frame(text).toLocalIterator())
        first: list[Mapping[str, object]] = [*islice(rows, KEPT_ROWS + 1)]
        if len(first) <= KEPT_ROWS and len(self._kept) < KEPT_ANSWERS:
            self._kept[text] = first
        return chain(first, rows)

    def tuples(self, sql: str, **values: Value) -> Iterator[tuple[object, ...]]:
        """Yield the rows of a query as tuples; see ``TableReader``."""
        return (tuple(row.values()) for row in self.rows(sql, **values))

    def frame(self, sql: str, schema: pa.Schema, **values: Value) -> DataFrame:
        """Return the rows of a query with these columns and types."""
        casts = (f"CAST(`{each.name}` AS {sql_type(each.type)}) AS `{each.name}`" for each in schema)
        return self._frame(self._text(sql, values)).selectExpr(*casts)

    def folded(
        self,
        sql: str,
        by: Sequence[str],
        order: Sequence[str],
        function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
        schema: pa.Schema,
        **values: Value,
    ) -> DataFrame:
        """Return what a function makes of the rows of a query: those with the same ``by`` in one task, in ``order``."""
        rows = self._frame(self._text(sql, values)).repartition(*by)  # sorting by range would read all rows twice
        return rows.sortWithinPartitions(*by, *order).mapInArrow(function, spark_types(schema))

    def query(self, sql: str, **values: Value) -> DataFrame:
        """Return the rows of a query."""
        return self._frame(self._text(sql, values))

    def _frame(self, text: str) -> DataFrame:
        return self._spark.sql(text)

    def _text(self, sql: str, values: Mapping[str, Value]) -> str:
        return with_names(sql, self._name, values, DIALECT)

    def _name(self, table: str) -> str:
        if table in self._given:
            return f"({self._given[table]})"
        if table not in self._known:
            read(self._spark, self.location, table)  # a missing table is an error of its own
            self._known.add(table)
        return sql_name(self.location, table)
