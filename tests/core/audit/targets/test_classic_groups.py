"""Which topics a classic leader can have known: what it once assigned by, it never forgets."""

import pytest

from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets import leader_views
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.groups.group import Group
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob
from tests.core.audit.coordinated import EVERYTHING
from tests.core.audit.targets.verdicts import audit_group

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


FIRST_TIME = b"\xff" * 4
"""The user data of a member of Kafka's cooperative-sticky that was in no generation yet."""


def member(
    member_id: str,
    assigned: dict[str, list[int]],
    subscribed: tuple[str, ...] = ("orders",),
    user_data: bytes | None = None,
) -> Fields:
    entries = [{"topic": topic, "partitions": numbers} for topic, numbers in assigned.items()]
    subscription = {"topics": list(subscribed), "userData": user_data, "ownedPartitions": [], "generationId": -1}
    subscription |= {"rackId": None}
    assignment = {"assignedPartitions": entries, "userData": None}
    return {
        "memberId": member_id,
        "groupInstanceId": None,
        "clientId": "c",
        "clientHost": "/h",
        "rebalanceTimeout": 60_000,
        "sessionTimeout": 45_000,
        "subscription": encode_blob("ConsumerProtocolSubscription", 3, subscription),
        "assignment": encode_blob("ConsumerProtocolAssignment", 3, assignment),
    }


def generation(number: int, time_ms: int, leader: str, *members: Fields, protocol: str = "range") -> CoordinatorRecord:
    value = {
        "protocolType": "consumer",
        "generation": number,
        "protocol": protocol,
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
    assert row.fitted == "topics that had changed 20 s before"
    assert row.topics_at == LogPosition(0, 1, 0)


def test_but_not_for_longer_than_clients_keep_metadata() -> None:
    late = generation(1, GROWN_AT + AGE + 1, "a", member("a", {"orders": [0, 1]}))
    [row] = audited(late)
    assert row.verdict is Verdict.DIVERGENT
    assert row.differences == ("p2 of orders: a expected, no member recorded",)
    [row] = audited(late, settings=AuditSettings(metadata_age_ms=2 * AGE))
    assert row.verdict is Verdict.IDENTICAL


@pytest.mark.parametrize(("leader", "verdict"), [("a", Verdict.DIVERGENT), ("b", Verdict.IDENTICAL)])
def test_a_leader_that_assigned_new_partitions_knows_them_ever_after(leader: str, verdict: Verdict) -> None:
    """Another member that becomes leader may still not have seen them."""
    both = member("a", {"orders": [0, 1]}), member("b", {"orders": [2]})
    dropped = member("a", {"orders": [0]}), member("b", {"orders": [1]})
    rows = audited(generation(1, GROWN_AT + 10_000, "a", *both), generation(2, GROWN_AT + 20_000, leader, *dropped))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, verdict]


@pytest.mark.parametrize("first_leader", ["a", "b"])
def test_a_leader_may_not_know_a_topic_of_others_yet(first_leader: str) -> None:
    """It asks for the topics of others each time it becomes leader, whether or not it was the leader before."""
    whole = member("a", {"orders": [0, 1, 2]}), member("b", {"other": [0]}, ("other",))
    part = member("a", {"orders": [0, 1, 2]}), member("b", {}, ("other",))
    rows = audited(generation(1, GROWN_AT + 10_000, first_leader, *whole), generation(2, GROWN_AT + 20_000, "a", *part))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, Verdict.IDENTICAL]
    assert rows[1].fitted == "newest topics; the leader did not know other yet"


