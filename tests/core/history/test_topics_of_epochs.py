"""Epochs that opened as all topics of their group were gone, or came back."""

import pytest

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Fields, LogPosition, RecordType
from tests.core.cluster.test_metadata_log import hash_of
from tests.core.history.logs import A, B, Change, GroupLog, gone, kinds, member, target_epoch
from tests.core.history.test_other_types import TOPOLOGY, streams, streams_member

OLD, NEW = Topic("t", A, 4), Topic("t", B, 2)


def reborn(clock_ms: int = 0) -> TopicHistory:
    """Topic ``t`` is deleted at 3,990 ms and created again at 4,990 ms of the coordinator's clock."""
    topics = TopicHistory()
    topics.open_version(LogPosition(0, 0, 0))
    topics.put_topic(OLD)
    topics.open_version(LogPosition(0, 1, 3_990 + clock_ms))
    topics.remove_topic("t")
    topics.open_version(LogPosition(0, 2, 4_990 + clock_ms))
    topics.put_topic(NEW)
    topics.last_seen_ms = 10**15
    return topics


def opened(number: int, *topics: Topic) -> Change:
    """The record of a broker since 4.1, which leaves out the hash of no topics."""
    hashed = {"metadataHash": hash_of(*topics)} if topics else {}
    return RecordType.CONSUMER_GROUP_METADATA, {}, {"epoch": number, **hashed}


@pytest.mark.parametrize("clock_ms", [0, 300, -300])
def test_an_epoch_without_a_hash_behind_one_with_a_hash_is_of_topics_that_are_gone(clock_ms: int) -> None:
    log = GroupLog().write(member("m1", "t"), opened(2, OLD), target_epoch(2))
    log.write(member("m2", "t"), opened(3, OLD), target_epoch(3)).write(opened(4), target_epoch(4))
    log.write(opened(5, NEW), target_epoch(5))
    *_, deleted, created = log.epochs(reborn(clock_ms))
    assert (kinds(deleted), deleted.metadata_hash, deleted.topics_proven) == (["topic_deleted"], 0, True)
    assert kinds(created) == ["topic_created"]


def test_an_older_broker_writes_no_hash_but_what_it_knows_of_the_topics() -> None:
    log = GroupLog().write(member("m1", "t"), opened(2, OLD), target_epoch(2))
    known = {"topicId": A, "topicName": "t", "numPartitions": 4, "partitionMetadata": []}
    topics = RecordType.CONSUMER_GROUP_PARTITION_METADATA, {}, {"topics": [known]}
    log.write(topics, member("m2", "t"), opened(3))
    *_, last = log.epochs(reborn())
    assert (kinds(last), last.metadata_hash, last.topics_proven) == (["member_joined"], None, None)


def test_the_first_topics_that_an_older_broker_records_are_new() -> None:
    """While no topic of the group is there, it writes no record of the topics."""
    known = {"topicId": A, "topicName": "t", "numPartitions": 4, "partitionMetadata": []}
    topics = RecordType.CONSUMER_GROUP_PARTITION_METADATA, {}, {"topics": [known]}
    log = GroupLog().write(member("m1", "t"), opened(1), target_epoch(1))
    whole = Coverage({0: [(0, 100)]})
    *_, created = log.write(topics, opened(2), target_epoch(2)).rebalances(coverage=whole)
    assert (kinds(created), created.causes[0].topics) == (["topic_created"], ("t",))
    hashed = GroupLog().write(member("m1", "t"), opened(1, OLD), target_epoch(1))
    *_, downgraded = hashed.write(topics, opened(2), target_epoch(2)).rebalances(coverage=whole)
    assert kinds(downgraded) == ["unknown"]


def test_a_group_that_subscribes_to_nothing_has_the_topics_of_its_time() -> None:
    """Every version of the topics has the hash of none."""
    log = GroupLog().write(member("m1", "t"), opened(2, OLD), target_epoch(2)).write(*gone("m1"), opened(3))
    *_, emptied = log.epochs(reborn(-1_000))
    assert (emptied.metadata_hash, emptied.topics_proven) == (0, True)
    assert emptied.topics_at == LogPosition(0, 1, 2_990)


def test_a_topic_that_a_regular_expression_matches_again_did_not_change_for_the_group() -> None:
    regex = RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, {"regularExpression": "t.*"}
    matching = [(*regex, {"topics": topics, "version": 1, "timestamp": 1}) for topics in (["t"], [], ["t"])]
    log = GroupLog().write(member("m1", subscribedTopicRegex="t.*"), matching[0], opened(2, OLD))
    log.write(matching[1], opened(3)).write(after_ms=2_000).write(matching[2], opened(4, NEW))
    *_, back = log.epochs(reborn())
    assert kinds(back) == ["regex_resolved", "topic_created"]


@pytest.mark.parametrize(
    ("configs", "cause"), [([{"key": "num.standby.replicas", "value": "0"}], "topic_deleted"), ([], "unknown")]
)
def test_a_streams_group_whose_topics_are_gone_has_no_validated_topology(configs: list[Fields], cause: str) -> None:
    """Records of 4.1 have no configurations, either: its brokers write no hash when a member leaves."""
    shown: Fields = {"lastAssignmentConfigs": configs} if configs else {}
    before = {"epoch": 2, "metadataHash": hash_of(OLD), **({"validatedTopologyEpoch": 0} if configs else {})}
    log = GroupLog()
    topology = {**TOPOLOGY, "subtopologies": [{**TOPOLOGY["subtopologies"][0], "sourceTopics": ["t"]}]}
    log.write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", topology),
        streams("METADATA", before | shown),
        after_ms=2_000,
    )
    log.write(streams("METADATA", {"epoch": 3, "metadataHash": 0, **shown}))
    *_, last = log.epochs(reborn())
    assert kinds(last) == [cause]
