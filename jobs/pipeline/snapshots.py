"""Take snapshots of a cluster (command ``snapshot``) into the tables, each row once.

Most settings never change. Of the rows that show the same value of a setting one after the other, the table keeps the
first and the last: between them the value held, and after the last nothing is known. The levels that tell the release
of the brokers are kept at all times, as they are read together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from coordinator_core.cluster.snapshot_settings import METADATA_VERSION, MISSING, ResourceKind
from jobs.pipeline import runs
from jobs.sources.snapshot_files import SINGLE_SETTING, single_settings
from jobs.tables.delta import Table, Tables, few
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


SETTING: Final = ("cluster", "resource_type", "resource", "name")
CAN_BE_LEFT_OUT: Final = (
    f"NOT (name IN ('{METADATA_VERSION}', '{MISSING}') "
    f"AND resource_type IN ('{ResourceKind.SUPPORTED_FEATURES}', '{ResourceKind.FINALIZED_FEATURES}'))"
)
IN_TIME: Final = f"(PARTITION BY {', '.join(SETTING)} ORDER BY timestamp_ms)"
AROUND: Final = (f"lag(value) OVER {IN_TIME} AS before", f"lead(value) OVER {IN_TIME} AS behind")
"""The values of a setting at the times before and behind a row."""

IS_NEEDLESS: Final = f"{CAN_BE_LEFT_OUT} AND before = value AND behind = value"
"""The rows before and behind it show the same value."""

NEEDLESS: Final = f"""
SELECT {", ".join(SNAPSHOT_SETTINGS.key)} FROM (
  SELECT *, {", ".join(AROUND)} FROM $snapshot_settings WHERE cluster = :cluster
) AS shown WHERE {IS_NEEDLESS}
"""


class SnapshotCounts(NamedTuple):
    """What was new in snapshots: times, and rows that were added to ``end_offsets`` and ``snapshot_settings``."""

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
    tables.append(END_OFFSETS, _new(tables, END_OFFSETS, partitions), run_id)
    known = tables.read(SNAPSHOT_SETTINGS).where(F.col("cluster") == cluster)
    tables.append(SNAPSHOT_SETTINGS, _telling(_new(tables, SNAPSHOT_SETTINGS, settings), known), run_id)
    _leave_out_needless(tables, cluster)
    engine = tables.engine()
    (ends,) = engine.rows(
        "SELECT count(*) AS number, count(DISTINCT timestamp_ms) AS times FROM $end_offsets WHERE run_id = :run",
        run=run_id,
    )
    (others,) = engine.rows("SELECT count(*) AS number FROM $snapshot_settings WHERE run_id = :run", run=run_id)
    return SnapshotCounts(ends["times"], ends["number"], others["number"])


def store(tables: Tables, rows: Iterable[Mapping[str, Any]], cluster: str, transaction: str) -> None:
    """Append the rows of a snapshot that was taken just now; ``transaction`` begins with its run."""
    run_id, _, _ = transaction.partition("/")
    place = {"cluster": cluster, "run_id": run_id}
    taken = list(rows)
    partitions = [{**row, **place} for row in taken if "topic" in row]
    settings = [
        {**place, **dict(zip(SINGLE_SETTING, setting, strict=True))}
        for setting in single_settings(row for row in taken if "resource" in row)
    ]
    for table, new in ((END_OFFSETS, partitions), (SNAPSHOT_SETTINGS, settings)):
        tables.create(table)
        tables.append(table, few(table, new), transaction)
    _leave_out_needless(tables, cluster)


def _new(tables: Tables, table: Table, rows: DataFrame) -> DataFrame:
    """Return the rows that the table does not have."""
    key = list(table.key)
    return rows.dropDuplicates(key).join(tables.read(table).select(*key), key, "left_anti")


def _telling(new: DataFrame, known: DataFrame) -> DataFrame:
    """Return the new rows of settings without those between two rows, new or known, that show the same."""
    both = new.withColumn("is_new", F.lit(True)).unionByName(known.withColumn("is_new", F.lit(False)))
    telling = both.selectExpr("*", *AROUND).where(f"is_new AND NOT coalesce({IS_NEEDLESS}, FALSE)")
    return telling.drop("is_new", "before", "behind")


def _leave_out_needless(tables: Tables, cluster: str) -> None:
    """Delete the rows of settings that say nothing since newer ones show the same value."""
    schema = to_arrow_schema(StructType([SNAPSHOT_SETTINGS.schema[name] for name in SNAPSHOT_SETTINGS.key]))
    # They are hardly more than the settings of one snapshot, as the snapshots before it have been thinned out.
    if needless := list(tables.engine().rows(NEEDLESS, cluster=cluster)):
        tables.delete(SNAPSHOT_SETTINGS, pa.Table.from_pylist(needless, schema))
