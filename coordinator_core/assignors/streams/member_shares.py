"""How the tasks of a process are shared among its members (threads): evenly, and as before where possible."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


class MemberShares:
    """Counts of tasks by member; ``former`` names the members that had a task before, the best one first."""

    def __init__(self, members: int, former: Mapping[int, Sequence[int]]) -> None:
        self.former = former
        self.counts = [0] * members

    def share(self, members: Sequence[int], tasks: Iterable[int]) -> dict[int, int]:
        """Return the member for each task. In the end no member of the process has two tasks more than another one."""
        counts = self.counts
        tasks = sorted(tasks)
        base, extras = divmod(sum(counts[member] for member in members) + len(tasks), len(members))
        extras -= sum(counts[member] > base for member in members)
        given: dict[int, int] = {}
        for task in tasks:
            for member in self.former.get(task, ()):
                if member in members and counts[member] < base + (extras > 0):
                    extras -= counts[member] == base
                    counts[member] += 1
                    given[task] = member
                    break
        for task in tasks:
            if task not in given:
                given[task] = min(members, key=lambda member: (counts[member], member))
                counts[given[task]] += 1
        return given
