"""Since when a task counts for a partition that a topic has only for a part of the time."""

import pytest

from coordinator_core.cluster.given_topics import GivenTopics
from coordinator_core.cluster.topic_changes import TopicInterval
from coordinator_core.records import LogPosition
from jobs.queries.ownership import is_topic_shown, of_partition
from tests.core.audit.histories import assignment, at


@pytest.mark.parametrize(("grown_ms", "is_whole"), [(59_000, True), (60_000, True), (69_000, True), (71_000, False)])
def test_a_task_may_seem_older_than_its_partition_by_what_clocks_differ(grown_ms: int, is_whole: bool) -> None:
    """The topic grows by the clock of the controller, the task begins at 60 s by that of the coordinator."""
    task = assignment("m1", 7, at(60), subtopology="0", topic=None, topic_id=None)
    grown = LogPosition(0, 9, grown_ms)
    lives = [
        TopicInterval("t", "t-id", 7, ((),) * 7, ((),) * 7, LogPosition(0, 1, 1_000), grown, "changed"),
        TopicInterval("t", "t-id", 8, ((),) * 8, ((),) * 8, grown, None, None),
    ]
    (found,) = of_partition(task, lives)
    assert found.since == (at(60) if is_whole else None)


@pytest.mark.parametrize(
    ("topics", "until", "is_shown"),
    [
        (GivenTopics(is_log=True, until_ms=100_000), at(80), True),
        (GivenTopics(is_log=True, until_ms=100_000), None, True),
        (GivenTopics(is_log=True, until_ms=70_000), at(80), False),
        (GivenTopics(is_log=True, until_ms=70_000), None, False),
        (GivenTopics(is_log=True, since_ms=65_000, until_ms=100_000), at(80), False),
        (GivenTopics(), at(80), False),
        (GivenTopics(is_listed=True), at(80), True),
    ],
)
def test_a_task_has_its_partition_for_as_long_as_the_topic_is_known_to_be_there(
    topics: GivenTopics, until: LogPosition | None, is_shown: bool
) -> None:
    task = assignment("m1", 0, at(60), until, subtopology="0", topic=None, topic_id=None)
    (part,) = of_partition(task, None)
    assert is_topic_shown(part, topics, 100_000) == is_shown
    (part,) = of_partition(assignment("m1", 0, at(60), until), None)
    assert is_topic_shown(part, topics, 100_000), "its topic is in its own record"
