"""Rules of members: how they join and leave, and what they have on the way to their target."""

from itertools import chain
from typing import Any

from coordinator_core.audit.rules.epoch_order import MAX_ASSIGNMENT_INTERVAL_MS, twice
from coordinator_core.audit.rules.holders import HOLDS_NOTHING, minus, name
from coordinator_core.audit.rules.judged_group import JudgedGroup, joined
from coordinator_core.audit.rules.known_facts import UNKNOWN, HeldUnit, WriteGroup
from coordinator_core.audit.rules.reconciliation import CurrentBefore, Reconciliation, judge_reconciliation, target_of
from coordinator_core.durations import duration
from coordinator_core.groups.epoch_records import CurrentRecord, CurrentValue, MemberRecord, MemberValue, instance_id_of
from coordinator_core.groups.epochs import INITIAL_EPOCH, EpochGroup, EpochMember
from coordinator_core.groups.rules import ASSIGNMENT_EPOCH, CURRENT, EPOCH, MEMBER, Rule
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.history.held_units import CONSUMER_KIND, STREAMS_KIND, EpochKind
from coordinator_core.history.holdings import Held, Resource
from coordinator_core.records import LogPosition


def member_before(judged: JudgedGroup, record: MemberRecord) -> tuple[Any, bool]:
    """Return a member before its metadata record, which may change it in place, and whether it had metadata."""
    member = judged.member(record.key["memberId"])
    return member, member is not None and member.has_metadata


def on_member(kind: EpochKind, judged: JudgedGroup, record: MemberRecord, before: tuple[Any, bool]) -> None:
    """Judge member metadata: a member joins, changes or leaves."""
    member, had_metadata = before
    facts, operation = judged.facts, judged.operation
    member_id, value, at = record.key["memberId"], record.value, record.at
    if value is None:
        judged.departing(member_id, MEMBER, at, member)
        _depart(judged, member_id, at)
        return
    _instance_once(judged, member_id, instance_id_of(value), at)
    sure = facts.knows_member(MEMBER, member_id)
    facts.note_member(MEMBER, member_id, at)
    instance_id = instance_id_of(value)
    replaces = _replaced(judged, instance_id)
    if replaces is not None:
        # That a static member is replaced opens no epoch (KIP-345).
        operation.leaving.pop(replaces, None)
        operation.replaced[member_id] = replaces
    if had_metadata or not sure:
        return
    if replaces is None and _subscribes(value):
        operation.joining[member_id] = at
    operation.unassigned[member_id] = at


def _replaced(judged: JudgedGroup, instance_id: str | None) -> str | None:
    """Whose place a static member takes: that of the last with its instance id, removed at the same time (KIP-345).

    The log does not say whether a member whose metadata is lost is that one.
    """
    if instance_id is None:
        return None
    departed = reversed(judged.operation.departed.items())
    return next((gone for gone, seen in departed if seen.instance_id in (instance_id, UNKNOWN)), None)


def _subscribes(value: MemberValue) -> bool:
    """Whether joining with this opens an epoch: a consumer without topics does not, one with a regex does later."""
    if "subscribedTopicRegex" not in value:
        return True
    return bool(value["subscribedTopicNames"] and not value["subscribedTopicRegex"])


def _depart(judged: JudgedGroup, member_id: str, at: LogPosition) -> None:
    facts, operation = judged.facts, judged.operation
    # A member whose metadata is not known may be static, and another one may take its place.
    if operation.departed[member_id].instance_id != UNKNOWN:
        operation.leaving[member_id] = at
    operation.joining.pop(member_id, None)
    operation.unassigned.pop(member_id, None)
    judged.current.put(member_id, HOLDS_NOTHING)
    facts.forget_member(member_id)


def _instance_once(judged: JudgedGroup, member_id: str, instance_id: str | None, at: LogPosition) -> None:
    if instance_id is None:
        return
    state = judged.group.state
    assert isinstance(state, EpochGroup)
    for other_id, other in state.members.items():
        same = other_id != member_id and other.instance_id == instance_id
        if same and judged.facts.knows_member(MEMBER, other_id):
            detail = f"instance id {instance_id} is also that of {other_id}"
            judged.broken(Rule.INSTANCE_ID_OF_TWO, at, member_id, detail)


def current_before(kind: EpochKind, judged: JudgedGroup, record: CurrentRecord) -> CurrentBefore:
    """Return what ``on_current`` needs to know about the group before the record."""
    member_id, operation = record.key["memberId"], judged.operation
    member = judged.member(member_id)
    # A record of one type may come while the group is of another: its member has nothing of this type.
    if member is None or not member.has_current or not isinstance(judged.group.state, kind.state):
        return CurrentBefore(_given_up(operation, operation.replaced.get(member_id)))
    assigned = kind.assigned(member)
    held = judged.current.held.get(member_id, HOLDS_NOTHING) if kind.exclusive else assigned
    return CurrentBefore(held, assigned, member.member_epoch, member.previous_member_epoch)


