"""Records of a dump without times and batches: nothing says what was written together, nor when."""

import pytest

from coordinator_core.history.coverage import Coverage
from coordinator_core.history.grounds import CAUSES_NOT_TOLD, JOINS_NOT_TOLD, MAY_GO_ON, NO_TIMES
from coordinator_core.history.rows import MembershipRow
from coordinator_core.records import RecordType
from tests.core.history.logs import (
    GroupLog,
    alone,
    classic,
    commit,
    current,
    epoch,
    generation,
    gone,
    group_gone,
    kinds,
    member,
    target,
    target_epoch,
    without_times,
)

CLASSIC_GONE = (RecordType.GROUP_METADATA, {"group": "g"}, None)
REPLACED = (*gone("s1"), member("s2", "t", instance="i"), target("s2", 0), current("s2", 0, 0))


def static(log: GroupLog) -> GroupLog:
    """A group of one static member."""
    return log.write(member("s1", "t", instance="i"), epoch(2), target("s1", 0), target_epoch(2), current("s1", 2, 0))


def told(row: MembershipRow) -> tuple[object, ...]:
    left = None if row.left is None else row.left.offset
    return row.group_type, row.joined.offset, row.came_by, row.replaces, left, row.went_by, row.history_complete


@pytest.mark.parametrize(
    "log",
    [
        static(GroupLog()).write(*REPLACED, current("s2", 2, 0)).write(member("m3", "t"), epoch(3)),
        static(GroupLog()).write(*gone("s1"), epoch(3)).write(member("s2", "t", instance="i"), epoch(4)),
        alone(GroupLog())
        .write(member("m2", "t"), epoch(3), current("m2", 3))
        .write(*gone("m1"), epoch(4), target_epoch(4)),
        GroupLog()
        .write(generation(1, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
        .write(CLASSIC_GONE, member("a", "t"), member("b", "t"), epoch(1), target_epoch(1)),
        static(GroupLog()).write(
            *REPLACED, epoch(3), *gone("s2"), *group_gone(), generation(3, {"s2": classic({"t": [0]}, instance="i")})
        ),
    ],
    ids=["replaced", "left and came", "joined", "upgraded", "replaced and downgraded"],
)
def test_members_come_and_go_as_in_the_log_with_times(log: GroupLog) -> None:
    truth = {name: told(row) for name, row in log.memberships().items()}
    said = {name: told(row) for name, row in without_times(log).memberships().items()}
    assert said == truth
    assert len(truth) > 1


def test_a_member_that_is_replaced_before_a_downgrade_was_one_of_the_consumer_group() -> None:
    log = static(GroupLog()).write(
        *REPLACED, epoch(3), *gone("s2"), *group_gone(), generation(3, {"s2": classic({"t": [0]}, instance="i")})
    )
    members = log.memberships()
    assert (members["s1"].group_type, members["s1"].went_by) == ("CONSUMER", "static replacement")
    assert (members["s2"].group_type, members["s2"].left) == ("CLASSIC", None)


def test_who_joined_is_a_cause_and_whether_a_replacement_is_one_is_not_known() -> None:
    log = static(GroupLog()).write(member("m2", "t"), epoch(3), current("m2", 3)).skip(1)
    log.write(*REPLACED, member("s2", "t", "u", instance="i"), epoch(4))
    joined, replaced = without_times(log).rebalances()[1:]
    assert kinds(joined) == ["member_joined"]
    assert (kinds(replaced), replaced.missing) == (["subscription_changed"], CAUSES_NOT_TOLD)


def test_no_time_and_no_duration_is_known() -> None:
    log = alone(GroupLog()).write(
        member("m2", "t"),
        epoch(3),
        target("m1", 0, 1),
        target("m2", 2, 3),
        target_epoch(3),
        current("m1", 2, 0, 1, revoking=(2, 3)),
    )
    log.write(current("m1", 3, 0, 1)).write(current("m2", 3, 2, 3)).write(commit("t", 2)).write(*gone("m2"), epoch(4))
    row = log.rebalances()[1]
    assert (row.time_to_target_ms, row.time_to_converge_ms, row.duration_max_ms, row.idle_ms) == (0, 2000, 2000, 2000)
    assert (row.units_moved, row.revocations[0].duration_ms, row.history_complete) == (2, 1000, True)
    row = without_times(log).rebalances()[1]
    assert (row.began_after_ms, row.time_to_target_ms, row.time_to_converge_ms, row.duration_max_ms) == (None,) * 4
    assert (row.idle_ms, row.idle_max_ms, row.revocations[0].duration_ms) == (None, None, None)
    assert (row.outcome, row.units_moved, row.history_complete, row.missing) == ("converged", 2, False, NO_TIMES)
    assert [each.history_complete for each in log.epochs()] == [False] * 3
    assert log.memberships()["m2"].hint is None


def test_no_duration_of_a_generation_is_known() -> None:
    log = GroupLog().write(generation(1, {"a": classic({"t": [0, 1]})}))
    log.write(generation(2, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    row = without_times(log).rebalances()[1]
    assert (row.began_after_ms, row.duration_min_ms, row.duration_max_ms, row.idle_ms) == (None,) * 4
    assert (row.units_moved, row.history_complete, row.missing) == (1, False, NO_TIMES)


def test_the_first_epoch_behind_an_empty_classic_group_may_go_on_from_it() -> None:
    log = GroupLog().write(generation(1, {"a": classic({"t": [0]})})).write(generation(2, {}))
    log.write(CLASSIC_GONE, member("m", "t"), epoch(1))
    last = without_times(log).epochs()[-1]
    assert (last.group_type, last.epoch, last.history_complete) == ("CONSUMER", 1, False)
    came = without_times(log).memberships()["m"]
    assert (came.came_by, came.history_complete) == ("unknown", False)


def test_without_batches_and_times_a_member_that_left_is_not_there():
    """Each record counts as an operation: taken together, none would ever end."""
    log = alone(GroupLog()).write(*gone("m1"), epoch(3), target_epoch(3))
    assert not without_times(log).memberships()["m1"].is_open


def test_without_times_who_joins_with_the_next_epoch_is_not_behind_in_the_one_before():
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3), current("m2", 2))
    _, superseded, _ = without_times(log.write(member("m3", "t"), epoch(4))).rebalances()
    assert (superseded.outcome, superseded.behind) == ("superseded", ("m1", "m2"))


def test_without_times_a_member_with_a_regex_may_have_waited_for_it():
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3), current("m2", 2))
    log.write(member("m3", subscribedTopicRegex="t.*"), epoch(4))
    open_before = without_times(log).rebalances()[1]
    assert (open_before.members_behind, open_before.missing) == (None, JOINS_NOT_TOLD)


def test_without_times_a_static_member_may_have_replaced_another_one():
    log = alone(GroupLog()).write(member("s1", "t", instance="i"), epoch(3), current("s1", 2))
    log.write(*gone("s1"), member("s2", "t", instance="i"), current("s2", 2)).write(member("m3", "t"), epoch(4))
    open_before = without_times(log).rebalances()[1]
    assert (open_before.members_behind, open_before.units_moved, open_before.missing) == (None, None, JOINS_NOT_TOLD)


@pytest.mark.parametrize(("skipped", "outcome"), [(0, "unknown"), (1, "group deleted")])
def test_without_times_a_group_that_goes_on_at_once_may_have_been_converted(skipped, outcome):
    """Between the records of a conversion there is none of another group."""
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3)).write(*group_gone()).skip(skipped)
    log.write(member("m2", "t"), epoch(9))
    _, ended, begun = without_times(log).rebalances(coverage=Coverage({0: [(0, log.offset)]}))
    assert (ended.outcome, begun.from_epoch) == (outcome, None)
    assert (ended.missing == MAY_GO_ON, begun.missing == NO_TIMES) == (not skipped, skipped)
