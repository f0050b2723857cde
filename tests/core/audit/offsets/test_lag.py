"""Lag at the times of snapshots, and Burrow's status where the end offsets leave one."""

import pytest

from coordinator_core.audit.offsets.burrow import (
    LOG_ENDS,
    MOST_UNREAD,
    NOT_WHOLE,
    ONE_COMMIT,
    OTHER_TOPIC,
    UNREAD,
    LogReach,
    LogSpan,
    TimedCommit,
    UnreadCommits,
    lag_points,
    note_unread,
)
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import LogPosition

PARTITION = TopicPartition("orders", 0)
WHOLE = LogReach.of([LogSpan(0, 1_000, 1_000)])


def commits(*offsets, start=10, every=10, topic_id=None):
    """Commits at 10, 20, ... ms."""
    return [
        TimedCommit(start + every * number, LogPosition(0, number, start + every * number), offset, topic_id)
        for number, offset in enumerate(offsets)
    ]


def points(found, ends, reach=WHOLE, topic_id=None):
    return list(lag_points("g", PARTITION, found, [EndOffset(at, end, topic_id) for at, end in ends], reach))


def status(offsets, ends):
    """At the last of the snapshots, which follow each other closely."""
    *_, last = points(commits(*offsets), ends)
    return last.status


def every_5(end, *, rise=0, until=100):
    return [(at, end + rise * (at // 5)) for at in range(0, until + 1, 5)]


def test_lag_and_what_changed_since_the_snapshot_before():
    first, second = points(commits(10, 30), [(15, 25), (25, 100)])
    assert (first.committed_offset, first.lag, first.produced, first.consumed) == (10, 15, None, None)
    assert (second.committed_offset, second.lag, second.produced, second.consumed) == (30, 70, 75, 20)
    assert second.committed == LogPosition(0, 1, 20)


def test_the_end_of_a_topic_that_was_made_again_is_not_compared_with_that_of_the_old_one():
    ends = [EndOffset(15, 1_000, "old"), EndOffset(25, 2_000, "new"), EndOffset(35, 2_003, "new")]
    first, second, third = lag_points("g", PARTITION, commits(1_000, 900, 950), ends, WHOLE)
    assert (first.produced, second.produced, third.produced) == (None, None, 3)
    assert (first.consumed, second.consumed, third.consumed) == (None, None, 50)


@pytest.mark.parametrize(
    ("offsets", "ends", "expected"),
    [
        ((1, 2, 3), [(30, 3)], "OK"),  # no lag
        ((1, 2, 3), every_5(100, until=55), "STOP"),  # silent for 25 ms, the window took 20
        ((5, 5, 5, 5), every_5(100, until=50), "STALL"),
        ((50, 20, 30, 40), every_5(100, until=45), "REWIND"),
        ((50, 20, 60, 61), every_5(100, until=45), "OK"),  # it came back, and the lag falls
        ((1, 2, 3, 4), every_5(100, rise=10, until=45), "WARN"),
        ((1, 50, 60, 70), every_5(100, until=45), "OK"),
        ((1, 2, 3, 4), [*every_5(2, until=30), (35, 900), (40, 910), (45, 920)], "OK"),  # no lag at the second commit
    ],
)
def test_the_rules_of_burrow(offsets, ends, expected):
    assert status(offsets, ends) == expected


def test_snapshots_far_apart_leave_more_than_one_status():
    (*_, stalled) = points(commits(5, 5, 5), [(0, 5), (35, 900)])
    assert (stalled.lag, stalled.status) == (895, "UNKNOWN")
    assert "OK or STALL" in stalled.missing
    (*_, moving) = points(commits(5, 6, 7), [(0, 1), (35, 900)])
    assert "OK or WARN" in moving.missing


def test_a_single_commit_has_no_status():
    (only,) = points(commits(5), [(12, 9)])
    assert (only.lag, only.status, only.missing, only.window) == (4, "UNKNOWN", ONE_COMMIT, 1)


def test_before_the_first_commit_and_after_a_tombstone_there_is_no_lag():
    found = points(commits(5, None, 7), [(5, 9), (15, 9), (25, 9), (35, 9)])
    assert [(each.timestamp_ms, each.lag) for each in found] == [(15, 4), (35, 2)]


def test_a_snapshot_after_the_end_of_the_log_has_the_lag_to_the_last_commit_and_no_status():
    (point,) = points(commits(5, 6), [(2_000, 9)])
    assert (point.lag, point.status, point.missing) == (3, "UNKNOWN", LOG_ENDS)


def test_a_commit_that_compaction_may_have_removed_is_unknown():
    with_gap = LogReach.of([LogSpan(0, 0, 10), LogSpan(5, 9, 100)])
    found = [commits(5)[0], TimedCommit(60, LogPosition(0, 6, 60), 8)]
    before, between, later = points(found, [(10, 9), (40, 9), (70, 9)], with_gap)
    assert (before.lag, between.lag, between.missing, later.lag) == (4, None, NOT_WHOLE, 1)
    assert between.committed is None
    newest = points(found[:1], [(40, 9)], with_gap)
    assert [each.lag for each in newest] == [4]
    lost = LogReach.of(with_gap.spans, lost=4)
    assert [each.missing for each in points(found[:1], [(40, 9)], lost)] == [NOT_WHOLE]
    cut = LogReach.of([LogSpan(5, 9, 100)])
    assert [each.missing for each in points(found[1:], [(40, 9)], cut)] == [NOT_WHOLE]


def test_a_later_commit_that_cannot_be_decoded_leaves_the_lag_open():
    """It may commit any offset, until the next commit that is readable."""
    committed = [commits(5)[0], TimedCommit(60, LogPosition(0, 6, 60), 8)]
    unread = {("g", PARTITION): [UnreadCommits(30, 3)], ("g", TopicPartition("orders", 1)): [UnreadCommits(0, 99)]}
    reach = LogReach.of(WHOLE.spans, unread=unread)
    before, between, later = points(committed, [(20, 9), (40, 9), (70, 9)], reach)
    assert ([before.lag, later.lag], UNREAD in (before.missing, later.missing)) == ([4, 1], False)
    assert (between.committed_offset, between.committed, between.lag, between.missing) == (None, None, None, UNREAD)
    assert points([], [(20, 9)], reach) == []
    (point,) = points([], [(40, 9)], reach)
    assert (point.lag, point.missing) == (None, UNREAD)


def test_many_commits_that_cannot_be_decoded_take_little_memory():
    unread: dict[tuple[str, TopicPartition], list[UnreadCommits]] = {}
    for offset in range(MOST_UNREAD + 50):
        note_unread(unread, "g", PARTITION, LogPosition(0, offset, 1_000 + offset))
    (found,) = unread.values()
    assert (len(found), found[0], found[-1]) == (MOST_UNREAD, (1_000, 0), (1_099, 149))


def test_a_commit_for_an_earlier_topic_of_the_name_has_no_lag():
    (point,) = points(commits(5, 6, topic_id="old"), [(30, 9)], topic_id="new")
    assert (point.lag, point.missing) == (None, OTHER_TOPIC)
