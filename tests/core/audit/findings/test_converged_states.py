"""What a group's converged states say of members that took the place of others."""

from coordinator_core.audit.findings.converged_states import converged_states
from coordinator_core.audit.folds.group_history import GroupHistory
from tests.core.audit.histories import assignment, at, member, rebalance


def test_two_processes_that_take_turns_as_one_static_member_are_one_member() -> None:
    members = [
        member("a", at(1), at(10), instance_id="i"),
        member("b", at(10), at(20), instance_id="i", replaces="a"),
        member("a", at(20), at(30), instance_id="i", replaces="b"),
        member("c", at(30), instance_id="i", replaces="a"),
        member("other", at(1)),
    ]
    held = [
        assignment("a", 0, at(2), at(10)),
        assignment("b", 0, at(10), at(20)),
        assignment("a", 0, at(20), at(30)),
        assignment("c", 0, at(30)),
        assignment("other", 1, at(2)),
    ]
    turns = [rebalance(2 + turn, at(2 + 10 * turn), finished=at(3 + 10 * turn)) for turn in range(4)]
    states = list(converged_states(GroupHistory("g", 10**6, memberships=members, assignments=held, rebalances=turns)))
    assert [(state.joined, state.left_to_others) for state in states] == [(2, 0), (0, 0), (0, 0), (0, 0)]
    assert [state.loads for state in states][1] == {"b": 1, "other": 1}
