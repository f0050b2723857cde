"""A group's life across types, deletion and rebirth; simple groups; offsets and transactions."""

from coordinator_core.groups.classic.describe import group_state
from coordinator_core.groups.classic.state import ClassicGroup, ClassicGroupState
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.group import Group
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import CoordinatorRecord, Family
from tests.core.builders import GroupLog, classic_member

ORDERS = "orders-topic-id-______"


def applied(group: Group, records: list[CoordinatorRecord]) -> list[Rule]:
    return [seen.rule for record in records for seen in group.apply(record)]


def test_classic_generations() -> None:
    log, group = GroupLog(), Group("g")
    assert applied(group, [log.classic(0, protocolType="", protocol=None)]) == []
    assert applied(group, [log.classic(1, [classic_member("b"), classic_member("a")])]) == []
    state = group.state
    assert isinstance(state, ClassicGroup)
    assert (state.generation, state.protocol, state.leader) == (1, "range", "b")
    assert list(state.members) == ["b", "a"], "the order of the record"
    assert group_state(state) is ClassicGroupState.STABLE
    assert applied(group, [log.classic(2)]) == []
    assert group_state(state) is ClassicGroupState.EMPTY
    assert applied(group, [log.classic(1)]) == [Rule.GENERATION_WENT_BACK]
    assert applied(group, [log.classic(3, [classic_member("a")], leader="x")]) == [Rule.LEADER_WITHOUT_MEMBER]


def test_classic_record_of_the_first_version() -> None:
    log, group = GroupLog(), Group("g")
    record = log.classic(1, [classic_member("a")])
    assert record.value is not None
    del record.value["currentStateTimestamp"]
    del record.value["members"][0]["groupInstanceId"], record.value["members"][0]["rebalanceTimeout"]
    assert applied(group, [record]) == []
    assert isinstance(group.state, ClassicGroup)
    assert group.state.current_state_timestamp is None
    assert group.state.members["a"].rebalance_timeout_ms is None


def test_upgrade_and_downgrade() -> None:
    log, group = GroupLog(), Group("g", from_start=True)
    upgrade = [
        log.classic(4, [classic_member("a")]),
        log.tombstone(2),
        log.member("a"),
        log.epoch(4),
        log.target("a", {ORDERS: [0]}),
        log.target_epoch(4, 0),
        log.current("a", 4, {ORDERS: [0]}),
    ]
    assert applied(group, upgrade) == []
    assert group.type is GroupType.CONSUMER
    downgrade = [
        log.tombstone(8, memberId="a"),
        log.tombstone(7, memberId="a"),
        log.tombstone(6),
        log.tombstone(5, memberId="a"),
        log.tombstone(4),
        log.tombstone(3),
        log.classic(4, [classic_member("a")]),
    ]
    assert applied(group, downgrade) == []
    assert group.type is GroupType.CLASSIC


def test_deletion_and_rebirth() -> None:
    log, group = GroupLog(), Group("g")
    assert applied(group, [*log.join("a", 8, {}), *log.gone("a"), log.epoch(9)]) == []
    assert applied(group, [log.tombstone(6), log.tombstone(4), log.tombstone(3)]) == []
    assert (group.state, group.type, group.from_start) == (None, None, True)
    assert applied(group, [log.member("b")]) == []
    assert isinstance(group.state, ConsumerGroup)
    assert (group.state.group_epoch, group.state.assignment_epoch) == (1, 1)
    assert applied(group, [log.epoch(2)]) == []


def test_the_epochs_of_a_new_group_are_known_only_in_a_log_from_its_start() -> None:
    log = GroupLog()
    whole, part = Group("g", from_start=True), Group("g")
    record = log.member("a")
    applied(whole, [record])
    applied(part, [record])
    assert isinstance(whole.state, ConsumerGroup)
    assert isinstance(part.state, ConsumerGroup)
    assert (whole.state.group_epoch, part.state.group_epoch) == (1, None)


def test_another_type_without_the_end_of_the_first() -> None:
    log, group = GroupLog(), Group("g")
    assert applied(group, [log.classic(1, [classic_member("a")]), log.member("a")]) == [
        Rule.TYPE_CHANGED_WITHOUT_TOMBSTONE
    ]
    assert group.type is GroupType.CONSUMER
    assert applied(group, [log.tombstone(10, memberId="a")]) == [Rule.TOMBSTONE_WITHOUT_VALUE]
    assert group.type is GroupType.CONSUMER, "a tombstone of another type changes nothing"


