"""The coordinator of share groups (KIP-932)."""

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.config import BrokerConfig, GroupConfig, duration_ms
from coordinator_core.coordinator.protocol import ErrorCode, RequestOutcome
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.share.partitions import DELETE_EFFECT, INITIALIZE_EFFECT
from coordinator_core.errors import InputError
from coordinator_core.groups.share.state import StatePartitionMetadata
from coordinator_core.records import RecordType
from tests.core.coordinator.clients import GROUP, Cluster
from tests.core.coordinator.newer_clients import ShareConsumer
from tests.core.coordinator.test_coordinator_properties import check_compacted, check_replay, in_bytes

TOPICS = {"a": 4, "b": 1}


def share_group(cluster: Cluster) -> LiveShareGroup:
    group = cluster.memory.live[GROUP]
    assert isinstance(group, LiveShareGroup)
    return group


@pytest.mark.parametrize("digits", [20, 309, 5_000])
def test_a_duration_of_more_digits_than_a_long_is_refused(digits: int) -> None:
    name = "share.auto.offset.reset"
    for value in (f"by_duration:P{'9' * digits}D", f"by_duration:PT0.{'9' * digits}S"):
        with pytest.raises(InputError, match=f"{name}: 'by_duration:.* is none of earliest, latest, by_duration:PT"):
            GroupConfig.of(BrokerConfig(), {name: value})
    assert duration_ms("by_duration:P1DT2H3M4.5S") == 93_784_500


def test_partitions_are_shared_once_their_state_is_initialised() -> None:
    cluster = Cluster.of(TOPICS, **{"group.share.assignment.interval.ms": 0})
    one = ShareConsumer(cluster, "m1", ["a"])
    asked = one.beat()
    assert [each["topic_id"] for each in asked.effects[INITIALIZE_EFFECT]] == ["a".ljust(22, "A")]
    assert one.assigned == []
    one.beat()
    assert [sorted(each["partitions"]) for each in one.assigned] == [[0, 1, 2, 3]]
    assert one.epoch == 3
    assert one.beat().records == []


def test_a_lost_answer_is_asked_for_again_after_the_retry_interval() -> None:
    cluster = Cluster.of(TOPICS)
    data = {"groupId": GROUP, "memberId": "m1", "memberEpoch": 0, "subscribedTopicNames": ["a"]}
    beat = data | {"memberEpoch": 2, "subscribedTopicNames": None}
    assert INITIALIZE_EFFECT in cluster.send("ShareGroupHeartbeat", 1, data).effects
    cluster.pass_time(29_999)
    assert INITIALIZE_EFFECT not in cluster.send("ShareGroupHeartbeat", 1, beat).effects
    cluster.pass_time(1)
    assert INITIALIZE_EFFECT in cluster.send("ShareGroupHeartbeat", 1, beat).effects


def test_deletion_asks_for_the_deletion_of_state_first() -> None:
    cluster = Cluster.of(TOPICS)
    one = ShareConsumer(cluster, "m1", ["a"])
    one.beat()
    refused = coordinator.prepare_delete(cluster.memory, cluster.topics, cluster.now, GROUP)
    assert refused.error is not None
    assert refused.error.code is ErrorCode.NON_EMPTY_GROUP
    one.beat(memberEpoch=-1)
    outcome = cluster.append(coordinator.prepare_delete(cluster.memory, cluster.topics, cluster.now, GROUP))
    assert outcome.effects[DELETE_EFFECT] == [{"topic_id": "a".ljust(22, "A"), "partitions": [0, 1, 2, 3]}]
    deleted = cluster.append(coordinator.delete_group(cluster.memory, cluster.topics, cluster.now, GROUP))
    assert [record.type for record in deleted.records] == [
        RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA,
        RecordType.SHARE_GROUP_STATE_PARTITION_METADATA,
        RecordType.SHARE_GROUP_METADATA,
    ]
    assert GROUP not in cluster.memory.live


def test_an_initialisation_is_awaited_as_long_as_a_commit_may_take() -> None:
    settings = {"group.share.initialize.retry.interval.ms": 2_000, "offsets.commit.timeout.ms": 7_000}
    cluster = Cluster.of(TOPICS, **settings)
    data = {"groupId": GROUP, "memberId": "m1", "memberEpoch": 0, "subscribedTopicNames": ["a"]}
    beat = data | {"memberEpoch": 2, "subscribedTopicNames": None}
    cluster.send("ShareGroupHeartbeat", 1, data)
    cluster.pass_time(6_999)
    assert INITIALIZE_EFFECT not in cluster.send("ShareGroupHeartbeat", 1, beat).effects
    cluster.pass_time(1)
    assert INITIALIZE_EFFECT in cluster.send("ShareGroupHeartbeat", 1, beat).effects


def alter(cluster: Cluster, topic: str, offsets: dict[int, int]) -> RequestOutcome:
    partitions = [{"partitionIndex": each, "startOffset": start} for each, start in offsets.items()]
    data = {"groupId": GROUP, "topics": [{"topicName": topic, "partitions": partitions}]}
    return cluster.send("AlterShareGroupOffsets", 0, data)


