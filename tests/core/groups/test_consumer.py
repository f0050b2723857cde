"""Consumer groups: what their records make of the state."""

from coordinator_core.groups.consumer.describe import group_state, preferred_assignor
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerGroupState, ConsumerMemberState
from coordinator_core.groups.rules import Rule
from coordinator_core.records import CoordinatorRecord
from tests.core.builders import GroupLog
from tests.core.groups.applied import apply

ORDERS = "orders-topic-id-______"


def replayed(records: list[CoordinatorRecord]) -> tuple[ConsumerGroup, list[Rule]]:
    group = ConsumerGroup()
    return group, [seen.rule for record in records for seen in apply(group, record)]


def test_first_join() -> None:
    log = GroupLog()
    group, violations = replayed(log.join("a", 2, {ORDERS: [0, 1]}))
    member = group.members["a"]
    assert violations == []
    assert (group.group_epoch, group.assignment_epoch, group.metadata_hash) == (2, 2, 7)
    assert (member.client_id, member.member_epoch, member.previous_member_epoch) == ("client-a", 2, 0)
    assert group.targets == {"a": {ORDERS: [0, 1]}}
    assert member.assigned == {ORDERS: {0: 2, 1: 2}}
    assert group_state(group) is ConsumerGroupState.STABLE


def test_second_join_waits_for_a_revocation() -> None:
    log = GroupLog()
    group, violations = replayed(
        [
            *log.join("a", 2, {ORDERS: [0, 1]}),
            log.member("b"),
            log.epoch(3),
            log.target("a", {ORDERS: [0]}),
            log.target("b", {ORDERS: [1]}),
            log.target_epoch(3),
            log.current("b", 3, state=ConsumerMemberState.UNRELEASED_PARTITIONS),
            log.current("a", 2, {ORDERS: [0]}, {ORDERS: [1]}, state=ConsumerMemberState.UNREVOKED_PARTITIONS),
        ]
    )
    assert violations == []
    assert group.members["a"].pending_revocation == {ORDERS: {1: 2}}
    assert group_state(group) is ConsumerGroupState.RECONCILING


def test_assignment_epochs_are_kept_by_partition() -> None:
    log = GroupLog()
    value = [{"topicId": ORDERS, "partitions": [4, 2], "assignmentEpochs": [3, 9]}]
    group, _ = replayed([log.member("a"), log.current("a", 9, assignedPartitions=value)])
    assert group.members["a"].assigned == {ORDERS: {4: 3, 2: 9}}


def test_pending_assignment() -> None:
    log = GroupLog()
    group, _ = replayed([*log.join("a", 2, {ORDERS: [0]}), log.epoch(3)])
    assert group_state(group) is ConsumerGroupState.ASSIGNING


def test_leave() -> None:
    log = GroupLog()
    group, violations = replayed([*log.join("a", 2, {ORDERS: [0]}), *log.gone("a"), log.epoch(3, 0)])
    assert violations == []
    assert (group.members, group.targets) == ({}, {})
    assert group_state(group) is ConsumerGroupState.EMPTY


def test_static_member_leaves_and_is_replaced() -> None:
    log = GroupLog()
    group, violations = replayed(
        [
            *log.join("a", 2, {ORDERS: [0]}),
            log.current("a", -2, {ORDERS: [0]}),
            *log.gone("a"),
            log.member("b", instanceId="i"),
            log.target("b", {ORDERS: [0]}),
            log.current("b", 0, {ORDERS: [0]}),
            log.current("b", 2, {ORDERS: [0]}),
        ]
    )
    assert violations == []
    assert list(group.members) == ["b"]
    assert group.members["b"].instance_id == "i"


def test_a_member_rewritten_keeps_its_place_and_one_that_returns_goes_last() -> None:
    log = GroupLog()
    group, _ = replayed(
        [
            *log.join("a", 2, {}),
            *log.join("b", 3, {}),
            *log.join("c", 4, {}),
            log.member("a"),
            *log.gone("b"),
            *log.join("b", 5, {}),
        ]
    )
    assert list(group.members) == ["a", "c", "b"]


