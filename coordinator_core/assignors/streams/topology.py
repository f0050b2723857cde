"""The tasks of a streams group's topology as small integers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from coordinator_core.assignors.inputs import Partitions, SubtopologyTasks, TaskId
from coordinator_core.errors import InputError
from coordinator_core.java.hash_codes import utf16


class NumberedTopology:
    """Numbers the tasks by subtopology id, then partition; ``order`` is the sort key of subtopology ids.

    ``tasks`` holds the id of each task; ``stateful`` the numbers of the tasks that have state, ascending. Raises
    InputError for a negative count of tasks or a subtopology given twice.
    """

    def __init__(self, subtopologies: Sequence[SubtopologyTasks], order: Callable[[str], Any] = utf16) -> None:
        self.tasks: list[TaskId] = []
        self.stateful: list[int] = []
        self._first: dict[str, int] = {}
        self._counts: dict[str, int] = {}
        for subtopology in sorted(subtopologies, key=lambda subtopology: order(subtopology.id)):
            if subtopology.tasks < 0:
                raise InputError(f"subtopology {subtopology.id!r} has {subtopology.tasks} tasks")
            if subtopology.id in self._first:
                raise InputError(f"subtopology {subtopology.id!r} is there twice")
            first = len(self.tasks)
            self._first[subtopology.id] = first
            self._counts[subtopology.id] = subtopology.tasks
            self.tasks.extend((subtopology.id, partition) for partition in range(subtopology.tasks))
            if subtopology.stateful:
                self.stateful.extend(range(first, len(self.tasks)))

    def numbers(self, tasks: Partitions) -> Iterable[int]:
        """Yield the numbers of the tasks, without tasks that the topology does not have."""
        for subtopology, partitions in tasks.items():
            first = self._first.get(subtopology)
            if first is not None:
                count = self._counts[subtopology]
                yield from [first + partition for partition in partitions if 0 <= partition < count]

    def by_partition(self) -> list[int]:
        """Return all tasks by partition, then subtopology id."""
        most = max(self._counts.values(), default=0)
        return [
            self._first[name] + partition
            for partition in range(most)
            for name, count in self._counts.items()
            if partition < count
        ]

    def by_subtopology(self, numbers: Sequence[int]) -> dict[str, list[int]]:
        """Return partitions by subtopology id, both ascending."""
        grouped: dict[str, list[int]] = {}
        for number in sorted(numbers):
            subtopology, partition = self.tasks[number]
            if subtopology in grouped:
                grouped[subtopology].append(partition)
            else:
                grouped[subtopology] = [partition]
        return grouped
