"""Rules of where and when records of a group are written: each fires on a log that Kafka does not write."""

import pytest

from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import AnyRecord, LogPosition
from tests.core.builders import GroupLog

BATCH_RULES = frozenset((Rule.GROUP_IN_WRONG_PARTITION, Rule.LOG_LEADER_EPOCH_WENT_BACK, Rule.TIME_WENT_BACK))
WHOLE = Coverage({partition: [(0, 10_000)] for partition in range(50)})
PARTITION_OF_G = {4: 3, 6: 1}
"""The hash of the id ``g`` is 103."""


def offsets_topic(*counts: int) -> TopicHistory:
    """The topic of the group log as it grew, second by second."""
    topics = TopicHistory()
    for second, count in enumerate(counts):
        topics.open_version(LogPosition(0, second, 1_000 * second))
        topics.put_topic(Topic("__consumer_offsets", "id", count))
    topics.last_seen_ms = 10**9
    return topics


def judged(records: list[AnyRecord], topics: TopicHistory | None = None, *leader_epochs: int) -> list[Violation]:
    fold = RuleFold(Group("g", from_start=True), None, WHOLE, topics)
    epochs: list[int | None] = [*leader_epochs] or [None] * len(records)
    rows = [row for record, epoch in zip(records, epochs, strict=True) for row in fold.feed(record, epoch)]
    return [row for row in rows if row.rule in BATCH_RULES]


def moved(records: list[AnyRecord], partition: int) -> list[AnyRecord]:
    return [each._replace(at=each.at._replace(partition=partition)) for each in records]


def joined() -> list[AnyRecord]:
    return [*GroupLog().join("a", 2, {"t": [0]})]


@pytest.mark.parametrize("partition", range(4))
def test_a_group_is_in_the_partition_that_its_hash_gives(partition: int) -> None:
    rows = judged(moved(joined(), partition), offsets_topic(4))
    if partition == PARTITION_OF_G[4]:
        assert rows == []
    else:
        (row,) = rows
        assert row.rule is Rule.GROUP_IN_WRONG_PARTITION
        assert row.detail == f"in partition {partition}; the hash of its id gives 3"


def test_a_topic_that_grew_moved_its_groups() -> None:
    for partition in PARTITION_OF_G.values():
        assert judged(moved(joined(), partition), offsets_topic(4, 6)) == []
    assert [row.detail for row in judged(moved(joined(), 2), offsets_topic(4, 6))] == [
        "in partition 2; the hash of its id gives 1 or 3"
    ]


def test_where_the_number_of_partitions_is_not_known_nothing_is_claimed() -> None:
    with_gap, short = offsets_topic(4), offsets_topic(4)
    with_gap.gaps.append(HistoryGap(LogPosition(0, 1, 0), "a hole"))
    short.last_seen_ms = -1
    for topics in (None, TopicHistory(), offsets_topic(2), with_gap, short):
        assert judged(moved(joined(), 2), topics) == []


def test_leader_epochs_do_not_go_back() -> None:
    records = joined()
    steady = [0, *[1] * (len(records) - 1)]
    assert judged(records, None, *steady) == []
    (row,) = judged(records, None, *steady[:-2], 0, 1)
    assert (row.rule, row.at, row.detail) == (Rule.LOG_LEADER_EPOCH_WENT_BACK, records[-2].at, "leader epoch 0 after 1")


def test_times_go_back_by_no_more_than_clocks_are_apart() -> None:
    records = joined()
    for back_ms, expected in ((CLOCK_TOLERANCE_MS, []), (CLOCK_TOLERANCE_MS + 1, [Rule.TIME_WENT_BACK])):
        at = records[-1].at
        late = [each._replace(at=each.at._replace(timestamp_ms=10**6)) for each in records[:-1]]
        last = records[-1]._replace(at=at._replace(timestamp_ms=10**6 - back_ms))
        assert [row.rule for row in judged([*late, last])] == expected
        untimed = records[-1]._replace(at=at._replace(timestamp_ms=-1))
        assert judged([*late, untimed]) == [], "a record without a time is no earlier one"


def test_a_group_that_is_written_once_more_goes_back_in_time() -> None:
    log = GroupLog()
    life = [*log.join("a", 2, {"t": [0]}), *log.gone("a"), log.tombstone(6), log.tombstone(3)]
    length = len(life)
    later = [each._replace(at=each.at._replace(offset=each.at.offset + length)) for each in life]
    spread = [each._replace(at=each.at._replace(timestamp_ms=20 * each.at.timestamp_ms)) for each in (*life, *later)]
    back = (old.at.timestamp_ms for old in spread)
    again = [*spread[:length], *(_at_time(new, time_ms) for new, time_ms in zip(spread[length:], back, strict=False))]
    assert [(row.rule, row.at.offset) for row in judged(again)] == [(Rule.TIME_WENT_BACK, length)]


def _at_time(record: AnyRecord, time_ms: int) -> AnyRecord:
    return record._replace(at=record.at._replace(timestamp_ms=time_ms))
