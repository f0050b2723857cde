"""The typed tables that the log becomes: how a run that was killed in the middle of filling them is taken back.

``log_records`` is written last: a record is taken in once it is there. Rows of other tables that it does not have are
of a run that was killed, and are deleted before the next one, which takes the dump in again.
"""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from jobs.pipeline.decode_arrow import TYPED
from jobs.pipeline.runs import newest_run, runs_behind
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.reader import Value
from jobs.tables.written_files import WrittenFile

PLACE: Final = ("cluster", "log_topic", "log_partition", "log_offset", "stray")
"""The columns that say of all tables which row of the log it is."""

NOT_TAKEN: Final = f"""
SELECT {{columns}} FROM ${{table}} AS r LEFT ANTI JOIN (SELECT * FROM $log_records WHERE run_id IN :killed) AS l
ON {" AND ".join(f"(r.{name} IS NOT DISTINCT FROM l.{name})" for name in PLACE)} WHERE r.run_id IN :killed
"""
"""Rows of killed runs that ``log_records`` does not have."""


def create(tables: Tables) -> None:
    """Create the tables that do not exist."""
    for table in TYPED.values():
        tables.create(table)


def commit(tables: Tables, files: Sequence[WrittenFile], transaction: str) -> None:
    """Append the files that tasks have written, table by table."""
    # ``log_records`` is the last of them: rows of the others that a killed run leaves are not in it, and go.
    for name, table in TYPED.items():
        written_files.commit(tables, table, [file for file in files if file.table == name], transaction)


def has_any(tables: Tables, condition: str, **values: Value) -> bool:
    """Return whether any record of the log fulfils a condition."""
    found = tables.engine().rows(f"SELECT kind FROM $log_records WHERE {condition} LIMIT 1", **values)
    return next(found, None) is not None


def take_back(tables: Tables) -> None:
    """Delete the rows of runs that were killed before ``log_records`` had them."""
    newest = newest_run(tables, "ingest")
    for table in TYPED.values():
        # The log itself is never taken back: its rows are whole, as those of the other tables were written before
        # them.
        killed = [] if table is LOG_RECORDS else runs_behind(tables, table, newest)
        if killed:
            columns = ("run_id", *PLACE)
            text = NOT_TAKEN.format(columns=", ".join(f"r.{name}" for name in columns), table=table.name)
            schema = pa.schema([table.schema.field(name) for name in columns])
            tables.delete(table, tables.engine().made(text, schema, killed=killed))
