"""Commits in transactions, deletion of offsets, and offsets of deleted topics."""

import pytest

from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.protocol import ErrorCode
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import Fields
from tests.core.coordinator.clients import GROUP, Cluster, Consumer

ORDERS = TopicPartition("orders", 0)


def cluster() -> Cluster:
    return Cluster.of({"orders": 2, "audit": 1})


def commit(at: Cluster, offset: int, *, producer: int | None = None, topic: str = "orders", **given: object) -> Fields:
    partitions = [{"partitionIndex": 0, "committedOffset": offset}]
    data: Fields = {"groupId": GROUP, "topics": [{"name": topic, "partitions": partitions}], **given}
    if producer is None:
        outcome = at.send("OffsetCommit", 9, data)
    else:
        outcome = at.send(
            "TxnOffsetCommit", 5, data | {"transactionalId": "t", "producerId": producer, "producerEpoch": 0}
        )
        assert outcome.producer_id == producer
    assert outcome.response is not None
    return outcome.response["topics"][0]["partitions"][0]


def fetch(at: Cluster, *, stable: bool = False) -> list[tuple[str, int, int, int]]:
    data = {"groups": [{"groupId": GROUP, "topics": None}], "requireStable": stable}
    response = at.send("OffsetFetch", 9, data).response
    assert response is not None
    return [
        (topic["name"], each["partitionIndex"], each["committedOffset"], each["errorCode"])
        for topic in response["groups"][0]["topics"]
        for each in topic["partitions"]
    ]


def test_a_transaction_holds_its_offsets_back_until_it_is_committed() -> None:
    at = cluster()
    commit(at, 1)
    commit(at, 5, producer=9)
    assert fetch(at) == [("orders", 0, 1, 0)]
    assert fetch(at, stable=True) == [("orders", 0, -1, ErrorCode.UNSTABLE_OFFSET_COMMIT)]
    at.memory.log.end_transaction(9, committed=True)
    assert fetch(at, stable=True) == [("orders", 0, 5, 0)]


def test_an_aborted_transaction_leaves_the_offset_as_it_was() -> None:
    at = cluster()
    commit(at, 1)
    commit(at, 5, producer=9)
    at.memory.log.end_transaction(9, committed=False)
    assert fetch(at, stable=True) == [("orders", 0, 1, 0)]


def test_a_transactional_commit_at_a_wrong_epoch_is_an_illegal_generation() -> None:
    at = cluster()
    Consumer(at, "a", ["orders"]).beat()
    data = {
        "groupId": GROUP,
        "transactionalId": "t",
        "producerId": 1,
        "producerEpoch": 0,
        "memberId": "a",
        "topics": [],
    }
    outcome = at.send("TxnOffsetCommit", 5, data | {"generationId": 9})
    assert outcome.error is not None
    assert outcome.error.code is ErrorCode.ILLEGAL_GENERATION


def test_metadata_over_the_limit_is_refused_and_not_written() -> None:
    at = cluster()
    partition = {"partitionIndex": 0, "committedOffset": 1, "committedMetadata": "x" * 5000}
    outcome = at.send("OffsetCommit", 9, {"groupId": GROUP, "topics": [{"name": "orders", "partitions": [partition]}]})
    assert outcome.response is not None
    assert outcome.response["topics"][0]["partitions"][0]["errorCode"] == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert not outcome.records


def test_offsets_of_subscribed_topics_cannot_be_deleted() -> None:
    at = cluster()
    commit(at, 1)
    commit(at, 2, topic="audit")
    Consumer(at, "a", ["orders"]).beat()
    topics = [{"name": name, "partitions": [{"partitionIndex": 0}]} for name in ("orders", "audit")]
    response = at.send("OffsetDelete", 0, {"groupId": GROUP, "topics": topics}).response
    assert response is not None
    codes = [topic["partitions"][0]["errorCode"] for topic in response["topics"]]
    assert codes == [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE]
    assert fetch(at) == [("orders", 0, 1, 0)]


def test_the_offsets_of_a_deleted_topic_go() -> None:
    at = cluster()
    commit(at, 1)
    commit(at, 2, topic="audit")
    outcome = coordinator.delete_topics(at.memory, at.topics, at.now, {"audit": "audit".ljust(22, "A")})
    assert [record.key["topic"] for record in outcome.records] == ["audit"]
    assert list(at.memory.log.offsets_of(GROUP).committed) == [ORDERS]


