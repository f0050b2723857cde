"""The rows that the core makes from the records of groups and topics, and their tables."""

from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.groups.violations import Violation
from coordinator_core.history.rows import SHARE_PARTITIONS, TABLES, HistoryRow, HistoryTable, SharePartitionRow
from coordinator_core.state_json import VERSION

STATE_VERSION = str(VERSION)
"""The version of the form of ``GroupAudit.state`` and ``ShareAudit.state``. A state of another version cannot be
read: read the group from its start.
"""

TARGET_AUDITS = HistoryTable("target_audits", TargetAuditRow, ("group_id", "at.partition", "at.offset"))
AUDITED_TABLES = (*TABLES, SHARE_PARTITIONS, TARGET_AUDITS)
"""Every table of such rows."""

AuditedRow = HistoryRow | SharePartitionRow | Violation | TargetAuditRow
