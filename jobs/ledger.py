"""The ledger ``runs``: what each run took, that its counts add up, and what is left to do after a kill.

Its rows can be derived from the tables at any time, so a run that was killed before it could write them is accounted
for by the next one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.errors import CoordinatorAuditError
from jobs import gaps
from jobs.gaps import PARTITION
from jobs.log_schema import LOG_RECORDS, QUARANTINE, RUNS
from jobs.record_schema import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables import Table, Tables
from jobs.versions import software_version

DECODED = (OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS)


class UnbalancedError(CoordinatorAuditError):
    """Records of a run are in no table, or in more than one."""


def new_run_id() -> str:
    """A name for a run that begins now; names sort by time."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")


def unaccounted(tables: Tables) -> list[str]:
    """Runs that added records and were killed before they could say so."""
    known = tables.read(RUNS).where("job = 'ingest'").select("run_id")
    return _names(tables.read(LOG_RECORDS).select("run_id").distinct().join(known, "run_id", "left_anti"))


def undecoded(tables: Tables) -> list[str]:
    """Accounted runs whose records are not decoded yet, the oldest first."""
    runs = tables.read(RUNS)
    decoded = runs.where("job = 'decode'").select("run_id")
    return _names(runs.where("job = 'ingest'").select("run_id").distinct().join(decoded, "run_id", "left_anti"))


def _names(rows: DataFrame) -> list[str]:
    return sorted(row.run_id for row in rows.collect())


def account_ingest(tables: Tables, run_id: str, cluster: str | None = None) -> list[Row]:
    """Write what an ingest run took; ``cluster`` is needed for a run that found nothing new."""
    log = tables.read(LOG_RECORDS)
    taken = (
        log.where(F.col("run_id") == run_id)
        .groupBy("cluster", *PARTITION)
        .agg(
            F.min("log_offset").alias("first_offset"),
            F.max("log_offset").alias("last_offset"),
            F.count_if(F.col("kind") != "empty").alias("records"),
            F.count_if(F.col("kind") == "control").alias("control"),
            F.count_if(F.col("kind") == "empty").alias("empty_batches"),
        )
        .collect()
    )
    rows = [row.asDict() for row in taken] or [{"cluster": cluster, "records": 0, "control": 0, "empty_batches": 0}]
    for name in {row.cluster for row in taken}:
        of_cluster = [row for row in taken if row.cluster == name and row.first_offset is not None]
        found = _gaps(log.where(F.col("cluster") == name), of_cluster)
        rows = [row | found.get((row.get("log_topic"), row.get("log_partition")), {}) for row in rows]
    return _write(tables, "ingest", run_id, rows)


def _gaps(log: DataFrame, taken: list[Row]) -> dict[tuple[str, int], dict[str, Any]]:
    """Gaps by log partition, from the last offset before what was taken on."""
    if not taken:
        return {}
    begins = log.sparkSession.createDataFrame(
        [(row.log_topic, row.log_partition, row.first_offset) for row in taken],
        "begin_topic string, begin_partition int, begin_offset long",
    )
    same = (F.col("log_topic") == F.col("begin_topic")) & (F.col("log_partition") == F.col("begin_partition"))
    last_before = F.max(F.when(F.col("log_offset") < F.col("begin_offset"), F.col("log_offset")))
    floors = (
        log.join(F.broadcast(begins), same)
        .groupBy("begin_topic", "begin_partition")
        .agg(F.coalesce(last_before, F.min("begin_offset")).alias("floor"))
    )
    rows = log.join(F.broadcast(floors), same).where("coalesce(log_offset, batch_base) >= floor")
    history = log.join(F.broadcast(begins), same, "left_semi")
    found = gaps.summary(gaps.find_gaps(rows.select(*log.columns), history)).collect()
    return {(row.log_topic, row.log_partition): row.asDict(recursive=True) for row in found}


def account_decode(tables: Tables, run_id: str) -> list[Row]:
    """Write where the records of a run went.

    Raises:
        UnbalancedError: the counts do not add up.
    """
    rows = [row.asDict() for row in balance(tables, run_id).collect()]
    for row in rows:
        if row["records"] != row["decoded"] + row["quarantined"] + row["control"]:
            raise UnbalancedError(
                f"{row['log_topic']}-{row['log_partition']}, run {run_id}: {row['records']} records in, "
                f"{row['decoded']} decoded + {row['quarantined']} quarantined + {row['control']} control out"
            )
    return _write(tables, "decode", run_id, rows or [{"records": 0, "control": 0, "decoded": 0, "quarantined": 0}])


def balance(tables: Tables, run_id: str) -> DataFrame:
    """Rows of a run by log partition: ``records`` and ``control`` taken in, ``decoded`` and ``quarantined``."""

    def counted(table: Table, **columns: str) -> DataFrame:
        names = ("records", "control", "decoded", "quarantined", "empty_batches")
        ones = [F.expr(columns.get(name, "0")).cast("long").alias(name) for name in names]
        return tables.read(table).where(F.col("run_id") == run_id).select("cluster", *PARTITION, *ones)

    both = counted(
        LOG_RECORDS,
        records="int(kind <> 'empty')",
        control="int(kind = 'control')",
        empty_batches="int(kind = 'empty')",
    )
    for table in DECODED:
        both = both.unionByName(counted(table, decoded="1"))
    both = both.unionByName(counted(QUARANTINE, quarantined="1"))
    return both.groupBy("cluster", *PARTITION).agg(
        *(F.sum(name).alias(name) for name in both.columns if name not in ("cluster", *PARTITION))
    )


def _write(tables: Tables, job: str, run_id: str, rows: list[dict[str, Any]]) -> list[Row]:
    common = {"run_id": run_id, "job": job, "finished_at": datetime.now(UTC), "version": software_version()}
    full = [dict.fromkeys(RUNS.schema.names) | row | common for row in rows]
    frame = tables.spark.createDataFrame([tuple(row[name] for name in RUNS.schema.names) for row in full], RUNS.schema)
    tables.append(RUNS, frame, f"{run_id}/{job}")
    return [Row(**row) for row in full]
