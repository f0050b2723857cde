"""Committed offsets beyond the end of their partition."""

import pytest

from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.audit.findings.committed_offsets import beyond_the_end
from coordinator_core.audit.folds.commits import PartitionCommits
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
from coordinator_core.groups.end_offsets import EndOffset, records_behind
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import LogPosition
from jobs.report.group_page import detail
from jobs.settings import load
from tests.core.known_topics import at_end

LIMITS = load(environment={}).findings

AT = LogPosition(0, 7, 1_000_000)


@pytest.mark.parametrize(
    ("end", "offset", "lag"),
    [
        (EndOffset(2_000_000, 90), 100_000, -99_910),
        (EndOffset(2_000_000, 90), 75, 15),
        (EndOffset(1_009_999, 90), 100_000, 0),  # it may be older than the commit
        (EndOffset(500, 90), 100, 0),
        (EndOffset(2_000_000, 90), -1, None),
        (EndOffset(2_000_000, 90, "other"), 100, None),
    ],
)
def test_lag_is_negative_only_where_the_end_is_younger(end: EndOffset, offset: int, lag: int | None) -> None:
    assert records_behind(end, offset, AT.timestamp_ms, "topic-id") == lag


def test_partitions_of_a_topic_are_one_finding() -> None:
    commits = [PartitionCommits("t", number, 1, AT, AT, 100 + number, (), ()) for number in range(3)]
    ends = {TopicPartition("t", number): EndOffset(2_000_000, 101) for number in range(3)}
    history = GroupHistory("g", 3_000_000, commits=commits, ends=ends)
    (finding,) = beyond_the_end(history, LIMITS)
    assert (finding.kind, finding.subject, finding.value) == (FindingKind.COMMITTED_BEYOND_END, "t", 1)
    assert "1 partition committed beyond the end, the first: t-2 at 102, which ended at 101" in finding.detail
    assert not [*beyond_the_end(GroupHistory("g", 3_000_000, commits=commits), LIMITS)]


@pytest.mark.parametrize(("topic_id", "findings"), [("old", 0), ("new", 1), (None, 1)])
def test_a_commit_of_an_earlier_topic_of_the_name_is_not_beyond_the_end(topic_id: str | None, findings: int) -> None:
    """The topic was deleted, and created again."""
    commits = [PartitionCommits("t", 0, 1, AT, AT, 100, (), (), topic_id=topic_id)]
    history = GroupHistory(
        "g", 3_000_000, commits=commits, ends={TopicPartition("t", 0): EndOffset(2_000_000, 5, "new")}
    )
    assert len([*beyond_the_end(history, LIMITS)]) == findings
    (offsets,) = detail(history, LIMITS, history.ends).offsets
    assert offsets.lag == (-95 if findings else None)


@pytest.mark.parametrize(
    ("made_ms", "topic_id", "findings"),
    [(AT.timestamp_ms + 60_000, None, 0), (AT.timestamp_ms + 60_000, "new", 1), (AT.timestamp_ms - 60_000, None, 1)],
)
def test_a_commit_without_a_topic_id_may_be_one_of_an_earlier_topic(
    made_ms: int, topic_id: str | None, findings: int
) -> None:
    """Brokers before 4.1 record none: the metadata log shows when the topic was made again, and without it nothing."""
    commits = [PartitionCommits("t", 0, 1, AT, AT, 100, (), (), topic_id=topic_id)]
    topics = at_end({"t": 1})._replace(earlier={"t": ((made_ms - 1_000, 1), (made_ms, 0))})
    history = GroupHistory(
        "g", 3_000_000, commits=commits, ends={TopicPartition("t", 0): EndOffset(2_000_000, 5, "new")}, topics=topics
    )
    found = [*beyond_the_end(history, LIMITS)]
    assert len(found) == findings
    assert not any("or the topic was made again" in row.detail for row in found)
    (row,) = beyond_the_end(history.replaced(topics=NO_TOPICS), LIMITS)
    assert ("or the topic was made again" in row.detail) is (topic_id is None)
