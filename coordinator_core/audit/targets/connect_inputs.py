"""What the audit of Connect groups on KIP-848 keeps between records: what targets may have been computed from."""

from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from coordinator_core.assignors.connect.eager_and_incremental import AssignorMemory
from coordinator_core.assignors.connect.work import ConnectorsAndTasks
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.connect.rebalance_delay import ConfiguredWork, RebalanceDelay
from coordinator_core.groups.connect.state import MAX_DELAY_CONFIG, ConnectGroup, Work, max_delay_ms
from coordinator_core.records import AnyRecord, LogPosition

MOST_INPUTS = 64
"""How many states of a group between two targets are kept."""
MOST_MEMORIES = 64
"""How many former computations are kept that a worker may go on from."""
MOST_REMEMBERED = 50_000
"""How many connectors and tasks they may hold in all."""


class WorkerInput(NamedTuple):
    """A worker as an assignor is given it: the assignors that it offers, in its order, and what it runs.

    ``work`` is None where the log has not shown it.
    """

    offered: list[str]
    work: Work | None


@dataclass(frozen=True, slots=True)
class GroupInput:
    """A group between two records: what a target may have been computed from. ``workers`` are in the group's order."""

    epoch: int
    at: LogPosition
    workers: dict[str, WorkerInput]
    work: Work | None
    max_delay_ms: int

    @property
    def runs(self) -> dict[str, ConnectorsAndTasks]:
        """What each worker runs, nothing where that is not known."""
        return {member_id: as_work(worker.work or Work()) for member_id, worker in self.workers.items()}


class KeptMemory(NamedTuple):
    """What an assignor keeps after the target of ``epoch``.

    It computed the target at most ``within_ms`` before the target's record.
    """

    epoch: int
    memory: AssignorMemory
    within_ms: int = 0


class ConversionTarget(NamedTuple):
    """The target with which a classic group was converted: what its workers run, which the next records say."""

    epoch: int
    at: LogPosition
    works: dict[str, Work]


@dataclass(slots=True)
class WorkerTargetState:
    """What the audit of a Connect group on KIP-848 keeps between records.

    ``inputs`` are the states of the group since its last target, the oldest first. ``memories`` are those that a worker
    may have kept, the newest first. ``is_complete``: there can be no other ones. ``conversion`` is the target of a
    conversion until it is judged.
    """

    inputs: list[GroupInput] = field(default_factory=list)
    memories: list[KeptMemory] = field(default_factory=list)
    is_complete: bool = True
    delay: RebalanceDelay = field(default_factory=RebalanceDelay)
    work: ConfiguredWork = field(default_factory=ConfiguredWork)
    conversion: ConversionTarget | None = None

    def follow(
        self, group: ConnectGroup | None, record: AnyRecord, leader_epoch: int | None, settings: AuditSettings
    ) -> None:
        """Take in a record that is not a target; ``group`` is the group after it, None where the record ended it."""
        self.delay.follow(group, record, leader_epoch)
        self.work.follow(group, record)
        if group is None:
            self.inputs.clear()
            self.memories.clear()
            self.is_complete = True
            self.conversion = None
        elif group.group_epoch is not None and group.group_epoch > (group.assignment_epoch or 0):
            self._keep(group, record.at, settings)

    def _keep(self, group: ConnectGroup, at: LogPosition, settings: AuditSettings) -> None:
        assert group.group_epoch is not None
        has_delay = MAX_DELAY_CONFIG in group.configuration
        self.inputs.append(
            GroupInput(
                group.group_epoch,
                at,
                {
                    member_id: WorkerInput(
                        [assignor.name for assignor in member.assignors],
                        member.current.work if member.current else None,
                    )
                    for member_id, member in group.members.items()
                },
                self.work.at(group.group_epoch),
                max_delay_ms(group) if has_delay else settings.connect_max_delay_ms,
            )
        )
        if len(self.inputs) > MOST_INPUTS:
            del self.inputs[0]
            self.is_complete = False

    def remember(self, new: list[KeptMemory], superseded: int | None) -> None:
        """Take in what the worker that computed a target may have kept.

        ``superseded`` is the epoch of the computation that this worker made before, None if that is not certain.
        """
        old = [kept for kept in self.memories if kept.epoch != superseded]
        known = new + [kept for kept in old if all(kept.memory != other.memory for other in new)]
        # Running sums, the newest memory first: what is beyond the bound are the oldest ones.
        sizes = accumulate(1 + len(kept.memory.assigned.units()) for kept in known)
        fit = sum(1 for size in sizes if size <= MOST_REMEMBERED)
        self.memories = known[: min(fit, MOST_MEMORIES)]
        if len(self.memories) < len(known):
            self.is_complete = False

    def forget_inputs(self, epoch: int) -> None:
        """Drop what no later target can have been computed from."""
        self.inputs = [computed for computed in self.inputs if computed.epoch > epoch]


def as_work(work: Work) -> ConnectorsAndTasks:
    """Return connectors and tasks as assignors have them."""
    return ConnectorsAndTasks.of(work.connectors, ((task.connector_id, task.task_id) for task in work.tasks))
