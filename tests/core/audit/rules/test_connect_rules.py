"""Rules of Connect groups: on KIP-848, where work has one owner, and of the classic protocol."""

import random
from itertools import islice

import pytest

from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Family, Fields
from tests.core.audit.rules.mutations import CONNECT_MUTATIONS, Mutation, mutations_of
from tests.core.audit.rules.test_rules import WHOLE, Records, broken
from tests.core.builders import GroupLog, at_once
from tests.core.history import logs
from tests.core.simulator.simulations import World
from tests.core.whole_log import judge


def work(*numbers: int) -> list[Fields]:
    return [{"connectors": [], "tasks": [{"connectorId": "sink", "taskId": number} for number in numbers]}]


def given(*numbers: int) -> Fields:
    return {"error": 0, "connectorsTasks": work(*numbers), "version": 1, "metadata": b""}


def worker(log: GroupLog, member_id: str) -> CoordinatorRecord:
    value = {"groupEpoch": 1, "instanceId": None, "clientId": "c", "clientHost": "/h", "assignors": []}
    return log.record(ConnectRecordType.MEMBER_METADATA, value, memberId=member_id)


def connect_group(log: GroupLog, targets: dict[str, Fields]) -> Records:
    members = [{"memberId": member_id, **target} for member_id, target in targets.items()]
    configured = log.record(ConnectRecordType.CONNECTORS_TASKS_METADATA, {"epoch": 0, "connectorsTasks": work(0, 1)})
    joins = [
        worker(log, "w1"),
        worker(log, "w2"),
        log.record(ConnectRecordType.GROUP_METADATA, {"epoch": 1}),
        running(log, "w1", epoch=0),
        running(log, "w2", epoch=0),
    ]
    return [
        configured,
        *at_once(joins),
        log.record(ConnectRecordType.TARGET_ASSIGNMENT, {"assignmentEpoch": 1, "members": members}),
    ]


def running(log: GroupLog, member_id: str, *numbers: int, epoch: int = 1) -> CoordinatorRecord:
    value = {"memberEpoch": epoch, **given(*numbers)}
    return log.record(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, value, memberId=member_id)


@pytest.mark.parametrize(
    ("targets", "now", "rules"),
    [
        ({"w1": given(0), "w2": given(1)}, ([0], [1]), set()),
        ({"w1": given(0), "w2": given(0, 1)}, ([], []), {Rule.TARGET_OF_TWO}),
        ({"w1": given(0, 7), "w2": given(1)}, ([], []), {Rule.WORK_OUTSIDE_GROUP}),
        ({"w1": given(0), "w2": given()}, ([], []), {Rule.WORK_UNASSIGNED}),
        ({"w1": given(0), "w2": given() | {"error": 1}}, ([], []), set()),
        ({"w1": given(0), "w2": given(1)}, ([0], [0, 1]), {Rule.ASSIGNED_TO_TWO, Rule.ASSIGNED_OUTSIDE_TARGET}),
    ],
)
def test_work_of_connect_groups_has_one_owner(
    targets: dict[str, Fields], now: tuple[list[int], list[int]], rules: set[Rule]
) -> None:
    log = GroupLog()
    records = [*connect_group(log, targets), running(log, "w1", *now[0]), running(log, "w2", *now[1])]
    assert broken(records, Family.CONNECT) == rules


def test_a_connect_target_is_judged_by_the_work_of_its_own_epoch() -> None:
    """Task 1 is removed, in epoch 2, while the target of epoch 1 is computed; the target of epoch 2 may not have it."""
    log = GroupLog()
    *before, target = connect_group(log, {"w1": given(0), "w2": given(1)})
    removal = at_once(
        [
            log.record(ConnectRecordType.CONNECTORS_TASKS_METADATA, {"epoch": 2, "connectorsTasks": work(0)}),
            log.record(ConnectRecordType.GROUP_METADATA, {"epoch": 2}),
        ]
    )
    assert target.value is not None
    late = log.record(ConnectRecordType.TARGET_ASSIGNMENT, target.value)
    assert broken([*before, *removal, late], Family.CONNECT) == set()
    wrong = late._replace(value={**target.value, "assignmentEpoch": 2})
    assert broken([*before, *removal, wrong], Family.CONNECT) == {Rule.WORK_OUTSIDE_GROUP}