def on_current(kind: EpochKind, judged: JudgedGroup, record: CurrentRecord, had: CurrentBefore) -> None:
    """Judge a current assignment: what a member has of its target, and what it still has to give up."""
    facts, operation, before = judged.facts, judged.operation, had.held
    member_id, value, at = record.key["memberId"], record.value, record.at
    member = judged.member(member_id)
    sure = facts.knows_member(CURRENT, member_id)
    if value is None:
        judged.departing(member_id, CURRENT, at, member)
        operation.given_up += [HeldUnit(*unit, member_id) for unit in minus(before)]
        judged.current.put(member_id, HOLDS_NOTHING)
        facts.note_member(CURRENT, member_id, at)
        return
    facts.note_member(CURRENT, member_id, at)
    if operation.empty and value["memberEpoch"] == INITIAL_EPOCH:
        # An empty group that was forgotten begins again; one whose member subscribes to nothing writes no epoch then.
        facts.doubt(EPOCH)
        facts.doubt(ASSIGNMENT_EPOCH)
    operation.unassigned.pop(member_id, None)
    replaced = operation.replaced.get(member_id)
    if replaced is not None and operation.left_targets.pop(replaced, []) and facts.whole:
        detail = f"it has no copy of the target of {replaced}, whose place it takes"
        judged.broken(Rule.REPLACEMENT_NOT_A_COPY, at, member_id, detail)
    assigned, revoking = kind.assigned(member), kind.revoking(member)
    twice(judged, record, assigned, revoking)
    target = target_of(judged, kind, member_id, at)
    judge_reconciliation(judged, Reconciliation(kind, member, at, assigned, revoking, target, had if sure else None))
    if kind.exclusive:
        _partition_epochs(judged, member, value, at)
        _change_holdings(judged, member_id, joined(assigned, revoking), at)
    if kind is STREAMS_KIND:
        _process(judged, member, before, at)
    _overdue(judged, kind, member, at)


def _given_up(operation: WriteGroup, member_id: str | None) -> Held:
    held: dict[Resource, set[int]] = {}
    for role, subject, partition, owner in operation.given_up:
        if owner == member_id:
            held.setdefault((role, subject), set()).add(partition)
    return held


def _change_holdings(judged: JudgedGroup, member_id: str, held: Held, at: LogPosition) -> None:
    """No other member has what a member takes."""
    facts = judged.facts
    for unit, other in judged.current.put(member_id, held):
        if not facts.knows_member(CURRENT, other):
            continue
        holder = judged.member(other)
        of = STREAMS_KIND if hasattr(holder, "process_id") else CONSUMER_KIND
        giving_up = holder is not None and unit in set(minus(of.revoking(holder)))
        rule = Rule.ASSIGNED_BEFORE_REVOKED if giving_up else Rule.ASSIGNED_TO_TWO
        since = facts.of_members[CURRENT].get(other)
        judged.broken(rule, at, member_id, f"{name(unit)} is also assigned to {other} (offset {since})")


def _partition_epochs(judged: JudgedGroup, member: EpochMember, value: CurrentValue, at: LogPosition) -> None:
    """No partition was assigned in an epoch that its member has not reached."""
    epoch = member.member_epoch or 0
    lists = [entries for entries in value.values() if isinstance(entries, list)]
    for entry in chain.from_iterable(lists):
        epochs = entry.get("assignmentEpochs")
        if epochs and max(epochs) > epoch > 0:
            later = next(number for number in epochs if number > epoch)
            detail = f"assignment epoch {later} of a partition, member epoch {epoch}"
            judged.broken(Rule.PARTITION_EPOCH_WRONG, at, member.member_id, detail)


def _process(judged: JudgedGroup, member: Any, before: Held, at: LogPosition) -> None:
    """No process has a task twice, in whatever roles. The record of a member says which its process is."""
    state, knows = judged.group.state, judged.facts.knows_member
    assert isinstance(state, StreamsGroup)
    if not knows(MEMBER, member.member_id):
        return
    taken = {(unit.name, unit.number): unit.role for unit in minus(STREAMS_KIND.assigned(member), before)}
    if not taken:  # as with most records: then the other members need not be looked at
        return
    for other_id, other in state.members.items():
        if other.process_id != member.process_id or not knows(MEMBER, other_id) or not knows(CURRENT, other_id):
            continue
        if other_id == member.member_id:
            continue
        held = minus(joined(STREAMS_KIND.assigned(other), STREAMS_KIND.revoking(other)))
        held_by_other = {(unit.name, unit.number): unit.role for unit in held}
        for task in sorted(taken.keys() & held_by_other.keys()):
            if taken[task] == held_by_other[task] == "active":
                continue  # two owners: another rule says so
            name, role = f"{task[0]}_{task[1]}", held_by_other[task]
            detail = f"{taken[task]} task {name} is also a {role} task of {other_id} in this process"
            judged.broken(Rule.TASK_TWICE_IN_PROCESS, at, member.member_id, detail)


def _overdue(judged: JudgedGroup, kind: EpochKind, member: EpochMember, at: LogPosition) -> None:
    state, facts = judged.group.state, judged.facts
    assert isinstance(state, EpochGroup)
    # Brokers after 4.4 compute targets beside the heartbeats: who comes has what it gets at once before that.
    if kind is STREAMS_KIND or not (facts.knows(EPOCH) and facts.knows(ASSIGNMENT_EPOCH)):
        return
    if not state.assignment_timestamp or state.assignment_epoch in (None, INITIAL_EPOCH) or judged.may_be_after_4_4(at):
        return
    if state.group_epoch == state.assignment_epoch or (member.member_epoch or 0) <= 0:
        return
    waited = at.timestamp_ms - state.assignment_timestamp
    if waited > MAX_ASSIGNMENT_INTERVAL_MS:
        detail = f"assignment epoch {state.assignment_epoch} is {duration(waited)} old; group epoch {state.group_epoch}"
        judged.broken(Rule.ASSIGNMENT_OVERDUE, at, member.member_id, detail)
