"""Groups in the shape of Kafka's Admin client, with the quirks of each type."""

from dataclasses import replace

import pytest

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember
from coordinator_core.groups.describe import Surroundings, describe
from coordinator_core.groups.group import Group
from coordinator_core.groups.log_partition import log_partition_of
from coordinator_core.groups.offsets import GroupOffsets, TopicPartition
from coordinator_core.groups.owners import owners
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.share.state_log import SHARE_SNAPSHOT, SHARE_UPDATE, ShareStateLog
from coordinator_core.groups.streams.state import StreamsGroup, StreamsMember
from coordinator_core.records import GROUP_LOG, CoordinatorRecord, Fields, LogPosition
from coordinator_core.wire.embedded import encode_blob
from tests.core.builders import GroupLog, classic_member, subtopology
from tests.core.cluster.test_metadata_log import Log, change, config, partition, topic

ORDERS, GONE = "orders-topic-id-______", "deleted-topic-id______"
TOPICS = TopicImage.of([Topic("orders", ORDERS, 3)])
ASSIGNMENT = bytes.fromhex(
    "0001 00000002 0006 6f7264657273 00000001 00000000 0006 6f7264657273 00000001 00000001 ffffffff"
)


def settings_at(
    history: TopicHistory, group: Group, time_ms: int, upto_ms: int | None = None
) -> tuple[list[str] | None, bool]:
    """Return the values of the group's own settings at a time, and whether they are called unknown."""
    around = Surroundings(history.image_at(time_ms)).with_brokers(history, time_ms, upto_ms)
    found = describe(group, GroupOffsets(), around)
    settings = found["settings"]
    return settings and [each["value"] for each in settings], "settings" in found["unknownFields"]


def described(records: list[CoordinatorRecord], around: Surroundings | None = None) -> Fields:
    shard = CoordinatorShard()
    for record in records:
        shard.apply(record)
    return describe(shard.groups["g"], shard.offsets_of("g"), around or Surroundings(TOPICS))


def test_consumer_group_holds_what_it_has_yet_to_give_up() -> None:
    log = GroupLog()
    group = described(
        [*log.join("a", 2, {ORDERS: [0]}), log.current("a", 2, {ORDERS: [0], GONE: [4]}, {ORDERS: [1]}, 1)]
    )
    assert group["listing"] == {
        "groupId": "g",
        "groupState": "RECONCILING",
        "isSimpleConsumerGroup": False,
        "protocol": "consumer",
        "type": "CONSUMER",
    }
    member = group["describe_consumer"]["members"][0]
    assert member["assignment"] == {"topicPartitions": ["orders-0", "orders-1"]}, "a deleted topic is left out"
    assert member["targetAssignment"] == {"topicPartitions": ["orders-0"]}
    assert member["upgraded"] is True


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_members_are_listed_by_id(kind: str) -> None:
    """Compaction leaves the last record of each key: the order in which members are first seen is another one then."""
    log = GroupLog()
    joins = {"consumer": log.member, "share": log.share_member, "streams": log.streams_member}
    group = described([joins[kind](member_id) for member_id in ("b", "c", "a")])
    members = group[f"describe_{kind}"]["members"]
    assert [each.get("consumerId") or each["memberId"] for each in members] == ["a", "b", "c"]


def test_topic_ids_that_stand_for_names_are_listed() -> None:
    log = GroupLog()
    records = [*log.join("a", 2, {ORDERS: [0]}), log.current("a", 2, {ORDERS: [0]}, {GONE: [1]}, 1)]
    assert "unnamedTopics" not in described(records)
    assert described(records, Surroundings())["unnamedTopics"] == [GONE, ORDERS]
    part = described(records, Surroundings(replace(TOPICS, is_whole=False)))
    assert part["unnamedTopics"] == [GONE]
    assert part["topicsInDoubt"] == ["orders"], "it may be gone, too"
    assert "topicsInDoubt" not in described(records) | described(records, Surroundings())
    (member,) = part["describe_consumer"]["members"]
    assert member["assignment"] == {"topicPartitions": [f"{GONE}-1", "orders-0"]}


