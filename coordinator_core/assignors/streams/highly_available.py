"""The ``highly_available`` task assignor of KIP-1071: balance, without a pause for tasks that have state.

No broker has it yet. The document calls it similar to the HighAvailabilityTaskAssignor of Kafka Streams (KIP-441,
KIP-708). So each process gets the active tasks and the copies that this class of Kafka 4.3.1 gives it:

1. Stateful active tasks get a home: one process after the other in turns, then evened out. It does not count where the
   tasks were before.
2. Standby tasks go to the least loaded processes, in other racks where ``rack_aware_tags`` are configured.
3. An active task whose home is not caught up goes to a process that is. It warms up at home while one of the
   ``num.warmup.replicas`` is free. Standby tasks move in the same way.
4. Stateless tasks go to the processes with the fewest active tasks for each member.
5. The members of a process share its tasks evenly and keep what they had.

KIP-1071 is the reason for each departure from that class:

- Warm-up tasks are a role. Kafka's class counts them as standby tasks.
- There is no probing rebalance: a warm-up task that has caught up asks for the next assignment, a standby task does
  not. Where Kafka's class exchanges an active task and its standby task, the copy at home is a standby task that waits
  for the next probing rebalance. Here it is a warm-up task while one is free.
- An offset beyond the known end is caught up: members report offsets and ends at different times. Kafka's class takes
  such a copy as corrupt.
- A task whose end offset is not known is never caught up, even if any lag is acceptable (2^63 - 1). The copy with the
  largest offset comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.assignors.inputs import Assignment, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.streams.client_order import subtopology_order
from coordinator_core.assignors.streams.movements import Movements
from coordinator_core.assignors.streams.placement import LeastLoaded, Placement
from coordinator_core.assignors.streams.standbys import place_standbys
from coordinator_core.assignors.streams.task_state import TaskState, former_holders
from coordinator_core.assignors.streams.topology import NumberedTopology
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError


def assign(spec: StreamsGroupSpec, image: TopicImage, profile: Profile) -> Assignment[Tasks]:
    """Assign active, standby and warm-up tasks.

    Raises AssignorError (TaskAssignorException) when there are tasks and no members.
    """
    topology = NumberedTopology(spec.subtopologies, subtopology_order)
    if topology.tasks and not spec.members:
        raise AssignorError("TaskAssignorException", "No member available to assign tasks")
    if not spec.members:
        return Assignment({})
    state = TaskState(spec, topology)
    placement = Placement([len(members) for members in state.members])
    for turn, task in enumerate(topology.stateful):
        placement.active[turn % len(state.members)].add(task)
    placement.even_out(placement.active)
    place_standbys(placement, topology, state.tags, spec.configs)
    movements = Movements(placement, state, spec.configs.num_warmup_replicas)
    movements.move_active()
    movements.move_standby()
    movements.warm_up_exchanged()
    stateless = _place_stateless(placement, topology)
    return _by_member(spec, topology, placement, state, stateless)


def _place_stateless(placement: Placement, topology: NumberedTopology) -> set[int]:
    """Give each stateless task to the process with the fewest active tasks for each member; return those tasks."""
    stateless = set(range(len(topology.tasks))).difference(topology.stateful)
    queue = LeastLoaded(placement.active_load, placement.processes)
    for task in sorted(stateless):
        process = queue.pick(lambda _: True)
        if process is not None:
            placement.active[process].add(task)
    return stateless


def _by_member(
    spec: StreamsGroupSpec, topology: NumberedTopology, placement: Placement, state: TaskState, stateless: set[int]
) -> Assignment[Tasks]:
    """Share each process's tasks among its members: stateful ones, stateless ones, then copies."""
    shares = MemberShares(len(spec.members), former_holders(spec, topology))
    active: list[list[int]] = [[] for _ in spec.members]
    standby: list[list[int]] = [[] for _ in spec.members]
    warmup: list[list[int]] = [[] for _ in spec.members]
    for process, members in enumerate(state.members):
        for kind in (placement.active[process] - stateless, placement.active[process] & stateless):
            for task, member in shares.share(members, kind).items():
                active[member].append(task)
        for task, member in shares.share(members, placement.standby[process]).items():
            (warmup if task in placement.warmup[process] else standby)[member].append(task)
    return Assignment(
        {
            member: Tasks(*(topology.by_subtopology(role[number]) for role in (active, standby, warmup)))
            for number, member in enumerate(spec.members)
        }
    )


class MemberShares:
    """How the tasks of a process are shared among its members (threads): evenly, and as before where possible.

    Counts of tasks by member; ``former`` names the members that had a task before, the best one first.
    """

    def __init__(self, members: int, former: Mapping[int, Sequence[int]]) -> None:
        self.former = former
        self.counts = [0] * members

    def share(self, members: Sequence[int], tasks: Iterable[int]) -> dict[int, int]:
        """Return the member for each task. In the end no member of the process has two tasks more than another one."""
        counts = self.counts
        tasks = sorted(tasks)
        base, extras = divmod(sum(counts[member] for member in members) + len(tasks), len(members))
        extras -= sum(counts[member] > base for member in members)
        given: dict[int, int] = {}
        for task in tasks:
            for member in self.former.get(task, ()):
                if member in members and counts[member] < base + (extras > 0):
                    extras -= counts[member] == base
                    counts[member] += 1
                    given[task] = member
                    break
        for task in tasks:
            if task not in given:
                given[task] = min(members, key=lambda member: (counts[member], member))
                counts[given[task]] += 1
        return given
