"""Rules of classic groups, whose every generation is one record (KIP-62, KIP-345, KIP-415)."""

from collections import Counter
from typing import NamedTuple

from coordinator_core.audit.rules.holders import HOLDS_NOTHING, name, names
from coordinator_core.audit.rules.judged_group import JudgedGroup, classic_held, joined
from coordinator_core.groups.classic.protocols import CONNECT_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.rules import EPOCH, Rule
from coordinator_core.history.held_units import asked_for, given_to
from coordinator_core.history.holdings import Held, Resource
from coordinator_core.record_fields.classic_group import GroupMetadataRecord
from coordinator_core.records import CoordinatorRecord, LogPosition

SINGLE_OWNER = frozenset(
    ("range", "roundrobin", "sticky", "cooperative-sticky", "stream", "default", "compatible", "sessioned")
)
"""Protocols that are known to give each partition, task or connector to one member only."""


class GenerationBefore(NamedTuple):
    """The group before a record, which changes it in place."""

    generation: int | None
    members: dict[str, ClassicMember]
    held: dict[str, Held]
    protocol_type: str | None = None


def generation_before(judged: JudgedGroup, record: CoordinatorRecord) -> GenerationBefore:
    """Return what ``on_generation`` needs of the group before."""
    state = judged.group.state
    if not isinstance(state, ClassicGroup):
        return GenerationBefore(None, {}, {})
    # A copy of what members have: the record changes that in place.
    return GenerationBefore(state.generation, state.members, {**judged.current.held}, state.protocol_type)


def on_generation(judged: JudgedGroup, record: GroupMetadataRecord, before: GenerationBefore) -> None:
    """Judge group metadata: a generation is complete, the same one is written again, or the group ends."""
    facts, operation = judged.facts, judged.operation
    known = facts.knows(EPOCH)
    if record.value is None:
        if not known:
            operation.converted = True  # it may be: whether the group had members is in records that are missing
        # A group of workers continues on KIP-848 in another log.
        elif before.members and before.protocol_type != CONNECT_PROTOCOL_TYPE:
            operation.crossed, operation.crossed_epoch = record.at, before.generation
        judged.current.clear()
        judged.target.clear()
        facts.end_life(record.at, gone=judged.group.state is None)
        return
    facts.note(EPOCH, record.at)
    operation.leaving.clear()
    new = judged.group.state
    assert isinstance(new, ClassicGroup)
    judged.arrived(new.generation or 0, record.at)
    _converted(judged, new, record.at)
    _protocol(judged, new, record.at)
    _instances(judged, new, record.at)
    if known and before.generation is not None and before.generation == new.generation:
        _rewritten(judged, before.members, new, record.at)
    elif known:
        _claims(judged, before, new, record.at)
    _owners(judged, new, record.at)
    for member_id, member in new.members.items():
        if twice := given_to(new, member).listed_twice:
            judged.broken(Rule.UNIT_TWICE_IN_RECORD, record.at, member_id, f"its assignment: {names([*twice])}")
    for member_id, count in Counter(member["memberId"] for member in record.value["members"]).items():
        if count > 1:
            judged.broken(Rule.MEMBER_LISTED_TWICE, record.at, member_id, f"listed {count} times")


def _converted(judged: JudgedGroup, group: ClassicGroup, at: LogPosition) -> None:
    """A consumer group that ends takes all members along that already use the classic protocol (KIP-848)."""
    converting, judged.operation.converting = judged.operation.converting, {}
    instances = {member.instance_id for member in group.members.values()} - {None}
    for member_id, instance_id in converting.items():
        if member_id not in group.members and instance_id not in instances:
            detail = "a member of the consumer group that uses the classic protocol, and not in the classic group"
            judged.broken(Rule.TYPE_CHANGED_IN_PART, at, member_id, detail)


def _protocol(judged: JudgedGroup, group: ClassicGroup, at: LogPosition) -> None:
    """A group with members has a protocol and a leader; one without has neither."""
    for field, value in (("protocol", group.protocol), ("leader", group.leader)):
        if bool(group.members) != (value is not None):
            detail = f"{field} {value!r} with {len(group.members)} members"
            judged.broken(Rule.PROTOCOL_AGAINST_MEMBERS, at, None, detail)


