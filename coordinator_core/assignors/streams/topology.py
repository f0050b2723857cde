"""The tasks of a streams group's topology as small integers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.assignors.java_hash import utf16
from coordinator_core.assignors.spec import Partitions, Subtopology, TaskId
from coordinator_core.errors import InputError


class Topology:
    """Numbers the tasks by subtopology id, then partition.

    ``stateful`` holds the numbers of the tasks that have state, ascending. Raises InputError for a negative count of
    tasks or a subtopology given twice.
    """

    def __init__(self, subtopologies: Sequence[Subtopology]) -> None:
        self._subtopologies = sorted(subtopologies, key=lambda subtopology: utf16(subtopology.id))
        self._first: dict[str, int] = {}
        self._tasks: dict[str, int] = {}
        self.stateful: list[int] = []
        self.size = 0
        for subtopology in self._subtopologies:
            if subtopology.tasks < 0:
                raise InputError(f"subtopology {subtopology.id!r} has {subtopology.tasks} tasks")
            if subtopology.id in self._first:
                raise InputError(f"subtopology {subtopology.id!r} is there twice")
            self._first[subtopology.id] = self.size
            self._tasks[subtopology.id] = subtopology.tasks
            if subtopology.stateful:
                self.stateful.extend(range(self.size, self.size + subtopology.tasks))
            self.size += subtopology.tasks
        self._starts = list(self._first.values())

    def numbers(self, tasks: Partitions) -> Iterable[int]:
        """The numbers of the tasks; those that the topology does not have are left out."""
        for subtopology, partitions in tasks.items():
            first = self._first.get(subtopology)
            if first is not None:
                count = self._tasks[subtopology]
                yield from [first + partition for partition in partitions if 0 <= partition < count]

    def by_partition(self) -> list[int]:
        """All tasks by partition, then subtopology id."""
        most = max(self._tasks.values(), default=0)
        return [
            self._first[name] + partition
            for partition in range(most)
            for name, count in self._tasks.items()
            if partition < count
        ]

    def task_id(self, number: int) -> TaskId:
        """Subtopology id and partition of a task."""
        # Subtopologies without tasks start where the next one does; the last to start there is the one with the task.
        subtopology = self._subtopologies[bisect_right(self._starts, number) - 1].id
        return subtopology, number - self._first[subtopology]

    def by_subtopology(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """Partitions by subtopology id, both ascending."""
        found: dict[str, list[int]] = {}
        end = 0
        for number in sorted(numbers):
            if number >= end:
                subtopology, partition = self.task_id(number)
                first = number - partition
                end = first + self._tasks[subtopology]
                partitions = found.setdefault(subtopology, [])
            partitions.append(number - first)
        return found


def ids(tasks: Mapping[str, Iterable[int]]) -> Iterable[TaskId]:
    """Task ids, one by one."""
    return ((subtopology, partition) for subtopology, partitions in tasks.items() for partition in partitions)
