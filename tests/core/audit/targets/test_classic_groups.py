"""Which topics a classic leader can have known: what it once assigned by, it never forgets."""

from __future__ import annotations

import pytest

from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import audit_group
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import HistoryGap, TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob
from tests.core.audit.coordinated import EVERYTHING

GROWN_AT = 50_000
AGE = 300_000


def topics() -> TopicHistory:
    """``orders`` grows from two partitions to three; ``other`` never changes."""
    history = TopicHistory()
    history.open_version(LogPosition(0, 1, 0))
    history.put_topic(Topic("orders", "o".ljust(22, "A"), 2))
    history.put_topic(Topic("other", "p".ljust(22, "A"), 1))
    history.open_version(LogPosition(0, 2, GROWN_AT))
    history.put_topic(Topic("orders", "o".ljust(22, "A"), 3))
    history.last_seen_ms = 10 * AGE
    return history


def member(member_id: str, assigned: dict[str, list[int]], subscribed: tuple[str, ...] = ("orders",)) -> Fields:
    entries = [{"topic": topic, "partitions": numbers} for topic, numbers in assigned.items()]
    subscription = {"topics": list(subscribed), "userData": None}
    assignment = {"assignedPartitions": entries, "userData": None}
    return {
        "memberId": member_id,
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 60_000,
        "sessionTimeout": 45_000,
        "subscription": encode_blob("ConsumerProtocolSubscription", 0, subscription),
        "assignment": encode_blob("ConsumerProtocolAssignment", 0, assignment),
    }


def generation(number: int, time_ms: int, leader: str, *members: Fields) -> CoordinatorRecord:
    value = {
        "protocolType": "consumer",
        "generation": number,
        "protocol": "range",
        "leader": leader,
        "currentStateTimestamp": time_ms,
        "members": list(members),
    }
    at = LogPosition(0, number, time_ms)
    return CoordinatorRecord(at, RecordType.GROUP_METADATA, {"group": "g"}, value, 3, number)


def audited(*records: CoordinatorRecord, settings: AuditSettings | None = None) -> list[TargetAuditRow]:
    return list(audit_group(records, Group("g", from_start=True), topics(), settings, EVERYTHING))


def test_a_leader_may_not_have_seen_new_partitions_yet() -> None:
    [row] = audited(generation(1, GROWN_AT + 20_000, "a", member("a", {"orders": [0, 1]})))
    assert row.verdict is Verdict.IDENTICAL
    assert row.fitted == "topics that had changed 20000 ms before"
    assert row.topics_at == LogPosition(0, 1, 0)


def test_but_not_for_longer_than_clients_keep_metadata() -> None:
    late = generation(1, GROWN_AT + AGE + 1, "a", member("a", {"orders": [0, 1]}))
    [row] = audited(late)
    assert row.verdict is Verdict.DIVERGENT
    assert row.differences == ("p2 of orders: a expected, nobody recorded",)
    [row] = audited(late, settings=AuditSettings(metadata_age_ms=2 * AGE))
    assert row.verdict is Verdict.IDENTICAL


@pytest.mark.parametrize(("leader", "verdict"), [("a", Verdict.DIVERGENT), ("b", Verdict.IDENTICAL)])
def test_a_leader_that_assigned_new_partitions_knows_them_ever_after(leader: str, verdict: Verdict) -> None:
    """Another member that becomes leader may still not have seen them."""
    both = member("a", {"orders": [0, 1]}), member("b", {"orders": [2]})
    dropped = member("a", {"orders": [0]}), member("b", {"orders": [1]})
    rows = audited(generation(1, GROWN_AT + 10_000, "a", *both), generation(2, GROWN_AT + 20_000, leader, *dropped))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, verdict]


@pytest.mark.parametrize(("first_leader", "verdict"), [("b", Verdict.IDENTICAL), ("a", Verdict.DIVERGENT)])
def test_only_a_new_leader_may_know_its_own_topics_alone(first_leader: str, verdict: Verdict) -> None:
    whole = member("a", {"orders": [0, 1, 2]}), member("b", {"other": [0]}, ("other",))
    part = member("a", {"orders": [0, 1, 2]}), member("b", {}, ("other",))
    rows = audited(generation(1, GROWN_AT + 10_000, first_leader, *whole), generation(2, GROWN_AT + 20_000, "a", *part))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, verdict]


def test_where_topics_may_be_missing_an_odd_assignment_is_unknown() -> None:
    """A leader that assigns a partition nobody has heard of knows more than a damaged metadata log."""
    strange = generation(1, GROWN_AT, "a", member("a", {"orders": [0, 1, 2, 3]}))
    damaged, ended, whole = topics(), topics(), topics()
    damaged.gaps.append(HistoryGap(LogPosition(0, 1, 0), "the metadata log has a hole before offset 1"))
    ended.last_seen_ms = GROWN_AT - 1
    judged = [
        next(iter(audit_group([strange], Group("g", from_start=True), known, None, EVERYTHING)))
        for known in (whole, damaged, ended)
    ]
    assert [row.verdict for row in judged] == [Verdict.INVALID, Verdict.UNKNOWN, Verdict.UNKNOWN]
    assert "a hole before offset 1" in (judged[1].missing or "")
    assert "ends before" in (judged[2].missing or "")


def test_what_no_topics_can_explain_stays_invalid() -> None:
    damaged = topics()
    damaged.gaps.append(HistoryGap(LogPosition(0, 1, 0), "a hole"))
    twice = generation(1, GROWN_AT, "a", member("a", {"orders": [0]}), member("b", {"orders": [0]}))
    unasked = generation(2, GROWN_AT, "a", member("a", {"other": [0]}))
    rows = audit_group([twice, unasked], Group("g", from_start=True), damaged, None, EVERYTHING)
    assert {row.verdict for row in rows} == {Verdict.INVALID}
