"""How records change a classic group."""

from __future__ import annotations

from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.violations import NONE, Rule, Violations, violation
from coordinator_core.records import CoordinatorRecord, Fields, RecordType


def apply(state: ClassicGroup, record: CoordinatorRecord) -> Violations:
    """Changes ``state`` in place by a GROUP_METADATA record, which holds the whole group; raises nothing.

    A tombstone ends the group. It is written, too, when the last offset of a group goes that only committed and never
    had a GROUP_METADATA record; so a tombstone alone is no violation. A record of another type changes nothing.
    """
    if record.type != RecordType.GROUP_METADATA:
        return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type} in a classic group")
    value = record.value
    if value is None:
        return _end_group(state)
    before, generation = state.generation, value["generation"]
    state.generation = generation
    state.protocol_type = value["protocolType"]
    state.protocol = value["protocol"]
    leader = state.leader = value["leader"]
    timestamp = value.get("currentStateTimestamp", -1)
    state.current_state_timestamp = None if timestamp == -1 else timestamp
    members = state.members = {each["memberId"]: _member(each) for each in value["members"]}
    if before is not None and generation < before:
        return violation(Rule.GENERATION_WENT_BACK, record, f"generation {generation} after {before}")
    if leader is not None and members and leader not in members:
        return violation(Rule.LEADER_WITHOUT_MEMBER, record, f"leader {leader!r} is no member")
    return NONE


def _end_group(state: ClassicGroup) -> Violations:
    state.generation = state.protocol_type = state.protocol = state.leader = state.current_state_timestamp = None
    state.members = {}
    return NONE


def _member(value: Fields) -> ClassicMember:
    return ClassicMember(
        value["memberId"],
        value["clientId"],
        value["clientHost"],
        value["sessionTimeout"],
        value.get("rebalanceTimeout"),
        value.get("groupInstanceId"),
        value["subscription"],
        value["assignment"],
    )
