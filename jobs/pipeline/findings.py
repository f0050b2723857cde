"""Compute ``findings`` from the history of every group: what an operator should look at, as of the end of the log.

``replay`` has already computed the verdicts and the violations. Findings depend on a group's whole history and on the
time that has passed since, so all findings are computed again and replaced in one commit, whenever a threshold or a
table that they are made from has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.group_history import ShareLogs
from coordinator_core.audit.findings.rows import FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from jobs.pipeline.group_history import by_group, gathered, history_rows, partition_counts
from jobs.pipeline.share_delivery import share_logs
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Tables
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.log import LOG_RANGES
from jobs.tables.lookup import lookup, made_from, note_of
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import FINDINGS
from jobs.tables.row_types import row_type
from jobs.versions import software_version

INPUTS: Final = [*HISTORY.values(), GROUP_STATES, COMMIT_SUMMARIES, LOG_RANGES, GROUP_RECORDS]
"""The tables that findings are made from."""

Batches = Iterable[pa.RecordBatch]


def run(tables: Tables, limits: Thresholds) -> dict[str, int]:
    """Replace the findings of all clusters, if anything has changed. Return the number of findings by kind."""
    tables.create(FINDINGS)
    note = made_from(tables, INPUTS, limits=limits, software=software_version())
    if note_of(tables, FINDINGS) != note:
        clusters = [row["cluster"] for row in lookup(tables).rows("SELECT DISTINCT cluster FROM $group_states")]
        if not clusters:
            return {}
        by_cluster = [_findings_of(tables, cluster, limits) for cluster in sorted(clusters)]
        tables.replace(FINDINGS, reduce(DataFrame.unionByName, by_cluster), note)
    counts = lookup(tables).rows("SELECT kind, count(*) AS findings FROM $findings GROUP BY kind")
    return {row["kind"]: row["findings"] for row in counts}


def _findings_of(tables: Tables, cluster: str, limits: Thresholds) -> DataFrame:
    rows = by_group(history_rows(tables, cluster))
    schema = StructType(row_type(FindingRow).fields)
    find = finder(limits, partition_counts(tables, cluster), share_logs(tables, cluster))
    return rows.mapInArrow(find, schema).withColumn("cluster", F.lit(cluster))


def finder(
    limits: Thresholds, partitions: Mapping[str, int], logs: ShareLogs
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow``: from rows of ``history_rows``, sorted by group, to findings."""
    schema = to_arrow_schema(StructType(row_type(FindingRow).fields))

    def find(batches: Batches) -> Iterator[pa.RecordBatch]:
        rows = (row for batch in batches for row in batch.to_pylist())
        for history in gathered(rows, partitions, logs):
            rows_of_group = [row._asdict() for row in findings(history, limits)]
            yield pa.RecordBatch.from_pylist(rows_of_group, schema=schema)

    return find
