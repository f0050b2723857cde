"""Which tasks stay where their state is until their home is caught up, and which of them warm up there (KIP-441)."""

from __future__ import annotations

from coordinator_core.assignors.streams.placement import Placement
from coordinator_core.assignors.streams.task_state import TaskState
from coordinator_core.java.heap import PriorityQueue


class Movements:
    """Moves tasks away from processes that are behind. ``free`` counts the warm-up tasks that may still be assigned."""

    def __init__(self, placement: Placement, state: TaskState, free: int) -> None:
        self.placement = placement
        self.state = state
        self.free = free
        self.exchanged: list[tuple[int, int]] = []

    def move_active(self) -> None:
        """Move each active task whose process is behind to one that is caught up, else to the one that lags least.

        Tasks with the fewest caught-up copies come first. If the other process had the task as standby, the two
        exchange roles. If not, the home keeps a warm-up task while one is free.
        """
        placement, state = self.placement, self.state
        behind = [
            (len(state.ready(task)), task, home)
            for home in placement.processes
            for task in placement.active[home]
            if state.is_behind(home, task)
        ]
        for _, task, home in sorted(behind):
            to = self._stand_in(task)
            placement.active[home].remove(task)
            placement.active[to].add(task)
            if task in placement.standby[to]:
                placement.standby[to].remove(task)
                placement.standby[home].add(task)
                self.exchanged.append((task, home))
            elif self.free > 0:
                placement.standby[home].add(task)
                self._warm_up(task, home)

    def move_standby(self) -> None:
        """Move each standby task whose process is behind to a process without the task that is caught up or lags less.

        The former process keeps a warm-up task while one is free.
        """
        placement, state = self.placement, self.state
        behind = [
            (process, task)
            for process in placement.processes
            for task in sorted(placement.standby[process] - placement.warmup[process])
            if state.is_behind(process, task)
        ]
        tasks = 1 + max((task for _, task in behind), default=0)
        queue = PriorityQueue([len(state.ready(task)) * tasks + task for _, task in behind], range(len(behind)))
        while queue:
            process, task = behind[queue.poll()]
            to = self._other(process, task)
            if to is None:
                continue
            placement.standby[to].add(task)
            if self.free > 0:
                self._warm_up(task, process)
            else:
                placement.standby[process].remove(task)

    def warm_up_exchanged(self) -> None:
        """Make the standby tasks of exchanged roles warm-up tasks while some are free.

        By KIP-1071 the next assignment is computed when a warm-up task has caught up, not when a standby task has.
        Kafka's client computes one every ``probing.rebalance.interval.ms``.
        """
        for task, home in self.exchanged:
            if self.free > 0 and task in self.placement.standby[home] - self.placement.warmup[home]:
                self._warm_up(task, home)

    def _warm_up(self, task: int, process: int) -> None:
        self.placement.warmup[process].add(task)
        self.free -= 1

    def _stand_in(self, task: int) -> int:
        """Return the process that runs an active task until its home is caught up."""
        ready = self.state.ready(task)
        standing = [process for process in ready if task in self.placement.standby[process]]
        chosen = self.placement.least_loaded(standing or ready)
        return self.state.by_lag(task)[0] if chosen is None else chosen

    def _other(self, process: int, task: int) -> int | None:
        """Return the process that takes a standby task over; None if there is none."""
        placement, state = self.placement, self.state
        chosen = placement.least_loaded(client for client in state.ready(task) if not placement.holds(client, task))
        if chosen is not None:
            return chosen
        for other in state.by_lag(task):
            if other == process:
                break
            if not placement.holds(other, task):
                return other
        return None
