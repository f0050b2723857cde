"""The tables of what was concluded from the log: findings, committed offsets, results of checks."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import BooleanType, DoubleType, StructType, TimestampType

from coordinator_core.audit.findings.rows import FindingRow
from jobs.tables.delta import Table, column
from jobs.tables.history import CLUSTER
from jobs.tables.log import LONG, RUN, STRING
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.row_types import row_type

FINDINGS: Final = Table(
    "findings",
    "One thing found in a group's history that an operator should look at, as of the end of the log",
    StructType([CLUSTER, *row_type(FindingRow).fields]),
    key=("cluster", "group_id", "kind", "subject", "since_ms"),
)

OFFSET_KEY: Final = ("cluster", "log_topic", "log_partition", "group_id", "topic", "partition")
"""The columns that name what an offset is committed for, and the log partition that holds the commit."""

COMMIT: Final = (
    "log_offset",
    "timestamp_ms",
    "committed_offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "expire_timestamp",
    "topic_id",
    "producer_id",
    "outcome",
)
"""The columns of ``group_offsets`` that describe the commit that counts."""

GROUP_OFFSETS: Final = Table(
    "group_offsets",
    "Committed offset of one group and partition as of the end of one run, with its lag where end offsets were given",
    StructType(
        [
            *RUN,
            *(
                field
                for field in OFFSET_COMMITS.schema
                if field.name in (*OFFSET_KEY, *COMMIT) and field.name != "cluster"
            ),
            column("status", STRING, "committed; pending in an open transaction; share: start offset of a share group"),
            column("is_stable", BooleanType(), "No transaction is open for the partition"),
            column("end_offset", LONG, "Newest end offset of the partition that was given; null: none"),
            column("end_offset_ms", LONG, "Time of that end offset, ms"),
            column("lag", LONG, "Records between the committed offset and that end; null: no end offset was given"),
        ]
    ),
    key=("cluster", "run_id", "log_topic", "group_id", "topic", "partition", "status", "producer_id"),
)

CHECK_RESULTS: Final = Table(
    "check_results",
    "One data-quality expectation of one run, for one cluster",
    StructType(
        [
            column("run_id", STRING, "Run of the checks; sorts by time"),
            column("cluster", STRING, "The cluster measured"),
            column("suite", STRING, "Suite of expectations"),
            column("check", STRING, "The measure looked at"),
            column("expectation", STRING, "Type of the expectation, as Great Expectations names it"),
            column("about", STRING, "What the check means"),
            column("severity", STRING, "error or warning: whether it fails the run"),
            column("observed", DoubleType(), "The measure; null: it could not be taken"),
            column("bound", STRING, "What was expected of it"),
            column("passed", BooleanType(), "Whether it held; null: unknown, as the measure could not be taken"),
            column("checked_at", TimestampType(), "When"),
        ]
    ),
    key=("run_id", "cluster", "suite", "check", "expectation"),
)
