"""The records that the coordinator of a Connect group writes (Connect on KIP-848).

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from collections.abc import Iterable, Mapping

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.connect.group import as_fields
from coordinator_core.coordinator.record_templates import KeyT, ValueT, member_key
from coordinator_core.groups.connect.state import Assignor, ConnectGroup
from coordinator_core.record_fields.beyond_schema import GroupIdKey, MemberKey
from coordinator_core.record_fields.connect_group import (
    ConnectWorkerGroupConfigurationEntry,
    ConnectWorkerGroupConfigurationValue,
    ConnectWorkerGroupConnectorsTasksMetadataValue,
    ConnectWorkerGroupCurrentMemberAssignmentValue,
    ConnectWorkerGroupMemberMetadataValue,
    ConnectWorkerGroupMetadataValue,
    ConnectWorkerGroupTargetAssignmentMember,
    ConnectWorkerGroupTargetAssignmentValue,
)
from coordinator_core.records import ConnectRecordType

UnwrittenConnect = tuple[ConnectRecordType, KeyT, ValueT | None]
"""Record type, key and value."""


def group_epoch(group_id: str, epoch: int) -> UnwrittenConnect[GroupIdKey, ConnectWorkerGroupMetadataValue]:
    """Return the record of the group epoch."""
    return ConnectRecordType.GROUP_METADATA, {"groupId": group_id}, {"epoch": epoch}


def work(
    group_id: str, epoch: int, units: Iterable[ConnectorOrTask]
) -> UnwrittenConnect[GroupIdKey, ConnectWorkerGroupConnectorsTasksMetadataValue]:
    """Return the record of all connectors and tasks that the group has to run, as of a group epoch."""
    value: ConnectWorkerGroupConnectorsTasksMetadataValue = {"epoch": epoch, "connectorsTasks": as_fields(units)}
    return ConnectRecordType.CONNECTORS_TASKS_METADATA, {"groupId": group_id}, value


def configuration(
    group_id: str, settings: Mapping[str, str]
) -> UnwrittenConnect[GroupIdKey, ConnectWorkerGroupConfigurationValue]:
    """Return the record of the group's configuration."""
    pairs: list[ConnectWorkerGroupConfigurationEntry] = [
        {"name": name, "value": value} for name, value in settings.items()
    ]
    return ConnectRecordType.CONFIGURATION, {"groupId": group_id}, {"configurations": pairs}


def worker(
    group_id: str, member_id: str, value: ConnectWorkerGroupMemberMetadataValue
) -> UnwrittenConnect[MemberKey, ConnectWorkerGroupMemberMetadataValue]:
    """Return the record of a worker's metadata."""
    return ConnectRecordType.MEMBER_METADATA, member_key(group_id, member_id), value


def metadata(
    epoch: int, instance_id: str | None, client_id: str, client_host: str, assignors: Iterable[Assignor]
) -> ConnectWorkerGroupMemberMetadataValue:
    """Return the metadata of a worker as of a group epoch."""
    return {
        "groupEpoch": epoch,
        "instanceId": instance_id,
        "clientId": client_id,
        "clientHost": client_host,
        "subscribedTopicNames": [],
        "subscribedTopicRegex": None,
        "assignors": [
            {
                "name": assignor.name,
                "minimumVersion": assignor.minimum_version,
                "maximumVersion": assignor.maximum_version,
                "reason": assignor.reason,
                "version": assignor.version,
                "metadata": assignor.metadata,
            }
            for assignor in assignors
        ],
    }


def target(
    group_id: str, epoch: int, members: list[ConnectWorkerGroupTargetAssignmentMember]
) -> UnwrittenConnect[GroupIdKey, ConnectWorkerGroupTargetAssignmentValue]:
    """Return the record of the target assignment of all workers."""
    value: ConnectWorkerGroupTargetAssignmentValue = {"assignmentEpoch": epoch, "members": members}
    return ConnectRecordType.TARGET_ASSIGNMENT, {"groupId": group_id}, value


def target_of_worker(
    member_id: str, units: Iterable[ConnectorOrTask], version: int = 0, metadata: bytes = b"", error: int = 0
) -> ConnectWorkerGroupTargetAssignmentMember:
    """Return what one worker is to run."""
    work = as_fields(units)
    return {"memberId": member_id, "error": error, "connectorsTasks": work, "version": version, "metadata": metadata}


def current(
    group_id: str,
    member_id: str,
    epoch: int,
    units: Iterable[ConnectorOrTask],
    version: int = 0,
    metadata: bytes = b"",
    error: int = 0,
) -> UnwrittenConnect[MemberKey, ConnectWorkerGroupCurrentMemberAssignmentValue]:
    """Return the record of what a worker runs."""
    value: ConnectWorkerGroupCurrentMemberAssignmentValue = {
        "memberEpoch": epoch,
        "error": error,
        "connectorsTasks": as_fields(units),
        "version": version,
        "metadata": metadata,
    }
    return ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, member_key(group_id, member_id), value


def worker_tombstones(group_id: str, member_id: str) -> list[UnwrittenConnect]:
    """Return the tombstones of a worker: of what it runs, then of its metadata."""
    key = member_key(group_id, member_id)
    return [(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, key, None), (ConnectRecordType.MEMBER_METADATA, key, None)]


def group_tombstones(group_id: str, group: ConnectGroup) -> list[UnwrittenConnect]:
    """Return the tombstones of a group without workers, of the records that it has; the group's own record is last."""
    key: GroupIdKey = {"groupId": group_id}
    there = {
        ConnectRecordType.TARGET_ASSIGNMENT: group.assignment_epoch is not None,
        ConnectRecordType.CONNECTORS_TASKS_METADATA: group.work_epoch is not None,
        ConnectRecordType.CONFIGURATION: bool(group.configuration),
        ConnectRecordType.GROUP_METADATA: True,
    }
    return [(record_type, key, None) for record_type, is_there in there.items() if is_there]
