"""Rules of members: how they join and leave, and what they have on the way to their target."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any, NamedTuple

from coordinator_core.audit.rules.epochs import MAX_ASSIGNMENT_INTERVAL_MS, twice
from coordinator_core.audit.rules.group_types import CONSUMER_KIND, STREAMS_KIND, EpochKind
from coordinator_core.audit.rules.holders import HOLDS_NOTHING, both, minus, name, names
from coordinator_core.audit.rules.judged_group import JudgedGroup, joined
from coordinator_core.audit.rules.known_facts import (
    ASSIGNMENT_EPOCH,
    CURRENT,
    EPOCH,
    MEMBER,
    TARGET,
    UNKNOWN,
    HeldUnit,
    WriteGroup,
)
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epoch_records import (
    CurrentRecord,
    CurrentValue,
    MemberRecord,
    MemberValue,
    PartitionsWithEpochs,
    instance_id_of,
)
from coordinator_core.groups.epochs import (
    INITIAL_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    EpochGroup,
    EpochMember,
)
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.violations import Rule
from coordinator_core.history.work_units import Held, Resource
from coordinator_core.records import LogPosition


class MemberBefore(NamedTuple):
    """A member before its metadata record; the record may change it in place."""

    member: Any
    has_metadata: bool


def member_before(scene: JudgedGroup, record: MemberRecord) -> MemberBefore:
    """Return what ``on_member`` needs to know about the group before the record."""
    member = scene.member(record.key["memberId"])
    return MemberBefore(member, member is not None and member.has_metadata)


def on_member(kind: EpochKind, scene: JudgedGroup, record: MemberRecord, before: MemberBefore) -> None:
    """Judge member metadata: a member joins, changes or leaves."""
    watch, operation = scene.watch, scene.operation
    member_id, value, at = record.key["memberId"], record.value, record.at
    if value is None:
        scene.departing(member_id, MEMBER, at, before.member)
        _depart(scene, member_id, at)
        return
    is_new = not before.has_metadata
    sure = watch.knows_member(MEMBER, member_id)
    watch.note_member(MEMBER, member_id, at)
    instance_id = instance_id_of(value)
    replaces = _replaced(scene, instance_id)
    if replaces is not None:
        operation.leaving.pop(replaces, None)
        operation.replaced[member_id] = replaces
    if not (is_new and sure):
        return
    if replaces is None and _subscribes(value):
        operation.joining[member_id] = at
    operation.unassigned[member_id] = at
    _instance_once(scene, member_id, instance_id, at)


def _replaced(scene: JudgedGroup, instance_id: str | None) -> str | None:
    """Whose place a static member takes: that of the last with its instance id, removed at the same time (KIP-345).

    Of one whose metadata is lost nobody knows whether it is the one.
    """
    if instance_id is None:
        return None
    departed = reversed(scene.operation.departed.items())
    return next((gone for gone, seen in departed if seen.instance_id in (instance_id, UNKNOWN)), None)


def _subscribes(value: MemberValue) -> bool:
    """Whether joining with this opens an epoch: a consumer without topics does not, one with a regex does later."""
    if "subscribedTopicRegex" not in value:
        return True
    return bool(value["subscribedTopicNames"] and not value["subscribedTopicRegex"])


def _depart(scene: JudgedGroup, member_id: str, at: LogPosition) -> None:
    watch, operation = scene.watch, scene.operation
    if operation.departed[member_id].instance_id != UNKNOWN:
        operation.leaving[member_id] = at
    operation.joining.pop(member_id, None)
    operation.unassigned.pop(member_id, None)
    scene.current.put(member_id, HOLDS_NOTHING)
    watch.forget_member(member_id)


def _instance_once(scene: JudgedGroup, member_id: str, instance_id: str | None, at: LogPosition) -> None:
    if instance_id is None:
        return
    state = scene.group.state
    assert isinstance(state, EpochGroup)
    for other_id, other in state.members.items():
        same = other_id != member_id and getattr(other, "instance_id", None) == instance_id
        if same and scene.watch.knows_member(MEMBER, other_id):
            detail = f"instance id {instance_id} is also that of {other_id}"
            scene.broken(Rule.INSTANCE_ID_OF_TWO, at, member_id, detail)


class CurrentBefore(NamedTuple):
    """A member's current assignment before a record: what the member had, its epoch and its previous epoch."""

    held: Held
    epoch: int | None
    previous: int | None


