"""Which runs were decoded."""

from __future__ import annotations

from jobs.tables.delta import Tables
from jobs.tables.log import RUNS


def decoded_runs(tables: Tables) -> dict[str, list[str]]:
    """Return for each cluster the runs that brought records and were decoded, oldest first."""
    decoded = tables.read(RUNS).where("job = 'decode' AND records > 0").select("cluster", "run_id").distinct()
    runs: dict[str, list[str]] = {}
    for row in decoded.collect():
        runs.setdefault(row.cluster, []).append(row.run_id)
    return {cluster: sorted(names) for cluster, names in runs.items()}
