"""Tasks of a streams group as an assignor places them: who has which, in which role."""

from __future__ import annotations

from collections.abc import Sequence


class Placement:
    """What members have been given so far; ``active``, ``standby`` and ``warmup`` list tasks by member."""

    def __init__(self, process_of: Sequence[int], members: Sequence[Sequence[int]]) -> None:
        self.process_of = process_of
        self.members = members
        self.active: list[list[int]] = [[] for _ in process_of]
        self.standby: list[list[int]] = [[] for _ in process_of]
        self.warmup: list[list[int]] = [[] for _ in process_of]
        self.counts = [0] * len(process_of)
        self.totals = [0] * len(members)
        self.holders: dict[int, list[int]] = {}

    def give(self, member: int, task: int, role: list[list[int]]) -> None:
        """Give the task to the member."""
        process = self.process_of[member]
        role[member].append(task)
        self.counts[member] += 1
        self.totals[process] += 1
        self.holders.setdefault(task, []).append(process)

    def load(self, process: int) -> float:
        """Tasks of the process for each of its members."""
        return self.totals[process] / len(self.members[process])

    def least_loaded(self, process: int) -> int:
        """The process's member with the fewest tasks."""
        return min(self.members[process], key=lambda member: (self.counts[member], member))
