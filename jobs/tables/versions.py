"""The versions of tables, and the notes that say what a table was made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jobs.tables.delta import Tables
from jobs.tables.table import Table


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


def made_from(tables: Tables, inputs: Sequence[Table], **settings: object) -> str:
    """Return a note that says what a table was made from: the versions of other tables, and settings."""
    return json.dumps({"tables": versions(tables, inputs), **settings}, sort_keys=True, default=str)


def _newest(tables: Tables, table: Table) -> dict[str, Any]:
    if tables.is_here():
        from deltalake.exceptions import DeltaError

        from jobs.tables.opened import opened

        try:
            (commit,) = opened(f"{tables.location}/{table.name}").history(1)
            return commit
        except DeltaError:  # a feature of Delta that delta-rs does not know: Spark says what is wrong if it is not that
            pass
    return tables.newest_commit(table)
