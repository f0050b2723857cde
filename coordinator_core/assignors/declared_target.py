"""Connect's assignors for a group on KIP-848, whose target says what each worker is to run in the end.

The incremental assignor stops work in one round and assigns it again in the next one; the coordinator of such a group
takes care of that order itself. So the worker that computes the target runs rounds on their own results until nothing
is left to be stopped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator_core.assignors.connect.work import (
    NO_ERROR,
    ConnectorOrTask,
    ConnectorsAndTasks,
    LeaderAssignment,
    configured,
    target,
)
from coordinator_core.assignors.inputs import Assignment, ConnectGroupSpec, WorkerSpec
from coordinator_core.assignors.profiles import DEFAULT, Profile
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage


@dataclass(frozen=True, slots=True)
class DeclaredTarget:
    """What each worker is to run. ``waiting`` is work that no worker gets until ``delay_ms`` have passed (0: no delay).

    ``error`` is that of the assignor; the target is then what the workers already run. ``memory`` is passed to the same
    worker's next computation, whose ``last_completed_generation`` is ``generation``.
    """

    works: Mapping[str, ConnectorsAndTasks]
    waiting: tuple[ConnectorOrTask, ...]
    delay_ms: int
    error: int
    generation: int
    memory: Any


def declare_target(protocol: str, spec: ConnectGroupSpec, profile: Profile = DEFAULT) -> DeclaredTarget:
    """Compute a target from what the workers run now. Raises what the assignor of that protocol raises."""
    while True:
        round_: Assignment[LeaderAssignment] = assign(protocol, spec, TopicImage.of(()), profile)
        works = target(spec.members, round_.members)
        of_leader = round_.members[spec.leader]
        if of_leader.error != NO_ERROR or not any(
            assignment.revoked_connectors or assignment.revoked_tasks for assignment in round_.members.values()
        ):
            break
        spec = replace(
            spec,
            members={worker: _running(spec.members[worker], work) for worker, work in works.items()},
            generation=spec.generation + 1,
            last_completed_generation=spec.generation,
            memory=round_.memory,
        )
    assigned = {unit for work in works.values() for unit in work.units()}
    waiting = tuple(unit for unit in configured(spec).units() if unit not in assigned) if of_leader.delay_ms else ()
    return DeclaredTarget(works, waiting, of_leader.delay_ms, of_leader.error, spec.generation, round_.memory)


def _running(worker: WorkerSpec, work: ConnectorsAndTasks) -> WorkerSpec:
    return replace(worker, connectors=list(work.connectors), tasks=list(work.tasks))
