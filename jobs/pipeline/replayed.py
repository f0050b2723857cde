"""The rows that a replay has staged in ``replayed``, by the table that they are for."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from coordinator_core.audit.audited_rows import STATE_VERSION
from coordinator_core.groups.violations import Violation
from jobs.tables.columns import BOOLEAN, plain
from jobs.tables.delta import Tables
from jobs.tables.engine import Rows
from jobs.tables.history import CLUSTER, FOLDED, GROUP, GROUP_STATES, HISTORY, REPLAYED
from jobs.tables.table import Table

GROUPS: Final = "groups"
MARKS: Final = "marks"

IS_MARK: Final = " AND ".join(f"{name} IS NULL" for name in ("state", *FOLDED.values()))
"""A row that only names a group: its history is deleted before its new rows are merged."""

OF_GROUP: Final = plain([CLUSTER, GROUP[-1]])
ARE_OPEN: Final = plain([*OF_GROUP, pa.field("is_open", BOOLEAN)])


class Replayed:
    """The staged rows of one run. Few rows are read by this process, many by Spark."""

    def __init__(self, tables: Tables) -> None:
        """Open the table as it is now."""
        local = tables.local(REPLAYED)
        is_small = local.size() <= tables.limits.staged_file_bytes if local else tables.are_copied([REPLAYED])
        self._engine = tables.engine() if is_small else tables.engine().in_spark()

    def counts(self) -> dict[str, int]:
        """Return the number of rows for each history table, of states as ``groups``, and of groups begun again."""
        names = ", ".join(f"count({name}) AS {name}" for name in FOLDED.values())
        marks = f"count(CASE WHEN {IS_MARK} THEN 1 END)"
        (counts,) = self._engine.rows(f"SELECT {names}, count(state) AS {GROUPS}, {marks} AS {MARKS} FROM $replayed")
        return dict(counts)

    def rows(self, table: Table) -> Rows:
        """Return the rows for a history table. A violation that one record has twice is returned once."""
        # A merge wants each key once, and only violations can come twice, of one record.
        distinct = "DISTINCT" if table is HISTORY[FOLDED[Violation]] else ""
        fields = (f"r.{table.name}.{name} AS {name}" for name in table.schema.names if name != CLUSTER.name)
        text = f"SELECT {distinct} cluster, {', '.join(fields)} FROM $replayed AS r WHERE {table.name} IS NOT NULL"
        return self._engine.made(text, table.schema)

    def states(self, run_id: str) -> Rows:
        """Return the rows for ``group_states``; ``run_id`` is the newest run that is included."""
        given = {"version": ":version", "run_id": ":run"}
        fields = ", ".join(f"{given.get(name, name)} AS {name}" for name in GROUP_STATES.schema.names)
        text = f"SELECT {fields} FROM $replayed WHERE state IS NOT NULL"
        return self._engine.made(text, GROUP_STATES.schema, version=STATE_VERSION, run=run_id)

    def open_violations(self) -> Rows:
        """Return ``cluster``, ``group_id`` and ``is_open`` (true) of each group."""
        text = "SELECT DISTINCT cluster, group_id, TRUE AS is_open FROM $replayed WHERE state IS NOT NULL"
        return self._engine.made(text, ARE_OPEN)

    def groups_begun_again(self) -> Rows:
        """Return ``cluster`` and ``group_id`` of each group whose history is deleted before its new rows are merged."""
        return self._engine.made(f"SELECT DISTINCT cluster, group_id FROM $replayed WHERE {IS_MARK}", OF_GROUP)
