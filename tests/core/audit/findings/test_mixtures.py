"""Clients that do not work together: in groups of real clients on a broker, and in histories by hand."""

from typing import Any

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.client_names import client_at
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.rows import Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.broker_log.lines import events
from coordinator_core.clients.blob_writers import WRITERS
from coordinator_core.clients.known_clients import (
    ENDS_WITH_USER_DATA,
    FIRST_VERSION_ONLY,
    MIXTURES,
    NOT_WHOLE,
    Consequence,
    KnownClient,
    clients_named,
    mixtures_of,
)
from coordinator_core.history.rows import MembershipRow
from jobs.queries.from_logs.history import group_histories
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.core.audit.histories import assignment, at, epoch, member
from tests.core.real_logs import histories, unpacked, wild
from tests.shared_data import CORPUS

LIMITS = load(environment={}).findings
KINDS = (
    FindingKind.ASSIGNMENT_NOT_TAKEN,
    FindingKind.MEMBER_LEFT_OUT,
    FindingKind.GENERATIONS_FAILED,
    FindingKind.CLIENTS_CLASH,
    FindingKind.TARGETS_WRONG,
)


def found(history: GroupHistory) -> dict[str, FindingRow]:
    return {row.kind: row for row in findings(history, LIMITS) if row.kind in KINDS}


def test_members_that_read_only_the_last_entry_of_a_topic() -> None:
    of_groups = histories(unpacked("clients") / "topic_listed_twice" / "logs")
    rows = {group_id: found(history) for group_id, history in of_groups.items()}
    kind = FindingKind.ASSIGNMENT_NOT_TAKEN
    counts = {group_id: row[kind].value for group_id, row in rows.items() if kind in row}
    assert counts == {"mix-coop-twice-0": 6, "mix-coop-twice-1": 3, "mix-coop-twice-3": 2}
    detail = rows["mix-coop-twice-3"][kind].detail
    assert detail.startswith("member sarama-ba3f1ad6-844e-4ca9-8a9d-586aa9042ce5 (sarama at 127.0.0.1, sarama) did not")
    causes = [cause.kind for history in of_groups.values() for row in history.rebalances for cause in row.causes]
    assert causes.count("assignment_not_taken") == 11
    assert "unknown" not in causes


def test_what_a_member_does_not_read_has_no_owner() -> None:
    """Generation 4 lists partitions 0 to 6 of one topic, and then 8 of the same."""
    history = histories(unpacked("clients") / "topic_listed_twice" / "logs")["mix-coop-twice-0"]
    then = [
        row.partition
        for row in history.assignments
        if row.topic == "mix-coop-twice-0.b-side"
        and row.kind == "current"
        and row.member_id.startswith("sarama")
        and row.since.offset <= 4
        and (row.until is None or row.until.offset > 4)
    ]
    assert then == [8]


def test_healthy_groups_of_java_have_none_of_these() -> None:
    assert [found(history) for history in histories(wild()).values() if found(history)] == []


def classic(*members: MembershipRow, leader: str, **more: Any) -> GroupHistory:
    rows = [row._replace(group_type="CLASSIC") for row in members]
    epochs = more.pop("epochs", None) or [
        epoch(
            2,
            at(10),
            group_type="CLASSIC",
            leader=leader,
            members=tuple(row.member_id for row in rows),
            assignor="range",
        )
    ]
    return GroupHistory("g", 60_000, epochs=epochs, memberships=rows, **more)


def test_a_member_that_the_leader_leaves_out() -> None:
    members = member("a", at(10), client="librdkafka"), member("b", at(10), client="kafka-go")
    held = [assignment("a", 0, at(10), group_type="CLASSIC")]
    row = found(classic(*members, leader="a", assignments=held))[FindingKind.MEMBER_LEFT_OUT]
    assert (row.value, row.is_open, row.subject) == (50_000, True, "client-b at 10.0.0.1")
    assert "member b (client-b at 10.0.0.1, kafka-go) got nothing in 1 generation" in row.detail
    also = [*held, assignment("b", 1, at(10), group_type="CLASSIC")]
    assert FindingKind.MEMBER_LEFT_OUT not in found(classic(*members, leader="a", assignments=also))


def test_a_real_leader_of_librdkafka_leaves_a_member_of_kafka_go_out() -> None:
    """It shares out among the others, which is what its assignor does with the members that it can read."""
    logs = find_logs([unpacked("clients") / "member_left_out" / "logs"])
    (history,) = group_histories(logs, pytest.fail, audit=AuditSettings())
    rows = found(history)
    assert rows.keys() == {FindingKind.MEMBER_LEFT_OUT, FindingKind.CLIENTS_CLASH}
    row = rows[FindingKind.MEMBER_LEFT_OUT]
    assert (row.value, row.is_open) == (17_554, False)
    assert ", kafka-go) got nothing in 2 generations (17 s): the leader, member rdkafka-de61344e" in row.detail
    assert [target.verdict for target in history.targets] == [Verdict.IDENTICAL] * 3
    assert [(target.fitted or "").endswith("can read") for target in history.targets] == [False, True, True]


