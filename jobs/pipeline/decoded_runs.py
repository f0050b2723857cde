"""Which runs were decoded, and which of them a table has."""

from __future__ import annotations

from jobs.tables.delta import Tables
from jobs.tables.table import Table


def newest_run(tables: Tables, job: str) -> str:
    """Return the newest run of a job that the ledger has, of any cluster; empty: there is none."""
    (newest,) = tables.engine().rows("SELECT max(run_id) AS run_id FROM $runs WHERE job = :job", job=job)
    return newest["run_id"] or ""


def runs_behind(tables: Tables, table: Table, run_id: str) -> list[str]:
    """Return the runs after that one of which a table has rows, oldest first."""
    behind = f"SELECT DISTINCT run_id FROM ${table.name} WHERE run_id > :known"
    return sorted(row["run_id"] for row in tables.engine().rows(behind, known=run_id))


def decoded_runs(tables: Tables) -> dict[str, list[str]]:
    """Return for each cluster the runs that brought records and were decoded, oldest first."""
    decoded = "SELECT DISTINCT cluster, run_id FROM $runs WHERE job = 'decode' AND records > 0"
    runs: dict[str, list[str]] = {}
    for row in tables.engine().rows(decoded):
        runs.setdefault(row["cluster"], []).append(row["run_id"])
    return {cluster: sorted(names) for cluster, names in runs.items()}


def newest_runs(tables: Tables, table: Table) -> dict[str, str]:
    """Return for each cluster the newest run of which a table has rows."""
    newest = f"SELECT cluster, max(run_id) AS run_id FROM ${table.name} GROUP BY cluster"
    return {row["cluster"]: row["run_id"] for row in tables.engine().rows(newest)}
