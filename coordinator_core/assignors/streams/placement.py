"""Tasks of a streams group as an assignor places them on processes, the rules of balance between processes, and where
the state of the tasks is, and how far behind (KIP-1071, cumulative task changelog offsets).
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace

from coordinator_core.assignors.inputs import StreamsGroupSpec
from coordinator_core.assignors.streams.topology import NumberedTopology, process_order


class Placement:
    """The tasks of each process so far, as sets by process.

    ``standby`` holds all copies that are not active. Warm-up tasks are in ``warmup`` as well. ``sizes`` counts the
    members of each process.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = sizes
        self.processes = range(len(sizes))
        self.active: list[set[int]] = [set() for _ in sizes]
        self.standby: list[set[int]] = [set() for _ in sizes]
        self.warmup: list[set[int]] = [set() for _ in sizes]

    def holds(self, process: int, task: int) -> bool:
        """Whether the process has the task in some role."""
        return task in self.active[process] or task in self.standby[process]

    def count(self, process: int) -> int:
        """Return tasks of the process in all roles."""
        return len(self.active[process]) + len(self.standby[process])

    def load(self, process: int) -> float:
        """Return tasks of the process in all roles for each of its members."""
        return self.count(process) / self.sizes[process]

    def active_load(self, process: int) -> float:
        """Return active tasks of the process for each of its members."""
        return len(self.active[process]) / self.sizes[process]

    def least_loaded(self, processes: Iterable[int]) -> int | None:
        """Return the process with the least load, the first of several; None if there are no processes."""
        return min(processes, key=lambda process: (self.load(process), process), default=None)

    def even_out(self, role: list[set[int]], allowed: Callable[[int, int], bool] = lambda source, to: True) -> None:
        """Move tasks of a role from process to process, the lowest ones first, until no move makes loads more even.

        Each process is compared with each other one, in order, again and again. ``allowed`` tells whether tasks may go
        from the first process to the second.
        """
        moved = True
        while moved:
            moved = False
            for source in self.processes:
                for to in self.processes:
                    if self._is_heavier(source, to) and allowed(source, to):
                        moved |= self._shift(role, source, to)

    def _is_heavier(self, source: int, to: int) -> bool:
        """Whether the source would have as much load as the other process, or more, even after a task has moved."""
        left, grown = self.count(source) - 1, self.count(to) + 1
        # Multiplied out: fractions of floats would call some equal loads different.
        return source != to and left * self.sizes[to] >= grown * self.sizes[source]

    def _shift(self, role: list[set[int]], source: int, to: int) -> bool:
        before = len(role[source])
        for task in sorted(role[source]):
            if not self._is_heavier(source, to):
                break
            if not self.holds(to, task):
                role[source].remove(task)
                role[to].add(task)
        return len(role[source]) < before


class LeastLoaded:
    """Processes by load. Between two picks loads may only grow."""

    def __init__(self, load: Callable[[int], float], processes: Iterable[int]) -> None:
        self._load = load
        self._heap = [(load(process), process) for process in processes]
        heapify(self._heap)

    def pick(self, eligible: Callable[[int], bool]) -> int | None:
        """Return the eligible process with the least load, the first of several; None if there is none."""
        passed: list[tuple[float, int]] = []
        picked = None
        while self._heap and picked is None:
            known, process = self._heap[0]
            if known != (load := self._load(process)):
                # Loads only grow, so that an old entry is too low at worst: it sinks to its place once it comes up.
                heapreplace(self._heap, (load, process))
            elif eligible(process):
                picked = process
            else:
                passed.append(heappop(self._heap))
        for entry in passed:
            heappush(self._heap, entry)
        return picked


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
                    # Ends only grow: the largest report is the latest.
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
