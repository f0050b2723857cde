"""Kafka's ``sticky`` task assignor of streams groups (KIP-1071): balanced loads first, then tasks stay where they were.

Reproduces the results of Kafka 4.3.1's StickyTaskAssignor, which makes no warm-up tasks and ignores lags and racks.
Members are numbered as presented, processes in the order of their first members, tasks as in ``NumberedTopology``.
"""

from collections.abc import Iterable

from coordinator_core.assignors.inputs import Assignment, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import Profile, require_reproduced
from coordinator_core.assignors.streams.topology import NumberedTopology
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.heap import PriorityQueue
from coordinator_core.java.order import hash_order


class Processes:
    """Processes with their loads while an assignor runs. ``load`` is a process's number of tasks divided by its
    members.
    """

    def __init__(self, spec: StreamsGroupSpec) -> None:
        self.ids: dict[str, int] = {}
        self.of_member: list[int] = []
        names: list[list[str]] = []
        numbers = {member: number for number, member in enumerate(spec.members)}
        for member, had in spec.members.items():
            process = self.ids.setdefault(had.process_id, len(names))
            if process == len(names):
                names.append([])
            names[process].append(member)
            self.of_member.append(process)
        self.members = [[numbers[member] for member in hash_order(STRING, group)] for group in names]
        self.sizes = [len(group) for group in names]
        self.counts = [0] * len(numbers)
        self.totals = [0] * len(names)
        self.load = [0.0] * len(names)
        self.active: list[list[int]] = [[] for _ in numbers]
        self.standby: list[list[int]] = [[] for _ in numbers]
        self._held: set[int] = set()
        self._queues: list[PriorityQueue | None] = [None] * len(names)

    def in_order(self, *, computed: bool = False) -> Iterable[int]:
        """Return processes in the order of a HashMap by process id, made for as many entries as there are members.

        ``computed``: each member's process was added by computeIfAbsent, as from Kafka 4.4 on, and not by put.
        """
        last_is_new = bool(self.of_member) and self.of_member[-1] not in self.of_member[:-1]
        touched = computed and not last_is_new
        order = hash_order(STRING, list(self.ids), len(self.counts), at_head=computed, touched=touched)
        return (self.ids[process] for process in order)

    def level(self) -> bool:
        """Whether all processes have the same load, and another task adds the same to each of them."""
        return len(set(self.load)) == 1 and len(set(map(len, self.members))) == 1

    def has(self, process: int, task: int) -> bool:
        """Whether a member of the process has the task, in any role."""
        return task * len(self.load) + process in self._held

    def give(self, member: int, task: int, to: list[list[int]]) -> int:
        """Give the task to this member; return how many tasks it has now."""
        process = self.of_member[member]
        self._queues[process] = None
        return self._add(process, member, task, to)

    def give_to_least_loaded(self, process: int, task: int, to: list[list[int]]) -> int:
        """Give the task to the process's member with the fewest tasks; return how many tasks that member has now."""
        members = self.members[process]
        if len(members) == 1:
            return self._add(process, members[0], task, to)
        queue = self._queues[process]
        if queue is None:
            # The queue is kept as Kafka's is: which of equal members comes next depends on how it was filled.
            queue = self._queues[process] = PriorityQueue(self.counts, members)
        member = queue.poll()
        count = self._add(process, member, task, to)
        queue.add(member)
        return count

    def _add(self, process: int, member: int, task: int, to: list[list[int]]) -> int:
        to[member].append(task)
        self._held.add(task * len(self.load) + process)
        self.totals[process] += 1
        self.load[process] = self.totals[process] / self.sizes[process]
        self.counts[member] += 1
        return self.counts[member]


def assign(spec: StreamsGroupSpec, image: TopicImage, profile: Profile) -> Assignment[Tasks]:
    """Assign active and standby tasks.

    Raises AssignorError (TaskAssignorException) when there are tasks and no members, and InputError for a release that
    has another algorithm. Of Kafka 4.4 only those results are reproduced that no task offset decides.
    """
    require_reproduced(profile, "sticky")
    builder = _Builder(spec, profile)
    builder.assign_active()
    builder.assign_standby()
    return Assignment(
        {
            member: Tasks(builder.topology.by_subtopology(active), builder.topology.by_subtopology(standby))
            for member, active, standby in zip(
                spec.members, builder.processes.active, builder.processes.standby, strict=True
            )
        }
    )


class _Quota:
    """How many tasks each member may take; recomputed for the others whenever one has taken as many."""

    def __init__(self, tasks: int, members: int) -> None:
        self.tasks = tasks
        self.members = members
        self.each = _ceiling(tasks, members)

    def count(self, taken: int) -> None:
        """Some member has that many tasks now."""
        if taken == self.each:
            self.members -= 1
            self.tasks -= taken
            self.each = _ceiling(self.tasks, self.members)


