"""Streams ``sticky``: invariants, balance, stickiness; what tasks without members and strange topologies lead to."""

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
    Tasks,
)
from coordinator_core.assignors.registry import assign
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError, InputError
from tests.core.assignors.streams.groups import check_invariants, groups, grown_groups, task_ids

NO_TOPICS = TopicImage.of(())


def sticky(spec: StreamsGroupSpec) -> Assignment[Tasks]:
    return assign("sticky", spec, NO_TOPICS)


def active_counts(assignment: Assignment[Tasks]) -> list[int]:
    return [len(task_ids(tasks.active)) for tasks in assignment.members.values()]


@given(groups(previous=False))
def test_from_nothing_it_holds_to_the_invariants_and_makes_no_warmups(spec):
    assignment = sticky(spec)
    check_invariants(spec, assignment)
    assert not any(tasks.warmup for tasks in assignment.members.values())


@given(groups(previous=False))
def test_from_nothing_processes_are_balanced_by_members(spec):
    assignment = sticky(replace(spec, configs=StreamsConfigs()))
    loads: dict[str, list[int]] = {}
    for (member, had), count in zip(spec.members.items(), active_counts(assignment), strict=True):
        assert member in assignment.members
        loads.setdefault(had.process_id, []).append(count)
    averages = [sum(counts) / len(counts) for counts in loads.values()]
    assert max(averages) - min(averages) <= 1
    assert all(max(counts) - min(counts) <= 1 for counts in loads.values())


@given(grown_groups())
def test_nobody_keeps_more_than_the_quota(spec):
    spec = replace(spec, configs=StreamsConfigs())
    counts = active_counts(sticky(spec))
    assert max(counts) <= -(-sum(counts) // len(counts))


@given(grown_groups(), st.data())
def test_when_a_member_leaves_the_others_keep_their_tasks(spec, data):
    spec = replace(spec, configs=StreamsConfigs())
    settled = sticky(spec)
    gone = data.draw(st.sampled_from(sorted(spec.members)))
    members = {
        member: replace(had, previous=settled.members[member]) for member, had in spec.members.items() if member != gone
    }
    after = sticky(replace(spec, members=members))
    for member in members:
        assert set(task_ids(settled.members[member].active)) <= set(task_ids(after.members[member].active))


@given(grown_groups())
def test_a_former_standby_takes_over_first(spec):
    """One process alone has the task as standby, and its member has room for the owner's only task."""
    task = ("0", 0)
    members = {
        "owner": StreamsMemberSpec("p0"),
        "standby": StreamsMemberSpec("p1", Tasks(standby={"0": [0]})),
        "other": StreamsMemberSpec("p2"),
    }
    lonely = StreamsGroupSpec(members, [SubtopologyTasks("0", 1, True)], spec.configs)
    assert task in task_ids(sticky(lonely).members["standby"].active)


def test_tasks_without_members_fail_as_in_kafka():
    with pytest.raises(AssignorError, match=r"TaskAssignorException: No process available to assign active task a_0\."):
        sticky(StreamsGroupSpec({}, [SubtopologyTasks("b", 1, True), SubtopologyTasks("a", 2, False)]))


def test_tasks_that_the_topology_no_longer_has_are_forgotten():
    member = StreamsMemberSpec("p", Tasks({"0": [0, 9], "gone": [0]}, {"gone": [1]}))
    assert sticky(StreamsGroupSpec({"m": member}, [SubtopologyTasks("0", 2, True)])).members["m"] == Tasks(
        {"0": [0, 1]}, {}
    )


@pytest.mark.parametrize("name", ["sticky", "highly_available"])
@pytest.mark.parametrize(
    ("subtopologies", "message"),
    [
        ([SubtopologyTasks("0", -1, True)], "subtopology '0' has -1 tasks"),
        ([SubtopologyTasks("0", 1, True), SubtopologyTasks("0", 2, True)], "subtopology '0' is there twice"),
    ],
)
def test_impossible_topologies_are_errors(name, subtopologies, message):
    with pytest.raises(InputError, match=message):
        assign(name, StreamsGroupSpec({"m": StreamsMemberSpec("p")}, subtopologies), NO_TOPICS)
