"""Where the state of a streams group's tasks is, and how far behind (KIP-1071, cumulative task changelog offsets)."""

from __future__ import annotations

from coordinator_core.assignors.inputs import StreamsGroupSpec
from coordinator_core.assignors.streams.topology import NumberedTopology


class TaskState:
    """State of tasks by process. Members are numbered as presented, processes by their first members.

    ``active``, ``standby`` and ``warmup`` say which members had a task in that role. A task's end offset is the largest
    that any member reported. Members of one process share its state directory; where they report different offsets,
    the largest counts.
    """

    def __init__(self, spec: StreamsGroupSpec, topology: NumberedTopology) -> None:
        self.lag = spec.configs.acceptable_recovery_lag
        self.process_of: list[int] = []
        self.members: list[list[int]] = []
        self.tags: list[dict[str, str]] = []
        self.active: dict[int, int] = {}
        self.standby: dict[int, list[int]] = {}
        self.warmup: dict[int, list[int]] = {}
        self._offsets: dict[int, dict[int, int]] = {}
        self._ends: dict[int, int] = {}
        processes: dict[str, int] = {}
        numbers = {task: number for number, task in enumerate(topology.tasks)}
        for member, had in enumerate(spec.members.values()):
            process = processes.setdefault(had.process_id, len(self.members))
            if process == len(self.members):
                self.members.append([])
                self.tags.append(dict(had.client_tags))
            self.members[process].append(member)
            self.process_of.append(process)
            for task in topology.numbers(had.previous.active):
                self.active[task] = member
            for task in topology.numbers(had.previous.standby):
                self.standby.setdefault(task, []).append(member)
            for task in topology.numbers(had.previous.warmup):
                self.warmup.setdefault(task, []).append(member)
            for task_id, offset in had.task_offsets.items():
                if task_id in numbers:
                    known = self._offsets.setdefault(numbers[task_id], {})
                    known[process] = max(offset, known.get(process, offset))
            for task_id, end in had.task_end_offsets.items():
                if task_id in numbers:
                    self._ends[numbers[task_id]] = max(end, self._ends.get(numbers[task_id], end))

    def offset(self, process: int, task: int) -> int:
        """How far the process's copy of the task's state is; -1 where none was reported."""
        return self._offsets.get(task, {}).get(process, -1)

    def caught_up(self, process: int, task: int) -> bool:
        """Whether the process's copy is within the acceptable recovery lag.

        A member that had the task active and reports no offset is processing it. Without an end offset nobody else is
        ever caught up.
        """
        offset = self.offset(process, task)
        if offset < 0:
            return self.had_active(process, task)
        end = self._ends.get(task)
        return end is not None and end - offset <= self.lag

    def had_active(self, process: int, task: int) -> bool:
        """Whether a member of the process had the task active."""
        member = self.active.get(task)
        return member is not None and self.process_of[member] == process

    def with_state(self, task: int) -> list[int]:
        """Processes that have or had a copy of the task's state, the best ones first.

        Caught up ones come first; then who had it active, who was warming up, who was standing by; then by offset.
        """
        known = set(self._offsets.get(task, {}))
        for holders in (self.standby.get(task, ()), self.warmup.get(task, ())):
            known.update(self.process_of[member] for member in holders)
        if task in self.active:
            known.add(self.process_of[self.active[task]])
        warming = {self.process_of[member] for member in self.warmup.get(task, ())}
        standing = {self.process_of[member] for member in self.standby.get(task, ())}

        def rank(process: int) -> tuple[bool, bool, bool, bool, int, int]:
            return (
                not self.caught_up(process, task),
                not self.had_active(process, task),
                process not in warming,
                process not in standing,
                -self.offset(process, task),
                process,
            )

        return sorted(known, key=rank)
