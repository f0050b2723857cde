"""The ``highly_available`` task assignor of KIP-1071: balance, without a pause for tasks that have state.

No broker has it yet. It follows KIP-1071 (what it must hold to), KIP-441 (caught-up copies, warm-ups) and KIP-708
(standbys in other racks):

1. Stateful active tasks get a balanced home, as close to where their state is as balance allows.
2. A task whose home is not caught up stays with a process that is, and warms up at home, if one of the
   ``num.warmup.replicas`` is free. Once it has caught up it is moved home, or dropped if home is elsewhere by then.
3. Standbys go to other processes, apart from the active task by as many client tags as can be.
4. Stateless tasks fill up the members with the fewest active tasks.
"""

from __future__ import annotations

from coordinator_core.assignors.inputs import Assignment, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.streams.placement import Placement
from coordinator_core.assignors.streams.state import TaskState
from coordinator_core.assignors.streams.topology import NumberedTopology
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError


def assign(spec: StreamsGroupSpec, image: TopicImage, profile: Profile) -> Assignment[Tasks]:
    """Assign active, standby and warm-up tasks.

    Raises AssignorError (TaskAssignorException) when there are tasks and no members.
    """
    topology = NumberedTopology(spec.subtopologies)
    if topology.tasks and not spec.members:
        raise AssignorError("TaskAssignorException", "No member available to assign tasks")
    if not spec.members:
        return Assignment({})
    builder = _Builder(spec, topology)
    builder.place_stateful()
    builder.place_standbys()
    builder.place_stateless()
    placed = builder.placement
    return Assignment(
        {
            member: Tasks(
                *(topology.by_subtopology(role[index]) for role in (placed.active, placed.standby, placed.warmup))
            )
            for index, member in enumerate(spec.members)
        }
    )


class _Quota:
    """Equal shares: every member may have ``base`` tasks, and ``extras`` of them one more."""

    def __init__(self, tasks: int, members: int) -> None:
        self.base, self.extras = divmod(tasks, members)
        self.counts = [0] * members

    def has_room(self, member: int) -> bool:
        return self.counts[member] < self.base + (self.extras > 0)

    def take(self, member: int) -> None:
        self.extras -= self.counts[member] == self.base
        self.counts[member] += 1

    def roomiest(self, members: list[int] | range) -> int | None:
        """The member with the fewest tasks among those that have room."""
        return min(filter(self.has_room, members), key=lambda member: (self.counts[member], member), default=None)


