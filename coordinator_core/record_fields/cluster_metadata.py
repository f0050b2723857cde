"""Fields of the cluster metadata records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import TrailingBytes, UnknownTaggedFields


@final
class RegisterBrokerRecordBrokerEndpoint(UnknownTaggedFields):
    """Struct of ``endPoints``."""

    name: str  # Name.
    host: str  # Host.
    port: int  # Port.
    securityProtocol: int  # Security protocol id.


@final
class RegisterBrokerRecordBrokerFeature(UnknownTaggedFields):
    """Struct of ``features``."""

    name: str  # Name.
    minSupportedVersion: int  # Lowest level.
    maxSupportedVersion: int  # Highest level.


@final
class RegisterBrokerRecord(TrailingBytes, UnknownTaggedFields):
    """A broker registers, with its rack and listeners."""

    brokerId: int  # Broker id.
    isMigratingZkBroker: NotRequired[bool]  # Whether a ZooKeeper broker in migration. In versions 2 to 4.
    incarnationId: str  # Id of this run of the broker process.
    brokerEpoch: int  # Epoch given at registration.
    endPoints: list[RegisterBrokerRecordBrokerEndpoint]  # Listeners.
    features: list[RegisterBrokerRecordBrokerFeature]  # Supported features.
    rack: str | None  # Rack of the broker.
    fenced: bool  # Whether fenced.
    inControlledShutdown: NotRequired[bool]  # Whether shutting down. In versions 1 to 4.
    logDirs: NotRequired[list[str]]  # Ids of the available log directories. Tagged: absent unless it was written.
    # Ids of cordoned log directories. Tagged: absent unless it was written.
    cordonedLogDirs: NotRequired[list[str] | None]
    _type: NotRequired[Literal["RegisterBrokerRecord"]]  # In no record: it sets this type apart.


@final
class UnregisterBrokerRecord(TrailingBytes, UnknownTaggedFields):
    """A broker is unregistered."""

    brokerId: int  # Broker id.
    brokerEpoch: int  # Epoch given at registration.
    _type: NotRequired[Literal["UnregisterBrokerRecord"]]  # In no record: it sets this type apart.


@final
class TopicRecord(TrailingBytes, UnknownTaggedFields):
    """A topic is created."""

    name: str  # Name.
    topicId: str  # Topic id.
    _type: NotRequired[Literal["TopicRecord"]]  # In no record: it sets this type apart.


@final
class PartitionRecord(TrailingBytes, UnknownTaggedFields):
    """A partition is created, or stated again in a snapshot."""

    partitionId: int  # Partition number.
    topicId: str  # Topic id.
    replicas: list[int]  # Broker ids, preferred first.
    isr: list[int]  # In-sync replicas.
    removingReplicas: list[int]  # Replicas being removed.
    addingReplicas: list[int]  # Replicas being added.
    leader: int  # Leader, -1 none.
    leaderEpoch: int  # Leader epoch of the partition.
    partitionEpoch: int  # Grows with each change of the partition.
    directories: NotRequired[list[str]]  # Log directory of each replica. In versions 1 to 2.
    # 1 while recovering from an unclean election. Tagged: absent unless it was written.
    leaderRecoveryState: NotRequired[int]
    # Eligible leader replicas (KIP-966). Tagged: absent unless it was written.
    eligibleLeaderReplicas: NotRequired[list[int] | None]
    # Last known eligible leader replicas (KIP-966). Tagged: absent unless it was written.
    lastKnownElr: NotRequired[list[int] | None]
    _type: NotRequired[Literal["PartitionRecord"]]  # In no record: it sets this type apart.


@final
class ConfigRecord(TrailingBytes, UnknownTaggedFields):
    """A configuration value is set or removed."""

    resourceType: int  # 2 topic, 4 broker, 32 group and so on.
    resourceName: str  # Name of the resource.
    name: str  # Name of the configuration key.
    value: str | None  # New value, null: removed.
    _type: NotRequired[Literal["ConfigRecord"]]  # In no record: it sets this type apart.


@final
class PartitionChangeRecord(TrailingBytes, UnknownTaggedFields):
    """A partition changes; absent fields stay as they were."""

    partitionId: int  # Partition number.
    topicId: str  # Topic id.
    isr: NotRequired[list[int] | None]  # In-sync replicas. Tagged: absent unless it was written.
    leader: NotRequired[int]  # New leader, -1 none, -2 no change. Tagged: absent unless it was written.
    replicas: NotRequired[list[int] | None]  # Broker ids, preferred first. Tagged: absent unless it was written.
    removingReplicas: NotRequired[list[int] | None]  # Replicas being removed. Tagged: absent unless it was written.
    addingReplicas: NotRequired[list[int] | None]  # Replicas being added. Tagged: absent unless it was written.
    # 1 while recovering from an unclean election. Tagged: absent unless it was written.
    leaderRecoveryState: NotRequired[int]
    # Eligible leader replicas (KIP-966). Tagged: absent unless it was written.
    eligibleLeaderReplicas: NotRequired[list[int] | None]
    # Last known eligible leader replicas (KIP-966). Tagged: absent unless it was written.
    lastKnownElr: NotRequired[list[int] | None]
    directories: NotRequired[list[str] | None]  # Log directory of each replica. Tagged: absent unless it was written.
    _type: NotRequired[Literal["PartitionChangeRecord"]]  # In no record: it sets this type apart.


@final
class FenceBrokerRecord(TrailingBytes, UnknownTaggedFields):
    """A broker is fenced (format before BrokerRegistrationChange)."""

    id: int  # Broker id.
    epoch: int  # Group epoch.
    _type: NotRequired[Literal["FenceBrokerRecord"]]  # In no record: it sets this type apart.


@final
class UnfenceBrokerRecord(TrailingBytes, UnknownTaggedFields):
    """A broker is unfenced (format before BrokerRegistrationChange)."""

    id: int  # Broker id.
    epoch: int  # Group epoch.
    _type: NotRequired[Literal["UnfenceBrokerRecord"]]  # In no record: it sets this type apart.


@final
class RemoveTopicRecord(TrailingBytes, UnknownTaggedFields):
    """A topic is deleted."""

    topicId: str  # Topic id.
    _type: NotRequired[Literal["RemoveTopicRecord"]]  # In no record: it sets this type apart.


@final
class FeatureLevelRecord(TrailingBytes, UnknownTaggedFields):
    """A feature level is set, metadata.version among them."""

    name: str  # Name.
    featureLevel: int  # Level.
    _type: NotRequired[Literal["FeatureLevelRecord"]]  # In no record: it sets this type apart.


@final
class BrokerRegistrationChangeRecord(TrailingBytes, UnknownTaggedFields):
    """A broker registration changes in part."""

    brokerId: int  # Broker id.
    brokerEpoch: int  # Epoch given at registration.
    fenced: NotRequired[int]  # -1 unfenced, 0 no change, 1 fenced. Tagged: absent unless it was written.
    inControlledShutdown: NotRequired[int]  # 0 no change, 1 shutting down. Tagged: absent unless it was written.
    logDirs: NotRequired[list[str]]  # Ids of the available log directories. Tagged: absent unless it was written.
    # Ids of cordoned log directories. Tagged: absent unless it was written.
    cordonedLogDirs: NotRequired[list[str] | None]
    _type: NotRequired[Literal["BrokerRegistrationChangeRecord"]]  # In no record: it sets this type apart.
