"""Fields of the embedded records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, TypedDict, final

from coordinator_core.record_fields.beyond_schema import TrailingBytes


@final
class ConnectProtocolAssignmentConnectorTasks(TypedDict):
    """Struct of ``assignment``, ``revoked``."""

    connector: str  # Connector name.
    tasks: list[int]  # Task numbers; -1 is the connector itself.


@final
class ConnectProtocolAssignment(TrailingBytes):
    """What a Connect worker is to run."""

    error: int  # 0 none, 1 config mismatch.
    leader: str  # Member id of the leader.
    leaderUrl: str  # URL of the leader.
    configOffset: int  # Offset in the config topic that the assignment is for.
    # Connectors and tasks to run (version 0) or to start.
    assignment: list[ConnectProtocolAssignmentConnectorTasks] | None
    # Connectors and tasks to stop; null: none. In versions 1 to 2.
    revoked: NotRequired[list[ConnectProtocolAssignmentConnectorTasks] | None]
    delay: NotRequired[int]  # Scheduled rebalance delay, ms. In versions 1 to 2.
    _type: NotRequired[Literal["ConnectProtocolAssignment"]]  # In no record: it sets this type apart.


@final
class ConnectProtocolMetadata(TrailingBytes):
    """What a Connect worker sends when joining."""

    url: str  # URL of the worker.
    configOffset: int  # Offset in the config topic that the worker has read.
    # The current assignment of the worker, as ConnectProtocolAssignment. In versions 1 to 2.
    allocation: NotRequired[bytes | None]
    _type: NotRequired[Literal["ConnectProtocolMetadata"]]  # In no record: it sets this type apart.


@final
class ConsumerProtocolAssignmentTopicPartition(TypedDict):
    """Struct of ``assignedPartitions``."""

    topic: str  # Topic name.
    partitions: list[int]  # Partition numbers.


@final
class ConsumerProtocolAssignment(TrailingBytes):
    """Assignment of a member of a classic consumer group."""

    assignedPartitions: list[ConsumerProtocolAssignmentTopicPartition]  # Assigned partitions.
    userData: bytes | None  # Data of the assignor.
    _type: NotRequired[Literal["ConsumerProtocolAssignment"]]  # In no record: it sets this type apart.


@final
class ConsumerProtocolSubscriptionTopicPartition(TypedDict):
    """Struct of ``ownedPartitions``."""

    topic: str  # Topic name.
    partitions: list[int]  # Partition numbers.


@final
class ConsumerProtocolSubscription(TrailingBytes):
    """Subscription of a member of a classic consumer group."""

    topics: list[str]  # Subscribed topics.
    userData: bytes | None  # Data of the assignor.
    # Partitions owned when joining. In versions 1 to 3.
    ownedPartitions: NotRequired[list[ConsumerProtocolSubscriptionTopicPartition]]
    generationId: NotRequired[int]  # Generation of the owned partitions, -1 none. In versions 2 to 3.
    rackId: NotRequired[str | None]  # Rack of the client. In version 3.
    _type: NotRequired[Literal["ConsumerProtocolSubscription"]]  # In no record: it sets this type apart.


@final
class CooperativeStickyAssignorUserData(TrailingBytes):
    """User data of the cooperative sticky assignor, whose owned partitions the subscription itself carries. No
    version.
    """

    generation: int  # Generation of the owned partitions, -1 none.
    _type: NotRequired[Literal["CooperativeStickyAssignorUserData"]]  # In no record: it sets this type apart.


@final
class KafkaPythonStickyUserDataTopicAssignment(TypedDict):
    """Struct of ``previousAssignment``."""

    topic: str  # Topic name.
    partitions: list[int]  # Partition numbers.


@final
class KafkaPythonStickyUserData(TrailingBytes):
    """User data of the sticky assignor of kafka-python 3: that of Kafka's with a version in front, which no other
    client reads.
    """

    previousAssignment: list[KafkaPythonStickyUserDataTopicAssignment]  # Partitions owned before.
    generation: int  # Generation of the previous assignment.
    _type: NotRequired[Literal["KafkaPythonStickyUserData"]]  # In no record: it sets this type apart.


@final
class StickyAssignorUserDataTopicAssignment(TypedDict):
    """Struct of ``previousAssignment``."""

    topic: str  # Topic name.
    partitions: list[int]  # Partition numbers.


@final
class StickyAssignorUserData(TrailingBytes):
    """User data of the sticky assignor, and of cooperative-sticky in librdkafka and franz-go; sarama and librdkafka
    put it into assignments, too. Carries no version: version 1 if bytes for the generation follow.
    """

    previousAssignment: list[StickyAssignorUserDataTopicAssignment]  # Partitions owned before.
    generation: NotRequired[int]  # Generation of the previous assignment. In version 1.
    _type: NotRequired[Literal["StickyAssignorUserData"]]  # In no record: it sets this type apart.


@final
class StreamsAssignmentInfoTaskId(TypedDict):
    """Struct of ``activeTasks``."""

    topicGroupId: int  # Subtopology.
    partition: int  # Partition of the task.
    namedTopology: NotRequired[str | None]  # Named topology; absent as length 0. In versions 10 to 11.


@final
class StreamsAssignmentInfoTopicPartition(TypedDict):
    """Struct of ``partitions``."""

    topic: str  # Topic name.
    partition: int  # Partition number.


@final
class StreamsAssignmentInfoStandbyTask(TypedDict):
    """Struct of ``standbyTasks``."""

    topicGroupId: int  # Subtopology.
    partition: int  # Partition of the task.
    namedTopology: NotRequired[str | None]  # Named topology; absent as length 0. In versions 10 to 11.
    partitions: list[StreamsAssignmentInfoTopicPartition]  # Partitions of the task.


@final
class StreamsAssignmentInfoHostPartitions(TypedDict):
    """Struct of ``partitionsByHost``."""

    host: str  # Host.
    port: int  # Port.
    partitions: list[StreamsAssignmentInfoTopicPartition]  # Partitions.


@final
class StreamsAssignmentInfoTopicName(TypedDict):
    """Struct of ``topicNames``."""

    index: int  # Index.
    topic: str  # Topic name.


@final
class StreamsAssignmentInfoIndexedPartition(TypedDict):
    """Struct of ``partitions``."""

    topicIndex: int  # Index into topicNames.
    partition: int  # Partition number.


@final
class StreamsAssignmentInfoIndexedHostPartitions(TypedDict):
    """Struct of ``activePartitionsByHost``, ``standbyPartitionsByHost``."""

    host: str  # Host.
    port: int  # Port.
    partitions: list[StreamsAssignmentInfoIndexedPartition]  # Partitions.


@final
class StreamsAssignmentInfo(TrailingBytes):
    """Assignment user data of the classic Kafka Streams assignor. Strings are of java.io.DataOutput.writeUTF, which
    for ordinary names is a length of two bytes and UTF-8.
    """

    commonlySupportedVersion: NotRequired[int]  # Highest version that all members support. In versions 3 to 11.
    activeTasks: list[StreamsAssignmentInfoTaskId]  # Active tasks, in the order of the assigned partitions.
    standbyTasks: list[StreamsAssignmentInfoStandbyTask]  # Standby tasks.
    # Active partitions by application.server. In versions 2 to 4.
    partitionsByHost: NotRequired[list[StreamsAssignmentInfoHostPartitions]]
    topicNames: NotRequired[list[StreamsAssignmentInfoTopicName]]  # Dictionary of topic names. In versions 5 to 11.
    # Active partitions by application.server. In versions 5 to 11.
    activePartitionsByHost: NotRequired[list[StreamsAssignmentInfoIndexedHostPartitions]]
    # Standby partitions by application.server. In versions 6 to 11.
    standbyPartitionsByHost: NotRequired[list[StreamsAssignmentInfoIndexedHostPartitions]]
    errCode: NotRequired[int]  # Error code, 0 none. In versions 4 to 11.
    nextRebalanceMs: NotRequired[int]  # When to trigger the next probing rebalance, ms. In versions 7 to 11.
    _type: NotRequired[Literal["StreamsAssignmentInfo"]]  # In no record: it sets this type apart.


@final
class StreamsSubscriptionInfoTaskId(TypedDict):
    """Struct of ``prevTasks``, ``standbyTasks``."""

    topicGroupId: int  # Subtopology.
    partition: int  # Partition of the task.


@final
class StreamsSubscriptionInfoPartitionToOffsetSum(TypedDict):
    """Struct of ``partitionToOffsetSum``."""

    partition: int  # Partition of the task.
    offsetSum: int  # Sum of changelog offsets; -2 running, -3 unknown.


@final
class StreamsSubscriptionInfoTaskOffsetSum(TypedDict):
    """Struct of ``taskOffsetSums``."""

    topicGroupId: int  # Subtopology.
    # Sums by partition. In versions 7 to 9.
    partitionToOffsetSum: NotRequired[list[StreamsSubscriptionInfoPartitionToOffsetSum]]
    partition: NotRequired[int]  # Partition of the task. In versions 10 to 11.
    offsetSum: NotRequired[int]  # Sum of changelog offsets; -2 running, -3 unknown. In versions 10 to 11.
    namedTopology: NotRequired[str | None]  # Named topology. In versions 10 to 11.


@final
class StreamsSubscriptionInfoClientTag(TypedDict):
    """Struct of ``clientTags``."""

    key: bytes  # Name.
    value: bytes  # Value.


@final
class StreamsSubscriptionInfo(TrailingBytes):
    """Subscription user data of the classic Kafka Streams assignor."""

    latestSupportedVersion: NotRequired[int]  # Highest version that the member supports. In versions 3 to 11.
    processId: str  # Id of the Streams process.
    prevTasks: NotRequired[list[StreamsSubscriptionInfoTaskId]]  # Active tasks owned before. In versions 1 to 6.
    standbyTasks: NotRequired[list[StreamsSubscriptionInfoTaskId]]  # Standby tasks owned before. In versions 1 to 6.
    userEndPoint: NotRequired[bytes]  # application.server, as host:port. In versions 2 to 11.
    # Progress of the stateful tasks on the instance. In versions 7 to 11.
    taskOffsetSums: NotRequired[list[StreamsSubscriptionInfoTaskOffsetSum]]
    uniqueField: NotRequired[int]  # Changes to force a rebalance. In versions 8 to 11.
    errorCode: NotRequired[int]  # Error code, 0 none. In versions 9 to 11.
    clientTags: NotRequired[list[StreamsSubscriptionInfoClientTag]]  # Client tags, for rack awareness. In version 11.
    _type: NotRequired[Literal["StreamsSubscriptionInfo"]]  # In no record: it sets this type apart.