class _Builder:
    def __init__(self, spec: StreamsGroupSpec, topology: NumberedTopology) -> None:
        self.configs = spec.configs
        self.topology = topology
        self.state = TaskState(spec, topology)
        self.placement = Placement(self.state.process_of, self.state.members)
        self.all_members = range(len(spec.members))

    def place_stateful(self) -> None:
        """Active tasks with state, and the warm-ups that will let the misplaced ones move."""
        state, placement = self.state, self.placement
        away: list[tuple[bool, int, int]] = []
        for task, home in sorted(self._homes().items()):
            process = state.process_of[home]
            ready = next(iter(state.with_state(task)), process)
            if state.caught_up(process, task) or not state.caught_up(ready, task):
                placement.give(home, task, placement.active)
                continue
            placement.give(self._stand_in(task), task, placement.active)
            warming = any(state.process_of[member] == process for member in state.warmup.get(task, ()))
            away.append((not warming, task, home))
        free = self.configs.num_warmup_replicas
        for _, task, home in sorted(away):
            process = state.process_of[home]
            standing = [member for member in state.standby.get(task, ()) if state.process_of[member] == process]
            if free > 0:
                # Also where there is a standby: only a warm-up that has caught up asks for the next assignment.
                placement.give(home, task, placement.warmup)
                free -= 1
            elif standing and self.configs.num_standby_replicas:
                placement.give(standing[0], task, placement.standby)

    def place_standbys(self) -> None:
        """Standby tasks: back to processes that have them, as far as that is balanced; then to the least loaded."""
        tasks = self.topology.stateful
        wanted = dict.fromkeys(tasks, self.configs.num_standby_replicas)
        for members in self.placement.standby:
            for task in members:
                wanted[task] -= 1
        in_all = len(self.topology.tasks) + self.configs.num_standby_replicas * len(tasks)
        limit = -(-in_all // len(self.all_members))
        for task in tasks:
            for process in self.state.with_state(task):
                if wanted[task] and self.placement.load(process) < limit and process in self._apart(task):
                    self._give_standby(process, task)
                    wanted[task] -= 1
        for task in tasks:
            for _ in range(wanted[task]):
                candidates = self._apart(task)
                if not candidates:
                    break
                self._give_standby(min(candidates, key=lambda process: (self.placement.load(process), process)), task)

    def place_stateless(self) -> None:
        """Tasks without state: to whoever had them, as far as that is balanced; then to the fewest active tasks."""
        active = self.placement.active
        limit = -(-len(self.topology.tasks) // len(self.all_members))
        rest: list[int] = []
        stateful = set(self.topology.stateful)
        for task in range(len(self.topology.tasks)):
            if task in stateful:
                continue
            member = self.state.active.get(task)
            if member is not None and len(active[member]) < limit:
                self.placement.give(member, task, active)
            else:
                rest.append(task)
        for task in rest:
            self.placement.give(min(self.all_members, key=lambda member: (len(active[member]), member)), task, active)

    def _homes(self) -> dict[int, int]:
        """Where each stateful active task is to be in the end: balanced, and stable while tasks are warming up."""
        state = self.state
        quota = _Quota(len(self.topology.stateful), len(self.all_members))
        homes: dict[int, int] = {}

        def settle(task: int, member: int | None) -> None:
            if member is not None:
                quota.take(member)
                homes[task] = member

        # Who must give up tasks gives up those that are warming up elsewhere already.
        for task in sorted(self.topology.stateful, key=lambda task: (task in state.warmup, task)):
            member = state.active.get(task)
            if member is not None and quota.has_room(member):
                best = state.with_state(task)[0]
                if state.caught_up(state.process_of[member], task) or not state.caught_up(best, task):
                    settle(task, member)
        for task in sorted(self.topology.stateful, key=lambda task: (task not in state.warmup, task)):
            for process in state.with_state(task):
                if task not in homes:
                    settle(task, quota.roomiest(state.members[process]))
        for task in self.topology.stateful:
            if task not in homes:
                settle(task, quota.roomiest(self.all_members))
        return homes

    def _stand_in(self, task: int) -> int:
        """Who runs a task until its home is caught up: whoever has it, or the least loaded caught-up process."""
        state, placement = self.state, self.placement
        member = state.active.get(task)
        if member is not None and state.caught_up(state.process_of[member], task):
            return member
        ready = [process for process in state.with_state(task) if state.caught_up(process, task)]
        return placement.least_loaded(min(ready, key=lambda process: (placement.load(process), process)))

    def _apart(self, task: int) -> list[int]:
        """Processes that do not have the task, and of these the ones that differ in most tags from all that have it."""
        holders = self.placement.holders[task]
        tags = self.state.tags
        others = [process for process in range(len(tags)) if process not in holders]

        def distance(process: int) -> int:
            mine = tags[process]
            return sum(
                key in mine and all(mine[key] != tags[holder].get(key) for holder in holders)
                for key in self.configs.rack_aware_tags
            )

        farthest = max(map(distance, others), default=0)
        return [process for process in others if distance(process) == farthest]

    def _give_standby(self, process: int, task: int) -> None:
        """To the member that had it as standby, unless others of its process have less to do."""
        placement = self.placement
        member = placement.least_loaded(process)
        had = [each for each in self.state.standby.get(task, ()) if self.state.process_of[each] == process]
        if had and placement.counts[had[0]] <= placement.counts[member]:
            member = had[0]
        placement.give(member, task, placement.standby)
