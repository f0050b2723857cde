"""The tables: Delta, found by path or by catalog name; created with comments, appended to exactly once, merged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, StructField, StructType

from coordinator_core.errors import InputError
from jobs.errors import one_line

FORMAT = "coordinator_audit.format"
"""Table property: the version of the form of all tables."""
FORMAT_VERSION = 1

INDEXED_COLUMNS = 12
"""Delta keeps bounds of so many leading columns: what the jobs select by is among them, and each costs every write."""

MISSING = ("PATH_NOT_FOUND", "TABLE_OR_VIEW_NOT_FOUND", "DELTA_TABLE_NOT_FOUND", "SCHEMA_NOT_FOUND")
"""What Spark says of a table that is not there."""

CATALOG_NAME = re.compile(r"\w+\.\w+(\.\w+)?")


class MissingTableError(InputError):
    """There is no such table."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of the product: ``key`` are the columns that identify a row, compared null-safe."""

    name: str
    about: str
    schema: StructType
    key: tuple[str, ...]


def column(name: str, of: DataType, about: str) -> StructField:
    """A column that may be null, with its comment."""
    return StructField(name, of, True, {"comment": about})


def sql_text(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


class Tables:
    """The tables of one audit, at ``home``: a folder (a path or a URI), or a schema of a catalog (``main.audit``).

    A word without a dot or a slash is a folder.
    """

    def __init__(self, spark: SparkSession, home: str) -> None:
        self.spark = spark
        self._by_name = CATALOG_NAME.fullmatch(home) is not None
        local = not self._by_name and "://" not in home and not home.startswith("dbfs:")
        self._created: set[str] = set()
        self._empty: set[str] = set()
        self._is_of_this_format = False
        self.home = str(Path(home).resolve()) if local else home.rstrip("/")

    def name(self, table: Table) -> str:
        """What SQL calls the table."""
        return f"{self.home}.{table.name}" if self._by_name else f"delta.`{self.home}/{table.name}`"

    def exists(self, table: Table) -> bool:
        """Whether the table has been created; raises InputError where it is there and cannot be read."""
        try:
            self.read(table)
        except MissingTableError:
            return False
        return True

    def create(self, table: Table) -> None:
        """Create the table where it is not there yet; leave it alone where it is.

        Raises:
            InputError: the place cannot be written, or what is there is not this table as this release writes it.
        """
        if table.name in self._created:
            return
        if self.exists(table):
            self._verify(table)
        else:
            self._make(table)
            self._empty.add(table.name)
        self._created.add(table.name)

    def _make(self, table: Table) -> None:
        """In SQL, because that runs no Spark job; where another run makes the table at this moment, it is the same."""
        properties = {FORMAT: FORMAT_VERSION, "delta.dataSkippingNumIndexedCols": INDEXED_COLUMNS}
        said = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        about = table.about.replace("'", "\\'")
        try:
            self.spark.sql(
                f"CREATE TABLE IF NOT EXISTS {self.name(table)} ({table.schema.toDDL()}) USING delta "
                f"COMMENT '{about}' TBLPROPERTIES ({said})"
            )
        except Exception as error:
            raise InputError(f"table {self.name(table)} cannot be created: {one_line(error)}") from error

    def _verify(self, table: Table) -> None:
        """Refuse a table that an other release made in another form, or that was changed by hand."""
        there = {field.name: field.dataType for field in self.read(table).schema}
        if not self._is_of_this_format:
            self._check_format(table)
        for field in table.schema:
            found = there.get(field.name)
            if found != field.dataType:
                found_text = "is not there" if found is None else f"is {found.simpleString()}"
                raise InputError(
                    f"table {self.name(table)} is not as this release writes it: column {field.name} {found_text}, "
                    f"{field.dataType.simpleString()} is needed"
                )

    def _check_format(self, table: Table) -> None:
        """Of the first table met: all are of one format."""
        shown = self.spark.sql(f"SHOW TBLPROPERTIES {self.name(table)}").collect()
        version = next((row.value for row in shown if row.key == FORMAT), "0")
        if int(version) > FORMAT_VERSION:
            raise InputError(
                f"the tables at {self.home} are of format {version}, of a newer release of coordinator-audit; "
                f"this one knows formats up to {FORMAT_VERSION}"
            )
        self._is_of_this_format = True

    def read(self, table: Table) -> DataFrame:
        """All rows.

        Raises:
            MissingTableError: there is no such table.
            InputError: it cannot be read.
        """
        try:
            rows = self.spark.table(self.name(table))
            rows.schema  # noqa: B018  Spark Connect finds out about a missing table only when asked for its columns
        except Exception as error:
            if isinstance(error, PySparkException) and error.getCondition() in MISSING:
                raise MissingTableError(f"no table {self.name(table)}: {one_line(error)}") from error
            raise InputError(f"table {self.name(table)} cannot be read: {one_line(error)}") from error
        return rows

    def append(self, table: Table, rows: DataFrame, transaction: str) -> None:
        """Append rows as one transaction; one that was committed before, under the same name, changes nothing."""
        self._write(table, rows, "append", txnAppId=f"{transaction}/{table.name}", txnVersion="1")

    def replace(self, table: Table, rows: DataFrame) -> None:
        """Make these rows the only ones of the table, in one commit."""
        self._write(table, rows, "overwrite")

    def clear(self, table: Table) -> None:
        """Delete all rows."""
        self.spark.sql(f"DELETE FROM {self.name(table)}")

    def _write(self, table: Table, rows: DataFrame, mode: str, **options: str) -> None:
        self._empty.discard(table.name)
        writer = rows.select(*table.schema.names).write.format("delta").mode(mode).options(**options)
        if self._by_name:
            writer.saveAsTable(self.name(table))
        else:
            writer.save(f"{self.home}/{table.name}")

    def delete(self, table: Table, rows: DataFrame) -> None:
        """Delete what equals one of these rows in all of its columns."""
        if table.name in self._empty:
            return
        same = " AND ".join(f"t.{name} <=> s.{name}" for name in rows.columns)
        self.spark.sql(
            f"MERGE INTO {self.name(table)} t USING {{rows}} s ON {same} WHEN MATCHED THEN DELETE", rows=rows
        )

    def merge(
        self,
        table: Table,
        rows: DataFrame,
        update: Mapping[str, str],
        *,
        when: str = "true",
        insert: bool = False,
        delete: str | None = None,
    ) -> None:
        """Update the rows that have the keys of ``rows`` and satisfy ``when``; ``insert`` those that are not there.

        ``update`` maps columns to SQL expressions over ``t`` (the table) and ``s`` (the rows), as ``when`` is one. Rows
        of the table that satisfy ``delete`` and are not among ``rows`` go. Rows for a table that this run has just made
        are written as they are, in a tenth of the Spark jobs that MERGE takes: only the holder of the lease writes.
        """
        if insert and table.name in self._empty:
            self._write(table, rows, "append")
            return
        same = " AND ".join(f"t.{name} <=> s.{name}" for name in table.key)
        changes = ", ".join(f"t.{name} = {expression}" for name, expression in update.items())
        self.spark.sql(
            f"MERGE INTO {self.name(table)} t USING {{rows}} s ON {same} "
            f"WHEN MATCHED AND {when} THEN UPDATE SET {changes} "
            + ("WHEN NOT MATCHED THEN INSERT * " if insert else "")
            + (f"WHEN NOT MATCHED BY SOURCE AND {delete} THEN DELETE" if delete else ""),
            rows=rows,
        )
