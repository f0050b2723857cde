"""Cases of kind ``streams-mock``: the assignor that Kafka ships for its own tests of streams groups.

It adds tasks to the same sets that the coordinator gave it. If a member's target then looks unchanged, the coordinator
writes no record, and the changed sets stay, in their own order. So this kind keeps real sets.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from coordinator_core.assignors.case_files.broker import StreamsCase
from coordinator_core.assignors.case_files.case_forms import StreamsInput
from coordinator_core.assignors.coordinator_view import StreamsView
from coordinator_core.assignors.inputs import Assignment, StreamsGroupSpec, Tasks
from coordinator_core.assignors.profiles import Profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import INTEGER, STRING, TASK_ID, utf16
from coordinator_core.java.heap import PriorityQueue
from coordinator_core.java.order import HashMap, copy_capacity, hash_order


class HashSet(Sequence[int]):
    """A HashSet of integers that elements can be added to, in iteration order."""

    def __init__(self, numbers: Iterable[int] = (), capacity: int = 16) -> None:
        self._table: HashMap[int, None] = HashMap(INTEGER, capacity)
        for number in numbers:
            self.add(number)

    def add(self, number: int) -> None:
        """Add a number."""
        self._table[number] = None

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, index: Any) -> Any:
        return list(self._table)[index]


class _SharedSets(StreamsView):
    """The view of a coordinator whose assignor changes the sets that it is given."""

    def put_target(self, member: str, target: Tasks) -> None:
        super().put_target(member, target)
        kept = self.targets[member]
        active = {
            key: HashSet(target.active[key], copy_capacity(len(numbers), self.jdk))
            for key, numbers in kept.active.items()
        }
        self.targets[member] = Tasks(active, kept.standby, kept.warmup)


def run(case: StreamsInput, profile: Profile, assign: object = None) -> dict[str, object]:
    """Return every step of the case, one after another."""
    group = StreamsCase(_SharedSets(jdk=profile.jdk), _assign, case, profile)
    return {"steps": [group.step(step) for step in case["steps"]]}


def _assign(spec: StreamsGroupSpec, image: TopicImage, profile: Profile) -> Assignment[Tasks]:
    """Keep all active tasks, give the others to the member with the fewest; assign no standby tasks.

    Raises AssignorError where Kafka's MockAssignor throws: a task of two members, an unknown subtopology or task.
    """
    subtopologies = sorted(spec.subtopologies, key=lambda each: utf16(each.id))
    owners = {each.id: [False] * each.tasks for each in subtopologies}
    active: dict[str, dict[str, Any]] = {}
    for member, had in spec.members.items():
        active[member] = dict(had.previous.active)
        for subtopology, tasks in active[member].items():
            _own(subtopology, tasks, owners.get(subtopology))
    members = hash_order(STRING, list(active))
    loads = [sum(map(len, active[member].values())) for member in members]
    # Kafka collects records of member and count in a HashSet first; such a record hashes as a task id does, which is a
    # string and a number, too. The order in which they come out decides between members with equal counts.
    queued = hash_order(TASK_ID, list(zip(members, loads, strict=True)))
    queue = PriorityQueue(loads, (members.index(member) for member, _ in queued))
    for subtopology in hash_order(STRING, list(owners)):
        for task, owned in enumerate(owners[subtopology]):
            if owned:
                continue
            if not queue:
                message = f"No member available to assign task {task} of subtopology {subtopology}"
                raise AssignorError("TaskAssignorException", message)
            least = queue.poll()
            active[members[least]].setdefault(subtopology, HashSet()).add(task)
            loads[least] += 1
            queue.add(least)
    return Assignment({member: Tasks(tasks) for member, tasks in active.items()})


def _own(subtopology: str, tasks: Sequence[int], owned: list[bool] | None) -> None:
    for task in tasks:
        if owned is None:
            message = 'Cannot load from object array because "activeMembers" is null'
            raise AssignorError("NullPointerException", message)
        if task >= len(owned):
            message = f"Index {task} out of bounds for length {len(owned)}"
            raise AssignorError("ArrayIndexOutOfBoundsException", message)
        if owned[task]:
            message = f"Task {task} of subtopology {subtopology} is assigned to multiple members"
            raise AssignorError("TaskAssignorException", message)
        owned[task] = True
