"""Workers and their assignments from the blobs in a Connect group's record."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_core.assignors.connect.work import LeaderAssignment
from coordinator_core.assignors.inputs import ConnectorTask, WorkerSpec
from coordinator_core.record_fields.embedded import (
    ConnectProtocolAssignment,
    ConnectProtocolAssignmentConnectorTasks,
    ConnectProtocolMetadata,
)
from coordinator_core.wire.embedded import Blob, blob_of

CONNECTOR = -1
"""The task number that stands for the connector itself."""


def worker(metadata: Blob[ConnectProtocolMetadata]) -> WorkerSpec:
    """Return a worker from its ``ConnectProtocolMetadata``; what it runs is in its allocation, which version 0
    lacks.
    """
    allocation = blob_of(ConnectProtocolAssignment, metadata.nested)
    running = worker_assignment(allocation.fields) if allocation else None
    return WorkerSpec(
        metadata.fields["url"],
        metadata.fields["configOffset"],
        running.connectors if running else (),
        running.tasks if running else (),
    )


def worker_assignment(assignment: ConnectProtocolAssignment) -> LeaderAssignment:
    """Return a decoded ``ConnectProtocolAssignment`` as the worker reads it."""
    connectors, tasks = _work(assignment["assignment"] or ())
    revoked_connectors, revoked_tasks = _work(assignment.get("revoked") or ())
    return LeaderAssignment(
        assignment["error"],
        assignment["leader"],
        assignment["leaderUrl"],
        assignment["configOffset"],
        connectors,
        tasks,
        revoked_connectors,
        revoked_tasks,
        assignment.get("delay", 0),
    )


def _work(entries: Iterable[ConnectProtocolAssignmentConnectorTasks]) -> tuple[list[str], list[ConnectorTask]]:
    connectors: list[str] = []
    tasks: list[ConnectorTask] = []
    for entry in entries:
        for number in entry["tasks"]:
            if number == CONNECTOR:
                connectors.append(entry["connector"])
            else:
                tasks.append((entry["connector"], number))
    return connectors, tasks
