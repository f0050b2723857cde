"""Where the state of a streams group's tasks is, and how far behind (KIP-1071, cumulative task changelog offsets)."""

from __future__ import annotations

from coordinator_core.assignors.inputs import StreamsGroupSpec
from coordinator_core.assignors.streams.client_order import process_order
from coordinator_core.assignors.streams.topology import NumberedTopology

_NO_END = 1 << 64
"""Stands for an end offset that no member knows: the task is not ordered by offset, and no process counts as
caught up.
"""
_RUNNING = -_NO_END


class TaskState:
    """State of tasks by process. Members are numbered as presented, processes in the order of Streams clients.

    A task's end offset is the largest that any member reported. Members of one process share its state directory; where
    they report different offsets, the largest counts. A process without an offset has to read the whole changelog.
    """

    def __init__(self, spec: StreamsGroupSpec, topology: NumberedTopology) -> None:
        self.acceptable_lag = spec.configs.acceptable_recovery_lag
        ids = sorted({had.process_id for had in spec.members.values()}, key=process_order)
        numbers = {process_id: number for number, process_id in enumerate(ids)}
        self.process_of = [numbers[had.process_id] for had in spec.members.values()]
        self.members: list[list[int]] = [[] for _ in ids]
        self.tags: list[dict[str, str]] = [{} for _ in ids]
        self._offsets: dict[int, dict[int, int]] = {}
        self._ends: dict[int, int] = {}
        tasks = {task: number for number, task in enumerate(topology.tasks)}
        for member, had in enumerate(spec.members.values()):
            process = self.process_of[member]
            if not self.members[process]:
                self.tags[process] = dict(had.client_tags)
            self.members[process].append(member)
            for task_id, offset in had.task_offsets.items():
                if task_id in tasks:
                    known = self._offsets.setdefault(tasks[task_id], {})
                    known[process] = max(offset, known.get(process, offset))
            for task_id, end in had.task_end_offsets.items():
                if task_id in tasks:
                    self._ends[tasks[task_id]] = max(end, self._ends.get(tasks[task_id], end))
        self._running = self._find_running(spec, topology)

    @property
    def processes(self) -> range:
        """The processes, by number."""
        return range(len(self.members))

    def lag(self, process: int, task: int) -> int:
        """Return how much the process has to read before it can run the task; least where it runs already."""
        if self._running.get(task) == process:
            return _RUNNING
        return self._ends.get(task, _NO_END) - self._offsets.get(task, {}).get(process, 0)

    def caught_up(self, process: int, task: int) -> bool:
        """Whether the process runs the task or is within the acceptable recovery lag of a known end offset."""
        if self._running.get(task) == process:
            return True
        return task in self._ends and self.lag(process, task) <= self.acceptable_lag

    def ready(self, task: int) -> list[int]:
        """Return the processes whose copy is caught up, ascending."""
        return [process for process in self._with_copy(task) if self.caught_up(process, task)]

    def by_lag(self, task: int) -> list[int]:
        """Return all processes, the one with the least lag first."""
        return sorted(self.processes, key=lambda process: (self.lag(process, task), process))

    def is_behind(self, process: int, task: int) -> bool:
        """Whether the process is not caught up and another one has less lag."""
        if self.caught_up(process, task):
            return False
        own_lag = self.lag(process, task)
        return any(self.lag(other, task) < own_lag for other in self._with_copy(task))

    def _with_copy(self, task: int) -> list[int]:
        """The processes that run the task or report an offset of it; the others lag by the whole changelog."""
        known = set(self._offsets.get(task, ()))
        if task in self._running:
            known.add(self._running[task])
        return sorted(known)

    def _find_running(self, spec: StreamsGroupSpec, topology: NumberedTopology) -> dict[int, int]:
        """Task -> the process that runs it.

        Who had the task active runs it where no offset of the process is known, or where the member's own end offset is
        not beyond it (KIP-1071: of an active task both are the same). An end beyond it is that of a task that restores.
        """
        running: dict[int, int] = {}
        for process, had in zip(self.process_of, spec.members.values(), strict=True):
            for task in topology.numbers(had.previous.active):
                offset = self._offsets.get(task, {}).get(process)
                end = had.task_end_offsets.get(topology.tasks[task])
                if offset is None or (end is not None and end <= offset):
                    running[task] = process
                else:
                    running.pop(task, None)
        return running


def former_holders(spec: StreamsGroupSpec, topology: NumberedTopology) -> dict[int, list[int]]:
    """Return by task the members that had it, those that had it as active task first."""
    holders: dict[int, list[int]] = {}
    for role in ("active", "standby", "warmup"):
        for member, had in enumerate(spec.members.values()):
            for task in topology.numbers(getattr(had.previous, role)):
                holders.setdefault(task, []).append(member)
    return holders