def current_before(kind: EpochKind, scene: JudgedGroup, record: CurrentRecord) -> CurrentBefore:
    """Return what ``on_current`` needs to know about the group before the record."""
    member_id, operation = record.key["memberId"], scene.operation
    member = scene.member(member_id)
    if member is None or not member.has_current:
        return CurrentBefore(_given_up(operation, operation.replaced.get(member_id)), None, None)
    held = scene.current.held.get(member_id, HOLDS_NOTHING) if kind.exclusive else kind.assigned(member)
    return CurrentBefore(held, member.member_epoch, member.previous_member_epoch)


def on_current(kind: EpochKind, scene: JudgedGroup, record: CurrentRecord, had: CurrentBefore) -> None:
    """Judge a current assignment: what a member has of its target, and what it still has to give up."""
    watch, operation, before = scene.watch, scene.operation, had.held
    member_id, value, at = record.key["memberId"], record.value, record.at
    member = scene.member(member_id)
    sure = watch.knows_member(CURRENT, member_id)
    if value is None:
        scene.departing(member_id, CURRENT, at, member)
        operation.given_up += [HeldUnit(*unit, member_id) for unit in minus(before)]
        scene.current.put(member_id, HOLDS_NOTHING)
        watch.note_member(CURRENT, member_id, at)
        return
    watch.note_member(CURRENT, member_id, at)
    if operation.empty and value["memberEpoch"] == INITIAL_EPOCH:
        # An empty group that was forgotten begins anew; one whose member subscribes to nothing writes no epoch then.
        watch.doubt(EPOCH)
        watch.doubt(ASSIGNMENT_EPOCH)
    operation.unassigned.pop(member_id, None)
    assigned, revoking = kind.assigned(member), kind.revoking(member)
    twice(scene, record, assigned, revoking)
    _epochs(scene, member, (had.epoch, had.previous) if sure else (None, None), at)
    _state(scene, kind, member, revoking, at)
    _target(scene, kind, member, assigned, before if sure else None, at)
    if kind.exclusive:
        _partition_epochs(scene, member, value, at)
    if revoking:
        _revoking(scene, member_id, revoking, assigned, before if sure else None, at)
    if kind.exclusive:
        _hands(scene, member_id, joined(assigned, revoking), at)
    if kind is STREAMS_KIND:
        _process(scene, member, before, at)
    _overdue(scene, kind, member, at)


def _revoking(
    scene: JudgedGroup, member_id: str, revoking: Held, assigned: Held, before: Held | None, at: LogPosition
) -> None:
    """What a member is to give up was its own, and is assigned to it no more."""
    for unit in both(assigned, revoking):
        scene.broken(
            Rule.ASSIGNED_WHILE_REVOKING, at, member_id, f"{name(unit)} is both assigned and pending revocation"
        )
    strange = [] if before is None else list(minus(revoking, before))
    if strange:
        scene.broken(Rule.REVOKING_NOT_OWNED, at, member_id, f"{names(strange)} was not assigned to it")


def _given_up(operation: WriteGroup, member_id: str | None) -> Held:
    held: dict[Resource, set[int]] = {}
    for role, what, partition, owner in operation.given_up:
        if owner == member_id:
            held.setdefault((role, what), set()).add(partition)
    return held


