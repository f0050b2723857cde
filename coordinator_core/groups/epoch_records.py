"""Types of the records that consumer, share and streams groups have in common, each type of group its own."""

from coordinator_core.record_fields import consumer_group as consumer
from coordinator_core.record_fields import share_group as share
from coordinator_core.record_fields import streams_group as streams

GroupEpochRecord = (
    consumer.ConsumerGroupMetadataRecord | share.ShareGroupMetadataRecord | streams.StreamsGroupMetadataRecord
)
"""Group metadata: the group epoch."""
GroupEpochValue = (
    consumer.ConsumerGroupMetadataValue | share.ShareGroupMetadataValue | streams.StreamsGroupMetadataValue
)
MemberRecord = (
    consumer.ConsumerGroupMemberMetadataRecord
    | share.ShareGroupMemberMetadataRecord
    | streams.StreamsGroupMemberMetadataRecord
)
"""Member metadata."""
MemberValue = (
    consumer.ConsumerGroupMemberMetadataValue
    | share.ShareGroupMemberMetadataValue
    | streams.StreamsGroupMemberMetadataValue
)
TargetEpochRecord = (
    consumer.ConsumerGroupTargetAssignmentMetadataRecord
    | share.ShareGroupTargetAssignmentMetadataRecord
    | streams.StreamsGroupTargetAssignmentMetadataRecord
)
"""Target assignment metadata: the epoch of the targets."""
TargetPartitionsRecord = (
    consumer.ConsumerGroupTargetAssignmentMemberRecord | share.ShareGroupTargetAssignmentMemberRecord
)
"""A member's target assignment of partitions."""
MemberTargetRecord = TargetPartitionsRecord | streams.StreamsGroupTargetAssignmentMemberRecord
"""A member's target assignment."""
CurrentRecord = (
    consumer.ConsumerGroupCurrentMemberAssignmentRecord
    | share.ShareGroupCurrentMemberAssignmentRecord
    | streams.StreamsGroupCurrentMemberAssignmentRecord
)
"""A member's current assignment."""
CurrentValue = (
    consumer.ConsumerGroupCurrentMemberAssignmentValue
    | share.ShareGroupCurrentMemberAssignmentValue
    | streams.StreamsGroupCurrentMemberAssignmentValue
)
OfMemberRecord = MemberRecord | MemberTargetRecord | CurrentRecord
"""A record about one member."""

PartitionsOfTopic = (
    consumer.ConsumerGroupTargetAssignmentMemberTopicPartition
    | share.ShareGroupTargetAssignmentMemberTopicPartition
    | share.ShareGroupCurrentMemberAssignmentTopicPartitions
)
"""Partitions of one topic."""
PartitionsWithEpochs = (
    consumer.ConsumerGroupCurrentMemberAssignmentTopicPartitions | streams.StreamsGroupCurrentMemberAssignmentTaskIds
)
"""Partitions of one topic or subtopology, with the epochs of their assignment (KIP-1251)."""
AssignedPartitions = PartitionsOfTopic | PartitionsWithEpochs | streams.StreamsGroupTargetAssignmentMemberTaskIds
"""Partitions of one topic or subtopology, in a target or a current assignment."""


def instance_id_of(value: MemberValue) -> str | None:
    """Return the instance id of a static member; members of share groups have none."""
    if "instanceId" in value:
        return value["instanceId"]
    return None
