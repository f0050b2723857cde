"""Logs that no coordinator writes, or not as a whole: rows that say so, never an exception, never a guess."""

import random

import pytest

from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow, MembershipRow, RebalanceRow
from tests.core.history.logs import (
    A,
    Change,
    GroupLog,
    alone,
    classic,
    current,
    epoch,
    generation,
    gone,
    group_gone,
    kinds,
    member,
    target,
    target_epoch,
)


@pytest.mark.parametrize(
    ("records", "rules"),
    [
        ([current("m", 3, 0)], ["assignment_without_member"]),
        ([target("m", 0)], ["target_without_member"]),
        ([target_epoch(3), epoch(3)], []),
        ([*gone("m")], ["tombstone_without_value"] * 3),
        ([*group_gone()], ["tombstone_without_value"] * 2),
        ([epoch(5), epoch(4)], ["epoch_went_back"]),
        ([epoch(5), target_epoch(5), target_epoch(4)], ["assignment_epoch_went_back"]),
        ([member("m", "t"), epoch(5), current("m", 5, 0), current("m", 4, 0)], ["member_epoch_went_back"]),
        ([epoch(5), member("m", "t"), current("m", 9, 0)], ["member_epoch_ahead"]),
        ([member("m", "t"), epoch(5), generation(1, {})], ["type_changed_without_tombstone"]),
        ([generation(5, {}), generation(4, {})], ["generation_went_back"]),
    ],
)
def test_what_no_coordinator_writes_is_a_violation(records: list[Change], rules: list[str]) -> None:
    assert GroupLog().write(*records).violations() == rules


def test_records_of_members_before_those_of_their_group_are_history_all_the_same() -> None:
    log = GroupLog().write(current("m", 5, 0), target("m", 0), member("m", "t"), epoch(5), target_epoch(5))
    (row,) = log.rebalances()
    assert (row.to_epoch, row.history_complete) == (5, False)
    assert row.missing == "the log does not show the group before epoch 5"
    assert [(each.partition, each.history_complete) for each in log.assignments()] == [(0, False)]


def test_a_topic_id_that_nobody_knows_has_no_name() -> None:
    topics = fold_snapshots([{"name": "other", "id": None, "partitions": 1, "time": 1}])
    rows = alone(GroupLog()).rows(topics)
    assigned = [row for row in rows if isinstance(row, AssignmentRow)]
    assert {(row.topic_id, row.topic) for row in assigned} == {(A, None)}


def test_a_log_that_starts_in_the_middle_marks_what_it_does_not_know() -> None:
    log = GroupLog(offset=50).write(member("a", "t"), epoch(8), target("a", 0), target_epoch(8), current("a", 8, 0))
    rows = log.rows(coverage=Coverage({0: [(50, 99)]}))
    for row in rows:
        assert not row.history_complete, row
    (rebalance,) = (row for row in rows if isinstance(row, RebalanceRow))
    assert (kinds(rebalance), rebalance.from_epoch, rebalance.members_before) == (["unknown"], None, None)
    (membership,) = (row for row in rows if isinstance(row, MembershipRow))
    assert membership.came_by == "unknown"


def test_topic_snapshots_that_are_older_than_the_log_prove_nothing_of_it() -> None:
    """The newest image is all there is to go by; its hash is not the one recorded, which other topics may have."""
    topics = fold_snapshots([{"name": "t", "id": A, "partitions": 4, "time": 1}])
    log = alone(GroupLog(time_ms=10**9)).write(epoch(3, metadata_hash=77))
    second = [row for row in log.rows(topics) if isinstance(row, GroupEpochRow)][-1]
    assert second.topics_proven is None
    assert [(each.kind, each.detail) for each in second.causes] == [
        ("topic_metadata_changed", "the metadata hash changed; it is not known which topic changed")
    ]


def test_topic_snapshots_that_are_newer_than_the_log_say_nothing_of_it() -> None:
    topics = fold_snapshots([{"name": "t", "id": A, "partitions": 4, "time": 10**9}])
    (first,) = (row for row in alone(GroupLog()).rows(topics) if isinstance(row, GroupEpochRow))
    assert (first.topics_proven, first.topics_at) == (None, None)


def test_any_order_of_any_records_is_no_exception() -> None:
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3), target("m2", 1), target_epoch(3), current("m2", 3, 1))
    log.write(*gone("m1"), epoch(4), *group_gone())
    log.write(generation(1, {"c": classic({"t": [0]})}), generation(2, {}))
    for seed in range(200):
        shuffled = GroupLog()
        chosen = random.Random(seed)
        shuffled.records = chosen.sample(log.records, chosen.randrange(len(log.records) + 1))
        assert all(row.group_id == "g" for row in shuffled.rows())
