"""Rules of Connect groups (the proposal of Connect on KIP-848): workers, epochs, and one worker for each unit."""

from collections import Counter
from typing import NamedTuple

from coordinator_core.audit.rules.holders import HOLDS_NOTHING, minus, name, names
from coordinator_core.audit.rules.judged_group import JudgedGroup
from coordinator_core.audit.rules.known_facts import ConnectFacts
from coordinator_core.groups.connect.state import ConnectGroup, Work, is_classic
from coordinator_core.groups.rules import ASSIGNMENT_EPOCH, CURRENT, EPOCH, MEMBER, Rule
from coordinator_core.history.held_units import work_held
from coordinator_core.history.holdings import Held, WorkUnit
from coordinator_core.record_fields.connect_group import (
    ConnectWorkerGroupCurrentMemberAssignmentRecord,
    ConnectWorkerGroupMemberMetadataRecord,
    ConnectWorkerGroupMetadataRecord,
    ConnectWorkerGroupTargetAssignmentRecord,
)
from coordinator_core.records import AnyRecord, ConnectRecordType, LogPosition

CONFIGURATION = "configuration"
EPOCH_WITHOUT_WORKERS = 0
"""The epoch of a group that only has something to run: a group of the classic protocol goes on from there with its
generation."""


class ConnectBefore(NamedTuple):
    """A group before a record: its epoch; of the worker that the record is about whether its metadata was there, and
    what it ran (None: not known)."""

    epoch: int | None = None
    has_metadata: bool = False
    runs: Held | None = None


def before_record(judged: JudgedGroup, record: AnyRecord) -> ConnectBefore:
    """Return what ``on_record`` needs of the group before."""
    state = judged.group.state
    if not isinstance(state, ConnectGroup):
        return ConnectBefore()
    member_id = record.member_id or ""
    member = state.members.get(member_id)
    runs = judged.current.held.get(member_id, HOLDS_NOTHING) if judged.facts.knows_member(CURRENT, member_id) else None
    return ConnectBefore(state.group_epoch, member is not None and member.client_id is not None, runs)


def on_record(judged: JudgedGroup, record: AnyRecord, before: ConnectBefore) -> None:
    """Judge one record of ``__worker_offsets``."""
    if record.type == ConnectRecordType.GROUP_METADATA:
        _epoch(judged, record, before.epoch)
    elif record.type == ConnectRecordType.MEMBER_METADATA:
        _member(judged, record, before)
    elif record.type == ConnectRecordType.TARGET_ASSIGNMENT:
        _target(judged, record)
    elif record.type == ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT:
        _current(judged, record, before.runs)
    elif record.type == ConnectRecordType.CONFIGURATION:
        judged.facts.note(CONFIGURATION, record.at)


def follow(judged: JudgedGroup, record: AnyRecord, leader_epoch: int | None) -> None:
    """Keep up what the rules need of a Connect group's past; the record has changed the group."""
    facts, state = judged.facts, judged.group.state
    group = state if isinstance(state, ConnectGroup) else None
    of_connect = facts.connect = facts.connect or ConnectFacts()
    # Records may be missing before this one: workers may have left in them, and the work may be another one since.
    if facts.run == record.at.offset and not facts.whole:
        of_connect.delay.note_gap(group, record.at.timestamp_ms)
        of_connect.work.by_epoch.clear()
    of_connect.delay.follow(group, record, leader_epoch)
    of_connect.work.follow(group, record)


def _epoch(judged: JudgedGroup, record: ConnectWorkerGroupMetadataRecord, before: int | None) -> None:
    facts, at, operation = judged.facts, record.at, judged.operation
    known = facts.knows(EPOCH)
    operation.leaving.clear()
    if record.value is None:
        judged.current.clear()
        facts.end_life(at, gone=judged.group.state is None)
        return
    operation.joining.clear()
    facts.note(EPOCH, at)
    epoch = record.value["epoch"]
    if not known or before is None:
        return
    if epoch == before:
        judged.broken(Rule.EPOCH_REPEATED, at, None, f"group epoch {before} was written again")
    elif epoch > before + 1 and before > EPOCH_WITHOUT_WORKERS and not _is_converted(judged):
        judged.broken(Rule.EPOCH_SKIPPED, at, None, f"group epoch {epoch} after {before}")


def _is_converted(judged: JudgedGroup) -> bool:
    """Whether no worker of the new protocol is there, as where a classic group is converted: then its generation
    counts.
    """
    state = judged.group.state
    return isinstance(state, ConnectGroup) and all(is_classic(member) for member in state.members.values())


def _member(judged: JudgedGroup, record: ConnectWorkerGroupMemberMetadataRecord, before: ConnectBefore) -> None:
    facts, operation, member_id, at = judged.facts, judged.operation, record.key["memberId"], record.at
    if record.value is None:
        operation.joining.pop(member_id, None)
        operation.unassigned.pop(member_id, None)
        if before.has_metadata:
            operation.leaving[member_id] = at
        facts.forget_member(member_id)
        return
    if not before.has_metadata and facts.knows_member(MEMBER, member_id):
        operation.joining[member_id] = operation.unassigned[member_id] = at
    facts.note_member(MEMBER, member_id, at)


