"""Maintenance of the tables: delete old values of the log, merge small files, delete files no longer needed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from pyspark.sql import Row

from jobs.settings import MaintenanceSettings
from jobs.tables.delta import Table, Tables
from jobs.tables.lease import LEASES
from jobs.tables.log import LOG_RECORDS, RUNS
from jobs.tables.spark_reader import sql_text

RETENTION: Final = "delta.deletedFileRetentionDuration"
"""Property of a table, which says how long VACUUM keeps files: Delta refuses a RETAIN of less, and the session's way
around that is a configuration that serverless compute does not know."""


def run(tables: Tables, known: Iterable[Table], chosen: MaintenanceSettings, now: datetime) -> dict[str, int]:
    """Maintain the tables that exist. Return their number, and the number of deleted values."""
    dropped_values = 0
    if chosen.keep_values_days is not None and tables.exists(LOG_RECORDS):
        dropped_values = drop_values(tables, now - timedelta(days=chosen.keep_values_days))
    maintained = [table for table in known if tables.exists(table)]
    for table in maintained:
        if chosen.optimize and table is not LEASES:  # a renewal of the lease meanwhile would make one of both fail
            _do(tables, table, f"OPTIMIZE {tables.name(table)}")
        if chosen.vacuum_hours is not None:
            _vacuum(tables, table, chosen.vacuum_hours)
    return {"tables": len(maintained), "values_dropped": dropped_values}


def _vacuum(tables: Tables, table: Table, hours: float) -> None:
    """Delete the files that no version of the table of the last hours needs."""
    kept = f"interval {round(hours * 3600)} seconds"
    if tables.properties(table).get(RETENTION) != kept:
        _do(tables, table, f"ALTER TABLE {tables.name(table)} SET TBLPROPERTIES ('{RETENTION}' = '{kept}')")
    _do(tables, table, f"VACUUM {tables.name(table)}")


def _do(tables: Tables, table: Table, statement: str) -> list[Row]:
    """Run a statement that is one commit of a table, and return its rows."""
    return tables.commit(table, lambda: tables.spark.sql(statement).collect())


def drop_values(tables: Tables, before: datetime) -> int:
    """Set the values, headers and other columns of older, decoded records to null. Return the number of records.

    ``value_dropped`` says where a value was. Keys, positions and transactions stay: they identify records that are
    dumped again, and show what compaction removed.
    """
    runs = tables.read(RUNS).where("job = 'decode'").select("run_id").distinct().collect()
    decoded = ", ".join(sql_text(row.run_id) for row in runs)
    if not decoded:
        return 0
    (updated,) = _do(
        tables,
        LOG_RECORDS,
        f"UPDATE {tables.name(LOG_RECORDS)} SET value_dropped = CASE WHEN value IS NOT NULL THEN true END, "
        "value = NULL, headers = NULL, extra = NULL "
        "WHERE kind = 'record' AND (value IS NOT NULL OR headers IS NOT NULL OR extra IS NOT NULL) "
        f"AND timestamp_ms < {int(before.timestamp() * 1000)} "
        f"AND run_id IN ({decoded})",
    )
    return int(updated.num_affected_rows)
