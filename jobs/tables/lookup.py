"""Small questions to the tables between the steps of a night: in this process where the tables are here.

A question that Spark plans and runs takes longer than the reading of a small table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jobs.tables.delta import Table, Tables
from jobs.tables.reader import TableReader
from jobs.tables.spark_reader import SparkReader

if TYPE_CHECKING:
    from jobs.tables.folder_reader import FolderReader

T = TypeVar("T")


def lookup(tables: Tables) -> TableReader:
    """Return a reader of the tables as they are now."""
    if not tables.is_here():
        return SparkReader(tables)
    # Not at the top: Python workers of Spark have no use for it.
    from jobs.tables.folder_or_spark import FolderOrSparkReader
    from jobs.tables.folder_reader import FolderReader

    return FolderOrSparkReader(FolderReader(tables.location), lambda error: SparkReader(tables))


def made_here(tables: Tables, make: Callable[[FolderReader], T | None]) -> T | None:
    """Return what ``make`` makes of the tables in this process; None: it is for Spark.

    It is, too, where the tables are not in a folder here, or have a feature of Delta that delta-rs does not know.
    """
    if not tables.is_here():
        return None
    # Not at the top: Python workers of Spark have no use for it.
    from jobs.tables.folder_reader import FolderReader, UnsupportedTableError

    try:
        return make(FolderReader(tables.location))
    except UnsupportedTableError:
        return None


def versions(tables: Tables, wanted: Sequence[Table]) -> dict[str, int]:
    """Return the newest version of each of these tables; those that do not exist are left out."""
    return {table.name: int(_newest(tables, table)["version"]) for table in wanted if tables.exists(table)}


def changed_ms(tables: Tables, wanted: Sequence[Table]) -> int:
    """Return when one of these tables was changed last, ms since the epoch; 0: none exists."""
    times = [_newest(tables, table)["timestamp"] for table in wanted if tables.exists(table)]
    return max((at if isinstance(at, int) else round(at.timestamp() * 1000) for at in times), default=0)


def note_of(tables: Tables, table: Table) -> str | None:
    """Return the note that the newest commit of a table has."""
    note = _newest(tables, table).get("userMetadata")
    return None if note is None else str(note)


def made_from(tables: Tables, inputs: Sequence[Table], **settings: Any) -> str:
    """Return a note that says what a table was made from: the versions of other tables, and settings."""
    return json.dumps({"tables": versions(tables, inputs), **settings}, sort_keys=True, default=str)


def _newest(tables: Tables, table: Table) -> dict[str, Any]:
    if tables.is_here():
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            (found,) = DeltaTable(f"{tables.location}/{table.name}").history(1)
            return found
        except DeltaError:  # a feature of Delta that delta-rs does not know: Spark says what is wrong if it is not that
            pass
    (row,) = tables.spark.sql(f"DESCRIBE HISTORY {tables.name(table)} LIMIT 1").collect()
    return row.asDict()