def test_work_of_a_worker_that_left_waits_until_the_delay_is_over() -> None:
    log = GroupLog()
    start = [*connect_group(log, {"w1": given(0), "w2": given(1)}), running(log, "w1", 0), running(log, "w2", 1)]
    left = at_once(
        [
            log.record(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, None, memberId="w2"),
            log.record(ConnectRecordType.MEMBER_METADATA, None, memberId="w2"),
            log.record(ConnectRecordType.GROUP_METADATA, {"epoch": 2}),
        ]
    )
    target = {"assignmentEpoch": 2, "members": [{"memberId": "w1", **given(0)}]}
    for seconds, rules in ((300, set()), (301, {Rule.WORK_UNASSIGNED})):
        at = left[0].at
        position = at._replace(offset=at.offset + 10, timestamp_ms=at.timestamp_ms + 1_000 * seconds)
        waits = CoordinatorRecord(position, ConnectRecordType.TARGET_ASSIGNMENT, {"groupId": "g"}, target, 0)
        assert broken([*start, *left, waits], Family.CONNECT) == rules


def leaders_are_unknown(records: Records) -> set[Rule]:
    group = Group("g", from_start=True, family=Family.CONNECT)
    return {violation.rule for violation in judge(records, group, WHOLE)}


def test_without_leader_epochs_a_delay_may_run_at_any_time() -> None:
    """Work that a worker still runs does not wait, whatever is not known."""
    log = GroupLog()
    assert leaders_are_unknown(connect_group(log, {"w1": given(0), "w2": given()})) == set()
    log = GroupLog()
    records = [*connect_group(log, {"w1": given(0), "w2": given(1)}), running(log, "w2", 1)]
    target = records[-2]
    assert target.value is not None
    again = log.record(ConnectRecordType.TARGET_ASSIGNMENT, {**target.value, "members": target.value["members"][:1]})
    assert leaders_are_unknown([*records, again]) == {Rule.WORK_UNASSIGNED}


@pytest.fixture(scope="module")
def workers() -> World:
    chaos = {"every": "20s", "of": ["join", "leave", "crash", "deploy"], "most": 6}
    group = {"type": "connect-kip-848", "connectors": {"jdbc": 4, "s3": 2}, "assignor": "sessioned", "members": 3}
    group |= {"delay": "20s", "chaos": chaos, "events": [{"at": "4m", "connectors": {"jdbc": 3, "s3": 3}}]}
    return World.of(2, Family.CONNECT, lasts="10m", cluster={"partitions": 1}, groups={"g": group})


@pytest.mark.parametrize("mutation", CONNECT_MUTATIONS, ids=lambda mutation: mutation.name)
def test_one_changed_record_of_a_connect_group_makes_the_right_rule_fire(mutation: Mutation, workers: World) -> None:
    records, changed = workers.logs[0], 0
    for log in islice(mutations_of(mutation, records, random.Random(mutation.name)), 8):
        found = {each.rule for each in judge(log, workers.group("g"), workers.coverage(0), 0)}
        if mutation.name == "a target without a task" and not found:
            continue  # the task may wait for a worker that left
        assert mutation.explains(found), found
        changed += 1
    assert changed > 2


@pytest.mark.parametrize(("claimed", "rules"), [("lost", set()), ("kept", set()), ("other", {Rule.OWNED_NOT_ASSIGNED})])
def test_a_worker_says_what_it_was_assigned_or_what_it_said_before(claimed: str, rules: set[Rule]) -> None:
    """A worker that was not told to give up a task, because the coordinator moved, says again that it has it."""
    log = logs.GroupLog()
    rounds: list[dict[str, Fields]] = [
        {"w1": logs.worker(3, {"lost": [0], "kept": [0]})},
        {"w1": logs.worker(3, {}, had={"lost": [0], "kept": [0]}, revoked={"lost": [0]})},
        {"w1": logs.worker(3, {}, had={claimed: [0]})},
    ]
    for number, workers in enumerate(rounds, 1):
        log.write(logs.generation(number, workers, "compatible", protocolType="connect"))
    assert broken(log.records) == rules
