"""Targets after a fail-over: a coordinator that loads a compacted log may hold a group's members in another order."""

import random
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.rows import Verdict
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.audit.targets.map_orders import KEPT_CHANGES, MemberOrders, can_matter
from coordinator_core.groups.group import Group
from coordinator_core.records import LogPosition
from tests.core.audit.coordinated import EVERYTHING, RecordedCluster, churn, colliding_ids
from tests.core.coordinator.clients import GROUP
from tests.core.stored import next_auditor

SEEDS = (4, 5, 7)
"""Scripts in which some fail-over changes an order that decides."""


@cache
def failed_over(seed: int) -> RecordedCluster:
    return churn(random.Random(seed), 150, fail_over=0.1)


def stories(recorded: RecordedCluster, *, leaders: bool) -> str:
    """What is said of the members' order; all targets are identical."""
    rows = recorded.audited(leaders=leaders)
    assert {row.verdict for row in rows} == {Verdict.IDENTICAL}
    return "; ".join(sorted({row.fitted or "" for row in rows}))


def test_without_a_fail_over_the_order_is_that_of_the_log() -> None:
    assert stories(churn(random.Random(0), 150), leaders=True) == "members in the order of the log"


def test_a_new_leader_epoch_tells_of_the_reload() -> None:
    told = [stories(failed_over(seed), leaders=True) for seed in SEEDS]
    assert all("a reload before offset" in each and "(leader epoch " in each for each in told)


def test_a_reload_that_the_log_does_not_show_is_found_too() -> None:
    told = [stories(failed_over(seed), leaders=False) for seed in SEEDS]
    assert all("a reload that the log does not show, compacted up to offset" in each for each in told)


def test_a_broker_that_registered_is_evidence() -> None:
    recorded = churn(random.Random(4), 150, fail_over=0.1)
    recorded.register_brokers()
    assert "(broker 7 registered at 0:99 of the metadata)" in stories(recorded, leaders=False)


@given(st.sampled_from(SEEDS), st.sets(st.integers(0, 600), max_size=20))
def test_the_same_rows_wherever_the_log_is_cut(seed: int, cuts: set[int]) -> None:
    """At any record, inside of operations too, the state goes through JSON."""
    recorded = failed_over(seed)
    whole = recorded.audited()
    auditor = TargetAuditor(Group(GROUP, from_start=True), None, recorded.topics, coverage=EVERYTHING)
    pieces = []
    for index, (record, epoch) in enumerate(zip(recorded.log, recorded.leader_epochs, strict=True)):
        if index in cuts:
            auditor = next_auditor(auditor, recorded.topics, EVERYTHING)
        pieces += auditor.feed(record, epoch)
    assert pieces == whole


@pytest.mark.parametrize("count", [20, 3 * KEPT_CHANGES])
def test_old_changes_are_folded(count: int) -> None:
    """Memory is bounded, and what is left still builds the map as it is."""
    orders, rng, members = MemberOrders(), random.Random(0), set[str]()
    for offset in range(10 * max(KEPT_CHANGES, count)):
        member_id = f"m{rng.randrange(count)}"
        present = member_id not in members
        (members.add if present else members.remove)(member_id)
        orders.change(LogPosition(0, offset, offset), member_id, metadata=True, present=present)
    assert orders.folded
    assert len(orders.changes) < 3 * max(KEPT_CHANGES, count)
    assert all(set(each.members) == members for each in orders.possible([]))


@pytest.mark.parametrize(("members", "matters"), [(colliding_ids(random.Random(0), 3), True), (["a", "b", "c"], False)])
def test_only_members_that_collide_can_change_places(members: list[str], matters: bool) -> None:
    assert can_matter(members) is matters
