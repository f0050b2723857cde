"""The shape of a described group, with the names of Kafka's Admin client. Null: the log does not say.

The functions that describe a group of each type return these; the schemas of the command line's output are made from
them.
"""

from collections.abc import Sequence
from typing import NotRequired, TypedDict


class DescribedNode(TypedDict):
    """A broker; Admin's node has its address too, which depends on the listener that is asked."""

    id: int


class AssignedPartitions(TypedDict):
    """Partitions as ``topic-partition``."""

    topicPartitions: list[str]


class DescribedListing(TypedDict):
    """A group in ``Admin.listGroups``."""

    groupId: str
    groupState: str | None
    isSimpleConsumerGroup: bool | None
    protocol: str | None
    type: str | None


class DescribedConsumer(TypedDict):
    """A member of a classic group or of a consumer group. ``upgraded``: it speaks the consumer protocol."""

    assignment: AssignedPartitions | None
    clientId: str | None
    consumerId: str
    groupInstanceId: str | None
    host: str | None
    memberEpoch: int | None
    rackId: str | None
    targetAssignment: AssignedPartitions | None
    upgraded: bool | None


class DescribedClassicGroup(TypedDict):
    """A group in ``Admin.describeClassicGroups``."""

    coordinator: DescribedNode | None
    groupId: str
    isSimpleConsumerGroup: bool
    members: list[DescribedConsumer]
    protocol: str
    protocolData: str
    state: str


class DescribedConsumerGroup(TypedDict):
    """A group in ``Admin.describeConsumerGroups``."""

    coordinator: DescribedNode | None
    groupEpoch: int | None
    groupId: str
    groupState: str | None
    isSimpleConsumerGroup: bool
    members: list[DescribedConsumer]
    partitionAssignor: str | None
    state: str | None
    targetAssignmentEpoch: int | None
    type: str


class RefusedDescription(TypedDict):
    """The error with which Admin refuses to describe a group."""

    error: str


class DescribedWork(TypedDict):
    """Connectors by name, and tasks as Connect names them: ``jdbc-0``."""

    connectors: list[str]
    tasks: list[str]


class OfferedConnectAssignor(TypedDict):
    """An assignor that a worker offers."""

    name: str
    minimumVersion: int
    maximumVersion: int


class DescribedWorker(TypedDict):
    """A Connect worker.

    ``state`` is its own, as the documents name it: STABLE, or COMPLETING_REBALANCE while it has not got its target;
    null: not known. UNJOINED workers are in no record, and a log does not show PREPARING_REBALANCE.
    """

    memberId: str
    instanceId: str | None
    clientId: str | None
    clientHost: str | None
    rackId: str | None
    url: str | None
    memberEpoch: int | None
    state: str | None
    assignors: list[OfferedConnectAssignor] | None
    assignment: DescribedWork | None
    targetAssignment: DescribedWork | None


class DescribedMigration(TypedDict):
    """Whether a classic group can move to its new protocol, the type ``to``.

    ``refusedByReleases`` and ``refusedByDocument`` say what would refuse it, by brokers as they are and by the protocol
    document; empty: nothing that is known. ``notShown`` names the settings of brokers that may refuse it and that no
    snapshot shows.
    """

    to: str
    refusedByReleases: list[str]
    refusedByDocument: list[str]
    notShown: list[str]


class DescribedSetting(TypedDict):
    """A configuration that the group itself has; ``problem``: why it is not what holds, null: nothing is known."""

    name: str
    value: str
    problem: str | None


class DescribedClient(TypedDict):
    """The client library of a member, by what it wrote: ``client`` is its name, ``a or b``, or unknown.

    ``certainty`` is certain, likely, one of several or unknown; ``release`` is null where it is not known. ``leads``:
    the member is the one that assigns.
    """

    client: str
    certainty: str
    release: str | None
    leads: bool


class DescribedJoinTraffic(TypedDict):
    """What one rebalance of a classic group sends, in bytes of members' metadata and assignments.

    ``rebalanceBytes``: the metadata goes to the coordinator and to the leader, the assignments from it and to the
    members. ``ifAllGotAll``: as if each member got the metadata of all, which the document rejects. A member that
    supports several protocols sends metadata for each; the record has that of the one agreed on.
    """

    members: int
    metadataBytes: int
    assignmentBytes: int
    rebalanceBytes: int
    ifAllGotAll: int


class DescribedConnectGroup(TypedDict):
    """A Connect group. ``assignmentError``: the error that the assignor reported with the target, 0: none."""

    groupId: str
    groupState: str | None
    groupEpoch: int | None
    targetAssignmentEpoch: int | None
    partitionAssignor: str | None
    assignmentError: int | None
    work: DescribedWork | None
    unassigned: DescribedWork | None
    scheduledRebalanceMaxDelayMs: int | None
    members: list[DescribedWorker]


class DescribedTaskIds(TypedDict):
    """Tasks of one subtopology."""

    subtopologyId: str
    partitions: list[int]


class DescribedTasks(TypedDict):
    """Tasks by role."""

    activeTasks: Sequence[DescribedTaskIds]
    standbyTasks: Sequence[DescribedTaskIds]
    warmupTasks: Sequence[DescribedTaskIds]


class DescribedEndpoint(TypedDict):
    """Where a streams client answers queries."""

    host: str
    port: int


class DescribedStreamsMember(TypedDict):
    """A member of a streams group. In logs of releases the lists of task offsets are empty, as in Admin's answer."""

    assignment: DescribedTasks | None
    clientHost: str | None
    clientId: str | None
    clientTags: dict[str, str] | None
    instanceId: str | None
    isClassic: bool | None
    memberEpoch: int | None
    memberId: str
    processId: str | None
    rackId: str | None
    targetAssignment: DescribedTasks | None
    taskEndOffsets: list[None] | None
    taskOffsets: list[None] | None
    topologyEpoch: int | None
    userEndpoint: DescribedEndpoint | None