@pytest.mark.parametrize("topics", [None, replace(TOPICS, is_whole=False), TOPICS])
def test_a_share_groups_own_records_name_its_topics(topics: TopicImage | None) -> None:
    """Whether these are still there is what only the metadata log tells."""
    log = GroupLog()
    records = [log.share_state({GONE: ("gone", [0])}), log.share_current("a", 2, {ORDERS: [0], GONE: [0]})]
    found = described([log.share_member("a"), *records], Surroundings(topics))
    (member,) = found["describe_share"]["members"]
    orders = f"{ORDERS}-0" if topics is None else "orders-0"
    expected = ["orders-0"] if topics is TOPICS else sorted(["gone-0", orders])
    assert member["assignment"] == {"topicPartitions": expected}
    assert found.get("unnamedTopics") == ([ORDERS] if topics is None else None)
    doubted = {name for name in ("gone", "orders") if f"{name}-0" in expected}
    assert found.get("topicsInDoubt") == (None if topics is TOPICS else sorted(doubted))


def test_the_assignor_that_no_member_asks_for_is_the_brokers_first() -> None:
    group, log = Group("g", from_start=True), GroupLog()
    for record in log.join("a", 2, {}):
        group.apply(record)
    known, unknown = (
        describe(group, GroupOffsets(), Surroundings(default_assignor=default)) for default in ("range", None)
    )
    assert (known["describe_consumer"]["partitionAssignor"], known["unknownFields"]) == ("range", ["coordinator"])
    assert unknown["describe_consumer"]["partitionAssignor"] is None
    assert unknown["unknownFields"] == ["coordinator", "partitionAssignor"]
    group.state.members["a"].server_assignor = "uniform"
    asked = describe(group, GroupOffsets(), Surroundings())
    assert (asked["describe_consumer"]["partitionAssignor"], asked["unknownFields"]) == ("uniform", ["coordinator"])


def test_settings_are_those_of_the_moment_or_unknown() -> None:
    """A metadata log that ends before the moment does not show a setting that was changed since."""
    set_once = Log().batch(topic("orders", ORDERS), config("consumer.session.timeout.ms", "50000"))
    state = ConsumerGroup(members={"m": ConsumerMember("m", client_id="c", server_assignor="range")})
    group = Group("g", state, from_start=True)
    assert settings_at(set_once.history(), group, 1_000) == (["50000"], False)
    assert settings_at(set_once.history(), group, 10**12) == (None, True)
    nothing = describe(group, GroupOffsets(), Surroundings().with_brokers(None, 1_000))
    assert nothing["settings"] is None
    assert "settings" in nothing["unknownFields"]
    classic = Group("g", ClassicGroup(), from_start=True)
    assert "settings" not in describe(classic, GroupOffsets(), Surroundings().with_brokers(None, 1_000))


def test_settings_that_change_before_the_moment_can_have_been_are_unknown() -> None:
    """Compaction removes the last record below an offset, and with it the time of the moment."""
    log = Log().batch(topic("orders", ORDERS), config("consumer.session.timeout.ms", "50000"))
    changed_ms = log.batch(config("consumer.session.timeout.ms", "55000")).history().last_seen_ms
    history, group = log.history(), Group("g", ConsumerGroup(), from_start=True)
    assert settings_at(history, group, changed_ms - 1, changed_ms - 1) == (["50000"], False)
    assert settings_at(history, group, changed_ms - 1, changed_ms) == (None, True)
    assert settings_at(history, group, changed_ms, changed_ms + 1)[0] == ["55000"]


def test_brokers_before_4_0_do_not_tell_which_protocol_a_member_speaks() -> None:
    group = Group("g", ConsumerGroup(members={"m": ConsumerMember("m", client_id="c")}), from_start=True)
    around = [Surroundings(oldest_broker=broker) for broker in (21, 22, None)]
    told = [describe(group, GroupOffsets(), each)["describe_consumer"]["members"][0] for each in around]
    assert [each["upgraded"] for each in told] == [None, True, True]