def _ceiling(tasks: int, members: int) -> int:
    return -(-tasks // members) if members else 0


class _Builder:
    def __init__(self, spec: StreamsGroupSpec, profile: Profile) -> None:
        self.topology = topology = NumberedTopology(spec.subtopologies)
        self.is_4_4 = profile.release >= (4, 4)
        self.standbys = spec.configs.num_standby_replicas
        self.processes = Processes(spec)
        self.had_active: dict[int, int] = {}
        self.had_standby: dict[int, list[int]] = {}
        for member, had in enumerate(spec.members.values()):
            self.had_active.update(dict.fromkeys(topology.numbers(had.previous.active), member))
            for task in topology.numbers(had.previous.standby):
                self.had_standby.setdefault(task, []).append(member)
        members = len(spec.members)
        self.active_quota = _Quota(len(topology.tasks), members)
        self.quota = _Quota(len(topology.tasks) + len(topology.stateful) * self.standbys, members)

    def assign_active(self) -> None:
        """Give active tasks to the process that had them active, then as standby, then to the least loaded one."""
        processes = self.processes
        rest: list[int] = []
        for task in self.topology.by_partition():
            member = self.had_active.get(task)
            if member is not None and processes.counts[member] < self.active_quota.each:
                self._count(processes.give(member, task, processes.active))
            else:
                rest.append(task)
        left: list[int] = []
        for task in rest:
            member = self._least_loaded(self.had_standby.get(task))
            if member is not None and processes.counts[member] < self.active_quota.each:
                self._count(processes.give(member, task, processes.active))
            else:
                left.append(task)
        left.sort()
        queue = PriorityQueue(processes.load, processes.in_order(computed=self.is_4_4))
        while processes.level() and len(queue) <= len(left):
            for process, task in zip(queue.level_round(), left, strict=False):
                self._count(processes.give_to_least_loaded(process, task, processes.active))
            del left[: len(queue)]
        for task in left:
            if not queue:
                subtopology, partition = self.topology.tasks[task]
                raise AssignorError(
                    "TaskAssignorException", f"No process available to assign active task {subtopology}_{partition}."
                )
            process = queue.poll()
            self._count(processes.give_to_least_loaded(process, task, processes.active))
            queue.add(process)

    def assign_standby(self) -> None:
        """Standby tasks to former holders on processes that do not have the task, then to the least loaded ones."""
        if not self.standbys:
            return
        stateful = set(self.topology.stateful)
        missing: list[tuple[int, int]] = []
        for task in reversed(self.topology.by_partition()):
            if task not in stateful:
                continue
            wanted = self.standbys
            while wanted and self._return_standby(task):
                wanted -= 1
            if wanted:
                missing.append((task, wanted))
        processes = self.processes
        queue = PriorityQueue(processes.load, processes.in_order(computed=self.is_4_4))
        for task, wanted in sorted(missing, reverse=True):
            for _ in range(wanted):
                if not self._place_standby(queue, task):
                    break

    def _return_standby(self, task: int) -> bool:
        """Give a standby task to a member that had the task before, if one has room for it."""
        processes = self.processes
        before, of_member = self.had_active.get(task), processes.of_member
        is_full = before is None or processes.counts[before] >= self.quota.each
        if before is None or is_full or processes.has(of_member[before], task):
            before = self._least_loaded(self.had_standby.get(task), task)
            if before is None or processes.counts[before] >= self.quota.each:
                return False
        self.quota.count(processes.give(before, task, processes.standby))
        return True

    def _place_standby(self, queue: PriorityQueue, task: int) -> bool:
        """Give a standby task to the least loaded process that does not have the task."""
        processes = self.processes
        passed: list[int] = []
        is_placed = False
        while queue and not is_placed:
            process = queue.poll()
            passed.append(process)
            if not processes.has(process, task):
                self.quota.count(processes.give_to_least_loaded(process, task, processes.standby))
                is_placed = True
        # Kafka puts them back in the reverse order, which decides which of equals comes next.
        for process in reversed(passed):
            queue.add(process)
        return is_placed

    def _least_loaded(self, members: list[int] | None, task: int | None = None) -> int | None:
        """Of former holders the one that is least loaded, as process and as member both.

        None when the process of the first of them has the task already; without a task no process is excluded. From
        Kafka 4.4 on, those whose process has the task already do not count.
        """
        processes = self.processes
        if self.is_4_4 and task is not None:
            members = [member for member in members or () if not processes.has(processes.of_member[member], task)]
        if not members:
            return None
        candidate = members[0]
        first = processes.of_member[candidate]
        process_load, member_load = processes.load[first], processes.counts[candidate]
        for member in members[1:]:
            process = processes.of_member[member]
            if (
                processes.load[process] < process_load
                and (task is None or not processes.has(process, task))
                and processes.counts[member] < member_load
            ):
                process_load, member_load = processes.load[process], processes.counts[member]
                candidate = member
        return None if task is not None and processes.has(first, task) else candidate

    def _count(self, taken: int) -> None:
        self.active_quota.count(taken)
        self.quota.count(taken)
