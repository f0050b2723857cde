"""Fields of the streams group records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey, TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class StreamsGroupMetadataLastAssignmentConfig(UnknownTaggedFields):
    """Struct of ``lastAssignmentConfigs``."""

    key: str  # Name.
    value: str  # Value.


@final
class StreamsGroupMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of a streams group (KIP-1071)."""

    epoch: int  # Group epoch.
    # Hash of the subscribed topics and their partitions, signed; 0: none; absent: the record of KIP-1071 as accepted,
    # which has no such field.
    metadataHash: NotRequired[int]
    # Topology epoch last found ready, -1 none. Tagged: absent unless it was written.
    validatedTopologyEpoch: NotRequired[int]
    # Assignor configuration of the last epoch bump. Tagged: absent unless it was written.
    lastAssignmentConfigs: NotRequired[list[StreamsGroupMetadataLastAssignmentConfig] | None]
    # Topology epoch whose description is stored, -1 none (4.4). Tagged: absent unless it was written.
    storedDescriptionTopologyEpoch: NotRequired[int]
    # Topology epoch whose description could not be stored, -1 none (4.4). Tagged: absent unless it was written.
    failedDescriptionTopologyEpoch: NotRequired[int]
    _type: NotRequired[Literal["StreamsGroupMetadataValue"]]  # In no record: it sets this type apart.


StreamsGroupMetadataRecord = CoordinatorRecord[GroupIdKey, StreamsGroupMetadataValue]


@final
class StreamsGroupPartitionMetadataPartitionMetadata(UnknownTaggedFields):
    """Struct of ``partitionMetadata``."""

    partition: int  # Partition number.
    racks: list[str]  # Racks that hold a replica.


@final
class StreamsGroupPartitionMetadataTopicMetadata(UnknownTaggedFields):
    """Struct of ``topics``."""

    topicId: str  # Topic id.
    topicName: str  # Topic name.
    numPartitions: int  # Count of partitions.
    partitionMetadata: list[StreamsGroupPartitionMetadataPartitionMetadata]  # Racks of partitions, where known.


@final
class StreamsGroupPartitionMetadataValue(TrailingBytes, UnknownTaggedFields):
    """What topics a streams group saw (KIP-1071 as accepted)."""

    topics: list[StreamsGroupPartitionMetadataTopicMetadata]  # Topics of the topology as the broker knew them.
    _type: NotRequired[Literal["StreamsGroupPartitionMetadataValue"]]  # In no record: it sets this type apart.


StreamsGroupPartitionMetadataRecord = CoordinatorRecord[GroupIdKey, StreamsGroupPartitionMetadataValue]


@final
class StreamsGroupMemberMetadataEndpoint(UnknownTaggedFields):
    """Struct of ``userEndpoint``."""

    host: str  # Host.
    port: int  # Port.


@final
class StreamsGroupMemberMetadataKeyValue(UnknownTaggedFields):
    """Struct of ``clientTags``."""

    key: str  # Name.
    value: str  # Value.


@final
class StreamsGroupMemberMetadataValue(TrailingBytes, UnknownTaggedFields):
    """A member of a streams group as it described itself."""

    instanceId: str | None  # Instance id of a static member.
    rackId: str | None  # Rack of the client.
    clientId: str  # client.id.
    clientHost: str  # Address of the client, with a leading slash.
    rebalanceTimeoutMs: int  # Rebalance timeout, ms.
    topologyEpoch: int  # Epoch of the member's topology.
    processId: str  # Id of the Streams process (JVM).
    userEndpoint: StreamsGroupMemberMetadataEndpoint | None  # application.server of the process.
    clientTags: list[StreamsGroupMemberMetadataKeyValue]  # Client tags, for rack awareness.
    _type: NotRequired[Literal["StreamsGroupMemberMetadataValue"]]  # In no record: it sets this type apart.


StreamsGroupMemberMetadataRecord = CoordinatorRecord[MemberKey, StreamsGroupMemberMetadataValue]