def test_a_share_group_without_a_recorded_epoch_begins_with_the_one_of_its_broker() -> None:
    state = ShareGroup()
    state.begin()
    around = [Surroundings(oldest_broker=broker) for broker in (29, 31, None)]
    told = [describe(Group("g", state, from_start=True), GroupOffsets(), each)["describe_share"] for each in around]
    assert [(each["groupEpoch"], each["targetAssignmentEpoch"]) for each in told] == [(0, 0), (1, 1), (1, 1)]


def test_classic_group_that_repeats_a_topic_in_its_assignment() -> None:
    log = GroupLog()
    group = described([log.classic(1, [classic_member("a", b"", ASSIGNMENT), classic_member("b", b"", b"\xff")])])
    both = group["describe_classic"]["members"]
    assert both[0]["assignment"] == {"topicPartitions": ["orders-0", "orders-1"]}
    assert both[1]["assignment"] is None, "bytes that are no assignment"
    assert group["describe_consumer"]["type"] == "CLASSIC"
    assert group["describe_classic"]["protocolData"] == "range"


def test_a_partition_that_an_assignment_lists_twice_is_described_once() -> None:
    """Kafka's Admin client has a set; that it was listed twice breaks a rule (see the audit)."""
    twice = encode_blob(
        "ConsumerProtocolAssignment",
        0,
        {"assignedPartitions": [{"topic": "orders", "partitions": [1, 0, 1]}], "userData": None},
    )
    group = described([GroupLog().classic(1, [classic_member("a", b"", twice)])])
    assert group["describe_classic"]["members"][0]["assignment"] == {"topicPartitions": ["orders-0", "orders-1"]}


def test_connect_workers_are_no_consumers() -> None:
    log = GroupLog()
    group = described([log.classic(1, [classic_member("w", b"", b"\x00\x01")], protocolType="connect")])
    assert "describe_consumer" not in group
    assert group["describe_classic"]["members"][0]["assignment"] == {"topicPartitions": []}
    assert group["listing"]["protocol"] == "connect"


def test_simple_group_and_a_negative_offset() -> None:
    log = GroupLog()
    group = described([log.commit("orders", 0, -1), log.commit("orders", 1, 3, leaderEpoch=2, metadata="m")])
    assert group["listing"]["isSimpleConsumerGroup"] is True
    assert group["offsets"] == {"orders-0": None, "orders-1": {"leaderEpoch": 2, "metadata": "m", "offset": 3}}


def test_admin_refuses_the_empty_group_id() -> None:
    group = Group("", from_start=True)
    group.commit()
    assert "InvalidGroupIdException" in describe(group, GroupOffsets(), Surroundings())["describe_consumer"]["error"]


def test_what_the_log_has_not_shown_is_null() -> None:
    group = Group("g")
    assert describe(group, GroupOffsets(), Surroundings())["listing"] == {
        "groupId": "g",
        "groupState": None,
        "isSimpleConsumerGroup": None,
        "protocol": None,
        "type": None,
    }
    group.apply(GroupLog().target_epoch(5))
    group.apply(GroupLog().current("a", 5, {ORDERS: [0]}))
    told = describe(group, GroupOffsets(), Surroundings(TOPICS))["describe_consumer"]
    assert (told["groupState"], told["groupEpoch"], told["members"][0]["clientId"]) == (None, None, None)


