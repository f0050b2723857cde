"""The history of Connect groups as proposed on KIP-848: workers, and the connectors and tasks that they run.

The protocol is that of the groups with epochs, but the records differ: one record holds the targets of all workers, and
no record says that a worker is asked to stop work. That follows from its target, and its current assignment
acknowledges it.
"""

from coordinator_core.clients.known_clients import ONLY_JAVA
from coordinator_core.durations import duration
from coordinator_core.groups.connect.describe import (
    common_assignor,
    is_reconciled,
    is_without_computing_worker,
    worker_url,
)
from coordinator_core.groups.connect.state import (
    Assignor,
    ConnectGroup,
    ConnectMember,
    Work,
    is_classic,
    is_to_be_downgraded,
    max_delay_ms,
    unassigned,
    units,
)
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.groups.group import GroupState
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import CauseKind, about, cause
from coordinator_core.history.held_units import work_held
from coordinator_core.history.history_writer import CURRENT, TARGET, HistoryWriter, RecordHandler
from coordinator_core.history.memberships import away_hint, depart, join
from coordinator_core.history.open_rows import OpenMembership
from coordinator_core.history.rows import NO_COMPUTING_WORKER, Cause
from coordinator_core.record_fields.connect_group import (
    ConnectWorkerGroupCurrentMemberAssignmentRecord,
    ConnectWorkerGroupMemberMetadataRecord,
    ConnectWorkerGroupMetadataRecord,
)
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, LogPosition


def assignors_before(state: GroupState | None, record: ConnectWorkerGroupMemberMetadataRecord) -> list[Assignor] | None:
    """Return what a worker offered before; None if nothing is known about it."""
    known = _worker(state, record)
    return known.assignors if known is not None and known.client_id is not None else None


def on_member(
    writer: HistoryWriter, record: ConnectWorkerGroupMemberMetadataRecord, before: list[Assignor] | None
) -> None:
    """Apply member metadata: a worker joins, offers other assignors or other metadata for them, or leaves."""
    open_history, member_id, at = writer.open_history, record.key["memberId"], record.at
    membership = open_history.memberships.get(member_id)
    if record.value is None:
        if membership is not None and membership.away_since is not None:
            membership.hint = away_hint(membership.away_since, at, None)
        depart(writer, member_id, at)
        return
    member = _group(writer).members[member_id]
    if membership is None or before is None:
        membership = OpenMembership(member_id, at, "join", instance_id=member.instance_id, told=ONLY_JAVA)
        _describe(membership, member)
        join(writer, membership)
    else:
        _describe(membership, member)
        open_history.changes += _changes(member, before, at)


def _describe(membership: OpenMembership, member: ConnectMember) -> None:
    membership.client_id, membership.client_host = member.client_id, member.client_host
    membership.url, membership.speaks_classic = worker_url(member), is_classic(member)


def _changes(member: ConnectMember, before: list[Assignor], at: LogPosition) -> list[Cause]:
    """What a worker's metadata changes; an assignor's reason is how a worker asks for a rebalance."""
    old, new = [assignor.name for assignor in before], [assignor.name for assignor in member.assignors]
    if old != new:
        detail = f"assignors {' '.join(old) or 'none'} to {' '.join(new) or 'none'}"
        return [about(member, CauseKind.ASSIGNOR_CHANGED, at, detail)]
    was = {assignor.name: assignor for assignor in before}
    details = [_detail(was[assignor.name], assignor) for assignor in member.assignors if assignor != was[assignor.name]]
    return [about(member, CauseKind.MEMBER_CHANGED, at, ", ".join(details))] if details else []


def _detail(old: Assignor, new: Assignor) -> str:
    if old.reason != new.reason:
        return f"reason of assignor {new.name} {old.reason} to {new.reason}"
    part = "versions" if old.metadata == new.metadata else "metadata"
    return f"{part} of assignor {new.name}"


