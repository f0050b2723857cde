"""The story of a rebalance: what is said of each end and of each verdict."""

from typing import Any

import pytest

from coordinator_core.audit.broker_sentences import about_absence
from coordinator_core.audit.explain import explain, find_rebalance
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.cluster.coordinators_away import CoordinatorAway
from coordinator_core.errors import InputError
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import GROUP_LOG
from tests.core.audit.histories import at, cause, epoch, member, rebalance


def told(row: RebalanceRow, *targets: TargetAuditRow) -> str:
    members = [member("m1", at(1)), member("m2", at(1))]
    history = GroupHistory("g", 10_000, rebalances=[row], memberships=members, targets=targets)
    return "\n".join(sentence.text for sentence in explain(history, row))


def test_no_rebalance_of_a_group_that_compaction_cut_says_what_is_missing() -> None:
    rows = [epoch(2, at(5), history_complete=False, missing="the log does not show the group before generation 2")]
    with pytest.raises(InputError, match=r"no rebalance in this log; the log lacks records .* before generation 2"):
        find_rebalance(GroupHistory("g", 10_000, epochs=rows))
    with pytest.raises(InputError, match=r"no rebalance in this log$"):
        find_rebalance(GroupHistory("g", 10_000, epochs=[epoch(2, at(5))]))


def judged(verdict: Verdict, **more: Any) -> TargetAuditRow:
    values: dict[str, Any] = {
        "group_id": "g",
        "group_type": "CONSUMER",
        "epoch": 3,
        "at": at(5),
        "opened": at(5),
        "verdict": verdict,
        "basis": Basis.ASSIGNOR,
        "assignor": "uniform",
        "fitted": None,
        "missing": None,
        "differences": (),
        "difference_count": 0,
        "members": 2,
        "expected": None,
        "recorded": None,
        "topics_at": None,
        "topics_proven": None,
    }
    return TargetAuditRow(**(values | more))


@pytest.mark.parametrize(
    ("outcome", "more", "sentence"),
    [
        ("converged", {"members_after": 2}, "All members reached the target after 0 ms."),
        (
            "converged",
            {"members_after": 2, "time_to_converge_ms": 7, "delayed_by": "m2"},
            "All members reached the target after 7 ms; it waited longest for member m2 (client-m2 at 10.0.0.1).",
        ),
        ("converged", {"time_to_converge_ms": None}, "Its one member reached the target."),
        (
            "superseded",
            {"members_behind": 1, "behind": ("m1",)},
            "The next rebalance began before this one completed: "
            "member m1 (client-m1 at 10.0.0.1) had not reached the target.",
        ),
        (
            "not ready",
            {"duration_min_ms": 7, "time_to_converge_ms": None, "members_after": 2},
            "All members reached the target, which has no tasks, after 7 ms.",
        ),
        ("superseded", {}, "The next rebalance began before this one completed."),
        ("emptied", {}, "The last member left."),
        ("group deleted", {}, "The group was deleted."),
        ("group upgraded", {}, "It ended when the group moved to the new protocol."),
        ("group downgraded", {}, "It ended when the group moved back to the classic protocol."),
        ("open", {}, "It is in progress: no member is behind."),
    ],
)
def test_how_it_ended(outcome: str, more: dict[str, Any], sentence: str) -> None:
    assert sentence in told(rebalance(3, at(5), outcome=outcome, **more)).splitlines()


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (
            judged(Verdict.IDENTICAL, fitted="newest topics"),
            "The recomputed assignment is identical to the recorded one.",
        ),
        (
            judged(Verdict.IDENTICAL, fitted="topics that had changed 395 ms before"),
            "The recomputed assignment is identical to the recorded one (topics that had changed 395 ms before).",
        ),
        (
            judged(Verdict.DIVERGENT, differences=("p0 of t: m1 expected, m2 recorded",), difference_count=3),
            "Compared with the recomputed assignment it is divergent: p0 of t: m1 expected, m2 recorded; 2 more.",
        ),
        (
            judged(Verdict.UNKNOWN, missing="the topology, which only the leader has"),
            "It cannot be verified whether the assignment is right. Missing: the topology, which only the leader has.",
        ),
    ],
)
def test_what_recomputing_gave(row: TargetAuditRow, sentence: str) -> None:
    story = told(rebalance(3, at(5)), row).splitlines()
    assert "The assignment was made by uniform 0 ms after it opened." in story
    assert sentence in story


def test_why_and_what_moved() -> None:
    causes = (cause("member_joined", "m2", at(4)), cause("unknown", None, at(5)))
    story = told(rebalance(3, at(5), causes=causes, units_moved=1, units_lost=1, idle_ms=9, idle_max_ms=9))
    assert "Cause: member m2 (client-m2 at 10.0.0.1) joined." in story
    assert "Cause: unknown." in story
    assert (
        "1 partition moved from one member to another, 1 was left without an owner; "
        "partitions were without an owner for 9 ms in total, at most 9 ms for one." in story
    )


def test_a_group_that_changed_its_protocol_keeps_its_epoch() -> None:
    assert "The consumer group g rebalanced to epoch 3." in told(rebalance(3, at(5), from_epoch=3))


def test_connect_groups_have_connectors_and_tasks() -> None:
    row = rebalance(
        3, at(5), group_type="CONNECT", target=at(6), units_moved=1, units_lost=2, idle_ms=10, idle_max_ms=5
    )
    failed = epoch(3, at(5), group_type="CONNECT", target=at(6), unassigned=2, assignment_error=7)
    history = GroupHistory("g", 10_000, epochs=[failed], rebalances=[row])
    assert history.is_connect
    text = "\n".join(sentence.text for sentence in explain(history, row))
    assert (
        "1 connector or task moved from one member to another, 2 were left without an owner; connectors and tasks "
        in text
    )
    assert "The assignor reported error 7: the workers keep what they run." in text
    assert "2 connectors and tasks are in no worker's target." in text
    assert "partition" not in text


def test_a_coordinator_from_which_another_took_over_is_told_with_one_proof() -> None:
    taken_over = at(3, 20_000)
    failed = CoordinatorAway(GROUP_LOG, 0, 2, taken_over, taken_over, is_planned=False, fenced=taken_over)
    ((text, proof),) = about_absence(rebalance(2, at(5, 33_000)), [failed])
    assert text.startswith(
        "The coordinator of the group had been away until 13 s before: broker 2 had failed, and another"
    )
    assert proof == (taken_over,)
