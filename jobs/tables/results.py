"""The tables of conclusions from the log: findings, committed offsets, results of checks, nights."""

from typing import Final

import pyarrow as pa

from coordinator_core.audit.finding_growth import KnownFinding
from coordinator_core.audit.finding_rows import FindingRow
from jobs.tables.history import CLUSTER
from jobs.tables.log import RUN
from jobs.tables.night_rows import NightRow
from jobs.tables.records import OFFSET_COMMITS
from jobs.tables.row_types import row_type
from jobs.tables.table import BOOLEAN, COMMIT, DOUBLE, LONG, OFFSET_KEY, STRING, TIMESTAMP, Table, column

FINDINGS: Final = Table(
    "findings",
    "One finding about a group that an operator should look at, as of the end of the log",
    [CLUSTER, *row_type(FindingRow)],
    key=("cluster", "group_id", "kind", "subject", "since_ms"),
)


KNOWN_FINDINGS: Final = Table(
    "known_findings",
    "One finding of the table findings, with the nights that first had it and that last had more of it",
    [
        CLUSTER,
        *row_type(KnownFinding),
        column("found_in", STRING, "Night that first had it; sorts by time"),
        column("changed_in", STRING, "Last night in which it was new or had grown; sorts by time"),
    ],
    key=("cluster", "group_id", "kind", "subject", "since_ms"),
)
"""What gates take for new: see ``jobs.relations.news``."""


GROUP_PAGES: Final = Table(
    "group_pages",
    "What the findings and the report have of one group: it stays until something bears on the group",
    [
        CLUSTER,
        column("group_id", STRING, "Id of the group"),
        column("until_ms", LONG, "It holds as long as the log of the group ends before, ms since the epoch"),
        column("summary", STRING, "What lists and charts of the report need, JSON; null: no report was asked for"),
        column(
            "texts", pa.list_(STRING), "The rest of the page of the group: parts of its JSON, and of the packed one"
        ),
    ],
    key=("cluster", "group_id"),
)

GROUP_OFFSETS: Final = Table(
    "group_offsets",
    "Committed offset of one group and partition at the end of one run, with its lag if end offsets were given",
    [
        *RUN,
        *(
            field
            for field in OFFSET_COMMITS.columns
            if field.name in (*OFFSET_KEY, *COMMIT) and field.name != "cluster"
        ),
        column("status", STRING, "committed; pending in an open transaction; share: start offset of a share group"),
        column("is_stable", BOOLEAN, "True: no transaction is open for the partition"),
        column("end_offset", LONG, "Newest given end offset of the partition"),
        column("end_offset_ms", LONG, "Time of that end offset, ms since the epoch"),
        column("lag", LONG, "Records between the committed offset and that end offset"),
    ],
    key=("cluster", "run_id", "log_topic", "group_id", "topic", "partition", "status", "producer_id"),
)

CHECK_RESULTS: Final = Table(
    "check_results",
    "Result of one data-quality check (expectation) in one run: of a measure for each cluster, of a table for all",
    [
        column("run_id", STRING, "Run of the checks; sorts by time"),
        column("cluster", STRING, "Name of the cluster that was measured; null: the whole table was checked"),
        column("suite", STRING, "Name of the suite of expectations"),
        column("check", STRING, "Name of the measure, or of the table and the column"),
        column("expectation", STRING, "Type of the expectation, as Great Expectations names it"),
        column("about", STRING, "What the check looks at"),
        column("happened", STRING, "What is wrong, or why it is unknown"),
        column("severity", STRING, "critical (a failure fails the run), warning or info"),
        column("observed", DOUBLE, "Value of the measure, or what the expectation observed"),
        column("bound", STRING, "Arguments of the expectation: bounds, conditions"),
        column("passed", BOOLEAN, "True: the expectation is met; null: unknown"),
        column("checked_at", TIMESTAMP, "When the check ran"),
    ],
    key=("run_id", "cluster", "suite", "check", "expectation", "bound"),
)


COMPUTED: Final = ("new_rebalances", "new_violations")
"""Fields that are computed from two nights when they are read."""

NIGHTS: Final = Table(
    "nights",
    "What one night found in one cluster, at the end of the log: for the trend between nights",
    [CLUSTER, *(field for field in row_type(NightRow) if field.name not in COMPUTED)],
    key=("cluster", "night"),
)
