"""``highly_available`` by its properties, which KIP-1071, KIP-441 and KIP-708 name; ``test_kafka_cases`` has cases."""

from dataclasses import replace

import pytest
from hypothesis import given
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
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from tests.core.assignors.streams.groups import END, check_invariants, groups, grown_groups, task_ids
from tests.core.assignors.streams.kafka_cases import by_process

NO_TOPICS = TopicImage.of(())


def highly_available(spec: StreamsGroupSpec) -> Assignment[Tasks]:
    return assign("highly_available", spec, NO_TOPICS)


def stateful(spec: StreamsGroupSpec) -> list[TaskId]:
    return [(each.id, number) for each in spec.subtopologies if each.stateful for number in range(each.tasks)]


def offsets(spec: StreamsGroupSpec, process: str, task: TaskId) -> list[int]:
    """What the members of the process report of their copy of the task's state."""
    members = [had for had in spec.members.values() if had.process_id == process]
    return [had.task_offsets[task] for had in members if task in had.task_offsets]


def ends(spec: StreamsGroupSpec, task: TaskId) -> list[int]:
    """What members report of the end of the task's changelog topics."""
    return [had.task_end_offsets[task] for had in spec.members.values() if task in had.task_end_offsets]


def running(spec: StreamsGroupSpec, task: TaskId) -> str | None:
    """The process that had the task active, if it reports nothing of it, or that it is at the end."""
    owners = [had for had in spec.members.values() if task in task_ids(had.previous.active)]
    if not owners:
        return None
    process, end = owners[-1].process_id, owners[-1].task_end_offsets.get(task)
    known = offsets(spec, process, task)
    return process if not known or (end is not None and end <= max(known)) else None


def caught_up(spec: StreamsGroupSpec, task: TaskId) -> set[str]:
    """Processes that run the task or whose copy is within the acceptable lag; who has no copy has to read all of it."""
    found = {process for process in [running(spec, task)] if process is not None}
    for process in {had.process_id for had in spec.members.values()} if ends(spec, task) else ():
        if max(ends(spec, task)) - max(offsets(spec, process, task), default=0) <= spec.configs.acceptable_recovery_lag:
            found.add(process)
    return found


def owner(spec: StreamsGroupSpec, assignment: Assignment[Tasks], task: TaskId) -> str:
    """The process that the task is active in."""
    member = next(member for member, tasks in assignment.members.items() if task in task_ids(tasks.active))
    return spec.members[member].process_id


def after(spec: StreamsGroupSpec, assignment: Assignment[Tasks]) -> StreamsGroupSpec:
    """The group once everybody has what was assigned and every copy has caught up."""
    members = {}
    for member, had in spec.members.items():
        tasks = assignment.members[member]
        held = [task for role in (tasks.active, tasks.standby, tasks.warmup) for task in task_ids(role)]
        members[member] = replace(
            had, previous=tasks, task_offsets=dict.fromkeys(held, END), task_end_offsets=dict.fromkeys(held, END)
        )
    return replace(spec, members=members)


@given(groups() | grown_groups())
def test_holds_to_the_invariants_of_the_protocol(spec):
    check_invariants(spec, highly_available(spec))


@given(groups() | grown_groups())
def test_a_task_is_active_where_it_is_caught_up_if_it_is_anywhere(spec):
    assignment = highly_available(spec)
    for task in stateful(spec):
        ready = caught_up(spec, task)
        assert not ready or owner(spec, assignment, task) in ready


@given(groups() | grown_groups())
def test_of_a_task_that_is_caught_up_nowhere_the_furthest_copy_is_active(spec):
    assignment = highly_available(spec)
    processes = {had.process_id for had in spec.members.values()}
    for task in stateful(spec):
        furthest = max(max(offsets(spec, process, task), default=0) for process in processes)
        if not caught_up(spec, task):
            assert max(offsets(spec, owner(spec, assignment, task), task), default=0) == furthest