@final
class StreamsGroupTargetAssignmentMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of the target assignment of a streams group."""

    assignmentEpoch: int  # Epoch of the group that the target was computed for.
    assignmentTimestamp: NotRequired[int]  # When the assignment was computed, ms. Tagged: absent unless it was written.
    _type: NotRequired[Literal["StreamsGroupTargetAssignmentMetadataValue"]]  # In no record: it sets this type apart.


StreamsGroupTargetAssignmentMetadataRecord = CoordinatorRecord[GroupIdKey, StreamsGroupTargetAssignmentMetadataValue]


@final
class StreamsGroupTargetAssignmentMemberTaskIds(UnknownTaggedFields):
    """Struct of ``activeTasks``, ``standbyTasks``, ``warmupTasks``."""

    subtopologyId: str  # Subtopology id.
    partitions: list[int]  # Partition numbers.


@final
class StreamsGroupTargetAssignmentMemberValue(TrailingBytes, UnknownTaggedFields):
    """The target tasks of one member of a streams group."""

    activeTasks: list[StreamsGroupTargetAssignmentMemberTaskIds]  # Active tasks by subtopology.
    standbyTasks: list[StreamsGroupTargetAssignmentMemberTaskIds]  # Standby tasks by subtopology.
    warmupTasks: list[StreamsGroupTargetAssignmentMemberTaskIds]  # Warm-up tasks by subtopology.
    _type: NotRequired[Literal["StreamsGroupTargetAssignmentMemberValue"]]  # In no record: it sets this type apart.


StreamsGroupTargetAssignmentMemberRecord = CoordinatorRecord[MemberKey, StreamsGroupTargetAssignmentMemberValue]


@final
class StreamsGroupCurrentMemberAssignmentTaskIds(UnknownTaggedFields):
    """Struct of ``activeTasks``, ``standbyTasks``, ``warmupTasks``, ``activeTasksPendingRevocation``,
    ``standbyTasksPendingRevocation``, ``warmupTasksPendingRevocation``.
    """

    subtopologyId: str  # Subtopology id.
    partitions: list[int]  # Partition numbers.
    # For each partition, in the order of partitions, the epoch at which the member got it (KIP-1251). Tagged: absent
    # unless it was written.
    assignmentEpochs: NotRequired[list[int] | None]


@final
class StreamsGroupCurrentMemberAssignmentValue(TrailingBytes, UnknownTaggedFields):
    """The tasks that one member of a streams group has and must give up."""

    memberEpoch: int  # Epoch the member is at; -2 for a static member that left.
    previousMemberEpoch: int  # Epoch the member was at before; accepted when a response was lost.
    state: int  # Member state, a number of the group type.
    activeTasks: list[StreamsGroupCurrentMemberAssignmentTaskIds]  # Active tasks by subtopology.
    standbyTasks: list[StreamsGroupCurrentMemberAssignmentTaskIds]  # Standby tasks by subtopology.
    warmupTasks: list[StreamsGroupCurrentMemberAssignmentTaskIds]  # Warm-up tasks by subtopology.
    activeTasksPendingRevocation: list[StreamsGroupCurrentMemberAssignmentTaskIds]  # Active tasks to give up first.
    standbyTasksPendingRevocation: list[StreamsGroupCurrentMemberAssignmentTaskIds]  # Standby tasks to give up first.
    warmupTasksPendingRevocation: list[StreamsGroupCurrentMemberAssignmentTaskIds]  # Warm-up tasks to give up first.
    _type: NotRequired[Literal["StreamsGroupCurrentMemberAssignmentValue"]]  # In no record: it sets this type apart.


StreamsGroupCurrentMemberAssignmentRecord = CoordinatorRecord[MemberKey, StreamsGroupCurrentMemberAssignmentValue]


@final
class StreamsGroupTopologyTopicConfig(UnknownTaggedFields):
    """Struct of ``topicConfigs``."""

    key: str  # Name.
    value: str  # Value.


@final
class StreamsGroupTopologyTopicInfo(UnknownTaggedFields):
    """Struct of ``stateChangelogTopics``, ``repartitionSourceTopics``."""

    name: str  # Name.
    partitions: int  # Partition numbers.
    replicationFactor: int  # Replication factor, 0: broker default.
    topicConfigs: list[StreamsGroupTopologyTopicConfig]  # Topic configuration.


@final
class StreamsGroupTopologyCopartitionGroup(UnknownTaggedFields):
    """Struct of ``copartitionGroups``."""

    sourceTopics: list[int]  # Topics read.
    sourceTopicRegex: list[int]  # Patterns read.
    repartitionSourceTopics: list[int]  # Repartition topics read.


@final
class StreamsGroupTopologySubtopology(UnknownTaggedFields):
    """Struct of ``subtopologies``."""

    subtopologyId: str  # Subtopology id.
    sourceTopics: list[str]  # Topics read.
    sourceTopicRegex: list[str]  # Patterns read.
    # Changelog topics; partitions 0: decided by the source topics.
    stateChangelogTopics: list[StreamsGroupTopologyTopicInfo]
    repartitionSinkTopics: list[str]  # Repartition topics written.
    repartitionSourceTopics: list[StreamsGroupTopologyTopicInfo]  # Repartition topics read.
    # Topics that must have equal partition counts, as indexes into the lists beside.
    copartitionGroups: list[StreamsGroupTopologyCopartitionGroup]


@final
class StreamsGroupTopologyValue(TrailingBytes, UnknownTaggedFields):
    """The topology of a streams group."""

    epoch: int  # Topology epoch.
    subtopologies: list[StreamsGroupTopologySubtopology]  # The subtopologies.
    _type: NotRequired[Literal["StreamsGroupTopologyValue"]]  # In no record: it sets this type apart.


StreamsGroupTopologyRecord = CoordinatorRecord[GroupIdKey, StreamsGroupTopologyValue]