def test_streams_group_with_its_topology_on_the_topics() -> None:
    log = GroupLog()
    changelog = {
        "name": "counts",
        "partitions": 0,
        "replicationFactor": 1,
        "topicConfigs": [{"key": "k", "value": "v"}],
    }
    records = [
        log.streams_member("a"),
        log.topology([subtopology("0", ["orders"], stateChangelogTopics=[changelog])]),
        log.streams_epoch(2),
        log.streams_target("a", {"0": [2, 0, 1]}),
        log.streams_current("a", 2, {"0": [0, 1]}, {}, {"0": [2]}),
    ]
    topics = TopicImage.of([Topic("orders", ORDERS, 3), Topic("counts", GONE, 3)])
    group = described(records, Surroundings(topics))["describe_streams"]
    member = group["members"][0]
    assert member["assignment"]["activeTasks"] == [{"partitions": [0, 1], "subtopologyId": "0"}], "revoked ones are not"
    assert member["targetAssignment"]["activeTasks"] == [{"partitions": [0, 1, 2], "subtopologyId": "0"}]
    assert (member["userEndpoint"], member["clientTags"]) == ({"host": "10.0.0.1", "port": 7070}, {"zone": "a"})
    counts = {"partitions": 3, "replicationFactor": 1, "topicConfigs": {"k": "v"}}
    assert group["subtopologies"][0]["stateChangelogTopics"] == {"counts": counts}
    unready = described(records)["describe_streams"]
    assert unready["subtopologies"][0]["stateChangelogTopics"] == {"counts": {**counts, "partitions": 0}}
    source_alone = TopicImage.of([Topic("orders", ORDERS, 3)])
    for there, added, known in ((topics, 0, 3), (topics, 1, None), (source_alone, 0, None)):
        metadata_hash = group_hash([(name, topic_hash(topic)) for name, topic in there.by_name.items()]) + added
        older, epoch = Surroundings(replace(there, is_whole=False)), log.streams_epoch(3, metadata_hash=metadata_hash)
        group = described([*records, epoch], older)["describe_streams"]
        assert group["subtopologies"][0]["stateChangelogTopics"] == {"counts": {**counts, "partitions": known}}


def test_what_a_pattern_may_match_is_unknown_without_topics() -> None:
    """With them KIP-1071 has the sources, or no subtopologies where they do not fit: an empty list would be a claim."""
    log = GroupLog()
    sources = subtopology("0", [], sourceTopicRegex=["ord.*"])
    records = [log.streams_member("a"), log.topology([sources]), log.streams_epoch(2)]
    for topics, shown in ((TOPICS, [["orders"]]), (None, None), (replace(TOPICS, is_whole=False), None)):
        group = described(records, Surroundings(topics))
        found = group["describe_streams"]["subtopologies"]
        assert (found and [each["sourceTopics"] for each in found]) == shown
        assert ("subtopologies" in group["unknownFields"]) == (shown is None)


def test_a_coordinator_that_loaded_an_empty_streams_group_has_not_configured_it() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    for record in (log.streams_member("a"), log.topology(), log.streams_epoch(2)):
        shard.apply(record, leader_epoch=1)
    shard.apply(log.tombstone(19, memberId="a"), leader_epoch=2)
    group = describe(shard.groups["g"], GroupOffsets(), Surroundings(TOPICS))["describe_streams"]
    assert (group["groupState"], group["subtopologies"][0]["sourceTopics"]) == ("EMPTY", ["orders"])


def share_state(kind: int, offset: int, partition: int, value: Fields | None) -> CoordinatorRecord:
    key = {"groupId": "g", "topicId": ORDERS, "partition": partition}
    return CoordinatorRecord(LogPosition(0, offset, 0), kind, key, value)


def test_share_offsets_and_lag() -> None:
    state = ShareStateLog()
    snapshot: Fields = {"snapshotEpoch": 0, "stateEpoch": 1, "leaderEpoch": 3, "startOffset": 4, "stateBatches": []}
    snapshot |= {"createTimestamp": 0, "writeTimestamp": 0}
    update = {"snapshotEpoch": 0, "leaderEpoch": -1, "startOffset": -1, "deliveryCompleteCount": 2, "stateBatches": []}
    state.apply(share_state(SHARE_SNAPSHOT, 0, 0, {**snapshot, "deliveryCompleteCount": 0}))
    state.apply(share_state(SHARE_UPDATE, 1, 0, update))
    state.apply(share_state(SHARE_SNAPSHOT, 2, 1, {**snapshot, "startOffset": -1}))
    state.apply(share_state(SHARE_SNAPSHOT, 3, 2, snapshot))
    log = GroupLog()
    records = [log.share_member("a"), log.share_state({ORDERS: ("orders", [0, 1, 2, 3]), GONE: ("gone", [0])})]
    ends = {TopicPartition("orders", 0): 10}
    offsets = described(records, Surroundings(TOPICS, state, ends))["share_offsets"]
    assert offsets == {
        "orders-0": {"lag": 4, "leaderEpoch": 3, "startOffset": 4},
        "orders-1": None,
        "orders-2": {"lag": None, "leaderEpoch": 3, "startOffset": 4},
        "orders-3": None,
    }
    older = {TopicPartition("orders", 0): 3}
    assert described(records, Surroundings(TOPICS, state, older))["share_offsets"]["orders-0"]["lag"] == 0
    state.apply(share_state(SHARE_SNAPSHOT, 4, 0, None))
    assert described(records, Surroundings(TOPICS, state, ends))["share_offsets"]["orders-0"] is None
    assert "share_offsets" not in described(records)