def test_committed_offsets_are_not_deleted_of_a_share_group() -> None:
    at = Cluster.of({"orders": 2})
    ShareConsumer(at, "a", ["orders"]).beat()
    topics = [{"name": "orders", "partitions": [{"partitionIndex": 0}]}]
    outcome = at.send("OffsetDelete", 0, {"groupId": GROUP, "topics": topics})
    assert outcome.error is not None
    assert outcome.error.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_altered_offsets_are_asked_for_and_make_a_group_where_there_is_none() -> None:
    cluster = Cluster.of(TOPICS)
    outcome = alter(cluster, "a", {1: 40, 7: 1})
    (asked,) = outcome.effects[INITIALIZE_EFFECT]
    assert asked["partitions"] == [{"partition": 1, "state_epoch": 1, "start_offset": 40}]
    assert outcome.response is not None
    (answer,) = outcome.response["responses"]
    assert [each["errorCode"] for each in answer["partitions"]] == [0, 3]
    assert [record.type for record in outcome.records] == [RecordType.SHARE_GROUP_STATE_PARTITION_METADATA]
    assert share_group(cluster).group_epoch == 1
    assert share_group(cluster).share_partitions.initializing["a".ljust(22, "A")].partitions == [1]


def test_offsets_of_a_group_with_members_stay() -> None:
    cluster = Cluster.of(TOPICS)
    ShareConsumer(cluster, "m1", ["a"]).beat()
    delete = cluster.send("DeleteShareGroupOffsets", 0, {"groupId": GROUP, "topics": [{"topicName": "a"}]})
    for refused in (alter(cluster, "a", {0: 1}), delete):
        assert refused.error is not None
        assert refused.error.code is ErrorCode.NON_EMPTY_GROUP
        assert refused.records == []


def test_deleted_offsets_are_initialised_again_by_the_next_member() -> None:
    cluster = Cluster.of(TOPICS)
    one = ShareConsumer(cluster, "m1", ["a"])
    one.beat()
    one.beat(memberEpoch=-1)
    data = {"groupId": GROUP, "topics": [{"topicName": "a"}, {"topicName": "b"}]}
    outcome = cluster.send("DeleteShareGroupOffsets", 0, data)
    topic_id = "a".ljust(22, "A")
    assert outcome.effects[DELETE_EFFECT] == [{"topic_id": topic_id, "partitions": [0, 1, 2, 3]}]
    assert outcome.response is not None
    assert [each["topicName"] for each in outcome.response["responses"]] == ["b"]
    assert share_group(cluster).share_partitions.deleting == {topic_id: "a"}
    done = cluster.append(
        coordinator.share_offsets_deleted(cluster.memory, cluster.topics, cluster.now, GROUP, {topic_id: "a"})
    )
    assert done.response is not None
    assert [each["errorCode"] for each in done.response["responses"]] == [0]
    assert share_group(cluster).share_partitions == StatePartitionMetadata()
    (asked,) = ShareConsumer(cluster, "m2", ["a"]).beat().effects[INITIALIZE_EFFECT]
    assert [each["start_offset"] for each in asked["partitions"]] == [-1] * 4


def test_a_silent_member_is_removed() -> None:
    cluster = Cluster.of(TOPICS)
    ShareConsumer(cluster, "m1", ["a"]).beat()
    cluster.pass_time(45_000)
    assert share_group(cluster).is_empty


@pytest.mark.parametrize("field", ["groupId", "memberId", "rackId"])
def test_blank_texts_are_refused(field: str) -> None:
    outcome = ShareConsumer(Cluster.of(TOPICS), "m1", ["a"]).beat(**{field: " "})
    assert outcome.error is not None
    assert outcome.error.code is ErrorCode.INVALID_REQUEST


request = st.fixed_dictionaries(
    {
        "groupId": st.sampled_from([GROUP, "other", ""]),
        "memberId": st.sampled_from(["m1", "m2", "m3"]),
        "memberEpoch": st.integers(-2, 6),
        "subscribedTopicNames": st.sampled_from([None, [], ["a"], ["b", "a"], ["missing"], 3]),
    }
)


@given(st.lists(st.one_of(request, st.sampled_from(["time", "topics"])), max_size=25), st.sampled_from([0, 1000]))
def test_any_script_is_answered_and_replays(script: list[object], interval: int) -> None:
    cluster = Cluster.of(TOPICS, **{"group.share.assignment.interval.ms": interval})
    epoch = 0
    for step in script:
        if step == "time":
            cluster.pass_time(20_000)
        elif step == "topics":
            cluster.set_topics({"a": 6} if "b" in cluster.topics.by_name else TOPICS)
        elif isinstance(step, dict):
            before = deepcopy(cluster.memory.log)
            outcome = cluster.send("ShareGroupHeartbeat", 1, step)
            assert (outcome.response is None) == (outcome.error is not None)
            assert outcome.error is None or cluster.memory.log == before
            for record in outcome.records:
                in_bytes(record)
        group = cluster.memory.live.get(GROUP)
        if isinstance(group, LiveShareGroup):
            assert epoch <= group.group_epoch
            assert group.assignment_epoch <= (epoch := group.group_epoch)
    check_replay(cluster)
    check_compacted(cluster)


@given(st.lists(st.sets(st.sampled_from("abc"), min_size=1), min_size=1, max_size=5))
def test_share_consumers_converge(subscriptions: list[set[str]]) -> None:
    """Once nothing changes, all are at the target after a few heartbeats each, and every partition is shared."""
    cluster = Cluster.of({"a": 5, "b": 3, "c": 1})
    members = [ShareConsumer(cluster, f"m{n}", sorted(names)) for n, names in enumerate(subscriptions)]
    for _ in range(5):
        for member in members:
            member.beat()
        cluster.pass_time(1_000)
    assert {member.epoch for member in members} == {share_group(cluster).group_epoch}
    shared = {
        (each["topicId"], number) for member in members for each in member.assigned for number in each["partitions"]
    }
    wanted = {cluster.topics.by_name[name] for names in subscriptions for name in names}
    assert shared == {(topic.id, number) for topic in wanted for number in range(topic.partitions)}
