"""What the sticky assignors read from a member's subscription.

Source: Kafka 4.3.1 ``StickyAssignor.memberData`` and ``CooperativeStickyAssignor.memberData``.
"""

from __future__ import annotations

from coordinator_core.assignors.client.claimed_partitions import NO_GENERATION, MemberData
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.errors import DecodeError
from coordinator_core.record_fields.embedded import CooperativeStickyAssignorUserData, StickyAssignorUserData
from coordinator_core.wire.embedded import decode_blob


def sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return partitions and generation of the user data (version 0 has no generation); nothing if it is unreadable."""
    if not member.user_data:
        return MemberData((), None)
    try:
        fields = decode_blob(StickyAssignorUserData, member.user_data).fields
    except DecodeError:
        return MemberData((), NO_GENERATION)
    partitions = [(topic["topic"], number) for topic in fields["previousAssignment"] for number in topic["partitions"]]
    return MemberData(partitions, fields.get("generation"))


def cooperative_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions, with the generation of the subscription (version 2) or else that of the user data."""
    owned = member.owned or ()
    if member.generation is not None:
        return MemberData(owned, member.generation)
    if member.user_data is None:
        return MemberData(owned, None)
    try:
        generation = decode_blob(CooperativeStickyAssignorUserData, member.user_data).fields["generation"]
    except DecodeError:
        generation = NO_GENERATION
    return MemberData(owned, generation)