def _hands(scene: JudgedGroup, member_id: str, held: Held, at: LogPosition) -> None:
    """What a member takes nobody else has."""
    watch = scene.watch
    for unit, other in scene.current.put(member_id, held):
        if not watch.knows_member(CURRENT, other):
            continue
        holder = scene.member(other)
        giving_up = holder is not None and unit in set(_revoking_units(scene, other))
        rule = Rule.ASSIGNED_BEFORE_REVOKED if giving_up else Rule.ASSIGNED_TO_TWO
        since = watch.of_members[CURRENT].get(other)
        scene.broken(rule, at, member_id, f"{name(unit)} is also assigned to {other} (offset {since})")


def _revoking_units(scene: JudgedGroup, member_id: str) -> list[Any]:
    member = scene.member(member_id)
    kind = STREAMS_KIND if hasattr(member, "process_id") else CONSUMER_KIND
    return list(minus(kind.revoking(member)))


def _epochs(scene: JudgedGroup, member: EpochMember, before: tuple[int | None, int | None], at: LogPosition) -> None:
    state = scene.group.state
    assert isinstance(state, EpochGroup)
    assert member.member_epoch is not None
    epoch, member_id = member.member_epoch, member.member_id
    target = state.assignment_epoch
    if target is not None and epoch > target and scene.watch.knows(ASSIGNMENT_EPOCH):
        detail = f"member epoch {epoch}, assignment epoch {target}"
        scene.broken(Rule.MEMBER_EPOCH_AHEAD_OF_TARGET, at, member_id, detail)
    allowed = before if epoch == before[0] else before[:1]
    if before[0] is not None and epoch > 0 and member.previous_member_epoch not in allowed:
        detail = f"previous member epoch {member.previous_member_epoch}, but it was at {before[0]}"
        scene.broken(Rule.PREVIOUS_EPOCH_WRONG, at, member_id, detail)


def _partition_epochs(scene: JudgedGroup, member: EpochMember, value: CurrentValue, at: LogPosition) -> None:
    """No partition was assigned in an epoch that its member has not reached."""
    epoch = member.member_epoch or 0
    for entry in _lists(value):
        epochs = entry.get("assignmentEpochs")
        if epochs and max(epochs) > epoch > 0:
            later = next(each for each in epochs if each > epoch)
            detail = f"assignment epoch {later} of a partition, member epoch {epoch}"
            scene.broken(Rule.PARTITION_EPOCH_WRONG, at, member.member_id, detail)


def _lists(value: CurrentValue) -> Iterable[PartitionsWithEpochs]:
    """Return what a current assignment has, by topic or subtopology, where the record type has assignment epochs."""
    if "partitionsPendingRevocation" in value:
        return chain(value["assignedPartitions"], value["partitionsPendingRevocation"])
    if "activeTasks" in value:
        assigned = value["activeTasks"], value["standbyTasks"], value["warmupTasks"]
        revoking = (
            value["activeTasksPendingRevocation"],
            value["standbyTasksPendingRevocation"],
            value["warmupTasksPendingRevocation"],
        )
        return chain(*assigned, *revoking)
    return ()


def _state(scene: JudgedGroup, kind: EpochKind, member: EpochMember, revoking: Held, at: LogPosition) -> None:
    if not kind.exclusive or member.member_epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        return
    if member.member_epoch == 0 and member.member_id in scene.operation.replaced:
        return  # a static member begins in the state in which the one before it was
    if bool(revoking) != (member.state == kind.unrevoked):
        count = sum(len(each) for each in revoking.values())
        detail = f"state {member.state} with {count} to be revoked"
        scene.broken(Rule.STATE_AGAINST_ASSIGNMENT, at, member.member_id, detail)


