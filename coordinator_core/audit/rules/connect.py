"""Rules of Connect groups (the proposal of Connect on KIP-848): workers, epochs, and one worker for each unit."""

from __future__ import annotations

from coordinator_core.audit.rules.holders import minus, name, names
from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import ASSIGNMENT_EPOCH, CURRENT, EPOCH, MEMBER
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.violations import Rule
from coordinator_core.history.held_units import work_held
from coordinator_core.record_fields.connect_group import (
    ConnectWorkerGroupCurrentMemberAssignmentRecord,
    ConnectWorkerGroupMemberMetadataRecord,
    ConnectWorkerGroupMetadataRecord,
    ConnectWorkerGroupTargetAssignmentRecord,
)
from coordinator_core.records import AnyRecord, ConnectRecordType, CoordinatorRecord

WORK = "work"


def epoch_before(scene: JudgedGroup, record: CoordinatorRecord) -> int | None:
    """Return the group epoch before the record."""
    state = scene.group.state
    return state.group_epoch if isinstance(state, ConnectGroup) else None


def on_record(scene: JudgedGroup, record: AnyRecord, before: int | None) -> None:
    """Judge one record of ``__worker_offsets``."""
    watch, at = scene.watch, record.at
    if record.type == ConnectRecordType.GROUP_METADATA:
        _epoch(scene, record, before)
    elif record.type == ConnectRecordType.CONNECTORS_TASKS_METADATA:
        watch.note(WORK, at)
    elif record.type == ConnectRecordType.MEMBER_METADATA:
        member: ConnectWorkerGroupMemberMetadataRecord = record
        watch.note_member(MEMBER, member.key["memberId"], at)
    elif record.type == ConnectRecordType.TARGET_ASSIGNMENT:
        watch.note(ASSIGNMENT_EPOCH, at)
        _target(scene, record)
    elif record.type == ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT:
        _current(scene, record)


def _epoch(scene: JudgedGroup, record: ConnectWorkerGroupMetadataRecord, before: int | None) -> None:
    watch, at = scene.watch, record.at
    known = watch.knows(EPOCH)
    if record.value is None:
        scene.current.clear()
        watch.end_life(at, gone=scene.group.state is None)
        return
    watch.note(EPOCH, at)
    if known and before is not None and record.value["epoch"] == before:
        scene.broken(Rule.EPOCH_REPEATED, at, None, f"group epoch {before} was written again")


def _target(scene: JudgedGroup, record: ConnectWorkerGroupTargetAssignmentRecord) -> None:
    state = scene.group.state
    if record.value is None or not isinstance(state, ConnectGroup):
        return
    scene.target.clear()
    everything = work_held(state.work)
    for member_id, target in state.targets.items():
        held = work_held(target.work)
        for unit, other in scene.target.put(member_id, held):
            scene.broken(Rule.TARGET_OF_TWO, record.at, member_id, f"{name(unit)} is also in the target of {other}")
        strange = list(minus(held, everything))
        if strange and scene.watch.knows(WORK) and state.work_epoch is not None:
            scene.broken(Rule.WORK_OUTSIDE_GROUP, record.at, member_id, f"the group has no {names(strange)}")


def _current(scene: JudgedGroup, record: ConnectWorkerGroupCurrentMemberAssignmentRecord) -> None:
    state, member_id = scene.group.state, record.key["memberId"]
    scene.watch.note_member(CURRENT, member_id, record.at)
    if not isinstance(state, ConnectGroup):
        return
    member = state.members.get(member_id)
    if member is None or member.current is None:
        scene.current.put(member_id, {})
        return
    for unit, other in scene.current.put(member_id, work_held(member.current.work)):
        if scene.watch.knows_member(CURRENT, other):
            scene.broken(Rule.ASSIGNED_TO_TWO, record.at, member_id, f"{name(unit)} is also assigned to {other}")