@given(groups() | grown_groups())
def test_warmups_are_few_and_never_where_the_task_is_caught_up(spec):
    assignment = highly_available(spec)
    warming = [
        (spec.members[member].process_id, task)
        for member, tasks in assignment.members.items()
        for task in task_ids(tasks.warmup)
    ]
    assert len(warming) <= spec.configs.num_warmup_replicas
    for process, task in warming:
        assert process not in caught_up(spec, task)


@given(groups() | grown_groups())
def test_without_warmups_nothing_waits_for_another_assignment(spec):
    assignment = highly_available(spec)
    if not any(tasks.warmup for tasks in assignment.members.values()):
        assert by_process(spec, highly_available(after(spec, assignment))) == by_process(spec, assignment)


@given(grown_groups(), st.randoms(use_true_random=False))
def test_the_order_of_members_decides_nothing_between_processes(spec, chance):
    members = list(spec.members.items())
    chance.shuffle(members)
    assert by_process(spec, highly_available(spec)) == by_process(
        spec, highly_available(replace(spec, members=dict(members)))
    )


@given(groups(previous=False))
def test_without_state_anywhere_it_is_balanced_at_once(spec):
    assignment = highly_available(spec)
    with_state = set(stateful(spec))
    loads = [len(with_state.intersection(task_ids(tasks.active))) for tasks in assignment.members.values()]
    everything = [len(task_ids(tasks.active)) for tasks in assignment.members.values()]
    assert max(loads) - min(loads) <= 1
    assert max(everything) - min(everything) <= 1
    assert not any(tasks.warmup for tasks in assignment.members.values())


@given(groups() | grown_groups())
def test_warming_up_ends_in_balance_and_rest(spec):
    tasks = len(stateful(spec))
    for _ in range(2 * tasks + 3):
        spec = after(spec, highly_available(spec))
    settled = highly_available(spec)
    loads = [len(set(stateful(spec)).intersection(task_ids(each.active))) for each in settled.members.values()]
    assert not any(each.warmup for each in settled.members.values())
    assert max(loads) - min(loads) <= 1
    assert highly_available(after(spec, settled)) == settled


@given(groups(previous=False))
def test_standbys_are_in_other_zones_while_there_are_any(spec):
    spec = replace(spec, configs=replace(spec.configs, rack_aware_tags=("zone",), num_standby_replicas=1))
    assignment = highly_available(spec)
    zone = {had.process_id: had.client_tags["zone"] for had in spec.members.values()}
    for member, tasks in assignment.members.items():
        for task in task_ids(tasks.standby):
            here = zone[owner(spec, assignment, task)]
            assert zone[spec.members[member].process_id] != here or set(zone.values()) == {here}


@given(groups() | grown_groups())
def test_members_of_a_process_have_as_many_tasks_each(spec):
    assignment = highly_available(spec)
    loads: dict[str, list[int]] = {}
    for member, tasks in assignment.members.items():
        counts = [len(task_ids(role)) for role in (tasks.active, tasks.standby, tasks.warmup)]
        loads.setdefault(spec.members[member].process_id, []).append(sum(counts))
    assert all(max(counts) - min(counts) <= 1 for counts in loads.values())


def test_members_of_a_process_keep_what_they_had():
    had = [Tasks({"0": [0, 3]}, {"0": [4]}), Tasks({"0": [1]}, {"0": [2, 5]})]
    spec = StreamsGroupSpec(
        {f"m{number}": StreamsMemberSpec("p", tasks) for number, tasks in enumerate(had)},
        [SubtopologyTasks("0", 6, True)],
    )
    assignment = highly_available(spec)
    assert [set(task_ids(each.active)) for each in assignment.members.values()] == [
        {("0", 0), ("0", 3), ("0", 4)},
        {("0", 1), ("0", 2), ("0", 5)},
    ]