def test_unknown_record_type() -> None:
    log, group = GroupLog(), Group("g")
    assert applied(group, [log.record(24, {})]) == [Rule.UNKNOWN_RECORD_TYPE]


def test_connect_groups_have_a_log_of_their_own() -> None:
    log, group = GroupLog(), Group("g", family=Family.CONNECT)
    assert applied(group, [log.record(3, {"epoch": 1})]) == []
    assert group.type is GroupType.CONNECT


def shard_of(records: list[CoordinatorRecord], *, from_start: bool = True) -> CoordinatorShard:
    shard = CoordinatorShard(from_start=from_start)
    for record in records:
        shard.apply(record)
    return shard


def test_simple_group_is_there_from_its_first_commit_to_its_tombstone() -> None:
    log = GroupLog()
    shard = shard_of([log.commit("orders", 0, 5)])
    assert shard.groups["g"].is_simple
    assert shard.groups["g"].type is GroupType.CLASSIC
    shard.apply(log.no_commit("orders", 0))
    assert shard.groups["g"].state is not None, "offsets gone, group still there"
    assert shard.apply(log.tombstone(2)) == ()
    assert shard.groups["g"].state is None


def test_simple_group_may_become_one_with_members() -> None:
    log = GroupLog()
    shard = shard_of([log.commit("orders", 0, 5)])
    assert shard.apply(log.member("a")) == ()
    assert shard.groups["g"].type is GroupType.CONSUMER


def test_a_commit_in_the_middle_of_a_log_tells_no_type() -> None:
    log = GroupLog()
    shard = shard_of([log.commit("orders", 0, 5)], from_start=False)
    assert shard.groups["g"].state is None
    assert shard.offsets_of("g").committed[TopicPartition("orders", 0)].offset == 5


def test_new_leader_epoch_is_a_reload() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    shard.apply(log.streams_member("a"), leader_epoch=3)
    assert not shard.groups["g"].reloaded
    shard.apply(log.streams_epoch(2), leader_epoch=4)
    assert shard.groups["g"].reloaded
    shard.apply(log.streams_current("a", 2), leader_epoch=4)
    assert not shard.groups["g"].reloaded


ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_transaction_is_pending_until_its_end() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    shard.apply(log.commit("orders", 0, 5))
    shard.apply(log.commit("orders", 0, 9), producer_id=77)
    offsets = shard.offsets_of("g")
    assert offsets.committed[ORDERS_0].offset == 5
    assert offsets.pending[77][ORDERS_0].offset == 9
    assert offsets.stable() == {}
    shard.end_transaction(77, committed=True)
    assert offsets.committed[ORDERS_0].offset == 9
    assert offsets.committed[ORDERS_0].producer_id == 77
    assert offsets.stable() == offsets.committed


def test_an_aborted_transaction_leaves_nothing() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    shard.apply(log.commit("orders", 0, 9), producer_id=77)
    shard.end_transaction(77, committed=False)
    shard.end_transaction(78, committed=True)
    assert shard.offsets_of("g").committed == {}
    assert shard.offsets_of("g").pending == {}


def test_a_plain_commit_during_a_transaction_wins() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    shard.apply(log.commit("orders", 0, 9), producer_id=77)
    shard.apply(log.commit("orders", 1, 9), producer_id=77)
    shard.apply(log.commit("orders", 0, 4))
    shard.end_transaction(77, committed=True)
    committed = shard.offsets_of("g").committed
    assert {partition: commit.offset for partition, commit in committed.items()} == {ORDERS_0: 4, ORDERS_1: 9}


def test_a_deleted_offset_does_not_come_back_with_a_commit() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    shard.apply(log.no_commit("payments", 0))
    shard.apply(log.commit("orders", 0, 9), producer_id=77)
    shard.apply(log.no_commit("orders", 0))
    shard.end_transaction(77, committed=True)
    assert shard.offsets_of("g").committed == {}


def test_fields_of_commits() -> None:
    log, shard = GroupLog(), CoordinatorShard()
    shard.apply(log.commit("orders", 0, -1, leaderEpoch=4, expireTimestamp=99, topicId=ORDERS))
    commit = shard.offsets_of("g").committed[ORDERS_0]
    assert (commit.offset, commit.leader_epoch, commit.expire_timestamp, commit.topic_id) == (-1, 4, 99, ORDERS)
    shard.apply(log.commit("orders", 0, 1))
    commit = shard.offsets_of("g").committed[ORDERS_0]
    assert (commit.leader_epoch, commit.expire_timestamp, commit.topic_id) == (None, None, None)
    assert shard.offsets_of("nobody").committed == {}
