"""The columns of what the Python API answers beside the tables."""

from typing import Final

import pyarrow as pa

from coordinator_core.audit.audited_rows import TARGET_AUDITS
from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.cluster.topic_changes import TopicInterval
from jobs.queries.group_rows import TABLE_OF
from jobs.tables.commits import POSITION, REMOVAL, REWIND
from jobs.tables.history import CLUSTER
from jobs.tables.results import FINDINGS, GROUP_OFFSETS
from jobs.tables.row_types import row_type
from jobs.tables.table import BOOLEAN, COMMIT, DOUBLE, LONG, OFFSET_KEY, STRING, TIMESTAMP, column

OFFSETS_SCHEMA: Final = pa.schema(
    [field for field in GROUP_OFFSETS.columns if field.name in (*OFFSET_KEY, "status", "is_stable", *COMMIT)]
)

RATES_SCHEMA: Final = pa.schema(
    [
        CLUSTER,
        column("group_id", STRING, "Id of the group"),
        column("since", TIMESTAMP, "Begin of the interval"),
        column("until", TIMESTAMP, "End of the interval"),
        column("commits", LONG, "Commit records in it"),
        column("tombstones", LONG, "Tombstones in it"),
        column("partitions", LONG, "Partitions that they name"),
        column("share", DOUBLE, "Share of the group in the commits and tombstones of all groups"),
    ]
)

OWNED: Final = (
    *("group_id", "group_type", "topic", "topic_id", "connector", "subtopology", "partition", "role", "resource"),
    *("member_id", "epoch", "since", "until", "history_complete"),
)
"""Columns of ``assignments`` that say who owned what."""

STEP: Final = [
    *(field for field in GROUP_OFFSETS.columns if field.name in OFFSET_KEY),
    column("log_offset", LONG, "Log offset of the commit, or of the tombstone"),
    column("timestamp_ms", LONG, "Its time, ms since the epoch"),
    column("offset_before", LONG, "Offset committed before"),
    REWIND.field("log_offset_before"),
]
REWINDS_SCHEMA: Final = pa.schema(
    [
        *STEP,
        column("committed_offset", LONG, "Offset committed now"),
        column("committer", STRING, "Member whose id the commit has as metadata, as franz-go writes it; null: none"),
        column("owner", STRING, "Member that owned the partition then; null: none is known, or several had it"),
        column("rebalance_at", POSITION, "The last rebalance before"),
        column("rebalance_to", LONG, "Its epoch"),
        column("in_rebalance", BOOLEAN, "True: it had not finished"),
    ]
)
REMOVALS_SCHEMA: Final = pa.schema(
    [*STEP, REMOVAL.field("age_ms"), REMOVAL.field("past_expiry"), column("cause", STRING, "Why it was removed")]
)

NAMES: Final[dict[type, str]] = {**TABLE_OF, TargetAuditRow: TARGET_AUDITS.name, FindingRow: FINDINGS.name}
"""The name under which ``history`` has the rows of a type."""


def _columns(row: type) -> pa.Schema:
    of_row = [field for field in row_type(row) if field.name != "group_id"]
    return pa.schema([CLUSTER, column("group_id", STRING, "The group"), *of_row])


GROUP_ROWS: Final = {name: _columns(row) for row, name in NAMES.items() if row is not TopicInterval}
"""The columns of what ``history`` has of a group, by name."""