def two_and_a_new_one(**configs: int) -> StreamsGroupSpec:
    """The situation of KIP-1071's example: A and B run six tasks and are each other's standbys; C joins."""
    ends = {("0", number): END for number in range(6)}
    a = Tasks({"0": [0, 2, 4]}, {"0": [1, 3, 5]})
    b = Tasks({"0": [1, 3, 5]}, {"0": [0, 2, 4]})
    return StreamsGroupSpec(
        {
            "A": StreamsMemberSpec("a", a, task_offsets=ends, task_end_offsets=ends),
            "B": StreamsMemberSpec("b", b, task_offsets=ends, task_end_offsets=ends),
            "C": StreamsMemberSpec("c"),
        },
        [SubtopologyTasks("0", 6, True)],
        StreamsConfigs(num_standby_replicas=1, num_warmup_replicas=2, **configs),
    )


def test_a_new_member_warms_up_before_it_takes_over():
    first = highly_available(two_and_a_new_one())
    assert first.members["C"].active == {}
    assert sum(map(len, first.members["C"].warmup.values())) == 2
    assert sorted(len(task_ids(first.members[member].active)) for member in "ABC") == [0, 3, 3]
    second = highly_available(after(two_and_a_new_one(), first))
    active = task_ids(second.members["C"].active)
    assert active
    assert set(active) < set(task_ids(first.members["C"].warmup))
    third = highly_available(after(two_and_a_new_one(), second))
    assert [len(task_ids(third.members[member].active)) for member in "ABC"] == [2, 2, 2]


def test_a_copy_at_home_is_a_warmup_that_asks_for_the_next_assignment():
    """Kafka's client makes it a standby task and looks again after probing.rebalance.interval.ms."""
    ends = {("0", 0): END, ("0", 1): END}
    members = {
        "A": StreamsMemberSpec("a", Tasks({"0": [0, 1]}), task_offsets=ends, task_end_offsets=ends),
        "B": StreamsMemberSpec("b"),
    }
    for free, warmup in ((1, {"0": [1]}), (0, {})):
        configs = StreamsConfigs(num_standby_replicas=1, num_warmup_replicas=free)
        spec = StreamsGroupSpec(members, [SubtopologyTasks("0", 2, True)], configs)
        given = highly_available(spec).members["B"]
        assert given.warmup == warmup
        assert set(task_ids(given.standby) + task_ids(given.warmup)) == {("0", 0), ("0", 1)}


def test_a_warmup_that_lags_goes_on():
    spec = two_and_a_new_one()
    first = highly_available(spec)
    members = {member: replace(had, previous=first.members[member]) for member, had in spec.members.items()}
    behind = dict.fromkeys(task_ids(first.members["C"].warmup), 5)
    members["C"] = replace(members["C"], task_offsets=behind)
    again = highly_available(replace(spec, members=members))
    assert again.members["C"].warmup == first.members["C"].warmup
    assert again.members["C"].active == {}


def test_the_acceptable_lag_itself_is_caught_up():
    held = {("0", 0): 90}
    member = StreamsMemberSpec("new", Tasks(warmup={"0": [0]}), task_offsets=held)
    old = StreamsMemberSpec(
        "old",
        Tasks({"0": [0, 1]}),
        task_offsets={("0", 0): 100, ("0", 1): 100},
        task_end_offsets={("0", 0): 100, ("0", 1): 100},
    )
    spec = StreamsGroupSpec({"old": old, "new": member}, [SubtopologyTasks("0", 2, True)])
    for lag, active in ((10, {"0": [0]}), (9, {})):
        configs = StreamsConfigs(acceptable_recovery_lag=lag)
        assert highly_available(replace(spec, configs=configs)).members["new"].active == active


def test_tasks_need_members():
    with pytest.raises(AssignorError, match="TaskAssignorException"):
        highly_available(StreamsGroupSpec({}, [SubtopologyTasks("0", 1, True)]))
    assert highly_available(StreamsGroupSpec({}, [])).members == {}