def _target(judged: JudgedGroup, record: ConnectWorkerGroupTargetAssignmentRecord) -> None:
    state, facts = judged.group.state, judged.facts
    facts.note(ASSIGNMENT_EPOCH, record.at)
    if record.value is None or not isinstance(state, ConnectGroup):
        return
    assert facts.connect is not None
    computed_from = facts.connect.work.at(record.value["assignmentEpoch"])
    everything = None if computed_from is None else work_held(computed_from)
    # One record has the targets of all workers: nothing of the one before holds.
    judged.target.clear()
    for member_id, target in state.targets.items():
        _once(judged, target.work, record.at, member_id)
        held = work_held(target.work)
        for unit, other in judged.target.put(member_id, held):
            judged.broken(Rule.TARGET_OF_TWO, record.at, member_id, f"{name(unit)} is also in the target of {other}")
        strange = [] if everything is None else list(minus(held, everything))
        if strange:
            detail = f"the group had no {names(strange)} in epoch {state.assignment_epoch}"
            judged.broken(Rule.WORK_OUTSIDE_GROUP, record.at, member_id, detail)
    if everything is not None:
        _assigned_to_none(judged, state, everything, record.at)


def _once(judged: JudgedGroup, work: Work, at: LogPosition, member_id: str) -> None:
    """Check that no connector or task is listed twice."""
    doubled = [str(unit) for unit, count in Counter(work.connectors).items() if count > 1]
    doubled += [f"{task}-{number}" for (task, number), count in Counter(work.tasks).items() if count > 1]
    if doubled:
        judged.broken(Rule.UNIT_TWICE_IN_RECORD, at, member_id, ", ".join(doubled))


def _assigned_to_none(judged: JudgedGroup, state: ConnectGroup, everything: Held, at: LogPosition) -> None:
    """Only the work of workers that left may wait, and only until the delay is over.

    An assignor that fails leaves everything where it is, and so does the conversion of a classic group. What a worker
    was to run that left while the target was computed is in no target.
    """
    facts = judged.facts
    assert facts.connect is not None
    delay, epoch = facts.connect.delay, state.assignment_epoch or 0
    failed = any(target.error for target in state.targets.values())
    if failed or _is_converted(judged) or (delay.departure_epoch is not None and delay.departure_epoch > epoch):
        return
    lacking = [unit for unit in minus(everything) if not judged.target.has_holder(unit)]
    if not facts.knows(CONFIGURATION) or delay.may_wait(at.timestamp_ms):
        lacking = [unit for unit in lacking if judged.current.has_holder(unit)]
    if lacking:
        judged.broken(Rule.WORK_UNASSIGNED, at, None, f"the target of epoch {epoch} has no {names(lacking)}")


def _current(judged: JudgedGroup, record: ConnectWorkerGroupCurrentMemberAssignmentRecord, before: Held | None) -> None:
    state, member_id, at, facts = judged.group.state, record.key["memberId"], record.at, judged.facts
    facts.note_member(CURRENT, member_id, at)
    member = state.members.get(member_id) if isinstance(state, ConnectGroup) else None
    if not isinstance(state, ConnectGroup) or member is None or member.current is None:
        judged.current.put(member_id, HOLDS_NOTHING)
        return
    judged.operation.unassigned.pop(member_id, None)
    _once(judged, member.current.work, at, member_id)
    held = work_held(member.current.work)
    if facts.knows(ASSIGNMENT_EPOCH):
        _against_target(judged, state, member_id, held, before, at)
    for unit, other in judged.current.put(member_id, held):
        if facts.knows_member(CURRENT, other):
            rule = Rule.ASSIGNED_BEFORE_REVOKED if _is_to_stop(judged, state, other, unit) else Rule.ASSIGNED_TO_TWO
            judged.broken(rule, at, member_id, f"{name(unit)} is also assigned to {other}")


def _against_target(
    judged: JudgedGroup, state: ConnectGroup, member_id: str, held: Held, before: Held | None, at: LogPosition
) -> None:
    epoch = state.members[member_id].member_epoch
    if epoch is not None and state.assignment_epoch is not None and epoch > state.assignment_epoch:
        detail = f"member epoch {epoch}, assignment epoch {state.assignment_epoch}"
        judged.broken(Rule.MEMBER_EPOCH_AHEAD_OF_TARGET, at, member_id, detail)
    target = state.targets.get(member_id)
    wanted = HOLDS_NOTHING if target is None else work_held(target.work)
    strange = [] if before is None else list(minus(held, wanted, before))
    if strange:
        judged.broken(Rule.ASSIGNED_OUTSIDE_TARGET, at, member_id, f"{names(strange)} is not in its target")


def _is_to_stop(judged: JudgedGroup, state: ConnectGroup, member_id: str, unit: WorkUnit) -> bool:
    """Whether a worker is asked to stop what it runs: it is not in its target, and it has not acknowledged that."""
    if not judged.facts.knows(ASSIGNMENT_EPOCH):
        return False
    target = state.targets.get(member_id)
    return target is None or unit.number not in work_held(target.work).get(unit.resource, ())
