"""How records change a classic group."""

from collections.abc import Callable, Mapping

from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations, violation
from coordinator_core.record_fields.classic_group import GroupMetadataMemberMetadata, GroupMetadataRecord
from coordinator_core.records import AnyRecord, RecordType


def _group_metadata(state: ClassicGroup, record: GroupMetadataRecord) -> Violations:
    """A tombstone ends the group, and ``Group`` drops its state.

    It is written, too, when the last offset of a group goes that only committed and never had a GROUP_METADATA record;
    so a tombstone alone is not a violation.
    """
    value = record.value
    if value is None:
        return NO_VIOLATIONS
    before, generation = state.generation, value["generation"]
    state.generation = generation
    state.protocol_type = value["protocolType"]
    state.protocol = value["protocol"]
    leader = state.leader = value["leader"]
    timestamp = value.get("currentStateTimestamp", -1)
    state.current_state_timestamp = None if timestamp == -1 else timestamp
    # One record has the whole group: who is not in it has left, and no other record says so.
    members = state.members = {member["memberId"]: _member(member) for member in value["members"]}
    if before is not None and generation < before:
        return violation(Rule.GENERATION_WENT_BACK, record, f"generation {generation} after {before}")
    if leader is not None and members and leader not in members:
        return violation(Rule.LEADER_WITHOUT_MEMBER, record, f"leader {leader!r} is not a member")
    return NO_VIOLATIONS


def _member(value: GroupMetadataMemberMetadata) -> ClassicMember:
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


HANDLERS: Mapping[int, Callable[[ClassicGroup, AnyRecord], Violations]] = {RecordType.GROUP_METADATA: _group_metadata}
"""Record type to the function that changes the state."""
