"""A metadata log of another cluster has none of the topics that records of groups name."""

import pytest

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.knowledge import GivenLogs, Knowledge
from coordinator_core.history.strange_topics import Kinship, kinship
from coordinator_core.records import GROUP_LOG, AnyRecord, CoordinatorRecord, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob

HOUR = 3_600_000
HERE, ELSEWHERE = "here0000QAAAAAAAAAAAAA", "else0000TAAAAAAAAAAAAA"


def history(*, complete: bool = True) -> TopicHistory:
    """A topic ``t`` that was deleted after an hour; the log goes on for ten."""
    known = TopicHistory(complete=complete)
    known.open_version(LogPosition(0, 5, 0))
    known.put_topic(Topic("t", HERE, 3))
    known.open_version(LogPosition(0, 9, HOUR))
    known.remove_topic("t")
    known.last_seen_ms = 10 * HOUR
    return known


def assigned(topic_id: str, offset: int = 7, time_ms: int = 2 * HOUR) -> AnyRecord:
    value = {"assignedPartitions": [{"topicId": topic_id, "partitions": [0]}], "partitionsPendingRevocation": []}
    key = {"groupId": "g", "memberId": "m"}
    type_ = RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
    return CoordinatorRecord(LogPosition(3, offset, time_ms), type_, key, value)


def generation(topic: str, *partitions: int) -> AnyRecord:
    entry = {"assignedPartitions": [{"topic": topic, "partitions": [*partitions] or [0]}], "userData": None}
    member = {"memberId": "m", "assignment": encode_blob("ConsumerProtocolAssignment", 0, entry)}
    value = {"protocolType": "consumer", "members": [member]}
    return CoordinatorRecord(LogPosition(3, 8, 2 * HOUR), RecordType.GROUP_METADATA, {"group": "g"}, value)


def test_no_topic_id_of_the_groups_is_in_the_metadata_log_of_another_cluster() -> None:
    said, is_proven = kinship(history(), {"log": [assigned(ELSEWHERE, 9), assigned(ELSEWHERE, 12)]})
    assert not is_proven
    assert said is not None
    assert said.startswith("the metadata log is of another cluster, and not used: it has none of the 1 topic ids")
    assert said.endswith(f"such as {ELSEWHERE!r} (partition 3, offset 9)")


@pytest.mark.parametrize(
    "records",
    [
        [],
        [assigned(ELSEWHERE), assigned(HERE)],
        [assigned(ELSEWHERE, time_ms=11 * HOUR)],
        [assigned("A" * 22)],
        [assigned("else0000AAAAAAAAAAAAAA")],
        [generation("t")],
        [generation("other"), assigned(HERE)],
    ],
    ids=[
        "none",
        "a topic that is known, if deleted",
        "after its end",
        "no id",
        "an id that is not random",
        "a name that is known",
        "an id counts",
    ],
)
def test_the_metadata_log_may_be_of_this_cluster(records: list[AnyRecord]) -> None:
    assert kinship(history(), {"log": records}) == Kinship(is_proven=assigned(HERE) in records)


def test_the_topic_id_of_a_commit_tells_whose_the_metadata_log_is() -> None:
    """Groups of Kafka Streams name topics, and no ids."""

    def commit(topic_id: str) -> AnyRecord:
        at = LogPosition(3, 9, 2 * HOUR)
        return CoordinatorRecord(at, RecordType.OFFSET_COMMIT, {"group": "g"}, {"topicId": topic_id})

    assert kinship(history(), {"log": [commit(HERE)]}) == Kinship(is_proven=True)
    assert kinship(history(), {"log": [commit(ELSEWHERE)]}).strange is not None


def test_topics_of_groups_that_were_before_the_metadata_log_are_those_of_another_cluster() -> None:
    """Of a cluster that came from ZooKeeper it has those that were there when it began."""
    later = history()
    later.first_seen_ms, later.from_start = 9 * HOUR, True
    assert kinship(later, {"log": [assigned(ELSEWHERE)]}).strange is not None
    assert kinship(later, {"log": [generation("t", 0)]}).strange is None
    assert kinship(later, {"log": [generation("t", 3)]}).strange is not None


def test_members_are_assigned_only_partitions_that_there_were() -> None:
    """The topic of this name had three."""
    said = kinship(history(), {"log": [generation("t", 0, 1, 2), generation("t", 0, 3)]}).strange
    assert said is not None
    assert said.endswith(
        "it lacks partitions that members of groups were assigned, such as 't-3' (partition 3, offset 8)"
    )


def test_names_decide_where_no_record_has_an_id() -> None:
    assert kinship(history(), {"log": [generation("other")]}).strange is not None
    both = kinship(history(), {"log": [generation("t"), assigned(ELSEWHERE)]})
    assert both.strange is not None, "both may have such a name"


def test_a_metadata_log_that_lacks_records_may_lack_these_topics() -> None:
    assert kinship(None, {"log": [assigned(ELSEWHERE)]}).strange is None
    assert kinship(history(complete=False), {"log": [assigned(ELSEWHERE)]}).strange is None
    holed = history()
    holed.gaps.append(HistoryGap(LogPosition(0, 4, 0), "a hole"))
    assert kinship(holed, {"log": [assigned(ELSEWHERE)]}).strange is None


def test_topics_of_another_cluster_tell_nothing() -> None:
    strange = TopicHistory.of_another_cluster("it is of another cluster")
    assert strange.partitions_at("t", 2 * HOUR) is None
    assert strange.doubt(2 * HOUR) == "it is of another cluster"
    known = Knowledge(GivenLogs({GROUP_LOG: frozenset([0])}), topics=strange.given, first_ms=HOUR, last_ms=2 * HOUR)
    assert known.about_topics() == [
        "it is of another cluster: which topics there were, and when they changed, is not known"
    ]


def test_a_record_without_a_time_is_of_topics_that_are_not_known() -> None:
    assert history().doubt(-1) == "the record has no time"
    assert history().doubt(0) is None


def test_before_the_metadata_log_no_topic_is_known() -> None:
    """A cluster has no groups before it begins: these are of another one, or came from ZooKeeper."""
    known = history()
    known.first_seen_ms, known.from_start = HOUR, True
    assert known.doubt(HOUR - CLOCK_TOLERANCE_MS) is None
    assert known.doubt(HOUR - CLOCK_TOLERANCE_MS - 1) == "the history of topics begins later"
    assert not known.is_whole(HOUR // 2)


def test_a_topic_may_be_created_just_behind_the_end_of_the_metadata_log() -> None:
    known = history()
    end_ms = known.last_seen_ms
    assert known.partitions_at("never", end_ms - CLOCK_TOLERANCE_MS) == 0
    assert known.partitions_at("never", end_ms - CLOCK_TOLERANCE_MS + 1) is None
    assert known.partitions_at("t", end_ms) == 0, "it was there, and is deleted"