def _target(
    scene: JudgedGroup, kind: EpochKind, member: EpochMember, assigned: Held, before: Held | None, at: LogPosition
) -> None:
    state, member_id, watch = scene.group.state, member.member_id, scene.watch
    assert isinstance(state, EpochGroup)
    if not watch.knows_member(TARGET, member_id):
        return
    target = state.targets.get(member_id)
    wanted = HOLDS_NOTHING if target is None else kind.wanted(target)
    if assigned == wanted:
        return
    if before is not None:
        strange = list(minus(assigned, wanted, before))
        if strange:
            scene.broken(Rule.ASSIGNED_OUTSIDE_TARGET, at, member_id, f"{names(strange)} is not in its target")
    converged = member.member_epoch == state.assignment_epoch == state.group_epoch
    if kind.exclusive and member.state == kind.stable and converged and watch.knows(EPOCH):
        lacking = [unit for unit in minus(wanted, assigned) if not _may_lack(state, member_id, unit.resource, assigned)]
        surplus = list(minus(assigned, wanted))
        if lacking or surplus:
            detail = f"stable; beside its target: {names(surplus) or 'nothing'}; lacks: {names(lacking) or 'nothing'}"
            scene.broken(Rule.ASSIGNED_NOT_THE_TARGET, at, member_id, detail)


def _may_lack(state: EpochGroup[Any, Any], member_id: str, resource: Resource, assigned: Held) -> bool:
    """Whether a member may not get a topic of its target because it does not subscribe to it.

    A target may hold topics of a regex that is not resolved yet, those of others where a group counts as one whose
    members all subscribe to the same, though it is no longer, and what a converted group's leader once assigned.
    """
    if not isinstance(state, ConsumerGroup) or assigned.get(resource):
        return False
    if state.members[member_id].subscribed_topic_regex or not state.assignment_timestamp:
        return True
    everyone = state.members.values()
    return len({(frozenset(each.subscribed_topic_names), each.subscribed_topic_regex) for each in everyone}) > 1


def _process(scene: JudgedGroup, member: Any, before: Held, at: LogPosition) -> None:
    """No process has a task twice, in whatever roles."""
    state = scene.group.state
    assert isinstance(state, StreamsGroup)
    mine = {(unit.name, unit.number): unit.role for unit in minus(STREAMS_KIND.assigned(member), before)}
    for other_id, other in state.members.items():
        if other.process_id != member.process_id or not scene.watch.knows_member(CURRENT, other_id):
            continue
        if other_id == member.member_id:
            continue
        theirs = _by_task(joined(STREAMS_KIND.assigned(other), STREAMS_KIND.revoking(other)))
        for task in sorted(mine.keys() & theirs.keys()):
            if mine[task] == theirs[task] == "active":
                continue  # two owners: another rule says so
            detail = (
                f"{mine[task]} task {task[0]}_{task[1]} is also a {theirs[task]} task of {other_id} in this process"
            )
            scene.broken(Rule.TASK_TWICE_IN_PROCESS, at, member.member_id, detail)


def _by_task(held: Held) -> dict[tuple[str, int], str]:
    return {(what, partition): role for (role, what), partitions in held.items() for partition in partitions}


def _overdue(scene: JudgedGroup, kind: EpochKind, member: EpochMember, at: LogPosition) -> None:
    state, watch = scene.group.state, scene.watch
    assert isinstance(state, EpochGroup)
    if kind is STREAMS_KIND or not (watch.knows(EPOCH) and watch.knows(ASSIGNMENT_EPOCH)):
        return
    if not state.assignment_timestamp or state.assignment_epoch in (None, INITIAL_EPOCH):
        return
    if state.group_epoch == state.assignment_epoch or (member.member_epoch or 0) <= 0:
        return
    waited = at.timestamp_ms - state.assignment_timestamp
    if waited > MAX_ASSIGNMENT_INTERVAL_MS:
        detail = f"assignment epoch {state.assignment_epoch} is {waited} ms old; group epoch {state.group_epoch}"
        scene.broken(Rule.ASSIGNMENT_OVERDUE, at, member.member_id, detail)
