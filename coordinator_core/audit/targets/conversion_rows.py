"""The rows of verdicts on copies, which the conversions of consumer and of streams groups share."""

from __future__ import annotations

from collections.abc import Sequence

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.targets.classic_groups import generation_row
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import Judgement, differing, undecided, verdict_row
from coordinator_core.groups.group_type import GroupType
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.records import CoordinatorRecord


def divergent_copy(found: Sequence[str], record: CoordinatorRecord) -> Judgement:
    """Return the verdict on a copy that differs; ``found`` are the differences, ``record`` ends the operation.

    Records without times do not say which of them one operation wrote, nor which topics there were then.
    """
    if record.at.timestamp_ms < 0:
        return undecided("the time of the records, which tells what was written together")
    return differing(Verdict.DIVERGENT, found)


def upgraded_row(
    opened: CoordinatorRecord, operation: TargetOperation, group_type: GroupType, members: int, judged: Judgement
) -> TargetAuditRow:
    """Return the row of the first target of a group that was converted from a classic one."""
    end = operation.end
    row = verdict_row(end.group_id, group_type, operation.epoch_number, end.at, judged, Basis.UPGRADE)
    return row._replace(opened=opened.at, members=members)


def downgraded_row(record: GroupMetadataRecord, judged: Judgement) -> TargetAuditRow:
    """Return the row of the first generation of a classic group that was converted from another group."""
    return generation_row(record, judged, basis=Basis.DOWNGRADE)
