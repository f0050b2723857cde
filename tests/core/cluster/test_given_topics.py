"""What was given of the topics: over which times they are known, and what is said of the rest."""

from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import COPIED_MS, NO_REACH, NO_TOPICS_GIVEN, GivenTopics
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_changes import hole_before
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.history.knowledge import GivenLogs, Knowledge
from coordinator_core.records import GROUP_LOG, LogPosition

HOUR = 3_600_000
WHOLE = GivenTopics(is_log=True, since_ms=0, until_ms=10 * HOUR)


def history(*, until_ms: int = 10 * HOUR) -> TopicHistory:
    known = TopicHistory()
    known.open_version(LogPosition(0, 5, HOUR))
    known.put_topic(Topic("t", "id-t", 3))
    known.open_version(LogPosition(0, 9, 4 * HOUR))
    known.remove_topic("t")
    known.last_seen_ms = until_ms
    return known


def test_what_is_missing_of_the_topics_is_said() -> None:
    assert WHOLE.missing(HOUR, 10 * HOUR + COPIED_MS) is None, "copied with the logs of groups"
    assert WHOLE.missing(None, None) is None
    absent = NO_TOPICS_GIVEN.missing(HOUR, 2 * HOUR)
    assert absent is not None
    assert absent.startswith("the metadata log (__cluster_metadata) was not given")
    short = WHOLE.missing(HOUR, 11 * HOUR)
    assert short is not None
    assert "ends at 1970-01-01T10:00:00.000Z, 1 h before the logs of groups" in short
    assert WHOLE.missing(HOUR, 10 * HOUR + COPIED_MS + 1) is not None
    late = WHOLE._replace(since_ms=2 * HOUR).missing(HOUR, 3 * HOUR)
    assert late is not None
    assert "begins at 1970-01-01T02:00:00.000Z, after the logs of groups" in late
    hole = WHOLE._replace(gap="the metadata log has a hole before offset 7", whole_ms=HOUR).missing(HOUR, 3 * HOUR)
    assert hole is not None
    assert hole.startswith("the metadata log has a hole before offset 7: ")
    assert GivenTopics(is_listed=True).missing(HOUR, 3 * HOUR) is None, "whoever gives lists knows what they are"


def test_what_was_before_the_metadata_log_of_a_cluster_is_not_known() -> None:
    """Logs of groups that begin before it are of another cluster, or of one that came from ZooKeeper."""
    begun = GivenTopics(is_log=True, since_ms=2 * HOUR, until_ms=10 * HOUR, from_start=True)
    assert begun.missing(2 * HOUR - CLOCK_TOLERANCE_MS, 10 * HOUR) is None, "clocks differ"
    before = begun.missing(2 * HOUR - CLOCK_TOLERANCE_MS - 1, 10 * HOUR)
    assert before is not None
    assert "begins at 1970-01-01T02:00:00.000Z, after the logs of groups" in before
    assert not begun.reach.covers(HOUR, 3 * HOUR)


def test_a_time_outside_the_calendar_is_said_in_milliseconds() -> None:
    late = GivenTopics(is_log=True, since_ms=1 << 62, until_ms=1 << 62).missing(5, 6)
    early = GivenTopics(is_log=True, until_ms=-(1 << 62)).missing(5, 6)
    assert late is not None
    assert f"begins at {1 << 62} ms, after the logs of groups" in late
    assert early is not None
    assert f"ends at {-(1 << 62)} ms" in early


def test_only_answers_about_topics_say_what_is_missing_of_them() -> None:
    known = Knowledge(GivenLogs({GROUP_LOG: frozenset([0])}, {GROUP_LOG: 1}), first_ms=HOUR, last_ms=2 * HOUR)
    assert (known.reasons(), len(known.reasons_with_topics())) == ([], 1)
    assert Knowledge(GivenLogs({"__worker_offsets": frozenset([0])})).about_topics() == []


def test_records_without_times_are_said() -> None:
    (said,) = Knowledge(without_times=["__consumer_offsets-3"]).reasons()
    assert said.startswith("records of __consumer_offsets-3 have no times")


def test_topics_are_known_up_to_the_end_of_the_log_or_the_first_hole() -> None:
    known = history()
    assert [known.partitions_at("id-t", hour * HOUR) for hour in (2, 5, 11)] == [3, 0, None]
    assert known.partitions_at("never", 2 * HOUR) == 0
    assert known.reach.covers(HOUR, 10 * HOUR)
    assert not known.reach.covers(HOUR, 10 * HOUR + 1), "nothing shows what changed behind the end"
    known.gaps.append(hole_before(LogPosition(0, 8, 3 * HOUR), 2 * HOUR))
    assert known.reach.covers(HOUR, 2 * HOUR - CLOCK_TOLERANCE_MS)
    assert not known.reach.covers(HOUR, 2 * HOUR), "what is lost may have come right behind"
    assert [known.partitions_at("id-t", hour * HOUR) for hour in (1, 5)] == [3, None]
    known.complete = False
    assert known.partitions_at("never", HOUR) is None, "it may be older than the log"


def test_an_image_that_may_be_out_of_date_is_not_whole() -> None:
    known = history(until_ms=4 * HOUR)
    images = [known.image_at(2 * HOUR), known.image_at(None, 4 * HOUR), known.image_at(None, 6 * HOUR)]
    assert [image is not None and image.is_whole for image in images] == [True, True, False]


def test_an_image_of_a_time_that_may_be_later_is_whole_only_if_no_topic_changes_until_then() -> None:
    known = history()
    images = [known.image_at(2 * HOUR, 0, upto_ms) for upto_ms in (2 * HOUR, 3 * HOUR, 4 * HOUR, 1 << 62)]
    assert [image is not None and image.is_whole for image in images] == [True, True, False, False]


def test_logs_that_were_copied_together_end_within_a_second() -> None:
    known = history()
    assert [known.reach.covers_end(10 * HOUR + late) for late in (0, COPIED_MS, COPIED_MS + 1)] == [True, True, False]
    images = [known.image_at(None, 10 * HOUR + late) for late in (COPIED_MS, COPIED_MS + 1)]
    assert [image is not None and image.is_whole for image in images] == [True, False]


def test_no_source_reaches_anywhere() -> None:
    assert not NO_REACH.covers(0, 0)
    assert not NO_REACH.covers_end(0)
    assert not NO_TOPICS_GIVEN.reach.covers(0, 0)
