"""What the sticky assignors read from a member's subscription, and what it then has.

Source: Kafka 4.3.1 and 3.3.2 ``StickyAssignor.memberData`` and ``CooperativeStickyAssignor.memberData``; facts of other
clients' own code, proven by recorded groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from coordinator_core.assignors.client.claimed_partitions import NO_GENERATION, MemberData, generation_or_none
from coordinator_core.assignors.client.leader_view import TopicPartition
from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.errors import DecodeError
from coordinator_core.record_fields.embedded import (
    CooperativeStickyAssignorUserData,
    KafkaPythonStickyUserData,
    KafkaPythonStickyUserDataTopicAssignment,
    StickyAssignorUserData,
    StickyAssignorUserDataTopicAssignment,
)
from coordinator_core.wire.embedded import decode_blob

Reader = Callable[[ClassicMemberSpec], MemberData]
"""How an assignor reads what a member owns."""
_Topics = Iterable[StickyAssignorUserDataTopicAssignment | KafkaPythonStickyUserDataTopicAssignment]


def sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return partitions and generation of the user data (version 0 has no generation); nothing if it is unreadable."""
    if not member.user_data:
        return MemberData((), None)
    try:
        fields = decode_blob(StickyAssignorUserData, member.user_data).fields
    except DecodeError:
        return MemberData((), NO_GENERATION)
    return MemberData(_flat(fields["previousAssignment"]), fields.get("generation"))


def versioned_sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return the same of the layout of kafka-python."""
    if not member.user_data:
        return MemberData((), NO_GENERATION)
    try:
        fields = decode_blob(KafkaPythonStickyUserData, member.user_data).fields
    except DecodeError:
        return MemberData((), NO_GENERATION)
    return MemberData(_flat(fields["previousAssignment"]), fields["generation"])


def sticky_data_of_generation(member: ClassicMemberSpec) -> MemberData:
    """Return what ``sticky_data`` does where there is a generation; else nothing (aiokafka)."""
    data = sticky_data(member)
    return data if data.generation is not None else MemberData((), NO_GENERATION)


def cooperative_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions, with the generation of the subscription (version 2) or else that of the user data."""
    if member.generation is not None:
        return MemberData(member.owned or (), member.generation)
    return cooperative_user_data(member)


def cooperative_user_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions with the generation of the user data (Kafka before 3.5)."""
    owned = member.owned or ()
    if member.user_data is None:
        return MemberData(owned, None)
    try:
        generation = decode_blob(CooperativeStickyAssignorUserData, member.user_data).fields["generation"]
    except DecodeError:
        generation = NO_GENERATION
    return MemberData(owned, generation)


def owned_without_generation(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions, of no known generation (Kafka before 2.6)."""
    return MemberData(member.owned or (), None)


def owned_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions with the generation of the subscription alone (librdkafka, kafka-python)."""
    return MemberData(member.owned or (), generation_or_none(member.generation))


def owned_or_sticky_data(member: ClassicMemberSpec) -> MemberData:
    """Return owned partitions where the subscription has a generation, else the user data (franz-go)."""
    return sticky_data(member) if member.generation is None else owned_data(member)


def _flat(topics: _Topics) -> list[TopicPartition]:
    return [(topic["topic"], number) for topic in topics for number in topic["partitions"]]
