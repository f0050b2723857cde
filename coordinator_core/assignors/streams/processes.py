"""Processes, their members, and the tasks they have been given so far.

Members are numbered as presented, processes in the order of their first members, tasks as in ``Topology``.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_core.assignors.inputs import StreamsGroupSpec
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
