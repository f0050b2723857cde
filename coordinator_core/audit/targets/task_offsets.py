"""Targets of ``highly_available``: task offsets decide about them, which no record has (KIP-1071).

What every target keeps to, whatever the offsets were, can still be judged.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from coordinator_core.assignors.inputs import StreamsGroupSpec, TaskId, Tasks
from coordinator_core.audit.targets.verdict import units
from coordinator_core.groups.streams.configs import HIGHLY_AVAILABLE

MOST_NAMED = 3
"""A text names at most this many tasks."""
MISSING = "task offsets, which members report to the coordinator and no record has"
NONE_REPORTED = "; no member had reported task offsets"


def offsets_decide(assignor: str, spec: StreamsGroupSpec) -> bool:
    """Whether other task offsets can lead to another target: there is state, and more than one process for it."""
    processes = {had.process_id for had in spec.members.values()}
    stateful = any(subtopology.stateful and subtopology.tasks for subtopology in spec.subtopologies)
    return assignor == HIGHLY_AVAILABLE and stateful and len(processes) > 1


def broken_task_invariants(spec: StreamsGroupSpec, target: Mapping[str, Tasks]) -> Iterator[str]:
    """Yield, in words, what the whole target breaks of the rules that KIP-1071 has for every assignor.

    Each task is active once, only stateful tasks have copies, a process has a task once, at most
    ``num.standby.replicas`` standby tasks of each task and ``num.warmup.replicas`` warm-up tasks in all, and members
    with an older topology have nothing new.
    """
    active: set[TaskId] = set()
    copies: Counter[TaskId] = Counter()
    in_process: dict[str, Counter[TaskId]] = defaultdict(Counter)
    warmups = 0
    stateful = {subtopology.id for subtopology in spec.subtopologies if subtopology.stateful}
    for member_id, had in spec.members.items():
        before = {(unit.name, unit.number) for unit in units(had.previous)}
        for unit in units(target.get(member_id, Tasks())):
            task = unit.name, unit.number
            in_process[had.process_id][task] += 1
            if unit.role == "active":
                active.add(task)
            elif unit.name not in stateful:
                yield f"{unit.role} task {_named(task)}: given to {member_id}, but the task has no state"
            elif unit.role == "standby":
                copies[task] += 1
            else:
                warmups += 1
            if member_id in spec.stale and task not in before:
                yield f"{unit.role} task {_named(task)}: given to {member_id}, whose topology is older than the group's"
    yield from _twice_in_process(in_process)
    yield from _beyond_limits(spec, copies, warmups)
    if spec.members.keys() - set(spec.stale):
        for subtopology in spec.subtopologies:
            for number in range(subtopology.tasks):
                if (subtopology.id, number) not in active:
                    yield f"active task {subtopology.id}_{number}: given to no member"


def _twice_in_process(in_process: Mapping[str, Counter[TaskId]]) -> Iterator[str]:
    for process, tasks in in_process.items():
        for task, count in sorted(tasks.items()):
            if count > 1:
                yield f"task {_named(task)}: given to process {process} {count} times"


def _beyond_limits(spec: StreamsGroupSpec, copies: Counter[TaskId], warmups: int) -> Iterator[str]:
    standbys, most = spec.configs.num_standby_replicas, spec.configs.num_warmup_replicas
    for task, count in sorted(copies.items()):
        if count > standbys:
            yield f"standby task {_named(task)}: given {count} times, num.standby.replicas is {standbys}"
    if warmups > most:
        yield f"{warmups} warm-up tasks: num.warmup.replicas is {most}"


def explaining(spec: StreamsGroupSpec, target: Mapping[str, Tasks]) -> StreamsGroupSpec:
    """Return the input with offsets that may explain the target: who is given a task as active or standby task has
    caught up with it, and other processes have nothing of it.
    """
    # The least end at which a process that has nothing of the task lags by more than is acceptable.
    end = spec.configs.acceptable_recovery_lag + 1
    tasks = [
        (subtopology.id, number)
        for subtopology in spec.subtopologies
        if subtopology.stateful
        for number in range(subtopology.tasks)
    ]
    ready: dict[str, set[TaskId]] = defaultdict(set)
    for member_id, had in spec.members.items():
        given = target.get(member_id, Tasks())
        ready[had.process_id].update((unit.name, unit.number) for unit in units(given) if unit.role != "warm-up")
    members = {
        member_id: replace(
            had,
            task_offsets={task: end if task in ready[had.process_id] else 0 for task in tasks},
            task_end_offsets=dict.fromkeys(tasks, end),
        )
        for member_id, had in spec.members.items()
    }
    return replace(spec, members=members)


def caught_up_text(spec: StreamsGroupSpec, expected: Mapping[str, Tasks], recorded: Mapping[str, Tasks]) -> str:
    """Return in words which tasks have caught up, and on which process, if ``recorded`` is right and ``expected`` is
    the target without offsets.
    """
    there, here = _active_processes(spec, expected), _active_processes(spec, recorded)
    moved = [
        f"{_named(task)} on process {process}" for task, process in sorted(here.items()) if there.get(task) != process
    ]
    if not moved:
        return "with other task offsets highly_available gives the recorded target"
    named = ", ".join(moved[:MOST_NAMED]) + (f" and {len(moved) - MOST_NAMED} more" if moved[MOST_NAMED:] else "")
    return f"highly_available gives the recorded target if these tasks have caught up: {named}"


def _active_processes(spec: StreamsGroupSpec, target: Mapping[str, Tasks]) -> dict[TaskId, str]:
    return {
        (unit.name, unit.number): had.process_id
        for member_id, had in spec.members.items()
        for unit in units(target.get(member_id, Tasks()))
        if unit.role == "active"
    }


def _named(task: TaskId) -> str:
    return f"{task[0]}_{task[1]}"