def on_work(writer: HistoryWriter, record: CoordinatorRecord, before: set[tuple[str, int]]) -> None:
    """Apply the connectors and tasks that the group has to run."""
    if record.value is not None:
        changed = before ^ _units(_group(writer).work)
        if changed:
            detail = f"{len(changed)} connectors and tasks were added or removed"
            of_names = cause(
                CauseKind.CONNECTORS_CHANGED, record.at, topics={name for name, _ in changed}, detail=detail
            )
            writer.open_history.changes.append(of_names)
        _note_idle_work(writer)


def on_epoch(writer: HistoryWriter, record: ConnectWorkerGroupMetadataRecord, before: None) -> None:
    """Apply group metadata: a new epoch opens and with it a rebalance; a tombstone ends the group."""
    open_history, at, value = writer.open_history, record.at, record.value
    if value is None:
        open_history.ended = at
        return
    if open_history.epoch is not None and open_history.epoch.epoch == value["epoch"]:
        return
    group = _group(writer)
    members = group.members
    due = open_history.due_ms is not None and at.timestamp_ms >= open_history.due_ms
    # Only without another cause: a worker that joins in time opens an epoch, too, and nothing waited to its end.
    if due and not open_history.changes:
        detail = f"work waited {duration(max_delay_ms(group))} for a worker"
        open_history.changes.append(cause(CauseKind.DELAY_ELAPSED, at, detail=detail))
    elif members and not open_history.changes and group.targets and unassigned(group):
        # A coordinator that loads the group lets its work wait once more, for as long.
        detail = "work waited for a worker, again since a coordinator loaded the group"
        open_history.changes.append(cause(CauseKind.DELAY_ELAPSED, at, detail=detail))
    if due:
        open_history.due_ms = None
    epoch = writer.bump(value["epoch"], tuple(members), "ASSIGNING" if members else "EMPTY", at)
    if is_without_computing_worker(group):
        epoch.assignment_error = NO_COMPUTING_WORKER
    _note_idle_work(writer)


def _note_idle_work(writer: HistoryWriter) -> None:
    """Without workers no target is made, and all work is in none; a later worker's target counts again."""
    group, epoch = _group(writer), writer.open_history.epoch
    if epoch is not None and not group.members and group.work_epoch is not None:
        epoch.unassigned = len(units(group.work))


def on_target(writer: HistoryWriter, record: CoordinatorRecord, before: None) -> None:
    """Apply the target assignment of all workers: workers that run what they should not are asked to stop it."""
    open_history, at = writer.open_history, record.at
    state, rebalance = writer.group.state, open_history.rebalance
    if not isinstance(state, ConnectGroup):
        return
    # One record has the targets of all workers: who is not in it has none any more.
    for member_id in [*open_history.target.members]:
        if member_id not in state.targets:
            writer.put(TARGET, member_id, {}, at, None)
    for member_id, target in state.targets.items():
        writer.put(TARGET, member_id, work_held(target.work), at, state.assignment_epoch)
        if rebalance is not None:
            rebalance.asked(member_id, len(_to_stop(state, member_id)), at)
    epoch = open_history.epoch
    if record.value is None or epoch is None or state.assignment_epoch != epoch.epoch:
        return
    epoch.unassigned = None if state.work_epoch is None else len(unassigned(state))
    epoch.assignment_error = max((target.error for target in state.targets.values()), default=0)
    if epoch.target is None:
        epoch.target, epoch.assignor = at, common_assignor(state)
        epoch.state = "RECONCILING" if epoch.state == "ASSIGNING" else epoch.state
    if rebalance is not None and rebalance.target is None:
        rebalance.target = at
        if epoch.unassigned and open_history.due_ms is not None and open_history.due_ms > at.timestamp_ms:
            rebalance.delay_ms = open_history.due_ms - at.timestamp_ms
        writer.converge(at)


