"""The connectors and tasks that Connect workers run, and an assignment as a worker reads it from its bytes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coordinator_core.assignors.inputs import ConnectGroupSpec, ConnectorTask, WorkerSpec
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import STRING, utf16
from coordinator_core.java.order import copied_order
from coordinator_core.record_fields.embedded import (
    ConnectProtocolAssignment,
    ConnectProtocolAssignmentConnectorTasks,
    ConnectProtocolMetadata,
)
from coordinator_core.wire.embedded import Blob, blob_of

NO_ERROR = 0
CONFIG_MISMATCH = 1
"""The leader has read less of the config topic than another worker: no worker gets work, all join again."""


ConnectorOrTask = str | ConnectorTask
"""A connector or a task."""


class ConnectorsAndTasks(NamedTuple):
    """Connectors and tasks, each once, in order (Kafka's ``ConnectorsAndTasks``)."""

    connectors: dict[str, None]
    tasks: dict[ConnectorTask, None]

    @classmethod
    def of(cls, connectors: Iterable[str] = (), tasks: Iterable[ConnectorTask] = ()) -> ConnectorsAndTasks:
        """Return these connectors and tasks, each once."""
        return cls(dict.fromkeys(connectors), dict.fromkeys(tasks))

    @classmethod
    def union(cls, works: Iterable[ConnectorsAndTasks]) -> ConnectorsAndTasks:
        """Return all of them together."""
        union = cls.of()
        for work in works:
            union.add(work)
        return union

    def add(self, other: ConnectorsAndTasks) -> None:
        """Add all connectors and tasks of the other work."""
        self.connectors.update(other.connectors)
        self.tasks.update(other.tasks)

    def minus(self, *others: ConnectorsAndTasks) -> ConnectorsAndTasks:
        """Return this work without what any of the others contains."""
        connectors = self.connectors.keys() - set[str]().union(*(other.connectors for other in others))
        tasks = self.tasks.keys() - set[ConnectorTask]().union(*(other.tasks for other in others))
        return ConnectorsAndTasks.of(
            (c for c in self.connectors if c in connectors), (t for t in self.tasks if t in tasks)
        )

    def touches(self, other: ConnectorsAndTasks) -> bool:
        """Whether any connector or task is in both."""
        return bool(self.connectors.keys() & other.connectors.keys() or self.tasks.keys() & other.tasks.keys())

    def sorted(self) -> ConnectorsAndTasks:
        """Return the same in the natural order of names and tasks."""
        tasks = sorted(self.tasks, key=lambda task: (utf16(task[0]), task[1]))  # as ``ConnectorTaskId`` compares them
        return ConnectorsAndTasks.of(sorted(self.connectors, key=utf16), tasks)

    def units(self) -> list[ConnectorOrTask]:
        """Return connectors, then tasks."""
        return [*self.connectors, *self.tasks]

    def __bool__(self) -> bool:
        return bool(self.connectors or self.tasks)


@dataclass(frozen=True, slots=True)
class LeaderAssignment:
    """What the leader sends to one worker, in the orders in which the worker reads it.

    In the eager protocol ``connectors`` and ``tasks`` are all that the worker is to run, in the others what it is to
    start. ``delay_ms`` is how long the worker waits before it asks for the next rebalance (0: none is due).
    """

    error: int
    leader: str
    leader_url: str
    config_offset: int
    connectors: Sequence[str] = ()
    tasks: Sequence[ConnectorTask] = ()
    revoked_connectors: Sequence[str] = ()
    revoked_tasks: Sequence[ConnectorTask] = ()
    delay_ms: int = 0


class Share(NamedTuple):
    """A worker's part of a round before it is written."""

    start: ConnectorsAndTasks
    stop: ConnectorsAndTasks


def configured(spec: ConnectGroupSpec) -> ConnectorsAndTasks:
    """Return every configured connector and task, in order; raises AssignorError for a negative number of tasks."""
    names = sorted(spec.connectors, key=utf16)
    for name in names:
        if spec.connectors[name] < 0:
            raise AssignorError("IllegalArgumentException", f"connector {name!r} has {spec.connectors[name]} tasks")
    return ConnectorsAndTasks.of(names, ((name, number) for name in names for number in range(spec.connectors[name])))


def config_offset(spec: ConnectGroupSpec) -> int:
    """Return the largest offset of the config topic that a worker has read; raises AssignorError for an empty group."""
    if spec.leader not in spec.members:
        raise AssignorError("NullPointerException", f"the leader {spec.leader!r} is not among the workers")
    return max(worker.config_offset for worker in spec.members.values())


def written(
    spec: ConnectGroupSpec, jdk: int, shares: Mapping[str, Share], *, error: int = NO_ERROR, delay_ms: int = 0
) -> dict[str, LeaderAssignment]:
    """Return the round as the workers read it.

    The bytes group tasks by connector; connectors pass through a ``HashSet``.
    """
    assignments = {}
    for worker in spec.members:
        start, stop = shares.get(worker) or Share(ConnectorsAndTasks.of(), ConnectorsAndTasks.of())
        connectors = copied_order(STRING, list(start.connectors), jdk)
        assignments[worker] = LeaderAssignment(
            error,
            spec.leader,
            spec.members[spec.leader].url,
            config_offset(spec),
            connectors,
            _by_connector(connectors, start.tasks),
            list(stop.connectors),
            _by_connector(stop.connectors, stop.tasks),
            delay_ms,
        )
    return assignments


def _by_connector(connectors: Iterable[str], tasks: Collection[ConnectorTask]) -> list[ConnectorTask]:
    numbers: dict[str, list[int]] = {connector: [] for connector in connectors}
    for connector, number in tasks:
        numbers.setdefault(connector, []).append(number)
    return [(connector, number) for connector, of_connector in numbers.items() for number in of_connector]


def target(
    workers: Mapping[str, WorkerSpec], assignments: Mapping[str, LeaderAssignment]
) -> dict[str, ConnectorsAndTasks]:
    """Return what each worker runs after a round: what it ran, without what it stops, and what it starts.

    A round of the eager protocol contains all of it; a round that failed changes nothing.
    """
    works = {}
    for worker, assignment in assignments.items():
        now = ConnectorsAndTasks.of(workers[worker].connectors, workers[worker].tasks)
        if assignment.error == NO_ERROR:
            now = now.minus(ConnectorsAndTasks.of(assignment.revoked_connectors, assignment.revoked_tasks))
            now.add(ConnectorsAndTasks.of(assignment.connectors, assignment.tasks))
        works[worker] = now
    return works


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