@pytest.mark.parametrize("leader_before", ["a", "b"])
def test_a_leader_may_not_know_yet_what_it_has_just_subscribed_to(leader_before: str) -> None:
    """It joins again at once. In the generation after that it has the topic's metadata."""
    before = member("a", {"orders": [0, 1]}), member("b", {"orders": [2]})
    unaware = member("a", {"orders": [0, 1]}, ("orders", "other")), member("b", {"orders": [2]})
    rows = audited(
        generation(1, GROWN_AT + 10_000, leader_before, *before),
        *(generation(number, GROWN_AT + number * 10_000, "a", *unaware) for number in (2, 3)),
    )
    assert [row.verdict for row in rows[1:]] == [Verdict.IDENTICAL, Verdict.DIVERGENT]
    assert rows[1].fitted == "newest topics; the leader did not know other yet"


def test_a_leader_knows_the_topics_of_its_own_subscription() -> None:
    part = member("a", {"other": [0]}, ("orders", "other")), member("b", {}, ("other",))
    [row] = audited(generation(1, GROWN_AT + 20_000, "a", *part))
    assert row.verdict is Verdict.DIVERGENT


@pytest.mark.parametrize(("age_ms", "verdict"), [(10_000, Verdict.IDENTICAL), (20_000, Verdict.DIVERGENT)])
def test_a_leader_finds_a_new_topic_of_its_own_subscription_soon(age_ms: int, verdict: Verdict) -> None:
    history = topics()
    history.open_version(LogPosition(0, 3, GROWN_AT + 1))
    history.put_topic(Topic("new", "n".ljust(22, "A"), 1))
    none_of_it = generation(1, GROWN_AT + 1 + age_ms, "a", member("a", {}, ("new",)))
    [row] = audit_group([none_of_it], Group("g", from_start=True), history, None, EVERYTHING)
    assert row.verdict is verdict


def many_topics(count: int) -> TopicHistory:
    history = TopicHistory()
    history.open_version(LogPosition(0, 1, 0))
    for number in range(count):
        history.put_topic(Topic(f"t{number}", f"{number}".ljust(22, "A"), 1))
    history.last_seen_ms = 10 * AGE
    return history


@pytest.mark.parametrize(
    ("count", "unknown"), [(4, ("t1", "t3")), (14, ("t2",)), (14, tuple(f"t{i}" for i in range(1, 14)))]
)
def test_a_cooperative_leader_may_not_know_some_of_several_topics(count: int, unknown: tuple[str, ...]) -> None:
    names = [f"t{number}" for number in range(count)]
    mine = {name: [0] for name in names[1:] if name not in unknown}
    both = member("a", {"t0": [0]}, ("t0",)), member("b", mine, tuple(names[1:]))
    record = generation(1, GROWN_AT, "a", *both, protocol="cooperative-sticky")
    [row] = audit_group([record], Group("g", from_start=True), many_topics(count), None, EVERYTHING)
    assert row.verdict is Verdict.IDENTICAL
    assert row.fitted is not None
    assert f"the leader did not know {unknown[0]}" in row.fitted
    assert ("and 3 more yet" in row.fitted) is (len(unknown) > 10)