def delay_before(state: GroupState | None, record: ConnectWorkerGroupCurrentMemberAssignmentRecord) -> int:
    """Return how long (ms) what a worker runs waits for it if this record ends it."""
    member = _worker(state, record)
    if record.value is not None or member is None or member.current is None or not _units(member.current.work):
        return 0
    assert isinstance(state, ConnectGroup)
    return max_delay_ms(state)


def on_current(writer: HistoryWriter, record: ConnectWorkerGroupCurrentMemberAssignmentRecord, before: int) -> None:
    """Apply a current assignment: what a worker runs, and how far it is.

    The work of a worker that left waits for its return; if another worker leaves meanwhile, it does not wait longer.
    Workers of a group that is made a classic one go on with their work: no unit loses its owner.
    """
    open_history, member_id, at = writer.open_history, record.key["memberId"], record.at
    if record.value is None and is_to_be_downgraded(_group(writer)):
        writer.put(CURRENT, member_id, {}, at, None)
        return
    if record.value is None:
        if before and (open_history.due_ms is None or at.timestamp_ms > open_history.due_ms):
            open_history.due_ms = at.timestamp_ms + before
        writer.own(member_id, {}, at, None)
        return
    state = _group(writer)
    member = state.members[member_id]
    assert member.current is not None
    writer.own(member_id, work_held(member.current.work), at, member.member_epoch)
    membership = open_history.memberships.get(member_id)
    if membership is not None:
        membership.away_since = at if member.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH else None
    rebalance = open_history.rebalance
    if rebalance is not None:
        to_stop = len(_to_stop(state, member_id))
        rebalance.asked(member_id, to_stop, at)
        if is_reconciled(state, member) and member.member_epoch == open_history.last_epoch:
            # The last worker that comes here held the others up, unless it waited itself.
            if rebalance.behind.pop(member_id, False):
                rebalance.last_member = member_id
            writer.converge(at)
        elif not to_stop:
            rebalance.waited[member_id] = True


def _to_stop(state: ConnectGroup, member_id: str) -> set[tuple[str, int]]:
    """What a worker runs and is not to run."""
    member, target = state.members.get(member_id), state.targets.get(member_id)
    if member is None or member.current is None or target is None:
        return set()
    return _units(member.current.work) - _units(target.work)


def _units(work: Work) -> set[tuple[str, int]]:
    """Connectors, with -1 in the place of a task's number, and tasks."""
    return {(name, number) for (_, name), numbers in work_held(work).items() for number in numbers}


def _worker(
    state: GroupState | None,
    record: ConnectWorkerGroupMemberMetadataRecord | ConnectWorkerGroupCurrentMemberAssignmentRecord,
) -> ConnectMember | None:
    return state.members.get(record.key["memberId"]) if isinstance(state, ConnectGroup) else None


def _group(writer: HistoryWriter) -> ConnectGroup:
    state = writer.group.state
    assert isinstance(state, ConnectGroup)
    return state


HANDLERS: dict[int, RecordHandler] = {
    ConnectRecordType.GROUP_METADATA: RecordHandler(GroupType.CONNECT.value, on_epoch),
    ConnectRecordType.CONNECTORS_TASKS_METADATA: RecordHandler(
        GroupType.CONNECT.value,
        on_work,
        lambda state, _: _units(state.work) if isinstance(state, ConnectGroup) else set(),
    ),
    ConnectRecordType.MEMBER_METADATA: RecordHandler(GroupType.CONNECT.value, on_member, assignors_before),
    ConnectRecordType.TARGET_ASSIGNMENT: RecordHandler(GroupType.CONNECT.value, on_target),
    ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT: RecordHandler(GroupType.CONNECT.value, on_current, delay_before),
    # It causes no rebalance, and says how long work waits for a worker that left.
    ConnectRecordType.CONFIGURATION: RecordHandler(GroupType.CONNECT.value, lambda writer, record, before: None),
}
"""Record type of ``__worker_offsets`` to what it does to the history."""