def test_generations_that_were_not_completed_name_the_members_that_failed() -> None:
    members = member("a", at(1), client="java"), member("b", at(31), client="kafka-go")
    first = epoch(2, at(1), group_type="CLASSIC", ended=at(30), ended_by="next epoch", members=("a",), is_open=False)
    last = epoch(85, at(30), group_type="CLASSIC", members=("a", "b"))
    row = found(classic(*members, leader="a", epochs=[first, last]))[FindingKind.GENERATIONS_FAILED]
    assert (row.value, row.since_ms, row.until_ms) == (82, 1_000, 30_000)
    assert "if member a (client-a at 10.0.0.1, java) leads with member b (client-b at 10.0.0.1, kafka-go)" in row.detail
    assert "no generation is completed: the leader cannot read a subscription that ends" in row.detail
    few = [first, last._replace(epoch=LIMITS.failed_generations + 2)]
    assert FindingKind.GENERATIONS_FAILED not in found(classic(*members, leader="a", epochs=few))


def test_members_that_come_while_the_leader_assigns_have_not_failed() -> None:
    """A large group starts: each of them begins a new generation before the last one is complete."""
    first = epoch(2, at(1), group_type="CLASSIC", ended=at(30), ended_by="next epoch", members=("m0",), is_open=False)
    for count, is_found in ((84, False), (82, True)):
        rows = [member(f"m{number}", at(1 if number == 0 else 30)) for number in range(count)]
        last = epoch(86, at(30), group_type="CLASSIC", members=tuple(row.member_id for row in rows))
        rows[1] = rows[1]._replace(client="kafka-go")
        history = classic(*rows, leader="m0", epochs=[first, last])
        assert (FindingKind.GENERATIONS_FAILED in found(history)) is is_found


def test_a_group_that_was_converted_had_clients_that_did_not_work_together() -> None:
    members = member("a", at(1), at(90), client="java"), member("b", at(31), at(90), client="kafka-go")
    ended = {"group_type": "CLASSIC", "is_open": False, "ended_by": "next epoch"}
    first = epoch(2, at(1), ended=at(30), members=("a",), **ended)
    last = epoch(85, at(30), ended=at(90), members=("a", "b"), **(ended | {"ended_by": "upgrade"}))
    history = classic(*members, leader="a", epochs=[first, last, epoch(85, at(90)), epoch(99, at(91))])
    assert found(history).keys() >= {FindingKind.GENERATIONS_FAILED, FindingKind.CLIENTS_CLASH}


def test_generations_that_a_broker_could_not_write_are_not_the_fault_of_a_client() -> None:
    members = member("a", at(1), client="java"), member("b", at(31), client="kafka-go")
    first = epoch(2, at(1), group_type="CLASSIC", ended=at(30), ended_by="next epoch", members=("a",), is_open=False)
    last = epoch(85, at(30), group_type="CLASSIC", members=("a", "b"))
    said = (
        "[1970-01-01T00:00:20.000Z] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0] Writing records "
    )
    lines = list(events(f"{said}to __consumer_offsets-0 failed due to: not enough replicas.", "server.log", 7))
    row = found(classic(*members, leader="a", epochs=[first, last], events=lines))[FindingKind.GENERATIONS_FAILED]
    assert row.detail.endswith("a broker could not write: not enough replicas (server.log:7)")


def test_a_member_that_the_last_generation_lost_may_have_failed_since() -> None:
    members = member("a", at(1), client="java"), member("b", at(1), at(5), client="kafka-go")
    first = epoch(2, at(5), group_type="CLASSIC", ended=at(30), ended_by="next epoch", members=("a",), is_open=False)
    last = epoch(85, at(30), group_type="CLASSIC", members=())
    row = found(classic(*members, leader="a", epochs=[first, last]))[FindingKind.GENERATIONS_FAILED]
    assert "if member a (client-a at 10.0.0.1, java) leads with member b" in row.detail
    long_gone = members[0], members[1]._replace(left=at(4))
    row = found(classic(*long_gone, leader="a", epochs=[first, last]))[FindingKind.GENERATIONS_FAILED]
    assert row.detail.endswith("which member failed is not in the coordinator's log")


def test_the_round_robin_of_kafka_python_fails_with_different_topics() -> None:
    members = member("a", at(1), client="kafka-python"), member("b", at(30), client="kafka-python")
    first = epoch(2, at(5), group_type="CLASSIC", ended=at(30), ended_by="next epoch", members=("a",), is_open=False)
    first = first._replace(assignor="roundrobin")
    last = epoch(85, at(30), group_type="CLASSIC", members=("b",))
    same = tuple(row._replace(subscribed_topics=("t",)) for row in members)
    for rows, end in (
        (same, "which member failed is not in the coordinator's log"),
        ((same[0], same[1]._replace(subscribed_topics=("u",))), "or use another assignor"),
    ):
        row = found(classic(*rows, leader="a", epochs=[first, last]))[FindingKind.GENERATIONS_FAILED]
        assert row.detail.endswith(end)