def test_member_that_still_speaks_join_group() -> None:
    log = GroupLog()
    classic = {"sessionTimeoutMs": 45_000, "supportedProtocols": [{"name": "range", "metadata": b"\x00"}]}
    group, _ = replayed([log.member("a", classicMemberMetadata=classic)])
    metadata = group.members["a"].classic
    assert metadata is not None
    assert metadata.supported_protocols[0].name == "range"


def test_resolved_regex_and_its_end() -> None:
    log = GroupLog()
    group, _ = replayed([log.regex("o.*", ["orders"])])
    assert group.regexes["o.*"].topics == ["orders"]
    assert apply(group, log.tombstone(16, regularExpression="o.*")) == ()
    assert group.regexes == {}


def test_topics_that_old_brokers_recorded() -> None:
    log = GroupLog()
    topic = {
        "topicId": ORDERS,
        "topicName": "orders",
        "numPartitions": 1,
        "partitionMetadata": [{"partition": 0, "racks": ["r"]}],
    }
    group, _ = replayed([log.record(4, {"topics": [topic]})])
    assert group.subscription_metadata is not None
    assert group.subscription_metadata["orders"].racks == {0: ["r"]}
    assert apply(group, log.tombstone(4)) == ()
    assert group.subscription_metadata is None


def test_preferred_assignor_is_that_of_most_members() -> None:
    log = GroupLog()
    group, _ = replayed(
        [
            log.member("a", serverAssignor="range"),
            log.member("b", serverAssignor="uniform"),
            log.member("c", serverAssignor="uniform"),
            log.member("d"),
        ]
    )
    assert preferred_assignor(group) == "uniform"
    assert preferred_assignor(ConsumerGroup()) is None


def test_a_log_that_begins_in_the_middle() -> None:
    log = GroupLog()
    group, violations = replayed([log.current("a", 5, {ORDERS: [0]}), log.target("b", {ORDERS: [1]})])
    assert violations == [Rule.ASSIGNMENT_WITHOUT_MEMBER, Rule.TARGET_WITHOUT_MEMBER]
    assert not group.members["a"].has_metadata
    assert group.group_epoch is None
    assert group_state(group) is None
    assert list(group.members) == ["a"]


def test_what_the_protocol_does_not_allow() -> None:
    log = GroupLog()
    group, _ = replayed(log.join("a", 5, {ORDERS: [0]}))
    cases = [
        (log.epoch(4), Rule.EPOCH_WENT_BACK),
        (log.target_epoch(9), Rule.ASSIGNMENT_EPOCH_AHEAD),
        (log.target_epoch(3), Rule.ASSIGNMENT_EPOCH_WENT_BACK),
        (log.current("a", 3), Rule.MEMBER_EPOCH_WENT_BACK),
        (log.current("a", 8), Rule.MEMBER_EPOCH_AHEAD),
        (log.current("a", 8, state=9), Rule.UNKNOWN_MEMBER_STATE),
        (log.tombstone(5, memberId="a"), Rule.MEMBER_REMOVED_WITH_ASSIGNMENT),
        (log.tombstone(5, memberId="x"), Rule.TOMBSTONE_WITHOUT_VALUE),
        (log.tombstone(7, memberId="x"), Rule.TOMBSTONE_WITHOUT_VALUE),
        (log.tombstone(8, memberId="x"), Rule.TOMBSTONE_WITHOUT_VALUE),
    ]
    for record, rule in cases:
        seen = apply(group, record)
        assert [each.rule for each in seen] == [rule]
        assert seen[0].at == record.at
    apply(group, log.member("b"))
    assert [each.rule for each in apply(group, log.tombstone(3))] == [Rule.GROUP_REMOVED_WITH_MEMBERS]


def test_a_member_may_go_before_it_was_given_a_target() -> None:
    log = GroupLog()
    _, violations = replayed([log.member("a"), log.current("a", 1), *log.gone("a")])
    assert violations == []
