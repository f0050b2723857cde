"""Fields of the connect group records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey, TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class ConnectWorkerGroupMetadataValue(TrailingBytes, UnknownTaggedFields):
    """The epoch of a Connect group."""

    epoch: int  # Group epoch.
    _type: NotRequired[Literal["ConnectWorkerGroupMetadataValue"]]  # In no record: it sets this type apart.


ConnectWorkerGroupMetadataRecord = CoordinatorRecord[GroupIdKey, ConnectWorkerGroupMetadataValue]


@final
class ConnectWorkerGroupConnectorsTasksMetadataConnectorTaskId(UnknownTaggedFields):
    """Struct of ``tasks``."""

    connectorId: str  # Connector name.
    taskId: int  # Task number within the connector.


@final
class ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks(UnknownTaggedFields):
    """Struct of ``connectorsTasks``."""

    connectors: list[str]  # Connector names.
    tasks: list[ConnectWorkerGroupConnectorsTasksMetadataConnectorTaskId]  # Task ids.


@final
class ConnectWorkerGroupConnectorsTasksMetadataValue(TrailingBytes, UnknownTaggedFields):
    """What connectors and tasks a Connect group has to run."""

    epoch: int  # Group epoch.
    connectorsTasks: list[ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks]  # Connectors and tasks.
    # In no record: it sets this type apart.
    _type: NotRequired[Literal["ConnectWorkerGroupConnectorsTasksMetadataValue"]]


ConnectWorkerGroupConnectorsTasksMetadataRecord = CoordinatorRecord[
    GroupIdKey, ConnectWorkerGroupConnectorsTasksMetadataValue
]


@final
class ConnectWorkerGroupMemberMetadataAssignor(UnknownTaggedFields):
    """Struct of ``assignors``."""

    name: str  # Assignor name.
    minimumVersion: int  # Lowest metadata version.
    maximumVersion: int  # Highest metadata version.
    reason: int  # Why the metadata changed.
    version: int  # Version of the metadata.
    metadata: bytes  # Metadata for the assignor.


@final
class ConnectWorkerGroupMemberMetadataValue(TrailingBytes, UnknownTaggedFields):
    """A worker as it described itself."""

    groupEpoch: int  # Group epoch.
    instanceId: str | None  # Instance id of a static worker.
    clientId: str  # client.id.
    clientHost: str  # Address of the worker.
    subscribedTopicNames: list[str]  # Unused by workers.
    subscribedTopicRegex: str | None  # Unused by workers.
    assignors: list[ConnectWorkerGroupMemberMetadataAssignor]  # Assignors the worker offers, in its order.
    _type: NotRequired[Literal["ConnectWorkerGroupMemberMetadataValue"]]  # In no record: it sets this type apart.


ConnectWorkerGroupMemberMetadataRecord = CoordinatorRecord[MemberKey, ConnectWorkerGroupMemberMetadataValue]


@final
class ConnectWorkerGroupTargetAssignmentConnectorTaskId(UnknownTaggedFields):
    """Struct of ``tasks``."""

    connectorId: str  # Connector name.
    taskId: int  # Task number within the connector.


@final
class ConnectWorkerGroupTargetAssignmentConnectorsTasks(UnknownTaggedFields):
    """Struct of ``connectorsTasks``."""

    connectors: list[str]  # Connector names.
    tasks: list[ConnectWorkerGroupTargetAssignmentConnectorTaskId]  # Task ids.


@final
class ConnectWorkerGroupTargetAssignmentMember(UnknownTaggedFields):
    """Struct of ``members``."""

    memberId: str  # Worker id.
    error: int  # Error that the assignor reports.
    connectorsTasks: list[ConnectWorkerGroupTargetAssignmentConnectorsTasks]  # Connectors and tasks.
    version: int  # Version of the metadata.
    metadata: bytes  # Metadata from the assignor.


@final
class ConnectWorkerGroupTargetAssignmentValue(TrailingBytes, UnknownTaggedFields):
    """The target assignment of all workers, in one record."""

    assignmentEpoch: int  # Epoch of the group that the target was computed for.
    members: list[ConnectWorkerGroupTargetAssignmentMember]  # Workers.
    _type: NotRequired[Literal["ConnectWorkerGroupTargetAssignmentValue"]]  # In no record: it sets this type apart.


ConnectWorkerGroupTargetAssignmentRecord = CoordinatorRecord[GroupIdKey, ConnectWorkerGroupTargetAssignmentValue]


@final
class ConnectWorkerGroupCurrentMemberAssignmentConnectorTaskId(UnknownTaggedFields):
    """Struct of ``tasks``."""

    connectorId: str  # Connector name.
    taskId: int  # Task number within the connector.


@final
class ConnectWorkerGroupCurrentMemberAssignmentConnectorsTasks(UnknownTaggedFields):
    """Struct of ``connectorsTasks``."""

    connectors: list[str]  # Connector names.
    tasks: list[ConnectWorkerGroupCurrentMemberAssignmentConnectorTaskId]  # Task ids.


@final
class ConnectWorkerGroupCurrentMemberAssignmentValue(TrailingBytes, UnknownTaggedFields):
    """What one worker runs."""

    memberEpoch: int  # Epoch the worker is at.
    error: int  # Error that the assignor reports.
    connectorsTasks: list[ConnectWorkerGroupCurrentMemberAssignmentConnectorsTasks]  # Connectors and tasks.
    version: int  # Version of the metadata.
    metadata: bytes  # Metadata from the assignor.
    # In no record: it sets this type apart.
    _type: NotRequired[Literal["ConnectWorkerGroupCurrentMemberAssignmentValue"]]


ConnectWorkerGroupCurrentMemberAssignmentRecord = CoordinatorRecord[
    MemberKey, ConnectWorkerGroupCurrentMemberAssignmentValue
]


@final
class ConnectWorkerGroupConfigurationEntry(UnknownTaggedFields):
    """Struct of ``configurations``."""

    name: str  # Name.
    value: str  # Value.


@final
class ConnectWorkerGroupConfigurationValue(TrailingBytes, UnknownTaggedFields):
    """Configuration of a Connect group."""

    configurations: list[ConnectWorkerGroupConfigurationEntry]  # Configuration.
    _type: NotRequired[Literal["ConnectWorkerGroupConfigurationValue"]]  # In no record: it sets this type apart.


ConnectWorkerGroupConfigurationRecord = CoordinatorRecord[GroupIdKey, ConnectWorkerGroupConfigurationValue]
