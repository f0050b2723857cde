"""Share and streams groups: what their records make of the state."""

from coordinator_core.groups.rules import Rule
from coordinator_core.groups.share.describe import group_state as share_state
from coordinator_core.groups.share.state import ShareGroup, ShareGroupState, ShareTopic
from coordinator_core.groups.streams.describe import group_state as streams_state
from coordinator_core.groups.streams.state import Endpoint, StreamsGroup, StreamsGroupState, StreamsMemberState
from coordinator_core.records import CoordinatorRecord
from tests.core.builders import GroupLog
from tests.core.groups.applied import apply

ORDERS = "orders-topic-id-______"


def shared(records: list[CoordinatorRecord]) -> tuple[ShareGroup, list[Rule]]:
    group = ShareGroup()
    return group, [seen.rule for record in records for seen in apply(group, record)]


def streamed(records: list[CoordinatorRecord]) -> tuple[StreamsGroup, list[Rule]]:
    group = StreamsGroup()
    return group, [seen.rule for record in records for seen in apply(group, record)]


def test_share_group_from_join_to_end() -> None:
    log = GroupLog()
    group, violations = shared(
        [
            log.share_member("a"),
            log.record(11, {"epoch": 2, "metadataHash": 5}),
            log.share_state({ORDERS: ("orders", [0, 1])}),
            log.record(13, {"topicPartitions": [{"topicId": ORDERS, "partitions": [0, 1]}]}, memberId="a"),
            log.record(12, {"assignmentEpoch": 2}),
            log.share_current("a", 2, {ORDERS: [0, 1]}),
        ]
    )
    assert violations == []
    assert (group.group_epoch, group.assignment_epoch, group.assignment_timestamp) == (2, 2, 0)
    assert group.targets == {"a": {ORDERS: [0, 1]}}
    assert group.members["a"].assigned == {ORDERS: [0, 1]}
    assert group.state_partitions is not None
    assert group.state_partitions.initialized == {ORDERS: ShareTopic("orders", [0, 1])}
    assert share_state(group) is ShareGroupState.STABLE
    gone = [log.tombstone(kind, memberId="a") for kind in (14, 13, 10)]
    end = [log.tombstone(kind) for kind in (12, 15, 11)]
    assert [seen for record in gone + end for seen in apply(group, record)] == []
    assert group == ShareGroup(group_epoch=2, metadata_hash=5), "it goes as a whole with its last record"
    assert share_state(group) is ShareGroupState.EMPTY


def test_share_group_violations() -> None:
    log = GroupLog()
    group = ShareGroup()
    assert apply(group, log.tombstone(15)) == (), "written whether the group had share partitions or not"
    assert [each.rule for each in apply(group, log.tombstone(14, memberId="a"))] == [Rule.TOMBSTONE_WITHOUT_VALUE]
    apply(group, log.share_member("a"))
    odd = log.share_current("a", 2, {})
    odd.value["state"] = 1  # type: ignore[index]
    assert [each.rule for each in apply(group, odd)] == [Rule.UNKNOWN_MEMBER_STATE]


def test_streams_group_from_join_to_end() -> None:
    log = GroupLog()
    group, violations = streamed([log.streams_member("a"), log.topology(), log.streams_epoch(2)])
    assert violations == []
    assert group.members["a"].user_endpoint == Endpoint("10.0.0.1", 7070)
    assert group.members["a"].client_tags == {"zone": "a"}
    assert group.last_assignment_configs == {"num.standby.replicas": "1"}
    assert streams_state(group) is None, "the assignment epoch has not been seen"
    for record in (
        log.streams_target("a", {"0": [0, 1]}, {"1": [2]}),
        log.record(20, {"assignmentEpoch": 2, "assignmentTimestamp": 9}),
        log.streams_current("a", 2, {"0": [0, 1]}, {"1": [2]}),
    ):
        assert apply(group, record) == ()
    assert streams_state(group) is StreamsGroupState.STABLE
    assert group.members["a"].assigned.active == {"0": {0: 2, 1: 2}}
    assert group.members["a"].assigned.standby == {"1": [2]}
    gone = [log.tombstone(kind, memberId="a") for kind in (22, 21, 19)]
    end = [log.tombstone(kind) for kind in (20, 17, 23)]
    assert [seen for record in gone + end for seen in apply(group, record)] == []
    assert (group.members, group.targets, group.topology, group.assignment_epoch) == ({}, {}, None, None)


def test_streams_states_in_the_order_of_the_broker() -> None:
    log = GroupLog()
    group, _ = streamed([log.streams_member("a"), log.streams_epoch(2)])
    assert streams_state(group) is StreamsGroupState.NOT_READY, "no topology yet"
    apply(group, log.topology(epoch=1))
    assert streams_state(group) is StreamsGroupState.NOT_READY, "another epoch was validated"
    apply(group, log.streams_epoch(3, validated=1))
    apply(group, log.record(20, {"assignmentEpoch": 2}))
    assert streams_state(group) is StreamsGroupState.ASSIGNING
    apply(group, log.record(20, {"assignmentEpoch": 3}))
    apply(group, log.streams_current("a", 3, {}, {}, {"0": [1]}, state=StreamsMemberState.UNREVOKED_TASKS))
    assert streams_state(group) is StreamsGroupState.RECONCILING
    assert group.members["a"].pending_revocation.active == {"0": {1: 3}}


def test_streams_member_state_that_no_broker_writes() -> None:
    log = GroupLog()
    group, _ = streamed([log.streams_member("a")])
    assert [e.rule for e in apply(group, log.streams_current("a", 2, state=0))] == [Rule.UNKNOWN_MEMBER_STATE]
