"""The memory of a coordinator of Connect groups for one partition of ``__worker_offsets``."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.memory import CoordinatorState, GroupClasses
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.record_fields.connect_group import (
    ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks,
    ConnectWorkerGroupConnectorsTasksMetadataConnectorTaskId,
)
from coordinator_core.record_fields.coordinator_requests import (
    ConnectGroupHeartbeatConnectorsTasks,
    ConnectGroupInstallAssignmentConnectorsTasks,
)
from coordinator_core.records import CoordinatorRecord, Family


@dataclass(frozen=True, slots=True)
class Computation:
    """An assignment that a worker computes, and the input that it was given and is checked against.

    ``late``: it has not been installed in time.
    """

    worker: str
    epoch: int
    workers: tuple[str, ...] = ()
    configured: tuple[ConnectorOrTask, ...] = ()
    prepared: bool = False
    late: bool = False


@dataclass(slots=True)
class ConnectCoordinatorState(CoordinatorState):
    """The memory of a Connect group coordinator.

    ``computations`` and the rest are soft state: by group and worker the timeouts, and what workers that speak the
    classic protocol ``reported`` to run when they joined last.
    """

    group_classes: GroupClasses = field(default_factory=dict)
    log: CoordinatorShard = field(default_factory=lambda: CoordinatorShard(family=Family.CONNECT))
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 5_000
    computations: dict[str, Computation] = field(default_factory=dict)
    rebalance_timeouts: dict[tuple[str, str], int] = field(default_factory=dict)
    session_timeouts: dict[tuple[str, str], int] = field(default_factory=dict)
    reported: dict[tuple[str, str], tuple[ConnectorOrTask, ...]] = field(default_factory=dict)

    def follow(self, record: CoordinatorRecord, producer_id: int | None = None) -> None:
        """Apply a record of the log."""
        self.log.apply(record, producer_id)

    def rebalance_timeout_ms(self, group_id: str, member_id: str) -> int:
        """Return how long the worker may take to stop work, or to compute an assignment, as it said when it joined."""
        return self.rebalance_timeouts.get((group_id, member_id), self.session_timeout_ms)

    def forget_worker(self, group_id: str, member_id: str) -> None:
        """Drop the soft state of a worker."""
        for known in (self.rebalance_timeouts, self.session_timeouts, self.reported):
            known.pop((group_id, member_id), None)

    def group(self, group_id: str) -> ConnectGroup | None:
        """Return the group of that id, None if there is none."""
        entry = self.log.groups.get(group_id)
        state = None if entry is None else entry.state
        return state if isinstance(state, ConnectGroup) else None


def as_fields(some: Iterable[ConnectorOrTask]) -> list[ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks]:
    """Return connectors and tasks as records and responses have them."""
    ordered = sorted(some, key=lambda unit: (unit, -1) if isinstance(unit, str) else unit)
    if not ordered:
        return []
    connectors = [unit for unit in ordered if isinstance(unit, str)]
    tasks: list[ConnectWorkerGroupConnectorsTasksMetadataConnectorTaskId] = [
        {"connectorId": unit[0], "taskId": unit[1]} for unit in ordered if not isinstance(unit, str)
    ]
    return [{"connectors": connectors, "tasks": tasks}]


WorkFields = (
    ConnectGroupHeartbeatConnectorsTasks
    | ConnectGroupInstallAssignmentConnectorsTasks
    | ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks
)
"""Connectors and tasks in a request or a record."""


def from_fields(values: Iterable[WorkFields]) -> list[ConnectorOrTask]:
    """Return the connectors and tasks of a request, in its order; a repeated unit is repeated."""
    units: list[ConnectorOrTask] = []
    for work in values:
        units += work["connectors"]
        units += [(task["connectorId"], task["taskId"]) for task in work["tasks"]]
    return units