def test_a_fetch_of_version_10_answers_by_topic_id() -> None:
    at = cluster()
    commit(at, 3)
    commit(at, 4, topic="audit")
    orders, nowhere = "orders".ljust(22, "A"), "nowhere".ljust(22, "A")
    topics = [{"topicId": topic_id, "partitionIndexes": [0]} for topic_id in (orders, nowhere)]
    response = at.send("OffsetFetch", 10, {"groups": [{"groupId": GROUP, "topics": topics}]}).response
    assert response is not None
    answers = [
        (topic["topicId"], topic["partitions"][0]["committedOffset"], topic["partitions"][0]["errorCode"])
        for topic in response["groups"][0]["topics"]
    ]
    assert answers == [(orders, 3, 0), (nowhere, -1, ErrorCode.UNKNOWN_TOPIC_ID)]
    at.set_topics({"orders": 2})
    response = at.send("OffsetFetch", 10, {"groups": [{"groupId": GROUP, "topics": None}]}).response
    assert response is not None
    assert [topic["topicId"] for topic in response["groups"][0]["topics"]] == [orders], "audit has no id any more"


@pytest.mark.parametrize(("version", "throttled"), [(2, False), (3, True)])
def test_the_answer_to_an_old_commit_has_no_throttle_time(version: int, throttled: bool) -> None:
    response = cluster().send("OffsetCommit", version, {"groupId": GROUP, "topics": []}).response
    assert response is not None
    assert ("throttleTimeMs" in response) is throttled


def test_only_commits_and_fetches_know_the_empty_group_id() -> None:
    at = cluster()
    transaction = {"transactionalId": "t", "producerId": 1, "producerEpoch": 0}
    for api, version, data in (("TxnOffsetCommit", 5, transaction), ("OffsetDelete", 0, {})):
        outcome = at.send(api, version, {"groupId": "", "topics": [], **data})
        assert outcome.error is not None
        assert outcome.error.code is ErrorCode.INVALID_GROUP_ID
    assert at.send("OffsetCommit", 9, {"groupId": "", "topics": []}).error is None
    assert at.send("OffsetFetch", 9, {"groups": [{"groupId": "", "topics": None}]}).error is None


def test_version_10_names_topics_by_id() -> None:
    at = cluster()
    topics = [
        {"topicId": topic_id, "partitions": [{"partitionIndex": 0, "committedOffset": 3}]}
        for topic_id in ("orders".ljust(22, "A"), "nowhere".ljust(22, "A"))
    ]
    response = at.send("OffsetCommit", 10, {"groupId": GROUP, "topics": topics}).response
    assert response is not None
    codes = [topic["partitions"][0]["errorCode"] for topic in response["topics"]]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert fetch(at) == [("orders", 0, 3, 0)]


def test_a_commit_by_name_is_written_with_the_id_of_its_topic() -> None:
    at = cluster()
    commit(at, 3)
    record = at.log[-1]
    assert record.value is not None
    assert record.value["topicId"] == "orders".ljust(22, "A")


def test_a_timer_of_a_group_that_is_gone_writes_no_generation_of_the_group_of_commits_in_its_place() -> None:
    at = cluster()
    join = {"groupId": GROUP, "memberId": "", "groupInstanceId": "i", "protocolType": "consumer"}
    timeouts = {"sessionTimeoutMs": 10_000, "rebalanceTimeoutMs": 5_000}
    at.send("JoinGroup", 9, {**join, **timeouts, "protocols": [{"name": "range", "metadata": b"\0" * 10}]})
    at.send("LeaveGroup", 3, {"groupId": GROUP, "members": [{"memberId": "", "groupInstanceId": "i"}]})
    # A consumer takes the place of what the log does not know.
    consumer = Consumer(at, "m", ["orders"])
    consumer.beat()
    consumer.leave()
    at.append(coordinator.delete_group(at.memory, at.topics, at.now, GROUP))
    assert commit(at, 1, memberId="", generationIdOrMemberEpoch=-1)["errorCode"] == ErrorCode.NONE
    written = len(at.log)
    assert at.memory.timers
    at.pass_time(60_000)
    assert len(at.log) == written
