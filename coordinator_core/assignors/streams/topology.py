"""The tasks of a streams group's topology as small integers, and the orders of Kafka Streams' own assignors.

Those go by what ids stand for: a client's process id is a UUID and its subtopologies are numbered. KIP-1071 has strings
for both; those that are something else come last, by UTF-16 code units.

Members with an older topology get no new tasks (KIP-1071, topology updates): they keep what they have of what an
assignor would assign to them, and everything else goes to members with the group's topology.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from coordinator_core.assignors.inputs import Partitions, SubtopologyTasks, TaskId, Tasks
from coordinator_core.errors import InputError
from coordinator_core.java.hash_codes import KeyType, int32, utf16

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]{1,10}")

Order = tuple[bool, int, int, bytes]


def process_order(process_id: str) -> Order:
    """Return a sort key for process ids: ``UUID.compareTo`` compares two signed halves."""
    if not _UUID.fullmatch(process_id):
        return True, 0, 0, utf16(process_id)
    raw = bytes.fromhex(process_id.replace("-", ""))
    return False, int.from_bytes(raw[:8], signed=True), int.from_bytes(raw[8:], signed=True), utf16(process_id)


def subtopology_order(subtopology_id: str) -> Order:
    """Return a sort key for subtopology ids: 2 comes before 10."""
    number = int(subtopology_id) if is_number(subtopology_id) else 0
    return not is_number(subtopology_id), number, 0, utf16(subtopology_id)


def is_number(subtopology_id: str) -> bool:
    """Whether the subtopology is numbered, as the Streams client numbers them."""
    return _NUMBER.fullmatch(subtopology_id) is not None


CLIENT_TASK_ID: KeyType[TaskId] = KeyType(
    "org.apache.kafka.streams.processor.TaskId",
    lambda task: int32(31 * (31 * (31 + int(task[0])) + task[1])),
    lambda task: (subtopology_order(task[0]), task[1]),
)
"""The client's own task id, which differs from that of the coordinator; only for numbered subtopologies."""


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


def retain_only(
    targets: Mapping[str, Tasks], stale: Collection[str], before: Mapping[str, Tasks], processes: Mapping[str, str]
) -> dict[str, Tasks]:
    """Return the targets in which ``stale`` members have nothing that they did not have in the targets ``before``.

    Remaining active tasks go to the other members, each to the one with the fewest tasks whose process (``processes``
    by member) does not have the task yet. Remaining copies of state are left out, and are replaced where all processes
    have one. Without other members no member runs the tasks.
    """
    changed = dict(targets)
    left: list[TaskId] = []
    for member_id in targets:
        if member_id in stale:
            target, had = targets[member_id], before.get(member_id, Tasks())
            # A member with the old topology may not know the task at all.
            left += sorted(_units(target.active) - _units(had.active))
            changed[member_id] = Tasks(
                _common(target.active, had.active),
                _common(target.standby, had.standby),
                _common(target.warmup, had.warmup),
            )
    fresh = {member_id: _units(target.active) for member_id, target in changed.items() if member_id not in stale}
    copies: dict[str, set[TaskId]] = {}
    for member_id, target in changed.items():
        copies.setdefault(processes[member_id], set()).update(_units(target.standby), _units(target.warmup))
    given: dict[str, set[TaskId]] = {}
    for task in sorted(left) if fresh else ():
        ready = [member_id for member_id in fresh if task not in copies[processes[member_id]]]
        least = min(ready or fresh, key=lambda member_id: (len(fresh[member_id]), member_id))
        fresh[least].add(task)
        given.setdefault(processes[least], set()).add(task)
    for member_id, target in changed.items():
        taken = given.get(processes[member_id], set())
        changed[member_id] = Tasks(
            _by_subtopology(fresh[member_id]) if member_id in fresh else target.active,
            _by_subtopology(_units(target.standby) - taken),
            _by_subtopology(_units(target.warmup) - taken),
        )
    return changed


def _units(tasks: Partitions) -> set[TaskId]:
    return {(key, partition) for key, partitions in tasks.items() for partition in partitions}


def _common(tasks: Partitions, others: Partitions) -> dict[str, list[int]]:
    return _by_subtopology(_units(tasks) & _units(others))


def _by_subtopology(units: Collection[TaskId]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for key, partition in sorted(units):
        numbers.setdefault(key, []).append(partition)
    return numbers
