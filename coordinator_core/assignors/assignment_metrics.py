"""Figures of an assignment: balance, movement and rack locality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from coordinator_core.assignors.client.claimed_partitions import sticky_data
from coordinator_core.assignors.connect.work import ConnectorsAndTasks, LeaderAssignment
from coordinator_core.assignors.inputs import (
    Assignment,
    ClassicMemberSpec,
    GroupSpecs,
    MemberSpec,
    Partitions,
    StreamsMemberSpec,
    Tasks,
    WorkerSpec,
)
from coordinator_core.cluster.image import Topic, TopicImage

PartitionOrTask = tuple[str, int]
AnyMemberSpec = MemberSpec | StreamsMemberSpec | ClassicMemberSpec | WorkerSpec


@dataclass(frozen=True, slots=True)
class AssignmentMetrics:
    """Counts over one assignment.

    ``imbalance`` is the largest load of a member minus the smallest (partitions, or tasks of every role). ``kept``
    counts the units that stay with their member, ``moved`` those that another member held before, ``fresh`` those that
    no member held, and ``lost`` those held before and assigned to no member now. ``rack_misses`` counts the partitions
    whose member has a rack without a replica (0 where racks are unknown).
    """

    members: int
    units: int
    imbalance: int
    kept: int
    moved: int
    fresh: int
    lost: int
    rack_misses: int


def measure(spec: GroupSpecs, image: TopicImage, assignment: Assignment[Any]) -> AssignmentMetrics:
    """Return the figures of an assignment of this group; a connector itself counts as one of its tasks."""
    works = {member: _units(assignment.members.get(member)) for member in spec.members}
    before = {
        member: _before(had, assignment.members.get(member), works[member]) for member, had in spec.members.items()
    }
    held = set(chain.from_iterable(before.values()))
    now = set(chain.from_iterable(works.values()))
    loads: list[int] = []
    kept = moved = fresh = misses = 0
    for member, had in spec.members.items():
        work, former = works[member], before[member]
        loads.append(len(work))
        stay = known = len(work)
        # The very same list: nothing of it is new, and no set has to be made.
        if former is not work:
            stay, known = sum(map(set(former).__contains__, work)), sum(map(held.__contains__, work))
        kept += stay
        moved += known - stay
        fresh += len(work) - known
        rack = getattr(had, "rack_id", None)
        if rack:
            misses += sum(_misses_rack(image, unit, rack) for unit in work)
    return AssignmentMetrics(
        members=len(loads),
        units=sum(loads),
        imbalance=max(loads, default=0) - min(loads, default=0),
        kept=kept,
        moved=moved,
        fresh=fresh,
        lost=len(held - now),
        rack_misses=misses,
    )


def _before(had: AnyMemberSpec, now: object, work: Sequence[PartitionOrTask]) -> Sequence[PartitionOrTask]:
    """What the member had: ``work`` itself where nothing changes, as for most members of a rebalance."""
    if isinstance(had, MemberSpec | StreamsMemberSpec) and had.previous == now:
        return work
    if isinstance(had, ClassicMemberSpec):
        return had.owned or sticky_data(had).partitions
    return _units(had if isinstance(had, WorkerSpec) else had.previous)


def _units(
    work: Partitions | Tasks | WorkerSpec | LeaderAssignment | ConnectorsAndTasks | Sequence[PartitionOrTask] | None,
) -> Sequence[PartitionOrTask]:
    """Every partition or task of a member's work, whatever its form."""
    if work is None:
        return ()
    if isinstance(work, Tasks):
        return [unit for role in (work.active, work.standby, work.warmup) for unit in _units(role)]
    if isinstance(work, WorkerSpec | LeaderAssignment | ConnectorsAndTasks):
        return [*((connector, -1) for connector in work.connectors), *work.tasks]
    if isinstance(work, Mapping):
        return [(name, number) for name, numbers in work.items() for number in numbers]
    return work


def _misses_rack(image: TopicImage, unit: PartitionOrTask, rack: str) -> bool:
    name, partition = unit
    topic: Topic | None = image.by_id.get(name) or image.by_name.get(name)
    if topic is None or not 0 <= partition < len(topic.racks) or not topic.racks[partition]:
        return False
    return rack not in topic.racks[partition]
