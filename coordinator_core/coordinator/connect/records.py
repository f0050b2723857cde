"""The records that the coordinator of a Connect group writes (Connect on KIP-848).

Each function gives record type, key and value (None: a tombstone) for ``Operation.write``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.connect.group import as_fields
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.records import ConnectRecordType, Fields

UnwrittenConnect = tuple[ConnectRecordType, Fields, Fields | None]
"""Record type, key and value."""


def group_epoch(group_id: str, epoch: int) -> UnwrittenConnect:
    """The group epoch."""
    return ConnectRecordType.GROUP_METADATA, {"groupId": group_id}, {"epoch": epoch}


def work(group_id: str, epoch: int, units: Iterable[ConnectorOrTask]) -> UnwrittenConnect:
    """All that the group has to run, as of a group epoch."""
    value: Fields = {"epoch": epoch, "connectorsTasks": as_fields(units)}
    return ConnectRecordType.CONNECTORS_TASKS_METADATA, {"groupId": group_id}, value


def configuration(group_id: str, settings: Mapping[str, str]) -> UnwrittenConnect:
    """The group's configuration."""
    pairs = [{"name": name, "value": value} for name, value in settings.items()]
    return ConnectRecordType.CONFIGURATION, {"groupId": group_id}, {"configurations": pairs}


def worker(group_id: str, member_id: str, value: Fields) -> UnwrittenConnect:
    """A worker's metadata."""
    return ConnectRecordType.MEMBER_METADATA, _key(group_id, member_id), value


def target(group_id: str, epoch: int, members: list[Fields]) -> UnwrittenConnect:
    """The target assignment of all workers."""
    value: Fields = {"assignmentEpoch": epoch, "members": members}
    return ConnectRecordType.TARGET_ASSIGNMENT, {"groupId": group_id}, value


def current(group_id: str, member_id: str, epoch: int, assignment: Fields) -> UnwrittenConnect:
    """What a worker runs."""
    key = _key(group_id, member_id)
    return ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, key, {"memberEpoch": epoch, **assignment}


def worker_tombstones(group_id: str, member_id: str) -> list[UnwrittenConnect]:
    """The worker goes, after what it runs."""
    key = _key(group_id, member_id)
    return [
        (ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, key, None),
        (ConnectRecordType.MEMBER_METADATA, key, None),
    ]


def group_tombstones(group_id: str, group: ConnectGroup) -> list[UnwrittenConnect]:
    """A group without workers goes: those of its records that there are, the group's own last."""
    key = {"groupId": group_id}
    there = {
        ConnectRecordType.TARGET_ASSIGNMENT: group.assignment_epoch is not None,
        ConnectRecordType.CONNECTORS_TASKS_METADATA: group.work_epoch is not None,
        ConnectRecordType.CONFIGURATION: bool(group.configuration),
        ConnectRecordType.GROUP_METADATA: True,
    }
    return [(record_type, key, None) for record_type, is_there in there.items() if is_there]


def assignment(units: Iterable[ConnectorOrTask], version: int = 0, metadata: bytes = b"", error: int = 0) -> Fields:
    """What one worker runs or is to run, as records and responses have it."""
    return {"error": error, "connectorsTasks": as_fields(units), "version": version, "metadata": metadata}


def _key(group_id: str, member_id: str) -> Fields:
    return {"groupId": group_id, "memberId": member_id}
