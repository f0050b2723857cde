"""Maintenance of the tables: delete old values of the log, merge small files, delete files no longer needed."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial

from jobs.settings import MaintenanceSettings
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.nightly import LEASES
from jobs.tables.reader import sql_text
from jobs.tables.table import Table


def run(tables: Tables, known: Iterable[Table], chosen: MaintenanceSettings, now: datetime) -> dict[str, int]:
    """Maintain the tables that exist. Return their number, and the number of deleted values."""
    dropped_values = 0
    if chosen.keep_values_days is not None and tables.exists(LOG_RECORDS):
        dropped_values = drop_values(tables, now - timedelta(days=chosen.keep_values_days))
    maintained = [table for table in known if tables.exists(table)]
    for table in maintained:
        if chosen.optimize and table is not LEASES:  # a renewal of the lease meanwhile would make one of both fail
            tables.commit(table, tables.kept(table).optimize)
        if chosen.vacuum_hours is not None:
            tables.commit(table, partial(tables.kept(table).vacuum, chosen.vacuum_hours))
    return {"tables": len(maintained), "values_dropped": dropped_values}


def drop_values(tables: Tables, before: datetime) -> int:
    """Set the values, headers and other columns of older, decoded records to null. Return the number of records.

    ``value_dropped`` says where a value was. Keys, positions and transactions stay: they identify records that are
    dumped again, and show what compaction removed.
    """
    runs = tables.engine().rows("SELECT DISTINCT run_id FROM $runs WHERE job = 'decode'")
    decoded = ", ".join(sql_text(row["run_id"]) for row in runs)
    if not decoded:
        return 0
    changes = {"value_dropped": "CASE WHEN value IS NOT NULL THEN true END"}
    changes |= dict.fromkeys(("value", "headers", "extra"), "NULL")
    condition = (
        "kind = 'record' AND (value IS NOT NULL OR headers IS NOT NULL OR extra IS NOT NULL) "
        f"AND timestamp_ms < {int(before.timestamp() * 1000)} AND run_id IN ({decoded})"
    )
    return tables.commit(LOG_RECORDS, lambda: tables.kept(LOG_RECORDS).update(changes, condition))