class DescribedInternalTopic(TypedDict):
    """A changelog or repartition topic; 0 partitions or replicas: the broker decides. Null partitions: topics that are
    not known decide how many.
    """

    partitions: int | None
    replicationFactor: int
    topicConfigs: dict[str, str]


class DescribedSubtopology(TypedDict):
    """A subtopology; internal topics by name."""

    repartitionSinkTopics: list[str]
    repartitionSourceTopics: dict[str, DescribedInternalTopic]
    sourceTopics: list[str]
    stateChangelogTopics: dict[str, DescribedInternalTopic]
    subtopologyId: str


class DescribedStreamsGroup(TypedDict):
    """A group in ``Admin.describeStreamsGroups``."""

    coordinator: DescribedNode | None
    groupEpoch: int | None
    groupId: str
    groupState: str | None
    members: list[DescribedStreamsMember]
    subtopologies: list[DescribedSubtopology] | None
    targetAssignmentEpoch: int | None
    topologyEpoch: int | None


class DescribedTopologyCheck(TypedDict):
    """What keeps a streams group from running on the topics of the moment; status null: the log does not say."""

    detail: str | None
    status: str | None


class DescribedShareMember(TypedDict):
    """A member of a share group."""

    assignment: AssignedPartitions | None
    clientId: str | None
    consumerId: str
    host: str | None
    memberEpoch: int | None
    rackId: str | None


class DescribedShareGroup(TypedDict):
    """A group in ``Admin.describeShareGroups``."""

    coordinator: DescribedNode | None
    groupEpoch: int | None
    groupId: str
    groupState: str | None
    members: list[DescribedShareMember]
    targetAssignmentEpoch: int | None


class DescribedShareOffset(TypedDict):
    """A share partition in ``Admin.listShareGroupOffsets``."""

    lag: int | None
    leaderEpoch: int
    startOffset: int


class DeliveryCount(TypedDict):
    """How many records have a delivery state after this number of deliveries."""

    state: str
    deliveryCount: int
    records: int


class DescribedSharePartition(TypedDict):
    """The deliveries of a share partition.

    ``status``: ``set``, ``not set`` (no start offset yet), or ``unknown`` (the log shows no state). ``nextOffset`` is
    the first offset from the start on that is not settled. ``unknown`` counts the offsets before ``endOffset`` without
    a delivery state: they are in flight, or of an aborted transaction. ``logEndOffset`` is the end offset of the
    partition, where it was given. Null is what is not known; ``counts`` are all there are, or null.
    """

    topic: str
    partition: int
    status: str
    startOffset: int | None
    nextOffset: int | None
    endOffset: int | None
    logEndOffset: int | None
    lag: int | None
    deliveryCompleteCount: int | None
    available: int | None
    acknowledged: int | None
    archiving: int | None
    archived: int | None
    unknown: int | None
    stateEpoch: int | None
    leaderEpoch: int | None
    snapshotEpoch: int | None
    logPartition: int | None
    logOffset: int | None
    counts: list[DeliveryCount] | None


class DescribedOffset(TypedDict):
    """A committed offset in ``Admin.listConsumerGroupOffsets``."""

    leaderEpoch: int | None
    metadata: str
    offset: int


class Description(TypedDict):
    """A group with the parts that Kafka's Admin client has for its type, and how certain it is.

    ``certainty`` is one of ``certain``, ``known in part`` and ``possibly there``. ``unknownFields`` are null because
    records may be missing, or because no snapshot shows the brokers' setting (the assignor of a group whose members ask
    for none); those of a member are written as ``member.field``. ``unknownMembers`` may have been there,
    and ``unknownOffsets`` may have been committed, or with another offset. The lists in ``incompleteLists`` may lack
    more that left no trace in the log. ``unnamedTopics`` are topic ids that stand in the place of names, because the
    topics are not known, or not all of them. Those and the ``topicsInDoubt`` may be gone by then, as not each change of
    topics is known: of a topic that is gone, Admin leaves out the partitions.

    ``stateAsOf`` says what the state dates from where it is not the moment. ``offsets`` are the committed offsets by
    ``topic-partition`` (null: a negative one), ``offsets_stable`` those that no open transaction will replace (null:
    not known).
    """

    listing: DescribedListing
    describe_classic: NotRequired[DescribedClassicGroup]
    describe_consumer: NotRequired[DescribedConsumerGroup | RefusedDescription]
    describe_connect: NotRequired[DescribedConnectGroup]
    describe_streams: NotRequired[DescribedStreamsGroup]
    describe_share: NotRequired[DescribedShareGroup]
    topology_check: NotRequired[DescribedTopologyCheck]
    settings: NotRequired[list[DescribedSetting] | None]
    migration: NotRequired[DescribedMigration]
    join_traffic: NotRequired[DescribedJoinTraffic]
    clients: NotRequired[dict[str, DescribedClient]]
    share_offsets: NotRequired[dict[str, DescribedShareOffset | None]]
    share_partitions: NotRequired[list[DescribedSharePartition]]
    offsets: NotRequired[dict[str, DescribedOffset | None]]
    offsets_stable: NotRequired[dict[str, DescribedOffset | None] | None]
    stateAsOf: str | None
    certainty: str
    unknownFields: list[str]
    unknownMembers: list[str]
    unknownOffsets: list[str]
    incompleteLists: list[str]
    unnamedTopics: NotRequired[list[str]]
    topicsInDoubt: NotRequired[list[str]]
