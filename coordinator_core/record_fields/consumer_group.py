"""Fields of the consumer group records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey, TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class ConsumerGroupMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of a consumer group (KIP-848)."""

    epoch: int  # Group epoch.
    # Hash of the subscribed topics and their partitions, signed; 0 or absent: none. Tagged: absent unless it was
    # written.
    metadataHash: NotRequired[int]
    _type: NotRequired[Literal["ConsumerGroupMetadataValue"]]  # In no record: it sets this type apart.


ConsumerGroupMetadataRecord = CoordinatorRecord[GroupIdKey, ConsumerGroupMetadataValue]


@final
class ConsumerGroupPartitionMetadataPartitionMetadata(UnknownTaggedFields):
    """Struct of ``partitionMetadata``."""

    partition: int  # Partition number.
    racks: list[str]  # Racks that hold a replica.


@final
class ConsumerGroupPartitionMetadataTopicMetadata(UnknownTaggedFields):
    """Struct of ``topics``."""

    topicId: str  # Topic id.
    topicName: str  # Topic name.
    numPartitions: int  # Count of partitions.
    partitionMetadata: list[ConsumerGroupPartitionMetadataPartitionMetadata]  # Racks of partitions, where known.


@final
class ConsumerGroupPartitionMetadataValue(TrailingBytes, UnknownTaggedFields):
    """What topics a consumer group saw, before the metadata hash replaced it."""

    topics: list[ConsumerGroupPartitionMetadataTopicMetadata]  # Subscribed topics as the broker knew them.
    _type: NotRequired[Literal["ConsumerGroupPartitionMetadataValue"]]  # In no record: it sets this type apart.


ConsumerGroupPartitionMetadataRecord = CoordinatorRecord[GroupIdKey, ConsumerGroupPartitionMetadataValue]


@final
class ConsumerGroupMemberMetadataClassicProtocol(UnknownTaggedFields):
    """Struct of ``supportedProtocols``."""

    name: str  # Assignor name.
    metadata: bytes  # Embedded subscription blob.


@final
class ConsumerGroupMemberMetadataClassicMemberMetadata(UnknownTaggedFields):
    """Struct of ``classicMemberMetadata``."""

    sessionTimeoutMs: int  # Session timeout, ms.
    # Protocols the classic member offers, in its order.
    supportedProtocols: list[ConsumerGroupMemberMetadataClassicProtocol]


@final
class ConsumerGroupMemberMetadataValue(TrailingBytes, UnknownTaggedFields):
    """A member of a consumer group as it described itself."""

    instanceId: str | None  # Instance id of a static member.
    rackId: str | None  # Rack of the client.
    clientId: str  # client.id.
    clientHost: str  # Address of the client, with a leading slash.
    subscribedTopicNames: list[str]  # Topics subscribed by name.
    subscribedTopicRegex: str | None  # RE2/J pattern subscribed to; null or empty: none.
    rebalanceTimeoutMs: int  # Rebalance timeout, ms.
    serverAssignor: str | None  # Server-side assignor asked for.
    # Set while the member speaks the classic protocol inside a consumer group; brokers write the null. Tagged: absent
    # unless it was written.
    classicMemberMetadata: NotRequired[ConsumerGroupMemberMetadataClassicMemberMetadata | None]
    _type: NotRequired[Literal["ConsumerGroupMemberMetadataValue"]]  # In no record: it sets this type apart.


ConsumerGroupMemberMetadataRecord = CoordinatorRecord[MemberKey, ConsumerGroupMemberMetadataValue]


@final
class ConsumerGroupTargetAssignmentMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of the target assignment of a consumer group."""

    assignmentEpoch: int  # Epoch of the group that the target was computed for.
    assignmentTimestamp: NotRequired[int]  # When the assignment was computed, ms. Tagged: absent unless it was written.
    _type: NotRequired[Literal["ConsumerGroupTargetAssignmentMetadataValue"]]  # In no record: it sets this type apart.


ConsumerGroupTargetAssignmentMetadataRecord = CoordinatorRecord[GroupIdKey, ConsumerGroupTargetAssignmentMetadataValue]


@final
class ConsumerGroupTargetAssignmentMemberTopicPartition(UnknownTaggedFields):
    """Struct of ``topicPartitions``."""

    topicId: str  # Topic id.
    partitions: list[int]  # Partition numbers.


@final
class ConsumerGroupTargetAssignmentMemberValue(TrailingBytes, UnknownTaggedFields):
    """The target assignment of one member of a consumer group."""

    topicPartitions: list[ConsumerGroupTargetAssignmentMemberTopicPartition]  # Assigned partitions by topic.
    _type: NotRequired[Literal["ConsumerGroupTargetAssignmentMemberValue"]]  # In no record: it sets this type apart.


ConsumerGroupTargetAssignmentMemberRecord = CoordinatorRecord[MemberKey, ConsumerGroupTargetAssignmentMemberValue]


@final
class ConsumerGroupCurrentMemberAssignmentTopicPartitions(UnknownTaggedFields):
    """Struct of ``assignedPartitions``, ``partitionsPendingRevocation``."""

    topicId: str  # Topic id.
    partitions: list[int]  # Partition numbers.
    # For each partition, in the order of partitions, the epoch at which the member got it (KIP-1251). Tagged: absent
    # unless it was written.
    assignmentEpochs: NotRequired[list[int] | None]


@final
class ConsumerGroupCurrentMemberAssignmentValue(TrailingBytes, UnknownTaggedFields):
    """What one member of a consumer group has and must give up."""

    memberEpoch: int  # Epoch the member is at; -2 for a static member that left.
    previousMemberEpoch: int  # Epoch the member was at before; accepted when a response was lost.
    state: int  # Member state, a number of the group type.
    assignedPartitions: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions]  # Partitions the member has.
    # Partitions the member must give up first.
    partitionsPendingRevocation: list[ConsumerGroupCurrentMemberAssignmentTopicPartitions]
    _type: NotRequired[Literal["ConsumerGroupCurrentMemberAssignmentValue"]]  # In no record: it sets this type apart.


ConsumerGroupCurrentMemberAssignmentRecord = CoordinatorRecord[MemberKey, ConsumerGroupCurrentMemberAssignmentValue]


@final
class ConsumerGroupRegularExpressionKey(TrailingBytes):
    """Key of CONSUMER_GROUP_REGULAR_EXPRESSION."""

    groupId: str  # Group id.
    regularExpression: str  # The pattern.


@final
class ConsumerGroupRegularExpressionValue(TrailingBytes, UnknownTaggedFields):
    """The topics that a pattern of a consumer group resolved to."""

    topics: list[str]  # Topics that matched.
    version: int  # Version of the metadata image that the pattern was resolved against.
    timestamp: int  # When it was resolved, ms.
    _type: NotRequired[Literal["ConsumerGroupRegularExpressionValue"]]  # In no record: it sets this type apart.


ConsumerGroupRegularExpressionRecord = CoordinatorRecord[
    ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue
]
