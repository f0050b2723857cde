"""Fields of the classic group records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class GroupMetadataKey(TrailingBytes):
    """Key of GROUP_METADATA."""

    group: str  # Group id.


@final
class GroupMetadataMemberMetadata(UnknownTaggedFields):
    """Struct of ``members``."""

    memberId: str  # Member id.
    groupInstanceId: NotRequired[str | None]  # group.instance.id of a static member. In versions 3 to 4.
    clientId: str  # client.id.
    clientHost: str  # Address of the client, with a leading slash.
    rebalanceTimeout: NotRequired[int]  # Rebalance timeout, ms. In versions 1 to 4.
    sessionTimeout: int  # Session timeout, ms.
    subscription: bytes  # The member's metadata for the chosen protocol, an embedded blob.
    assignment: bytes  # The leader's assignment of the member, an embedded blob.


@final
class GroupMetadataValue(TrailingBytes, UnknownTaggedFields):
    """A classic group at the end of a rebalance: generation, protocol, all members with subscription and assignment."""

    protocolType: str  # consumer, connect or what the client says; empty while the group never had members.
    generation: int  # Generation of the group.
    protocol: str | None  # The assignor (or Connect protocol) that the members agreed on; null with no members.
    leader: str | None  # Member id of the leader; null with no members.
    currentStateTimestamp: NotRequired[int]  # When the group came into its state, ms. In versions 2 to 4.
    members: list[GroupMetadataMemberMetadata]  # The members of this generation.
    _type: NotRequired[Literal["GroupMetadataValue"]]  # In no record: it sets this type apart.


GroupMetadataRecord = CoordinatorRecord[GroupMetadataKey, GroupMetadataValue]
