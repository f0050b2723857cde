"""Workers and their assignments from the blobs in a Connect group's record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordinator_core.assignors.connect.work import LeaderAssignment
from coordinator_core.assignors.inputs import ConnectorTask, WorkerSpec
from coordinator_core.records import Fields
from coordinator_core.wire.embedded import Blob

CONNECTOR = -1
"""The task number that stands for the connector itself."""


def worker(metadata: Blob) -> WorkerSpec:
    """A worker by its ``ConnectProtocolMetadata``; what it runs is in its allocation, which version 0 lacks."""
    running = worker_assignment(metadata.nested.fields) if metadata.nested else None
    return WorkerSpec(
        metadata.fields["url"],
        metadata.fields["configOffset"],
        running.connectors if running else (),
        running.tasks if running else (),
    )


def worker_assignment(assignment: Fields) -> LeaderAssignment:
    """A decoded ``ConnectProtocolAssignment`` as the worker reads it."""
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


def _work(entries: Iterable[Any]) -> tuple[list[str], list[ConnectorTask]]:
    connectors: list[str] = []
    tasks: list[ConnectorTask] = []
    for entry in entries:
        for number in entry["tasks"]:
            if number == CONNECTOR:
                connectors.append(entry["connector"])
            else:
                tasks.append((entry["connector"], number))
    return connectors, tasks
