"""``highly_available`` by its properties: no broker has it, so KIP-1071, KIP-441 and KIP-708 are the measure."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given

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

NO_TOPICS = TopicImage.of(())


def highly_available(spec: StreamsGroupSpec) -> Assignment[Tasks]:
    return assign("highly_available", spec, NO_TOPICS)


def stateful(spec: StreamsGroupSpec) -> list[TaskId]:
    return [(each.id, number) for each in spec.subtopologies if each.stateful for number in range(each.tasks)]


def caught_up(spec: StreamsGroupSpec, task: TaskId) -> set[str]:
    """Processes whose copy is within the acceptable lag, or whose member ran the task and reported no offset."""
    ends = [had.task_end_offsets[task] for had in spec.members.values() if task in had.task_end_offsets]
    found = set()
    for process in {had.process_id for had in spec.members.values()}:
        members = [had for had in spec.members.values() if had.process_id == process]
        offsets = [had.task_offsets[task] for had in members if task in had.task_offsets]
        owners = [m for m, had in spec.members.items() if task in task_ids(had.previous.active)]
        if offsets:
            if ends and max(ends) - max(offsets) <= spec.configs.acceptable_recovery_lag:
                found.add(process)
        elif owners and spec.members[owners[-1]].process_id == process:
            found.add(process)
    return found


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
        owner = next(member for member, tasks in assignment.members.items() if task in task_ids(tasks.active))
        assert not ready or spec.members[owner].process_id in ready


@given(groups() | grown_groups())
def test_warmups_are_few_and_never_where_the_task_is_caught_up(spec):
    assignment = highly_available(spec)
    warming = [
        (spec.members[member].process_id, task)
        for member, tasks in assignment.members.items()
        for task in task_ids(tasks.warmup)
    ]
    assert len(warming) <= spec.configs.num_warmup_replicas
    assert max(Counter(task for _, task in warming).values(), default=1) == 1
    for process, task in warming:
        assert caught_up(spec, task)
        assert process not in caught_up(spec, task)


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


@given(groups() | grown_groups())
def test_standbys_are_in_other_zones_while_there_are_any(spec):
    spec = replace(spec, configs=replace(spec.configs, rack_aware_tags=("zone",), num_standby_replicas=1))
    assignment = highly_available(spec)
    for task in stateful(spec):
        holders = {
            role: [spec.members[m] for m, tasks in assignment.members.items() if task in task_ids(getattr(tasks, role))]
            for role in ("active", "standby", "warmup")
        }
        if holders["warmup"] or not holders["standby"]:
            continue
        here = holders["active"][0].client_tags["zone"]
        others = {had.client_tags["zone"] for had in spec.members.values()} - {here}
        reserved = task in task_ids(holders["standby"][0].previous.standby) and len(caught_up(spec, task)) > 0
        assert holders["standby"][0].client_tags["zone"] != here or not others or reserved


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
    assert task_ids(second.members["C"].active) == task_ids(first.members["C"].warmup)
    assert second.members["C"].warmup == {}
    assert [len(task_ids(second.members[member].active)) for member in "ABC"] == [2, 2, 2]


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
    owner = StreamsMemberSpec(
        "old",
        Tasks({"0": [0, 1]}),
        task_offsets={("0", 0): 100, ("0", 1): 100},
        task_end_offsets={("0", 0): 100, ("0", 1): 100},
    )
    spec = StreamsGroupSpec({"old": owner, "new": member}, [SubtopologyTasks("0", 2, True)])
    for lag, active in ((10, {"0": [0]}), (9, {})):
        configs = StreamsConfigs(acceptable_recovery_lag=lag)
        assert highly_available(replace(spec, configs=configs)).members["new"].active == active


def test_tasks_need_members():
    with pytest.raises(AssignorError, match="TaskAssignorException"):
        highly_available(StreamsGroupSpec({}, [SubtopologyTasks("0", 1, True)]))
    assert highly_available(StreamsGroupSpec({}, [])).members == {}
