"""Tables of a catalog, or of a location that only Spark can open, read through Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables, sql_text
from jobs.tables.reader import Dialect, Value, with_names

DIALECT: Final = Dialect(sql_text, "octet_length({})")


def in_spark(condition: str, values: Mapping[str, Value]) -> Column:
    """Return a condition that is written for a ``TableReader`` as one for the rows of a DataFrame."""
    return F.expr(with_names(condition, str, values, DIALECT))


class SparkReader:
    """Reads tables with Spark SQL."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    @property
    def location(self) -> str:
        """The folder, URI or catalog schema of the tables."""
        return self._tables.location

    def exists(self, table: str) -> bool:
        """Return whether the table exists. Raise InputError if it exists but cannot be read."""
        return self._tables.exists(CATALOG[table])

    def rows(self, sql: str, **values: Value) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query; see ``TableReader``."""
        found = self._tables.spark.sql(with_names(sql, self._name, values, DIALECT))
        return (row.asDict(recursive=True) for row in found.toLocalIterator())

    def tuples(self, sql: str, **values: Value) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query as tuples; see ``TableReader``."""
        return (tuple(row.values()) for row in self.rows(sql, **values))

    def _name(self, table: str) -> str:
        self._tables.read(CATALOG[table])  # a missing table is an error of its own
        return self._tables.name(CATALOG[table])
