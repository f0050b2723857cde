"""The rows that a replay has staged in ``replayed``, by the table that they are for.

Few rows are read and merged by this process, many by Spark: with the same result.
"""

from __future__ import annotations

import json
from typing import Final, Protocol

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from coordinator_core.audit.group_audit import STATE_VERSION
from coordinator_core.groups.violations import Violation
from jobs.tables.delta import Table, Tables
from jobs.tables.engine import Rows
from jobs.tables.history import FOLDED, GROUP_STATES, HISTORY, REPLAYED

PLACE: Final = ("log_partition", "log_offset", "timestamp_ms", "state")
GROUPS: Final = "groups"


class Replayed(Protocol):
    """The staged rows of one run."""

    def counts(self) -> dict[str, int]:
        """Return the number of rows for each history table, and of states as ``groups``."""

    def rows(self, table: Table) -> Rows:
        """Return the rows for a history table. A violation that one record has twice is returned once."""

    def states(self, run_id: str) -> Rows:
        """Return the rows for ``group_states``; ``run_id`` is the newest run that is included."""

    def open_violations(self) -> Rows:
        """Return ``cluster``, ``group_id`` and ``is_open`` (true) of each group."""


def replayed(tables: Tables) -> Replayed:
    """Return the rows that are in ``replayed`` now."""
    local = tables.local(REPLAYED)
    if local is not None and local.size() <= tables.limits.staged_file_bytes:
        return _Here(local.rows())
    return _InSpark(tables)


class _InSpark:
    def __init__(self, tables: Tables) -> None:
        self._staged = tables.read(REPLAYED)
        self._states = self._staged.where("state IS NOT NULL")

    def counts(self) -> dict[str, int]:
        names = [F.count(name).alias(name) for name in FOLDED.values()]
        (counts,) = self._staged.agg(F.count("state").alias(GROUPS), *names).collect()
        return dict(counts.asDict())

    def rows(self, table: Table) -> Rows:
        rows = self._staged.where(F.col(table.name).isNotNull()).select("cluster", f"{table.name}.*")
        return rows.distinct() if table is HISTORY[FOLDED[Violation]] else rows

    def states(self, run_id: str) -> Rows:
        marks = {"version": F.lit(STATE_VERSION), "run_id": F.lit(run_id)}
        return self._states.select(*GROUP_STATES.key, *PLACE).withColumns(marks)

    def open_violations(self) -> Rows:
        return self._states.select("cluster", "group_id", F.lit(True).alias("is_open")).distinct()


class _Here:
    def __init__(self, staged: pa.Table) -> None:
        self._staged = staged
        self._states = staged.filter(staged["state"].is_valid())

    def counts(self) -> dict[str, int]:
        rows = self._staged.num_rows
        counts = {name: rows - self._staged[name].null_count for name in FOLDED.values()}
        return counts | {GROUPS: self._states.num_rows}

    def rows(self, table: Table) -> Rows:
        staged = self._staged.filter(self._staged[table.name].is_valid())
        structs = staged[table.name].combine_chunks()
        columns = dict(zip([field.name for field in structs.type], structs.flatten(), strict=True))
        rows = pa.table({"cluster": staged["cluster"], **columns})
        if table is HISTORY[FOLDED[Violation]]:
            once = {json.dumps(row, sort_keys=True): index for index, row in enumerate(rows.to_pylist())}
            rows = rows.take(pa.array(once.values(), pa.int64()))
        return _cast(rows, table.schema)

    def states(self, run_id: str) -> Rows:
        count = self._states.num_rows
        rows = self._states.select([*GROUP_STATES.key, *PLACE])
        rows = rows.append_column("version", pa.array([STATE_VERSION] * count, pa.string()))
        return _cast(rows.append_column("run_id", pa.array([run_id] * count, pa.string())), GROUP_STATES.schema)

    def open_violations(self) -> Rows:
        groups = self._states.select(["cluster", "group_id"]).group_by(["cluster", "group_id"]).aggregate([])
        return groups.append_column("is_open", pa.array([True] * groups.num_rows))


def _cast(rows: pa.Table, schema: StructType) -> pa.Table:
    return rows.select(schema.names).cast(to_arrow_schema(schema))
