"""Tasks of a streams group as an assignor places them on processes, and the rules of balance between processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappop, heappush, heapreplace


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
                heapreplace(self._heap, (load, process))
            elif eligible(process):
                picked = process
            else:
                passed.append(heappop(self._heap))
        for entry in passed:
            heappush(self._heap, entry)
        return picked