@pytest.mark.parametrize(("count", "verdict"), [(5, Verdict.DIVERGENT), (6, Verdict.UNKNOWN)])
def test_beyond_the_bound_it_is_unknown_what_the_leader_knew(
    count: int, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No view explains the assignment, but of 31 combinations of five topics not all are tried."""
    monkeypatch.setattr(leader_views, "MOST_VIEWS", 16)
    names = [f"t{number}" for number in range(count)]
    both = member("a", {}, ("t0",), FIRST_TIME), member("b", {}, tuple(names[1:]), FIRST_TIME)
    record = generation(1, GROWN_AT, "a", *both, protocol="cooperative-sticky")
    [row] = audit_group([record], Group("g", from_start=True), many_topics(count), None, EVERYTHING)
    assert row.verdict is verdict
    said = "which of 5 topics outside its own subscription, or new in it, the leader knew: "
    assert row.missing == (f"{said}only 16 combinations were tried" if verdict is Verdict.UNKNOWN else None)


def test_the_topics_in_force_when_a_window_begins_still_count() -> None:
    """No member subscribes any more to the topic that changed last; the next change is in the future."""
    history = topics()
    history.open_version(LogPosition(0, 3, GROWN_AT + 1_000))
    history.put_topic(Topic("other", "p".ljust(22, "A"), 2))
    history.open_version(LogPosition(0, 4, GROWN_AT + 20_000))
    history.put_topic(Topic("orders", "o".ljust(22, "A"), 4))
    both = member("a", {"orders": [0, 1, 2], "other": [0, 1]}, ("orders", "other"))
    records = (
        generation(1, GROWN_AT + 2_000, "a", both),
        generation(2, GROWN_AT + 15_000, "a", member("a", {"orders": [0, 1, 2]})),
    )
    rows = list(audit_group(records, Group("g", from_start=True), history, None, EVERYTHING))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, Verdict.IDENTICAL]
    assert rows[1].topics_at == LogPosition(0, 2, GROWN_AT)


@pytest.mark.parametrize("protocol", ["range", "roundrobin"])
def test_nothing_is_equivalent_to_the_one_right_answer(protocol: str) -> None:
    right = {"range": ([0, 1], [2]), "roundrobin": ([0, 2], [1])}[protocol]
    swapped = ([2, 1], [0]) if protocol == "range" else ([1, 2], [0])
    for (first, second), verdict in ((right, Verdict.IDENTICAL), (swapped, Verdict.DIVERGENT)):
        both = member("a", {"orders": first}), member("b", {"orders": second})
        [row] = audited(generation(1, GROWN_AT + 20_000, "a", *both, protocol=protocol))
        assert row.verdict is verdict


def kafkajs_member(member_id: str, assigned: list[int]) -> Fields:
    written = member(member_id, {})
    subscription = {"topics": ["orders"], "userData": b""}
    assignment = {"assignedPartitions": [{"topic": "orders", "partitions": assigned}], "userData": b""}
    return written | {
        "subscription": encode_blob("ConsumerProtocolSubscription", 0, subscription),
        "assignment": encode_blob("ConsumerProtocolAssignment", 0, assignment),
    }


def test_a_leader_may_deal_partitions_as_a_broker_lists_them() -> None:
    """Some brokers list them in the order of a hash map; each member has as many of each topic all the same.

    Recorded with kafkajs 2.0.2 on a broker of 3.9.1.
    """
    dealt = {Verdict.IDENTICAL: ([0, 2], [1]), Verdict.EQUIVALENT: ([1, 2], [0]), Verdict.DIVERGENT: ([1], [0, 2])}
    for verdict, (first, second) in dealt.items():
        both = kafkajs_member("a", first), kafkajs_member("b", second)
        [row] = audited(generation(1, GROWN_AT + 20_000, "a", *both, protocol="RoundRobinAssigner"))
        assert (row.verdict, row.client) == (verdict, "kafkajs")
        assert ("a broker lists partitions" in (row.fitted or "")) == (verdict is Verdict.EQUIVALENT)


def test_a_new_leader_of_kafka_python_may_not_know_its_own_topics_yet() -> None:
    """Recorded with 3.0.12 on a slow machine: it joined again within a second, and assigned all."""
    alone = kafkajs_member("a", []) | {"clientId": "kafka-python-3.0.12"}
    alone["assignment"] = encode_blob("ConsumerProtocolAssignment", 0, {"assignedPartitions": [], "userData": b""})
    rows = audited(generation(1, GROWN_AT - 20_000, "a", alone), generation(2, GROWN_AT - 10_000, "a", alone))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, Verdict.INVALID]
    assert "the leader did not know orders yet" in (rows[0].fitted or "")


def test_what_an_unknown_client_assigns_is_not_held_against_others() -> None:
    """It may have an assignor of its own under a name that others use."""
    for first, second, verdict in (
        ([0, 1], [2], Verdict.IDENTICAL),
        ([2, 1], [0], Verdict.SOUND),
        ([0, 1], [1, 2], Verdict.INVALID),
    ):
        both = kafkajs_member("a", first), kafkajs_member("b", second)
        unknown = [written | {"clientId": "kafka-node-client"} for written in both]
        [row] = audited(generation(1, GROWN_AT + 20_000, "a", *unknown))
        assert (row.verdict, row.client) == (verdict, "unknown")


@pytest.mark.parametrize(
    ("protocol", "second", "verdict"),
    [
        ("faust", {"orders": [1]}, Verdict.SOUND),
        ("faust", {"orders": [0, 1]}, Verdict.UNKNOWN),  # as Faust gives out the changelogs of tables with standbys
        ("faust", {}, Verdict.UNKNOWN),
        ("faust", {"orders": [1], "other": [0]}, Verdict.INVALID),
        ("faust", {"orders": [1, 9]}, Verdict.INVALID),
        ("roundrobin", {"orders": [0, 1]}, Verdict.INVALID),
    ],
)
def test_an_assignor_of_an_application_may_mean_what_others_must_not_do(
    protocol: str, second: dict[str, list[int]], verdict: Verdict
) -> None:
    members = member("m1", {"orders": [0]}), member("m2", second)
    (row,) = audited(generation(1, 1_000, "m1", *members, protocol=protocol))
    assert row.verdict is verdict
    if verdict is Verdict.UNKNOWN:
        assert "whether the assignor faust, which no known client has, means it: p" in (row.missing or "")


def sticky(number: int, first: list[int], second: list[int]) -> CoordinatorRecord:
    both = (member(m, {"orders": own}, user_data=FIRST_TIME) for m, own in (("a", first), ("b", second)))
    return generation(number, GROWN_AT + 20_000 * number, "a", *both, protocol="cooperative-sticky")


def simple_member(member_id: str, numbers: list[int], client_id: str) -> Fields:
    """Of version 0, which any client may write."""
    asked = {"topics": ["orders"], "userData": None}
    given = {"assignedPartitions": [{"topic": "orders", "partitions": numbers}], "userData": None}
    return member(member_id, {}) | {
        "clientId": client_id,
        "subscription": encode_blob("ConsumerProtocolSubscription", 0, asked),
        "assignment": encode_blob("ConsumerProtocolAssignment", 0, given),
    }


@pytest.mark.parametrize(
    ("client_id", "second", "verdict"),
    [
        ("sarama", [0, 2], Verdict.DIVERGENT),
        ("my-app", [0, 2], Verdict.SOUND),  # ruby-kafka gives in the order of the answer to JoinGroup
        ("my-app", [0, 1], Verdict.INVALID),
        ("my-app", [0, 2, 9], Verdict.INVALID),
    ],
)
def test_a_client_that_may_be_any_is_not_blamed_for_another_order(
    client_id: str, second: list[int], verdict: Verdict
) -> None:
    both = simple_member("b", second, client_id), simple_member("a", [1], client_id)
    [row] = audited(generation(1, GROWN_AT + 20_000, "b", *both, protocol="roundrobin"))
    assert row.verdict is verdict


def test_a_release_of_a_client_that_is_not_known_is_not_blamed_either() -> None:
    """Its subscriptions are of a version to come."""
    both = [member("a", {"orders": [0, 2]}), member("b", {"orders": [1]})]
    new = [each | {"subscription": b"\x00\x09" + each["subscription"][2:]} for each in both]
    [row] = audited(generation(1, GROWN_AT + 20_000, "a", *new))
    assert row.verdict is Verdict.SOUND
    damaged = topics()
    damaged.gaps.append(HistoryGap(LogPosition(0, 1, 0), "a hole"))
    last = generation(1, GROWN_AT + 20_000, "a", *new)
    [row] = audit_group([last], Group("g", from_start=True), damaged, None, EVERYTHING)
    assert "a hole" in (row.missing or ""), "whether each partition was given is not known"


def test_another_result_as_good_is_another_clients_unless_the_leader_is_kafkas() -> None:
    right, other = ([0, 2], [1]), ([0, 1], [2])
    assert [row.verdict for row in audited(sticky(1, *right), sticky(2, *other))] == [
        Verdict.IDENTICAL,
        Verdict.DIVERGENT,
    ]
    assert [row.verdict for row in audited(sticky(1, *other))] == [Verdict.EQUIVALENT]


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


def test_topics_can_explain_that_a_sticky_assignor_gives_a_partition_to_two() -> None:
    """A real leader did, which did not know one of its topics yet."""
    ended = topics()
    ended.last_seen_ms = GROWN_AT - 1
    for protocol in ("sticky", "cooperative-sticky"):
        twice = generation(1, GROWN_AT, "a", *[member(name, {"orders": [0]}) for name in "ab"], protocol=protocol)
        unasked = generation(2, GROWN_AT, "a", member("a", {"other": [0]}), protocol=protocol)
        for known, verdicts in (
            (topics(), [Verdict.INVALID, Verdict.INVALID]),
            (ended, [Verdict.UNKNOWN, Verdict.INVALID]),
        ):
            rows = audit_group([twice, unasked], Group("g", from_start=True), known, None, EVERYTHING)
            assert [row.verdict for row in rows] == verdicts


@pytest.mark.parametrize(
    ("counts", "given", "verdict"),
    [
        ({0: 2, 90_000: 2}, [0, 1], Verdict.SOUND),
        ({0: 2, 90_000: 3}, [0, 1], Verdict.UNKNOWN),
        ({0: 2}, [0, 1], Verdict.UNKNOWN),
        ({0: 2, 90_000: 2}, [0], Verdict.UNKNOWN),
    ],
    ids=["the same", "grown at some time", "none later", "a partition is left out"],
)
def test_lists_before_and_after_that_show_the_same_topics_prove_an_assignment_sound(
    counts: dict[int, int], given: list[int], verdict: Verdict
) -> None:
    """One that leaves a partition out can still be right: the topic may have been made anew between two lists."""
    lists = fold_snapshots([{"name": "orders", "id": None, "partitions": n, "time": at} for at, n in counts.items()])
    record = generation(1, 50_000, "a", member("a", {"orders": given}), protocol="my-app")
    [row] = audit_group([record], Group("g", from_start=True), lists, None, EVERYTHING)
    assert row.verdict is verdict


def of_kafka_python(member_id: str, given: dict[str, list[int]], owned: dict[str, list[int]]) -> Fields:
    """A member of its cooperative-sticky: user data of length 0, and no generation."""
    has, gets = ([{"topic": topic, "partitions": each} for topic, each in work.items()] for work in (owned, given))
    asked = {"topics": ["orders", "other"], "userData": b"", "ownedPartitions": has}
    return member(member_id, {}) | {
        "subscription": encode_blob("ConsumerProtocolSubscription", 1, asked),
        "assignment": encode_blob("ConsumerProtocolAssignment", 1, {"assignedPartitions": gets, "userData": b""}),
    }


@pytest.mark.parametrize(
    "kept",
    [{"orders": [0, 1]}, {"orders": [2], "other": [0]}],
    ids=["knows its topics alone", "knows a topic that nobody subscribes to"],
)
def test_what_kafka_python_assigns_depends_on_other_topics_that_its_leader_knows(kept: dict[str, list[int]]) -> None:
    """As its own class does (3.0.12): it compares the subscribers of all topics in the leader's metadata."""
    whole = {"orders": [0, 1, 2], "other": [0]}
    both = of_kafka_python("a", {}, {}), of_kafka_python("b", kept, whole)
    [row] = audited(generation(1, GROWN_AT + 400_000, "a", *both, protocol="cooperative-sticky"))
    assert (row.verdict, row.basis, row.client) == (Verdict.IDENTICAL, "leader", "kafka-python")
