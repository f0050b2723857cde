"""A table that Spark creates, reads and changes: the twin of ``LocalTable``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from jobs.tables.conflicts import LATE, TableCommit
from jobs.tables.copies import row_bytes, rows_here
from jobs.tables.reader import Value, is_catalog_name, sql_name, sql_text, with_names
from jobs.tables.spark_reader import DIALECT, columns_of, commits, details, read, sent
from jobs.tables.table import Table, about_column, sql_type

NOW: Final = "coalesce(try_cast('now' AS timestamp), current_timestamp())"
"""The time (SQL) at which Spark plans the reading of the rows, within the commit. ``current_timestamp`` does that in a
write, but in MERGE before the commit begins: it is for a Spark that does not know the text ``now``."""


RETENTION: Final = "delta.deletedFileRetentionDuration"
"""Property of a table, which says how long VACUUM keeps files: Delta refuses a RETAIN of less, and the session's way
around that is a configuration that serverless compute does not know."""


def ddl(columns: Iterable[pa.Field], between: str = " ") -> str:
    """Return columns with their comments in Spark's SQL; ``between`` stands between a name and its type.

    Spark Connect's own ``toDDL`` asks the server, by a session that threads do not have.
    """
    fields = partial(ddl, between=": ")
    return ", ".join(
        f"`{each.name}`{between}{sql_type(each.type, fields)}{'' if each.nullable else ' NOT NULL'}"
        + (f" COMMENT {sql_text(about)}" if (about := about_column(each)) else "")
        for each in columns
    )


class SparkTable:
    """The table at a location. ``safe_until``: nobody takes the lease of this run before; None: it has none."""

    def __init__(self, spark: SparkSession, location: str, table: Table, safe_until: datetime | None = None) -> None:
        self._spark = spark
        self._location = location
        self._table = table
        self._name = sql_name(location, table.name)
        self._safe_until = safe_until

    def create(self, properties: Mapping[str, str]) -> None:
        """Create the table without a Spark job, unless it exists."""
        property_list = ", ".join(f"{sql_text(name)} = {sql_text(value)}" for name, value in properties.items())
        self._spark.sql(
            f"CREATE TABLE IF NOT EXISTS {self._name} ({ddl(self._table.columns)}) USING delta "
            f"COMMENT {sql_text(self._table.about)} TBLPROPERTIES ({property_list})"
        )

    def schema(self) -> pa.Schema:
        """Return the columns."""
        return columns_of(read(self._spark, self._location, self._table.name))

    def properties(self) -> dict[str, str]:
        """Return the properties of the table."""
        return {row.key: row.value for row in self._spark.sql(f"SHOW TBLPROPERTIES {self._name}").collect()}

    def set_property(self, name: str, value: str) -> None:
        """Set a property of the table."""
        self._spark.sql(f"ALTER TABLE {self._name} SET TBLPROPERTIES ({sql_text(name)} = {sql_text(value)})")

    def commits(self, most: int) -> list[TableCommit]:
        """Return the last commits, the newest first."""
        return commits(self._spark, self._name, most)

    def restore(self, version: int) -> None:
        """Make the table what it was at a version, as a new version."""
        self._spark.sql(f"RESTORE TABLE {self._name} TO VERSION AS OF {version}")

    def size(self) -> int:
        """Return the size of its files in bytes."""
        return int(details(self._spark, self._name)["sizeInBytes"])

    def slices(self, most_bytes: int) -> Iterator[pa.Table]:
        """Yield all rows, about so many bytes of them at a time: each slice is one more reading of the table."""
        rows = read(self._spark, self._location, self._table.name)
        count = rows.count()
        pieces = min(count, -(-count * row_bytes(columns_of(rows)) // most_bytes))
        if pieces == 1:
            yield rows_here(rows)
            return
        for number in range(pieces):
            # Slices by the hash of the key need no order, which a limit with an offset would need, and a sort for each
            # slice.
            yield rows_here(rows.where(f"pmod(xxhash64({', '.join(self._table.key)}), {pieces}) = {number}"))

    def optimize(self) -> None:
        """Merge small files into large ones."""
        self._spark.sql(f"OPTIMIZE {self._name}")

    def vacuum(self, hours: float) -> None:
        """Delete the files that no version of the last hours needs."""
        kept = f"interval {round(hours * 3600)} seconds"
        if self.properties().get(RETENTION) != kept:
            self.set_property(RETENTION, kept)
        self._spark.sql(f"VACUUM {self._name}")

    def update(self, changes: Mapping[str, str], condition: str) -> int:
        """Set columns of the rows that meet a condition (SQL). Return how many there are."""
        assigned = ", ".join(f"{name} = {value}" for name, value in changes.items())
        (done,) = self._spark.sql(f"UPDATE {self._name} SET {assigned} WHERE {condition}").collect()
        return int(done.num_affected_rows)

    def clear(self) -> None:
        """Delete all rows."""
        self._spark.sql(f"DELETE FROM {self._name} WHERE {self._in_time()}")

    def write(self, given: DataFrame | pa.Table, mode: str, note: str | None = None, **options: str) -> None:
        """Append rows, or put them in the place of others."""
        if note is not None:
            options["userMetadata"] = note
        selected = self._in_spark(given).select(*self._table.schema.names)
        if self._table.order:
            # Within files only: statistics of row groups let a question skip the others, and no shuffle is needed for
            # that.
            selected = selected.sortWithinPartitions(*self._table.order)
        writer = selected.write.format("delta").mode(mode).options(**options)
        if is_catalog_name(self._location):
            writer.saveAsTable(self._name)
        else:
            writer.save(f"{self._location}/{self._table.name}")

    def replace_where(self, rows: DataFrame | pa.Table, condition: str, values: Mapping[str, Value]) -> None:
        """Replace the rows that meet a condition; see ``Tables.replace_where``."""
        self.write(rows, "overwrite", replaceWhere=with_names(condition, str, values, DIALECT))

    def delete(self, given: DataFrame | pa.Table) -> None:
        """Delete the rows that equal one of those given in all their columns."""
        rows = self._in_spark(given)
        self._spark.sql(
            f"MERGE INTO {self._name} t USING {{rows}} s ON {_same(rows.columns)} WHEN MATCHED THEN DELETE", rows=rows
        )

    def merge(
        self,
        given: DataFrame | pa.Table,
        key: Sequence[str],
        update: Mapping[str, str],
        when: str,
        *,
        insert: bool,
        among: str = "true",
    ) -> None:
        """Update the rows with the key of one of those given; see ``Tables.merge``."""
        changes = ", ".join(f"t.{name} = {expression}" for name, expression in update.items())
        names = given.column_names if isinstance(given, pa.Table) else given.columns
        values = ", ".join(f"s.{name}" for name in names)
        self._spark.sql(
            f"MERGE INTO {self._name} t USING {{rows}} s ON {among} AND {_same(key)} "
            f"WHEN MATCHED AND {when} THEN UPDATE SET {changes} "
            # Not INSERT *: a user may have added columns to the table.
            + (f"WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({values})" if insert else ""),
            rows=self._in_spark(given),
        )

    def _in_time(self) -> str:
        """Return a condition (SQL) that is true, and an error if Spark looks at it when the lease may have ended.

        Spark does so after it has opened the table for the commit: a run whose lease is taken later meets the fence.
        """
        if self._safe_until is None:
            return "true"
        until = self._safe_until.isoformat()
        return f"if({NOW} < TIMESTAMP '{until}', true, raise_error({sql_text(LATE)}))"

    def _in_spark(self, rows: DataFrame | pa.Table) -> DataFrame:
        """Return the rows in Spark, with an error instead if the lease may have ended before the commit began."""
        there = sent(self._spark, rows) if isinstance(rows, pa.Table) else rows
        if self._safe_until is None:
            return there
        # Spark's optimizer leaves nothing of the second part. A commit without rows has it, too.
        one_row = self._spark.range(0, 1, 1, numPartitions=1)
        nothing = one_row.where(f"NOT {self._in_time()}").selectExpr(*(["NULL"] * len(there.columns)))
        return there.unionAll(nothing)


def _same(names: Sequence[str]) -> str:
    return " AND ".join(f"t.{name} <=> s.{name}" for name in names)
