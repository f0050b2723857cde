"""Fields of the share group records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey, TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class ShareGroupMemberMetadataValue(TrailingBytes, UnknownTaggedFields):
    """A member of a share group (KIP-932)."""

    rackId: str | None  # Rack of the client.
    clientId: str  # client.id.
    clientHost: str  # Address of the client, with a leading slash.
    subscribedTopicNames: list[str]  # Topics subscribed by name.
    _type: NotRequired[Literal["ShareGroupMemberMetadataValue"]]  # In no record: it sets this type apart.


ShareGroupMemberMetadataRecord = CoordinatorRecord[MemberKey, ShareGroupMemberMetadataValue]


@final
class ShareGroupMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of a share group."""

    epoch: int  # Group epoch.
    # Hash of the subscribed topics and their partitions, signed; 0: none; absent: a broker of 4.0.
    metadataHash: NotRequired[int]
    _type: NotRequired[Literal["ShareGroupMetadataValue"]]  # In no record: it sets this type apart.


ShareGroupMetadataRecord = CoordinatorRecord[GroupIdKey, ShareGroupMetadataValue]


@final
class ShareGroupTargetAssignmentMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of the target assignment of a share group."""

    assignmentEpoch: int  # Epoch of the group that the target was computed for.
    assignmentTimestamp: NotRequired[int]  # When the assignment was computed, ms. Tagged: absent unless it was written.
    _type: NotRequired[Literal["ShareGroupTargetAssignmentMetadataValue"]]  # In no record: it sets this type apart.


ShareGroupTargetAssignmentMetadataRecord = CoordinatorRecord[GroupIdKey, ShareGroupTargetAssignmentMetadataValue]


@final
class ShareGroupTargetAssignmentMemberTopicPartition(UnknownTaggedFields):
    """Struct of ``topicPartitions``."""

    topicId: str  # Topic id.
    partitions: list[int]  # Partition numbers.


@final
class ShareGroupTargetAssignmentMemberValue(TrailingBytes, UnknownTaggedFields):
    """The target assignment of one member of a share group."""

    topicPartitions: list[ShareGroupTargetAssignmentMemberTopicPartition]  # Assigned partitions by topic.
    _type: NotRequired[Literal["ShareGroupTargetAssignmentMemberValue"]]  # In no record: it sets this type apart.


ShareGroupTargetAssignmentMemberRecord = CoordinatorRecord[MemberKey, ShareGroupTargetAssignmentMemberValue]


@final
class ShareGroupCurrentMemberAssignmentTopicPartitions(UnknownTaggedFields):
    """Struct of ``assignedPartitions``."""

    topicId: str  # Topic id.
    partitions: list[int]  # Partition numbers.


@final
class ShareGroupCurrentMemberAssignmentValue(TrailingBytes, UnknownTaggedFields):
    """What one member of a share group has."""

    memberEpoch: int  # Epoch the member is at; -2 for a static member that left.
    previousMemberEpoch: int  # Epoch the member was at before; accepted when a response was lost.
    state: int  # Member state, a number of the group type.
    assignedPartitions: list[ShareGroupCurrentMemberAssignmentTopicPartitions]  # Partitions the member has.
    _type: NotRequired[Literal["ShareGroupCurrentMemberAssignmentValue"]]  # In no record: it sets this type apart.


ShareGroupCurrentMemberAssignmentRecord = CoordinatorRecord[MemberKey, ShareGroupCurrentMemberAssignmentValue]


@final
class ShareGroupStatePartitionMetadataTopicPartitionsInfo(UnknownTaggedFields):
    """Struct of ``initializingTopics``, ``initializedTopics``."""

    topicId: str  # Topic id.
    topicName: str  # Topic name.
    partitions: list[int]  # Partition numbers.


@final
class ShareGroupStatePartitionMetadataTopicInfo(UnknownTaggedFields):
    """Struct of ``deletingTopics``."""

    topicId: str  # Topic id.
    topicName: str  # Topic name.


@final
class ShareGroupStatePartitionMetadataValue(TrailingBytes, UnknownTaggedFields):
    """Which share-partition states of a share group exist, are being made or deleted."""

    # Partitions whose share state is being created.
    initializingTopics: list[ShareGroupStatePartitionMetadataTopicPartitionsInfo]
    # Partitions whose share state exists; only these are assigned.
    initializedTopics: list[ShareGroupStatePartitionMetadataTopicPartitionsInfo]
    deletingTopics: list[ShareGroupStatePartitionMetadataTopicInfo]  # Topics whose share state is being deleted.
    _type: NotRequired[Literal["ShareGroupStatePartitionMetadataValue"]]  # In no record: it sets this type apart.


ShareGroupStatePartitionMetadataRecord = CoordinatorRecord[GroupIdKey, ShareGroupStatePartitionMetadataValue]