def test_owners_of_a_topic_in_groups_of_every_type() -> None:
    consumer, share, streams = (Group(name) for name in ("consumer", "share", "streams"))
    log = GroupLog()
    for record in (log.member("a"), log.current("a", 2, {ORDERS: [0]}, {ORDERS: [1]})):
        consumer.apply(record)
    for record in (log.share_member("s"), log.share_current("s", 2, {ORDERS: [0, 1]})):
        share.apply(record)
    for record in (
        log.topology([subtopology("0", ["orders"]), subtopology("1", ["other"])]),
        log.streams_member("t"),
        log.streams_current("t", 2, {"0": [0, 7], "1": [1]}, {"0": [1]}),
    ):
        streams.apply(record)
    groups = [consumer, share, streams, Group("none")]
    held = [(each.partition, each.group_id, each.role) for each in owners(groups, TOPICS, "orders")]
    assert held == [
        (0, "consumer", "assigned"),
        (0, "share", "assigned"),
        (0, "streams", "active"),
        (1, "consumer", "revoking"),
        (1, "share", "assigned"),
        (1, "streams", "standby"),
    ], "task 7 has no partition of this topic"
    assert [each.group_id for each in owners(groups, None, ORDERS, 0)] == ["consumer", "share"]


def test_the_coordinator_is_the_leader_of_the_partition_of_the_group():
    log = Log().batch(topic(GROUP_LOG, ORDERS), partition(ORDERS, 0, 1), partition(ORDERS, 1, 2))
    history = log.batch(change(ORDERS, 1, leader=-1)).history()
    around = Surroundings(history.image_at(None)).with_brokers(history, None)
    found = {}
    for group_id in "ghij":
        described = describe(Group(group_id, ClassicGroup(), from_start=True), GroupOffsets(), around)
        assert "coordinator" not in described["unknownFields"]
        found[log_partition_of(group_id, 2)] = described["describe_classic"]["coordinator"]
        assert described["describe_consumer"]["coordinator"] == described["describe_classic"]["coordinator"]
    assert found == {0: {"id": 1}, 1: None}, "no broker leads partition 1"


@pytest.mark.parametrize(("member_id", "protocol"), [("c-0-16e9", None), ("HcMp4r4BSpeg0Cx9fnYcPg", False)])
def test_a_log_of_kip_1071_does_not_say_who_uses_the_classic_protocol(member_id, protocol):
    """Releases do not convert a group that has members."""
    state = StreamsGroup(members={member_id: StreamsMember(member_id, client_id="c-0")})
    group = Group("g", state, from_start=True)
    unlogged = {f"{member_id}.{name}" for name in ("taskOffsets", "taskEndOffsets")}
    for configs, offsets, is_classic in (({}, [], False), ({"num.warmup.replicas": "2"}, None, protocol)):
        state.last_assignment_configs = configs
        described = describe(group, GroupOffsets(), Surroundings())
        (member,) = described["describe_streams"]["members"]
        assert (member["taskOffsets"], member["taskEndOffsets"], member["isClassic"]) == (offsets, offsets, is_classic)
        unknown = {*described["unknownFields"]}
        assert unknown & unlogged == (unlogged if offsets is None else set())
        assert (f"{member_id}.isClassic" in unknown) == (is_classic is None)
