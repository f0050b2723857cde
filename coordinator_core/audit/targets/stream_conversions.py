"""Targets that no assignor made: copies, when a group of Kafka Streams changes its protocol (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator_core.assignors.coordinator_view import StreamsView
from coordinator_core.assignors.inputs import Partitions, Tasks
from coordinator_core.audit.rows import TargetAuditRow
from coordinator_core.audit.targets.conversion_rows import divergent_copy, downgraded_row, upgraded_row
from coordinator_core.audit.targets.gap import GroupGap
from coordinator_core.audit.targets.group_view import recorded_tasks
from coordinator_core.audit.targets.operation import TargetOperation
from coordinator_core.audit.targets.verdict import Judgement, differences, identical, undecided, units
from coordinator_core.errors import DecodeError
from coordinator_core.groups.epoch_records import MemberTargetRecord
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.record_types import STREAMS_RECORDS
from coordinator_core.groups.streams.classic_tasks import assigned_tasks
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.records import AnyRecord, CoordinatorRecord

ByMember = Mapping[str, Tasks]


def streams_upgrade_row(
    opened: CoordinatorRecord, operation: TargetOperation, classic: Mapping[str, bytes], gap: GroupGap | None
) -> TargetAuditRow:
    """Return the row of the first target of a streams group converted from a classic one.

    ``classic`` has the last assignments of its members, by member id.
    """
    recorded = {target.key["memberId"]: _recorded(target) for target in operation.targets}
    try:
        expected = {member_id: assigned_tasks(classic.get(member_id, b"")) for member_id in recorded}
        outcome = _judge(expected, recorded, gap, operation.end, "the classic group's assignment")
    except DecodeError as error:
        outcome = undecided(f"a readable assignment: {error}")
    return upgraded_row(opened, operation, GroupType.STREAMS, len(recorded), outcome)


def streams_downgrade_row(
    record: GroupMetadataRecord, view: StreamsView, batch: Iterable[AnyRecord], gap: GroupGap | None
) -> TargetAuditRow:
    """Return the row of the first generation of a classic group converted from a streams group.

    ``view`` is the streams group before ``batch``, which has the records of this operation before ``record``. The
    classic protocol has no warm-up tasks: they are standby tasks there.
    """
    targets = dict(view.targets)
    for earlier in batch:
        if earlier.type == STREAMS_RECORDS.target and earlier.value is not None:
            targets[earlier.key["memberId"]] = _recorded(earlier)
    assert record.value is not None
    members = {member["memberId"]: member["assignment"] for member in record.value["members"]}
    try:
        recorded = {member_id: assigned_tasks(assignment) for member_id, assignment in members.items()}
        expected = {member_id: _without_warmups(targets.get(member_id, Tasks())) for member_id in members}
        fitted = "the streams group's last target; warm-up tasks are standby tasks"
        outcome = _judge(expected, recorded, gap, record, fitted)
    except DecodeError as error:
        outcome = undecided(f"a readable assignment: {error}")
    return downgraded_row(record, outcome)


def _recorded(record: MemberTargetRecord) -> Tasks:
    value = record.value
    return recorded_tasks(value) if value is not None and "activeTasks" in value else Tasks()


def _without_warmups(tasks: Tasks) -> Tasks:
    return Tasks(tasks.active, _joined(tasks.standby, tasks.warmup))


def _joined(left: Partitions, right: Partitions) -> Partitions:
    return {key: sorted({*left.get(key, ()), *right.get(key, ())}) for key in sorted({*left, *right})}


def _judge(
    expected: ByMember, recorded: ByMember, gap: GroupGap | None, record: CoordinatorRecord, fitted: str
) -> Judgement:
    """Return the verdict; ``record`` ends the operation.

    Where records may be missing, what is left of the members fits only if the whole batch is there, and if a member has
    anything.
    """
    differing = tuple(differences(expected, recorded, str))
    has_anything = any(True for work in recorded.values() for _ in units(work))
    if gap is not None and (differing or not has_anything or gap.is_after(record.batch if record.batch >= 0 else None)):
        return undecided(gap.missing)
    if not differing:
        return identical(fitted)
    return divergent_copy(differing, record)
