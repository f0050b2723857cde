"""What a watch keeps and does is bounded: rows of a group, findings of a round, and what is told of lag."""

import pytest

from coordinator_core.audit.folds.partition_folds import PartitionFolds
from coordinator_core.audit.offsets.burrow import OTHER_TOPIC, UNREAD, TimedCommit
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import Family, LogPosition
from coordinator_core.wire.record_decoder import UnreadableRecord
from jobs.watch import followed_group, looks
from jobs.watch.events import LagStatusRow
from jobs.watch.followed_group import KeptRows
from jobs.watch.followed_log import MOST_LOST, FollowedLog
from jobs.watch.lags import Lags
from jobs.watch.looks import COMMITS_S, ROUND_S, SHARE_OF_TIME, SOON_S, SWEEP_S, Looks
from jobs.watch.new_rows import LogPlace
from tests.core.builders import GroupLog

PARTITION = TopicPartition("orders", 0)
KEYS = [(Family.GROUP, f"g{number}") for number in range(3)]


def test_the_newest_rows_are_kept_those_of_a_record_together() -> None:
    kept = KeptRows()
    for number in range(1_000):
        kept.add([(number, each) for each in range(7)])  # type: ignore[misc]
        if kept.is_full:
            kept.drop_oldest(open_rows=3)
    assert followed_group.MOST_ROWS <= kept.size <= followed_group.MOST_ROWS * followed_group.SLACK
    rows = list(kept)
    assert len(rows) == kept.size
    assert rows[0][1] == 0, "the rows of one record are dropped together"
    assert rows[-1][0] == 999
    assert kept.first == rows[0][0] + 1
    assert [number for number, _ in kept.since(998)] == [999, 1000]


def test_of_a_large_group_the_rows_of_some_rebalances_are_kept() -> None:
    kept = KeptRows()
    for number in range(100):
        kept.add([(number, each) for each in range(1_000)])  # type: ignore[misc]
        if kept.is_full:
            kept.drop_oldest(open_rows=1_000)
    assert kept.size >= followed_group.MOST_REBALANCES * 1_000


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_group_that_never_rests_is_looked_at_a_few_times_a_second() -> None:
    clock = Clock()
    due = Looks(clock)
    looked = 0
    for _ in range(1_000):
        due.note(KEYS[0])
        for _ in due.due():
            looked += 1
        clock.now += 0.01
    assert looked == pytest.approx(10 / (SOON_S + 0.01), abs=3)


def test_a_look_that_costs_much_is_seldom_and_the_others_wait_for_the_next_round() -> None:
    clock = Clock()
    due = Looks(clock)
    for key in KEYS:
        due.note(key)
    looked = []
    for key in due.due():
        looked.append(key)
        clock.now += 2 * ROUND_S
    assert looked == KEYS[:1]
    due.note(KEYS[0])
    assert [*due.due()] == KEYS[1:]
    clock.now += 2 * ROUND_S / SHARE_OF_TIME + 0.001
    assert [*due.due()] == KEYS[:1]


def test_commits_are_looked_at_later_and_silence_at_last() -> None:
    clock = Clock()
    due = Looks(clock)
    due.note(KEYS[0], only_commits=True)
    assert [*due.due()] == KEYS[:1]
    due.note(KEYS[0], only_commits=True)
    clock.now += COMMITS_S / 2
    assert [*due.due()] == []
    clock.now += COMMITS_S / 2 + SOON_S
    assert [*due.due()] == KEYS[:1]
    clock.now += SWEEP_S
    assert [*due.due()] == KEYS[:1]
    assert looks.SWEEP_S > looks.COMMITS_S


def status(
    lags: Lags, time_ms: int, end: int, end_ms: int | None = None, topic_id: str | None = None
) -> LagStatusRow | None:
    ends = {PARTITION: EndOffset(time_ms, end, topic_id)}
    return next(lags.read(time_ms, ends, time_ms if end_ms is None else end_ms), None)


