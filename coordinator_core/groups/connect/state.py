"""A Connect group as its records define it (Connect on KIP-848)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.cluster.snapshot_settings import int_setting

MAX_DELAY_CONFIG = "scheduled.rebalance.max.delay.ms"
"""The group's configuration that says how long the work of a worker that left waits for its return."""
DEFAULT_MAX_DELAY_MS = 300_000
CLASSIC_VERSION = -1
"""The version of the metadata of a worker that speaks the classic protocol: the metadata is that of its protocol."""


class ConnectGroupState(StrEnum):
    """The state of the whole group, which follows from epochs and members as in a consumer group."""

    EMPTY = "EMPTY"
    ASSIGNING = "ASSIGNING"
    RECONCILING = "RECONCILING"
    STABLE = "STABLE"


class ConnectorTaskId(NamedTuple):
    """One task of a connector."""

    connector_id: str
    task_id: int


@dataclass(slots=True)
class Work:
    """Connectors and tasks, in the order of the record."""

    connectors: list[str] = field(default_factory=list)
    tasks: list[ConnectorTaskId] = field(default_factory=list)


@dataclass(slots=True)
class WorkerAssignment:
    """What one worker runs, or is to run: ``error`` is the assignor's, ``metadata`` is the assignor's own at
    ``version``.
    """

    work: Work
    error: int = 0
    version: int = 0
    metadata: bytes = b""


class Assignor(NamedTuple):
    """An assignor that a worker offers: the metadata versions it knows, and its metadata at ``version``."""

    name: str
    minimum_version: int
    maximum_version: int
    reason: int
    version: int
    metadata: bytes


@dataclass(slots=True)
class ConnectMember:
    """A worker: metadata (type 5) and current assignment (type 7); None where its record was not seen."""

    member_id: str
    client_id: str | None = None
    client_host: str | None = None
    instance_id: str | None = None
    group_epoch: int | None = None
    assignors: list[Assignor] = field(default_factory=list)
    member_epoch: int | None = None
    current: WorkerAssignment | None = None


@dataclass(slots=True)
class ConnectGroup:
    """A Connect group; None: not seen in the log. ``members`` keeps the order in which workers appeared.

    ``work`` is all that the group has to run, as of ``work_epoch``; one record has the ``targets`` of all workers.
    """

    group_epoch: int | None = None
    work_epoch: int | None = None
    work: Work = field(default_factory=Work)
    assignment_epoch: int | None = None
    targets: dict[str, WorkerAssignment] = field(default_factory=dict)
    members: dict[str, ConnectMember] = field(default_factory=dict)
    configuration: dict[str, str] = field(default_factory=dict)


def is_classic(member: ConnectMember) -> bool:
    """Whether the worker speaks the classic protocol, in a group that was converted (migration)."""
    return any(assignor.version == CLASSIC_VERSION for assignor in member.assignors)


def is_to_be_downgraded(group: ConnectGroup | None) -> bool:
    """Whether only workers of the classic protocol are left in the group: the coordinator makes it a classic one."""
    return group is not None and bool(group.members) and all(is_classic(member) for member in group.members.values())


def max_delay_ms(group: ConnectGroup) -> int:
    """Return how long (ms) the work of a worker that left waits for its return."""
    text = group.configuration.get(MAX_DELAY_CONFIG, "")
    delay_ms = int_setting(text)
    return DEFAULT_MAX_DELAY_MS if delay_ms is None or delay_ms < 0 else delay_ms


def units(work: Work) -> tuple[ConnectorOrTask, ...]:
    """Return connectors, then tasks."""
    return (*work.connectors, *((task.connector_id, task.task_id) for task in work.tasks))


def unassigned(group: ConnectGroup) -> set[ConnectorOrTask]:
    """Return the connectors and tasks that are in no worker's target."""
    return set(units(group.work)).difference(*(units(target.work) for target in group.targets.values()))


def left_over(group: ConnectGroup) -> set[ConnectorOrTask]:
    """Return the same, which is all work where there is no worker: the last target names those that have left."""
    return unassigned(group) if group.members else set(units(group.work))