def test_clients_that_would_not_work_together() -> None:
    members = member("a", at(10), client="java"), member("b", at(10), client="kafka-go or platformatic")
    row = found(classic(*members, leader="b"))[FindingKind.CLIENTS_CLASH]
    assert (row.value, row.is_open) == (1, True)
    same = member("a", at(10), client="java"), member("b", at(10), client="franz-go")
    assert found(classic(*same, leader="b")) == {}
    unknown = member("a", at(10), client="java"), member("b", at(10), client="unknown")
    assert found(classic(*unknown, leader="b")) == {}


def test_kafka_go_reads_what_ends_with_the_user_data() -> None:
    """Version 0 of the subscription, as sarama writes it that is configured for an older Kafka."""
    leads = member("a", at(10), client="kafka-go")
    of_today = next(writer.release for writer in WRITERS.values() if writer.client is KnownClient.SARAMA)
    first = {writer.release for writer in WRITERS.values() if writer.subscription == 0}
    assert first >= ENDS_WITH_USER_DATA - {NOT_WHOLE, FIRST_VERSION_ONLY}
    for release in (of_today, *ENDS_WITH_USER_DATA):
        other = member("b", at(10), client="sarama", client_release=release)
        assert (FindingKind.CLIENTS_CLASH in found(classic(leads, other, leader="a"))) is (release == of_today)
    several = {"client": "franz-go or sarama", "client_release": FIRST_VERSION_ONLY}
    assert found(classic(leads, member("b", at(10), **several), leader="a")) == {}


def test_clients_that_did_not_work_together_while_both_were_there() -> None:
    """kafka-python was in the groups that kafka-go led, and left before their end."""
    rows = [found(history) for history in histories(unpacked("clients") / "kafka_go_leads" / "logs").values()]
    # In the other one its blobs are those of old releases of Java and librdkafka, too, which fail otherwise.
    (row,) = (row[FindingKind.CLIENTS_CLASH] for row in rows if FindingKind.CLIENTS_CLASH in row)
    assert (row.is_open, row.value) == (False, 2)
    assert ", kafka-python) leads" in row.detail
    assert row.until_ms > row.since_ms


@pytest.mark.skipif(not (CORPUS / "clients").is_dir(), reason="needs ../shared")
def test_partitions_for_members_that_do_not_want_them_are_one_finding() -> None:
    """The round robin of platformatic gives partitions to all, whoever subscribes to what."""
    logs = find_logs([CORPUS / "clients" / "logs"])
    (history,) = group_histories(logs, lambda message: None, "platformatic-default-subs", AuditSettings())
    (row,) = findings(history, LIMITS)
    assert (row.kind, row.value) == (FindingKind.TARGETS_WRONG, 9)
    assert "as the client of its leader, platformatic, assigns: p1 of platformatic-default-subs.orders" in row.detail
    assert row.detail.endswith("let all members subscribe to the same topics, or use another assignor")


@pytest.mark.parametrize("mixture", MIXTURES, ids=lambda each: f"{each.leader}-{each.consequence.name}")
def test_a_mixture_is_found_for_each_of_its_members_and_for_all_of_them(mixture: Any) -> None:
    protocol = next(iter(mixture.protocols), "range")
    for members in [{each} for each in mixture.members] + [mixture.members]:
        assert mixture in mixtures_of([mixture.leader], members, protocol, mixture.topics)
    assert mixture not in mixtures_of([mixture.leader, *mixture.members], mixture.members, protocol, mixture.topics)
    assert mixture.leader not in mixture.members


def test_a_topic_is_listed_twice_only_if_there_are_two() -> None:
    pair = [KnownClient.LIBRDKAFKA], [KnownClient.SARAMA]
    assert [each.consequence for each in mixtures_of(*pair, "cooperative-sticky", 2)] == [Consequence.NOT_TAKEN]
    assert list(mixtures_of(*pair, "cooperative-sticky", 1)) == list(mixtures_of(*pair, "range", 2)) == []


def test_releases_that_write_all_fields_can_be_read() -> None:
    pair = [KnownClient.JAVA], [KnownClient.PLATFORMATIC]
    assert [each.consequence for each in mixtures_of(*pair, "roundrobin", 1)] == [Consequence.FAILS]
    assert list(mixtures_of(*pair, "roundrobin", 1, "2.12 or later")) == []


def test_names_of_clients() -> None:
    assert clients_named("kafka-go or platformatic") == (KnownClient.KAFKA_GO, KnownClient.PLATFORMATIC)
    assert clients_named("unknown") == ()


def test_a_client_with_an_empty_id_is_named_by_its_host() -> None:
    assert client_at("", "/10.0.0.1") == "client without an id at 10.0.0.1"
    assert client_at("app", "/10.0.0.1") == "app at 10.0.0.1"
