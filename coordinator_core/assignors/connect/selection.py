"""How a Connect group selects the worker that assigns, and which assignments it accepts (Connect on KIP-848).

The document's worked cases leave the work of a worker that left unassigned while the group waits for it, although its
rule says that everything must be assigned: ``waiting`` names such work.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.errors import AssignorError


class VersionRange(NamedTuple):
    """The metadata versions that a worker's assignor supports, both included."""

    minimum: int
    maximum: int

    def covers(self, other: "VersionRange") -> bool:
        """Whether all versions of the other range are in this one."""
        return self.minimum <= other.minimum and other.maximum <= self.maximum


def select_assignor(offered: Mapping[str, Sequence[str]]) -> str:
    """Return the assignor that all workers support; of several, the one that most workers put first.

    ``offered`` lists each worker's assignors in its order of preference. Ties are decided by the first worker's
    preference.

    Raises:
        AssignorError: there is none (UNSUPPORTED_ASSIGNOR).
    """
    preferences = list(offered.values())
    common = [name for name in preferences[0] if all(name in names for names in preferences)] if preferences else []
    if not common:
        raise AssignorError("UNSUPPORTED_ASSIGNOR", "no assignor is supported by all workers")
    votes = Counter(next(name for name in names if name in common) for names in preferences)
    return max(common, key=lambda name: votes[name])


def select_worker(
    ranges: Mapping[str, VersionRange], former: str | None = None, candidates: Collection[str] | None = None
) -> str:
    """Return the worker that computes the assignment: one whose version range covers every worker's range.

    The worker that computed the last assignment does it again if it can, otherwise the first one in the group's order.

    Raises:
        AssignorError: no range covers all others (FATAL).
    """
    if not ranges:
        raise AssignorError("FATAL", "no worker in the group")
    needed = VersionRange(min(r.minimum for r in ranges.values()), max(r.maximum for r in ranges.values()))
    chosen_from = ranges if candidates is None else candidates
    able = [worker for worker, versions in ranges.items() if versions.covers(needed) and worker in chosen_from]
    if not able:
        supported = ", ".join(
            f"{worker} {versions.minimum} to {versions.maximum}" for worker, versions in ranges.items()
        )
        raise AssignorError(
            "FATAL", f"no worker supports all versions in use, {needed.minimum} to {needed.maximum}: {supported}"
        )
    return former if former in able else able[0]


class WorkInvariant(StrEnum):
    """What must hold for an assignment to be installed; otherwise the response is INVALID_ASSIGNMENT."""

    ALL_ASSIGNED = "all connectors and tasks are assigned"
    ASSIGNED_ONCE = "a connector or task is assigned only once"
    WORKERS_EXIST = "all workers exist"


@dataclass(frozen=True, slots=True)
class WorkBreach:
    """One broken invariant: about which connector, task or worker (``unit``), and the workers that hold it."""

    invariant: WorkInvariant
    unit: ConnectorOrTask
    workers: tuple[str, ...] = ()


def breaches(
    workers: Collection[str],
    configured: Iterable[ConnectorOrTask],
    target: Mapping[str, Iterable[ConnectorOrTask]],
    waiting: Collection[ConnectorOrTask] = (),
) -> list[WorkBreach]:
    """Return every broken invariant of a target assignment; if there is none, it may be installed.

    ``workers`` and ``configured`` are those that the assignment was computed from, even if the group has changed since.
    """
    broken = [WorkBreach(WorkInvariant.WORKERS_EXIST, worker, (worker,)) for worker in target if worker not in workers]
    holders: dict[ConnectorOrTask, list[str]] = {}
    for worker, units in target.items():
        for unit in units:
            holders.setdefault(unit, []).append(worker)
    broken += [
        WorkBreach(WorkInvariant.ASSIGNED_ONCE, unit, tuple(held)) for unit, held in holders.items() if len(held) > 1
    ]
    broken += [
        WorkBreach(WorkInvariant.ALL_ASSIGNED, unit)
        for unit in configured
        if unit not in holders and unit not in waiting
    ]
    return broken
