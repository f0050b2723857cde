"""Keeping the tables small: old values of the log go, small files become large ones, files no longer needed go."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from jobs.settings import MaintenanceSettings
from jobs.tables.delta import Table, Tables
from jobs.tables.lease import LEASES
from jobs.tables.log import LOG_RECORDS, RUNS


def run(tables: Tables, known: Iterable[Table], chosen: MaintenanceSettings, now: datetime) -> dict[str, int]:
    """Maintain those of the tables that are there; returns how many, and how many values were dropped."""
    dropped = 0
    if chosen.keep_values_days is not None and tables.exists(LOG_RECORDS):
        dropped = drop_values(tables, now - timedelta(days=chosen.keep_values_days))
    maintained = [table for table in known if tables.exists(table)]
    if chosen.vacuum_hours is not None:
        # Delta refuses less than a week unless told: others may still read. The settings have told us.
        tables.spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    for table in maintained:
        if chosen.optimize and table is not LEASES:  # which is renewed meanwhile: one of the two would fail
            tables.spark.sql(f"OPTIMIZE {tables.name(table)}")
        if chosen.vacuum_hours is not None:
            tables.spark.sql(f"VACUUM {tables.name(table)} RETAIN {chosen.vacuum_hours:g} HOURS")
    return {"tables": len(maintained), "values_dropped": dropped}


def drop_values(tables: Tables, before: datetime) -> int:
    """Make the values of older, decoded records null, and say so in ``value_dropped``; returns how many there were.

    Keys, positions and transactions stay: they make a dump that comes again known, and tell compaction from loss.
    """
    runs = tables.read(RUNS).where("job = 'decode'").select("run_id").distinct().collect()
    decoded = ", ".join(f"'{row.run_id}'" for row in runs)
    if not decoded:
        return 0
    (updated,) = tables.spark.sql(
        f"UPDATE {tables.name(LOG_RECORDS)} "
        "SET value = NULL, headers = NULL, extra = NULL, value_dropped = true "
        f"WHERE kind = 'record' AND value IS NOT NULL AND timestamp_ms < {int(before.timestamp() * 1000)} "
        f"AND run_id IN ({decoded})"
    ).collect()
    return int(updated.num_affected_rows)
