"""Take snapshots of a cluster (command ``snapshot``) into the tables, each row once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.cluster.snapshot_settings import MISSING
from jobs.pipeline import runs
from jobs.pipeline.lag import END_OFFSETS as END_COLUMNS
from jobs.sources.snapshot_files import SINGLE_SETTING, single_settings
from jobs.tables.delta import Table, Tables, few
from jobs.tables.lookup import lookup
from jobs.tables.snapshots import END_OFFSETS, SNAPSHOT_SETTINGS

ROWS: Final = (
    "topic string, topic_id string, partition int, replica_racks array<string>, timestamp_ms long, end_offset long, "
    "cluster_id string, resource_type string, resource string, configs map<string, string>, "
    "missing string"
)
"""The fields of a row of a snapshot: a partition, or the settings of a resource."""


NONE: Final = "CAST(map() AS MAP<STRING, STRING>)"
NAMED: Final = (
    f"map_concat(coalesce(configs, {NONE}), CASE WHEN missing IS NULL THEN {NONE} ELSE map('{MISSING}', missing) END)"
)
"""The settings of a resource by name, and why some are missing."""


class SnapshotCounts(NamedTuple):
    """What was new in snapshots: times, rows of ``end_offsets``, and rows of ``snapshot_settings``."""

    snapshots: int
    end_offsets: int
    settings: int


def take(tables: Tables, paths: Sequence[str], cluster: str) -> SnapshotCounts:
    """Take in the rows of these files that the tables do not have yet."""
    run_id = runs.new_run_id()
    for table in (END_OFFSETS, SNAPSHOT_SETTINGS):
        tables.create(table)
    rows = (
        tables.spark.read.schema(ROWS)
        .json(list(paths))
        .withColumns({"cluster": F.lit(cluster), "run_id": F.lit(run_id)})
    )
    partitions = rows.where("topic IS NOT NULL AND partition IS NOT NULL AND timestamp_ms IS NOT NULL")
    settings = rows.where("resource IS NOT NULL AND timestamp_ms IS NOT NULL").select(
        *("cluster", "run_id", "timestamp_ms", "resource_type", "resource"),
        F.explode(F.expr(NAMED)).alias("name", "value"),
    )
    _append(tables, END_OFFSETS, partitions, run_id)
    _append(tables, SNAPSHOT_SETTINGS, settings, run_id)
    found = lookup(tables)
    (ends,) = found.rows(
        "SELECT count(*) AS number, count(DISTINCT timestamp_ms) AS times FROM $end_offsets WHERE run_id = :run",
        run=run_id,
    )
    (others,) = found.rows("SELECT count(*) AS number FROM $snapshot_settings WHERE run_id = :run", run=run_id)
    return SnapshotCounts(ends["times"], ends["number"], others["number"])


def store(tables: Tables, rows: Iterable[Mapping[str, Any]], cluster: str, transaction: str) -> None:
    """Append the rows of a snapshot that was taken just now; ``transaction`` begins with its run."""
    run_id, _, _ = transaction.partition("/")
    place = {"cluster": cluster, "run_id": run_id}
    found = list(rows)
    partitions = [{**row, **place} for row in found if "topic" in row]
    settings = [
        {**place, **dict(zip(SINGLE_SETTING, setting, strict=True))}
        for setting in single_settings(row for row in found if "resource" in row)
    ]
    for table, new in ((END_OFFSETS, partitions), (SNAPSHOT_SETTINGS, settings)):
        tables.create(table)
        tables.append(table, few(table, new), transaction)


def _append(tables: Tables, table: Table, rows: DataFrame, run_id: str) -> None:
    key = list(table.key)
    new = rows.dropDuplicates(key).join(tables.read(table).select(*key), key, "left_anti")
    tables.append(table, new, run_id)


def stored_end_offsets(tables: Tables) -> DataFrame | None:
    """Return the end offsets of all snapshots, as ``lag.read_end_offsets`` gives them; None: the tables have none."""
    if not tables.exists(END_OFFSETS):
        return None
    return tables.read(END_OFFSETS).where("end_offset IS NOT NULL").select(*END_COLUMNS)
