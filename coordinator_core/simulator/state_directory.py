"""The state of tasks on the disk of a simulated Streams process, and how far it is restored (KIP-1071)."""

from collections.abc import Collection
from dataclasses import dataclass, field

from coordinator_core.assignors.inputs import TaskId
from coordinator_core.records import Fields


@dataclass(slots=True)
class StateDirectory:
    """What a process has of its tasks' changelogs; it survives the process.

    The changelog of each task begins at ``begins_ms`` and grows by ``changes`` records per second; the process restores
    ``restores`` records per second of a task that it has open. ``_offsets`` has the offset at a time, by task.
    """

    begins_ms: int = 0
    changes: float = 1_000.0
    restores: float = 20_000.0
    opened: frozenset[TaskId] = frozenset()
    _offsets: dict[TaskId, tuple[int, int]] = field(default_factory=dict)

    def end(self, now: int) -> int:
        """Return the end offset of a changelog."""
        return int(self.changes * max(now - self.begins_ms, 0) / 1_000)

    def offset(self, task: TaskId, now: int) -> int:
        """Return how far the state of a task is restored."""
        known, since = self._offsets.get(task, (0, now))
        if task not in self.opened:
            return known
        return min(self.end(now), known + int(self.restores * (now - since) / 1_000))

    def open(self, tasks: Collection[TaskId], now: int) -> None:
        """Restore just these tasks from now on; the state of others stays as it is."""
        # Before the open tasks are exchanged: how far each one is depends on whether it was open until now.
        for task in {*self._offsets, *tasks}:
            self._offsets[task] = self.offset(task, now), now
        self.opened = frozenset(tasks)

    def caught_up_in(self, task: TaskId, acceptable: int, now: int) -> int:
        """Return after how many ms the lag of an open task is acceptable."""
        lag = self.end(now) - self.offset(task, now)
        if lag <= acceptable:
            return 0
        return int((lag - acceptable) * 1_000 / (self.restores - self.changes)) + 2

    def report(self, now: int) -> Fields:
        """Return the fields of a heartbeat: offsets of all state on the disk, end offsets of open tasks."""
        tasks = sorted(self._offsets)
        return {
            "taskOffsets": [_offset(task, self.offset(task, now)) for task in tasks],
            "taskEndOffsets": [_offset(task, self.end(now)) for task in tasks if task in self.opened],
        }


def _offset(task: TaskId, offset: int) -> Fields:
    return {"subtopologyId": task[0], "partition": task[1], "offset": offset}