def _instances(judged: JudgedGroup, group: ClassicGroup, at: LogPosition) -> None:
    seen: dict[str, str] = {}
    for member_id, member in group.members.items():
        if member.instance_id is None:
            continue
        other = seen.setdefault(member.instance_id, member_id)
        if other != member_id:
            detail = f"instance id {member.instance_id} is also that of {other}"
            judged.broken(Rule.INSTANCE_ID_OF_TWO, at, member_id, detail)


def _rewritten(judged: JudgedGroup, before: dict[str, ClassicMember], group: ClassicGroup, at: LogPosition) -> None:
    """A generation written again differs by static members' new ids only (KIP-345), and everyone keeps what it had."""
    if group.members and group.members == before:
        judged.broken(Rule.GENERATION_REPEATED, at, None, f"generation {group.generation} was written again")
    by_instance = {member.instance_id: member for member in before.values() if member.instance_id is not None}
    for member_id, member in group.members.items():
        known = before.get(member_id) or by_instance.get(member.instance_id or "")
        if known is None:
            detail = f"joined in generation {group.generation}, which had been completed without it"
            judged.broken(Rule.GENERATION_CHANGED_IN_PLACE, at, member_id, detail)
        elif known.assignment != member.assignment:
            detail = f"another assignment in the same generation {group.generation}"
            judged.broken(Rule.GENERATION_CHANGED_IN_PLACE, at, member_id, detail)
    instances = {member.instance_id for member in group.members.values()}
    for member_id, member in before.items():
        if member_id not in group.members and (member.instance_id is None or member.instance_id not in instances):
            detail = f"missing from generation {group.generation}, which had been completed with it"
            judged.broken(Rule.GENERATION_CHANGED_IN_PLACE, at, member_id, detail)


def _claims(judged: JudgedGroup, before: GenerationBefore, group: ClassicGroup, at: LogPosition) -> None:
    """What a member says it has, of the assignment of the generation before, was assigned to it then.

    Or it said the same when it joined that generation: its SyncGroup request came after the next rebalance had begun,
    so that it never saw its assignment. A Java consumer names the generation that it joined all the same.
    """
    for member_id in group.members.keys() & before.members.keys():
        member = group.members[member_id]
        asked = asked_for(group, member)
        if asked is None or (asked.config_offset is None and asked.generation != before.generation):
            continue
        known = before.members[member_id]
        if not given_to(group, known).is_whole:
            continue
        had = joined(before.held.get(member_id, HOLDS_NOTHING), _claimed(group, known))
        strange = sorted(unit for unit in asked.owned if unit.number not in had.get(unit.resource, ()))
        if strange:
            detail = f"{names(strange)} was not assigned to it in generation {before.generation}"
            judged.broken(Rule.OWNED_NOT_ASSIGNED, at, member_id, detail)


def _claimed(group: ClassicGroup, member: ClassicMember) -> Held:
    """Return what a member said it has when it joined.

    A worker does not say in which generation it was assigned that: one that did not receive the answer to its
    SyncGroup request, because the coordinator moved, says the same again (KIP-415).
    """
    subscription = asked_for(group, member)
    held: dict[Resource, set[int]] = {}
    for unit in subscription.owned if subscription is not None else ():
        held.setdefault(unit.resource, set()).add(unit.number)
    return held


def _owners(judged: JudgedGroup, group: ClassicGroup, at: LogPosition) -> None:
    judged.current.clear()
    single = group.protocol in SINGLE_OWNER
    for member_id, member in group.members.items():
        held = classic_held(group, member)
        for (role, connector), numbers in held.items():
            problem = judged.plausible.connector_problem(connector, max(numbers) + 1) if role == "task" else None
            if problem is not None:
                judged.broken(Rule.COUNT_IMPLAUSIBLE, at, member_id, problem)
        for unit, other in judged.current.put(member_id, held):
            if single:
                judged.broken(Rule.ASSIGNED_TO_TWO, at, member_id, f"{name(unit)} is also assigned to {other}")
