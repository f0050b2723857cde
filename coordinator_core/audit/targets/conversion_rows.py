"""The rows of verdicts on copies, which the conversions of consumer and of streams groups share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.targets.classic_groups import generation_row
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import MOST_DIFFERENCES, UNDECIDED, Judgement, verdict_row
from coordinator_core.groups.group_type import GroupType
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.records import CoordinatorRecord


class CopyOutcome(NamedTuple):
    """A verdict on a copy with what is missing to know it, or what was taken for granted where it is identical."""

    judgement: Judgement
    missing: str | None = None
    fitted: str | None = None


def divergent_copy(differing: Sequence[str], record: CoordinatorRecord) -> CopyOutcome:
    """Return the outcome of a copy that differs; ``differing`` are the differences, ``record`` ends the operation.

    Records without times do not say which of them one operation wrote, nor which topics there were then.
    """
    if record.at.timestamp_ms < 0:
        return CopyOutcome(UNDECIDED, missing="the time of the records, which tells what was written together")
    return CopyOutcome(Judgement(Verdict.DIVERGENT, tuple(differing[:MOST_DIFFERENCES]), len(differing)))


def upgraded_row(
    opened: CoordinatorRecord, operation: TargetOperation, group_type: GroupType, members: int, outcome: CopyOutcome
) -> TargetAuditRow:
    """Return the row of the first target of a group that was converted from a classic one."""
    end, judged = operation.end, outcome.judgement
    row = verdict_row(end.group_id, group_type, operation.epoch_number, end.at, judged, Basis.UPGRADE)
    return row._replace(opened=opened.at, fitted=outcome.fitted, missing=outcome.missing, members=members)


def downgraded_row(record: GroupMetadataRecord, outcome: CopyOutcome) -> TargetAuditRow:
    """Return the row of the first generation of a classic group that was converted from another group."""
    return generation_row(
        record, outcome.judgement, basis=Basis.DOWNGRADE, fitted=outcome.fitted, missing=outcome.missing
    )
