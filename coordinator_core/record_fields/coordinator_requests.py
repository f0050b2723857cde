"""Fields of the requests to the coordinator. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import TypedDict, final


@final
class AlterShareGroupOffsetsPartition(TypedDict):
    """Struct of ``partitions``."""

    partitionIndex: int  # Partition.
    startOffset: int  # The new start offset.


@final
class AlterShareGroupOffsetsTopic(TypedDict):
    """Struct of ``topics``."""

    topicName: str  # Topic.
    partitions: list[AlterShareGroupOffsetsPartition]  # Partitions.


@final
class AlterShareGroupOffsetsRequest(TypedDict):
    """An administrator moves the start offsets of a share group."""

    groupId: str  # Group id.
    topics: list[AlterShareGroupOffsetsTopic]  # Topics.


@final
class ConnectGroupHeartbeatAssignor(TypedDict):
    """Struct of ``clientAssignors``."""

    name: str  # Name of the assignor.
    minimumVersion: int  # Lowest version of metadata that it reads; -1: any.
    maximumVersion: int  # Highest version of metadata that it reads.
    reason: int  # Why the metadata changed, a number of the assignor.
    version: int  # Version of the metadata.
    metadata: bytes  # What the client's assignor needs to know, in its own format.


@final
class ConnectGroupHeartbeatConnectorTaskId(TypedDict):
    """Struct of ``tasks``."""

    connectorId: str  # Connector.
    taskId: int  # Task.


@final
class ConnectGroupHeartbeatConnectorsTasks(TypedDict):
    """Struct of ``connectorsAndTasks``."""

    connectors: list[str]  # Connectors.
    tasks: list[ConnectGroupHeartbeatConnectorTaskId]  # Tasks.


@final
class ConnectGroupHeartbeatRequest(TypedDict):
    """A worker joins, leaves or stays in a Connect group (Connect on KIP-848)."""

    groupId: str  # Group id.
    memberId: str  # Member id.
    memberEpoch: int  # Member epoch; 0: joins, -1: leaves, -2: leaves for a while (static).
    instanceId: str | None  # Instance id of a static member; null: a dynamic member, or as said before.
    rebalanceTimeoutMs: int  # Time that the member has to give up what it loses, ms; -1: as said before.
    serverAssignor: str | None  # Assignor that the member prefers; null: as said before.
    # Assignors that the worker offers, the preferred one first; null: as said before.
    clientAssignors: list[ConnectGroupHeartbeatAssignor] | None
    # Connectors and tasks that the worker runs; null: as said before.
    connectorsAndTasks: list[ConnectGroupHeartbeatConnectorsTasks] | None


@final
class ConnectGroupInstallAssignmentConnectorTaskId(TypedDict):
    """Struct of ``tasks``."""

    connectorId: str  # Connector.
    taskId: int  # Task.


@final
class ConnectGroupInstallAssignmentConnectorsTasks(TypedDict):
    """Struct of ``connectorsAndTasks``."""

    connectors: list[str]  # Connectors.
    tasks: list[ConnectGroupInstallAssignmentConnectorTaskId]  # Tasks.


@final
class ConnectGroupInstallAssignmentPartition(TypedDict):
    """Struct of ``partitions``."""

    topicId: str  # Topic id.
    partitions: list[int]  # Partitions.


@final
class ConnectGroupInstallAssignmentMember(TypedDict):
    """Struct of ``members``."""

    memberId: str  # Member id.
    connectorsAndTasks: list[ConnectGroupInstallAssignmentConnectorsTasks]  # Connectors and tasks.
    partitions: list[ConnectGroupInstallAssignmentPartition]  # Partitions.
    version: int  # Version of the metadata.
    metadata: bytes  # What the assignor tells the worker, in its own format.


@final
class ConnectGroupInstallAssignmentRequest(TypedDict):
    """The worker that computed the assignment brings it (Connect on KIP-848)."""

    groupId: str  # Group id.
    memberId: str  # Member id.
    memberEpoch: int  # Member epoch.
    groupEpoch: int  # Group epoch for which the assignment was computed.
    error: int  # Error of the assignor; 0: none.
    members: list[ConnectGroupInstallAssignmentMember]  # Assignment of each member.


@final
class ConnectGroupPrepareAssignmentRequest(TypedDict):
    """The worker that computes the assignment asks for what it needs (Connect on KIP-848)."""

    groupId: str  # Group id.
    memberId: str  # Member id.
    memberEpoch: int  # Member epoch.


@final
class ConsumerGroupHeartbeatTopicPartitions(TypedDict):
    """Struct of ``topicPartitions``."""

    topicId: str  # Topic id.
    partitions: list[int]  # Partitions.


@final
class ConsumerGroupHeartbeatRequest(TypedDict):
    """A member joins, leaves or stays in a consumer group (KIP-848)."""

    groupId: str  # Group id.
    memberId: str  # Member id.
    memberEpoch: int  # Member epoch; 0: joins, -1: leaves, -2: leaves for a while (static).
    instanceId: str | None  # Instance id of a static member; null: a dynamic member, or as said before.
    rackId: str | None  # Rack of the member; null: none, or as said before.
    rebalanceTimeoutMs: int  # Time that the member has to give up what it loses, ms; -1: as said before.
    subscribedTopicNames: list[str] | None  # Topics to which the member subscribes; null: as said before.
    # Regular expression of topics to which the member subscribes; null: as said before.
    subscribedTopicRegex: str | None
    serverAssignor: str | None  # Assignor that the member prefers; null: as said before.
    # Partitions that the member owns; null: as said before.
    topicPartitions: list[ConsumerGroupHeartbeatTopicPartitions] | None


@final
class DeleteShareGroupOffsetsTopic(TypedDict):
    """Struct of ``topics``."""

    topicName: str  # Topic.


@final
class DeleteShareGroupOffsetsRequest(TypedDict):
    """An administrator deletes the offsets of a share group for whole topics."""

    groupId: str  # Group id.
    topics: list[DeleteShareGroupOffsetsTopic]  # Topics.


@final
class HeartbeatRequest(TypedDict):
    """A member of a classic group says that it is alive."""

    groupId: str  # Group id.
    generationId: int  # Generation that the member knows.
    memberId: str  # Member id.
    groupInstanceId: str | None  # Instance id of a static member; null: a dynamic member.


@final
class JoinGroupProtocol(TypedDict):
    """Struct of ``protocols``."""

    name: str  # Name of the protocol.
    metadata: bytes  # What the client's assignor needs to know, in its own format.


@final
class JoinGroupRequest(TypedDict):
    """A member joins a classic group, or joins it again for a rebalance; without a member id it asks for one
    (KIP-394).
    """

    groupId: str  # Group id.
    sessionTimeoutMs: int  # Time without a heartbeat after which the member is removed, ms.
    rebalanceTimeoutMs: int  # Time that the group waits for the member to join again, ms.
    memberId: str  # Member id; empty: the member has none yet.
    groupInstanceId: str | None  # Instance id of a static member; null: a dynamic member.
    protocolType: str  # Type of the protocol: consumer, connect or another one.
    protocols: list[JoinGroupProtocol]  # Protocols that the member offers, the preferred one first.
    reason: str | None  # Why, in words of the client; null: not said.


@final
class LeaveGroupMember(TypedDict):
    """Struct of ``members``."""

    memberId: str  # Member id.
    groupInstanceId: str | None  # Instance id of a static member; null: a dynamic member.
    reason: str | None  # Why, in words of the client; null: not said.


@final
class LeaveGroupRequest(TypedDict):
    """Members leave a classic group; an administrator removes static members (KIP-345)."""

    groupId: str  # Group id.
    memberId: str  # The one member that leaves, before version 3.
    members: list[LeaveGroupMember]  # Members that leave, from version 3 on.


@final
class OffsetCommitPartition(TypedDict):
    """Struct of ``partitions``."""

    partitionIndex: int  # Partition.
    committedOffset: int  # Offset.
    committedLeaderEpoch: int  # Leader epoch of the last record that was consumed; -1: not known.
    committedMetadata: str | None  # Text of the client; null: none.


@final
class OffsetCommitTopic(TypedDict):
    """Struct of ``topics``."""

    name: str  # Topic; empty where topics go by their ids.
    topicId: str  # Topic id; zeros where topics go by their names.
    partitions: list[OffsetCommitPartition]  # Partitions.


@final
class OffsetCommitRequest(TypedDict):
    """A consumer commits offsets."""

    groupId: str  # Group id.
    generationIdOrMemberEpoch: int  # Generation or member epoch; -1: without a member.
    memberId: str  # Member id; empty: without a member.
    groupInstanceId: str | None  # Instance id of a static member; null: a dynamic member.
    # Time for which the offsets are kept, ms; -1: that of the broker. Only from clients before 2.1.
    retentionTimeMs: int
    topics: list[OffsetCommitTopic]  # Topics.


@final
class OffsetDeletePartition(TypedDict):
    """Struct of ``partitions``."""

    partitionIndex: int  # Partition.


@final
class OffsetDeleteTopic(TypedDict):
    """Struct of ``topics``."""

    name: str  # Topic.
    partitions: list[OffsetDeletePartition]  # Partitions.


@final
class OffsetDeleteRequest(TypedDict):
    """An administrator deletes committed offsets."""

    groupId: str  # Group id.
    topics: list[OffsetDeleteTopic]  # Topics.


@final
class OffsetFetchTopic(TypedDict):
    """Struct of ``topics``."""

    name: str  # Topic; empty where topics go by their ids.
    topicId: str  # Topic id; zeros where topics go by their names.
    partitionIndexes: list[int]  # Partitions.


@final
class OffsetFetchGroup(TypedDict):
    """Struct of ``groups``."""

    groupId: str  # Group id.
    memberId: str | None  # Member id; null: without a member.
    memberEpoch: int  # Member epoch; -1: without a member.
    topics: list[OffsetFetchTopic] | None  # Topics; null: all with committed offsets.


@final
class OffsetFetchRequest(TypedDict):
    """A consumer asks for committed offsets, of several groups at once."""

    groups: list[OffsetFetchGroup]  # Groups.
    requireStable: bool  # Whether offsets of open transactions are refused.


@final
class ShareGroupHeartbeatRequest(TypedDict):
    """A member joins, leaves or stays in a share group (KIP-932). Version 0 was that of the early access in 4.0."""

    groupId: str  # Group id.
    memberId: str  # Member id.
    memberEpoch: int  # Member epoch; 0: joins, -1: leaves.
    rackId: str | None  # Rack of the member; null: none, or as said before.
    subscribedTopicNames: list[str] | None  # Topics to which the member subscribes; null: as said before.


@final
class StreamsGroupHeartbeatKeyValue(TypedDict):
    """Struct of ``topicConfigs``, ``clientTags``."""

    key: str  # Key.
    value: str  # Value.


@final
class StreamsGroupHeartbeatTopicInfo(TypedDict):
    """Struct of ``stateChangelogTopics``, ``repartitionSourceTopics``."""

    name: str  # Topic.
    partitions: int  # Count of partitions; 0: not defined.
    replicationFactor: int  # Replication factor; 0: that of the cluster.
    topicConfigs: list[StreamsGroupHeartbeatKeyValue]  # Configuration of the topic.


@final
class StreamsGroupHeartbeatCopartitionGroup(TypedDict):
    """Struct of ``copartitionGroups``."""

    sourceTopics: list[int]  # Source topics, as positions in the list of the subtopology.
    sourceTopicRegex: list[int]  # Regular expressions, as positions in the list of the subtopology.
    repartitionSourceTopics: list[int]  # Repartition topics, as positions in the list of the subtopology.


@final
class StreamsGroupHeartbeatSubtopology(TypedDict):
    """Struct of ``subtopologies``."""

    subtopologyId: str  # Subtopology.
    sourceTopics: list[str]  # Source topics.
    sourceTopicRegex: list[str]  # Regular expressions of source topics.
    stateChangelogTopics: list[StreamsGroupHeartbeatTopicInfo]  # Changelog topics.
    repartitionSinkTopics: list[str]  # Repartition topics to which it writes.
    repartitionSourceTopics: list[StreamsGroupHeartbeatTopicInfo]  # Repartition topics that it reads.
    # Groups of source topics that need the same count of partitions.
    copartitionGroups: list[StreamsGroupHeartbeatCopartitionGroup]


@final
class StreamsGroupHeartbeatTopology(TypedDict):
    """Struct of ``topology``."""

    epoch: int  # Topology epoch.
    subtopologies: list[StreamsGroupHeartbeatSubtopology]  # Subtopologies.


@final
class StreamsGroupHeartbeatTaskIds(TypedDict):
    """Struct of ``activeTasks``, ``standbyTasks``, ``warmupTasks``."""

    subtopologyId: str  # Subtopology.
    partitions: list[int]  # Partitions.


@final
class StreamsGroupHeartbeatEndpoint(TypedDict):
    """Struct of ``userEndpoint``."""

    host: str  # Host.
    port: int  # Port.


@final
class StreamsGroupHeartbeatTaskOffset(TypedDict):
    """Struct of ``taskOffsets``, ``taskEndOffsets``."""

    subtopologyId: str  # Subtopology.
    partition: int  # Partition of the subtopology.
    offset: int  # Sum of the offsets.


@final
class StreamsGroupHeartbeatRequest(TypedDict):
    """A member joins, leaves or stays in a streams group (KIP-1071)."""

    groupId: str  # Group id.
    memberId: str  # Member id.
    memberEpoch: int  # Member epoch; 0: joins, -1: leaves, -2: leaves for a while (static).
    endpointInformationEpoch: int  # Epoch of the endpoints that the member knows; -1: none.
    instanceId: str | None  # Instance id of a static member; null: a dynamic member, or as said before.
    rackId: str | None  # Rack of the member; null: none, or as said before.
    rebalanceTimeoutMs: int  # Time that the member has to give up what it loses, ms; -1: as said before.
    topology: StreamsGroupHeartbeatTopology | None  # Topology of the application; null: as said before.
    activeTasks: list[StreamsGroupHeartbeatTaskIds] | None  # Active tasks that the member owns; null: as said before.
    standbyTasks: list[StreamsGroupHeartbeatTaskIds] | None  # Standby tasks that the member owns; null: as said before.
    warmupTasks: list[StreamsGroupHeartbeatTaskIds] | None  # Warm-up tasks that the member owns; null: as said before.
    processId: str | None  # Process in which the member runs; null: as said before.
    # Address at which the member serves interactive queries; null: none, or as said before.
    userEndpoint: StreamsGroupHeartbeatEndpoint | None
    # Tags for rack-aware assignment of standby tasks; null: as said before.
    clientTags: list[StreamsGroupHeartbeatKeyValue] | None
    taskOffsets: list[StreamsGroupHeartbeatTaskOffset] | None  # How far the member has restored tasks; null: not said.
    taskEndOffsets: list[StreamsGroupHeartbeatTaskOffset] | None  # Ends of the changelogs of tasks; null: not said.
    shutdownApplication: bool  # Whether all members are to shut down.


@final
class SyncGroupAssignment(TypedDict):
    """Struct of ``assignments``."""

    memberId: str  # Member id.
    assignment: bytes  # Assignment in the format of the client.


@final
class SyncGroupRequest(TypedDict):
    """A member of a classic group asks for its assignment; the leader brings the assignments of all members."""

    groupId: str  # Group id.
    generationId: int  # Generation that the member knows.
    memberId: str  # Member id.
    groupInstanceId: str | None  # Instance id of a static member; null: a dynamic member.
    protocolType: str | None  # Type of the protocol that the member knows; null: not said.
    protocolName: str | None  # Protocol that the member knows; null: not said.
    assignments: list[SyncGroupAssignment]  # Assignment of each member, from the leader; empty from all others.


@final
class TxnOffsetCommitPartition(TypedDict):
    """Struct of ``partitions``."""

    partitionIndex: int  # Partition.
    committedOffset: int  # Offset.
    committedLeaderEpoch: int  # Leader epoch of the last record that was consumed; -1: not known.
    committedMetadata: str | None  # Text of the client; null: none.


@final
class TxnOffsetCommitTopic(TypedDict):
    """Struct of ``topics``."""

    name: str  # Topic; empty where topics go by their ids.
    topicId: str  # Topic id; zeros where topics go by their names.
    partitions: list[TxnOffsetCommitPartition]  # Partitions.


@final
class TxnOffsetCommitRequest(TypedDict):
    """A producer commits offsets of a group as part of its transaction."""

    transactionalId: str  # Transactional id of the producer.
    groupId: str  # Group id.
    producerId: int  # Producer id.
    producerEpoch: int  # Producer epoch.
    generationId: int  # Generation or member epoch; -1: without a member.
    memberId: str  # Member id; empty: without a member.
    groupInstanceId: str | None  # Instance id of a static member; null: a dynamic member.
    topics: list[TxnOffsetCommitTopic]  # Topics.
