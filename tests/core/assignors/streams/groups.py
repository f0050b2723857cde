"""Streams groups for hypothesis, and what must hold of any assignment of one."""

from collections import Counter

from hypothesis import strategies as st

from coordinator_core.assignors.inputs import (
    Assignment,
    StreamsConfigs,
    StreamsGroupSpec,
    StreamsMemberSpec,
    SubtopologyTasks,
    TaskId,
    Tasks,
)

END = 100_000

ZONES = ("east", "west", "north")


@st.composite
def topologies(draw: st.DrawFn) -> list[SubtopologyTasks]:
    shapes = draw(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=4))
    return [SubtopologyTasks(str(number), tasks, stateful) for number, (tasks, stateful) in enumerate(shapes)]


@st.composite
def groups(draw: st.DrawFn, *, previous: bool = True) -> StreamsGroupSpec:
    """Any group: members in processes, tasks held before in any role, offsets reported or not, tags or none."""
    subtopologies = draw(topologies())
    tasks = [(each.id, number) for each in subtopologies for number in range(each.tasks)]
    processes = draw(st.integers(1, 5))
    zones = [draw(st.sampled_from(ZONES)) for _ in range(processes)]
    some = st.lists(st.sampled_from(tasks), unique=True, max_size=6) if tasks and previous else st.just([])
    offsets = (
        st.dictionaries(st.sampled_from(tasks), st.integers(0, 50), max_size=6) if tasks and previous else st.just({})
    )
    members = {}
    for number in range(draw(st.integers(1, 8))):
        process = draw(st.integers(0, processes - 1))
        members[f"m{number}"] = StreamsMemberSpec(
            f"p{process}",
            Tasks(*(by_subtopology(draw(some)) for _ in range(3))),
            client_tags={"zone": zones[process]},
            task_offsets=draw(offsets),
            task_end_offsets=draw(offsets),
        )
    configs = StreamsConfigs(
        num_standby_replicas=draw(st.integers(0, 2)),
        num_warmup_replicas=draw(st.integers(1, 3)),
        acceptable_recovery_lag=draw(st.integers(0, 20)),
        rack_aware_tags=draw(st.sampled_from([(), ("zone",)])),
    )
    return StreamsGroupSpec(members, subtopologies, configs)


@st.composite
def grown_groups(draw: st.DrawFn) -> StreamsGroupSpec:
    """A group whose tasks all lie with its first members, with all their state; the others have joined since.

    They may have warm-ups or standbys, or old state, that have come any part of the way.
    """
    subtopologies = [
        SubtopologyTasks(str(number), draw(st.integers(1, 6)), True) for number in range(draw(st.integers(1, 3)))
    ]
    tasks = [(each.id, number) for each in subtopologies for number in range(each.tasks)]
    old = draw(st.integers(1, 2))
    owners = {task: draw(st.integers(0, old - 1)) for task in tasks}
    copies = {task: draw(st.dictionaries(st.integers(old, 5), st.sampled_from([0, END - 6, END]))) for task in tasks}
    members = {}
    for number in range(draw(st.integers(old + 1, 6))):
        own = [task for task in tasks if owners[task] == number]
        mine = dict.fromkeys(own, END) | {task: held[number] for task, held in copies.items() if number in held}
        roles: list[list[TaskId]] = [own, [], []]
        for task in mine.keys() - set(own):
            role = draw(st.integers(0, 2))
            if role:
                roles[role].append(task)
        members[f"m{number}"] = StreamsMemberSpec(
            f"p{number}",
            Tasks(*map(by_subtopology, roles)),
            client_tags={"zone": draw(st.sampled_from(ZONES))},
            task_offsets=mine,
            task_end_offsets=dict.fromkeys(own, END),
        )
    configs = StreamsConfigs(
        num_standby_replicas=draw(st.integers(0, 1)),
        num_warmup_replicas=draw(st.integers(1, 3)),
        acceptable_recovery_lag=draw(st.sampled_from([0, 5, 6])),
    )
    return StreamsGroupSpec(members, subtopologies, configs)


def by_subtopology(tasks: list[TaskId]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for subtopology, number in sorted(tasks):
        found.setdefault(subtopology, []).append(number)
    return found


def task_ids(role: dict[str, list[int]]) -> list[TaskId]:
    return [(subtopology, number) for subtopology, numbers in role.items() for number in numbers]


def check_invariants(spec: StreamsGroupSpec, assignment: Assignment[Tasks]) -> None:
    """Each task active once; with state, never twice in a process; standbys as many as asked for and possible.

    A warm-up may stand in for a standby.
    """
    every = {(each.id, number) for each in spec.subtopologies for number in range(each.tasks)}
    stateful = {(each.id, number) for each in spec.subtopologies if each.stateful for number in range(each.tasks)}
    active: Counter[TaskId] = Counter()
    copies: Counter[tuple[str, TaskId]] = Counter()
    standby: Counter[TaskId] = Counter()
    warmup: Counter[TaskId] = Counter()
    for member, tasks in assignment.members.items():
        process = spec.members[member].process_id
        active.update(task_ids(tasks.active))
        standby.update(task_ids(tasks.standby))
        warmup.update(task_ids(tasks.warmup))
        for role in (tasks.active, tasks.standby, tasks.warmup):
            copies.update((process, task) for task in task_ids(role) if task in stateful)
    assert assignment.members.keys() == spec.members.keys()
    assert active == Counter(every)
    assert standby.keys() | warmup.keys() <= stateful
    assert not copies or max(copies.values()) == 1
    processes = {had.process_id for had in spec.members.values()}
    for task in stateful:
        free = len(processes) - sum((process, task) in copies for process in processes)
        assert standby[task] <= spec.configs.num_standby_replicas
        assert standby[task] + warmup[task] >= spec.configs.num_standby_replicas or not free