def test_lag_is_told_once_it_is_known() -> None:
    lags = Lags()
    lags.take("g", PARTITION, TimedCommit(1_000, LogPosition(0, 1, 1_000), 5))
    assert status(lags, 1_500, 9) is None, "one commit is not enough"
    for number in range(2, 6):
        lags.take("g", PARTITION, TimedCommit(number * 1_000, LogPosition(0, number, number * 1_000), 5 + number))
    assert status(lags, 5_500, 10).status == "OK"
    assert status(lags, 20_000, 300, end_ms=6_000) is None, "the log was not read up to then"
    assert status(lags, 20_000, 300).status == "OK", "an older end offset was not above the commit"
    for second in range(21, 31):
        row = status(lags, second * 1_000, 300)
    assert row is None, "a group that has just begun makes pauses"
    assert [point.status for point in lags.points["g"]] == ["STOP"], "by Burrow's rules"
    other = TopicPartition("other", 0)
    for number in range(1, 3):
        lags.take("g", other, TimedCommit(61_000 + number, LogPosition(0, 9 + number, 61_000 + number), 0))
    (row,) = lags.read(61_010, {PARTITION: EndOffset(61_010, 300), other: EndOffset(61_010, 3_000)}, 61_010)
    assert row.status == "ERR"
    assert row.lag == 3_290
    assert [point.status for point in row.worst] == ["STOP", "UNKNOWN"], "the bad one first"
    assert lags.ends == {PARTITION: EndOffset(61_010, 300), other: EndOffset(61_010, 3_000)}
    assert lags.partitions() == {PARTITION, other}


@pytest.mark.parametrize("before", [1_000, 0], ids=["it had more", "it had less"])
def test_the_lag_of_a_topic_that_was_made_again_is_its_own(before: int) -> None:
    """What the one before it had says nothing of it: a lower offset is no rewind, a lower end no lack."""
    lags = Lags()

    def commit(second: int, offset: int, topic_id: str) -> None:
        time_ms = second * 1_000
        lags.take("g", PARTITION, TimedCommit(time_ms, LogPosition(0, second, time_ms), offset, topic_id))

    for second in range(1, 4):
        commit(second, before + second, "before")
        status(lags, second * 1_000 + 1, before + 4, topic_id="before")
    assert status(lags, 5_000, 9, topic_id="now") is None
    assert [(point.lag, point.missing) for point in lags.points["g"]] == [(None, OTHER_TOPIC)]
    for second in (6, 7, 8):
        commit(second, second, "now")
        status(lags, second * 1_000 + 1, 9 + second, topic_id="now")
    assert [(point.status, point.window) for point in lags.points["g"]] == [("UNKNOWN", 3)]
    status(lags, 30_000, 20, topic_id="now")
    assert [point.status for point in lags.points["g"]] == ["STOP"]


def test_the_lag_is_not_known_behind_a_commit_that_cannot_be_decoded() -> None:
    """It may have committed any offset; the next commit tells again."""
    lags, log = Lags(), GroupLog()
    log.offset = 1
    for number in range(1, 6):
        lags.feed(log.commit(PARTITION.topic, PARTITION.partition, number))
    assert status(lags, 6_500, 5).status == "OK"
    newer = log.commit(PARTITION.topic, PARTITION.partition, 6)
    lags.lose(UnreadableRecord(newer.at, "version 77", newer.type, newer.key))
    assert status(lags, 8_000, 300) is None
    assert [(point.lag, point.missing) for point in lags.points["g"]] == [(None, UNREAD)]
    lags.feed(log.commit(PARTITION.topic, PARTITION.partition, 299))
    status(lags, 9_000, 300)
    assert [point.lag for point in lags.points["g"]] == [1]


def test_lost_offsets_and_ranges_are_bounded() -> None:
    place, coverage = LogPlace("__consumer_offsets", Family.GROUP, 0), Coverage({})
    log = FollowedLog(place, from_start=True, folds=PartitionFolds(pytest.fail))
    for number in range(10_000):
        log.lose(3 * number, 3 * number)
        coverage.note(0, 2 * number)
    assert len(log.lost) == MOST_LOST
    assert log.lost[0][0] == 0
    assert log.lost[-1] == (29_997, 29_997)
    assert len(coverage.newest_ranges(0, 100)) == 100
    assert coverage.unbroken(0, 19_998, 19_998)
    assert not coverage.unbroken(0, 0, 0)
