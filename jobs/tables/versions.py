"""The versions of tables, and the notes that say what a table was made from."""

import json
from collections.abc import Sequence

from jobs.tables.delta import Tables
from jobs.tables.table import Table


def versions(tables: Tables, wanted: Sequence[Table]) -> dict[str, int]:
    """Return the newest version of each of these tables; those that do not exist are left out."""
    return {table.name: tables.newest_commit(table).version for table in wanted if tables.exists(table)}


def changed_ms(tables: Tables, wanted: Sequence[Table]) -> int:
    """Return when one of these tables was changed last, ms since the epoch; 0: none exists."""
    return max((tables.newest_commit(table).written_ms for table in wanted if tables.exists(table)), default=0)


def note_of(tables: Tables, table: Table) -> str | None:
    """Return the note that the newest commit of a table has."""
    return tables.newest_commit(table).note


def made_from(tables: Tables, inputs: Sequence[Table], **settings: object) -> str:
    """Return a note that says what a table was made from: the versions of other tables, and settings."""
    return json.dumps({"tables": versions(tables, inputs), **settings}, sort_keys=True, default=str)
