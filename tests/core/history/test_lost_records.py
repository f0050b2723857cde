"""Records that are lost or cannot be decoded: what they may have said of a group's life is unknown."""

import pytest

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage, Hole, ReadableCoverage
from coordinator_core.history.grounds import unreadable_record
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.lost_records import LostRecords, Unreadable
from coordinator_core.history.rows import (
    AWAY_LOST,
    AssignmentRow,
    GroupEpochRow,
    HistoryRow,
    MembershipRow,
    RebalanceRow,
    ShareInitializationRow,
)
from coordinator_core.records import GROUP_LOG, LogPosition, RecordType
from tests.core.cluster.test_metadata_log import hash_of
from tests.core.history.logs import (
    GROUP,
    A,
    GroupLog,
    alone,
    classic,
    current,
    epoch,
    existing,
    generation,
    gone,
    group_gone,
    kinds,
    member,
    target,
    target_epoch,
)

GROUP_GONE = (
    (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {}, None),
    (RecordType.CONSUMER_GROUP_METADATA, {}, None),
)


@pytest.mark.parametrize(
    ("number", "metadata_hash", "is_first"), [(1, 0, True), (1, 7, True), (2, 7, True), (2, 0, False), (3, 7, False)]
)
def test_epoch_2_without_a_hash_is_the_second_of_an_older_broker(
    number: int, metadata_hash: int, *, is_first: bool
) -> None:
    log = GroupLog(offset=10)
    log.write(member("m1", "t"), epoch(number, metadata_hash), target("m1", 0), target_epoch(number))
    (row,) = log.rebalances(coverage=Coverage({0: [(0, 3), (10, 100)]}))
    assert (row.missing is None) == is_first


@pytest.mark.parametrize("is_seen", [True, False], ids=["classic group seen", "classic group lost"])
def test_epoch_2_behind_a_lost_conversion_is_not_the_first_where_its_target_names_others(*, is_seen: bool) -> None:
    """A classic group of generation 1 that is converted has epoch 1: the next member that joins opens epoch 2."""
    log = GroupLog()
    if is_seen:
        log.write(generation(1, {"m1": classic({"t": [0, 1]}), "m2": classic({"t": [2, 3]})}))
    log.skip(100 - log.offset)
    log.write(member("m3", "t"), epoch(2), target("m1", 0, 1), target("m3", 2, 3), target_epoch(2), current("m3", 2))
    log.write(member("m4", "t"), epoch(3), target("m1", 0), target("m4", 1), target_epoch(3))
    coverage = Coverage({0: [*([(0, 1)] if is_seen else []), (100, log.offset)]})
    rows = [row for row in log.rows(existing(t=4), coverage) if row.group_type == "CONSUMER"]
    assert len({type(row) for row in rows}) == 4
    assert not any(getattr(row, "history_complete", True) for row in rows)
    for row in rows:
        if isinstance(row, RebalanceRow):
            assert (row.members_before, row.members_after, kinds(row)) == (None, None, ["unknown"])
        if isinstance(row, MembershipRow):
            assert (row.came_by, row.first_epoch) == ("unknown", None)


def test_a_group_that_begins_behind_lost_records_has_the_members_of_its_target() -> None:
    log = GroupLog(offset=100)
    log.write(member("m1", "t"), epoch(2), target("m1", 0, 1), target_epoch(2), current("m1", 2, 0, 1))
    (row,) = log.rebalances(existing(t=2), Coverage({0: [(0, 3), (100, log.offset)]}))
    assert (row.history_complete, row.members_before, kinds(row)) == (True, 0, ["member_joined"])


@pytest.mark.parametrize(
    ("levels", "is_first"), [([], False), ([(0, 30)], True), ([(0, 29)], False), ([(0, 29), (1, 30)], False)]
)
def test_epoch_2_without_topics_is_the_first_where_all_brokers_are_of_4_3(
    levels: list[tuple[int, int]], *, is_first: bool
) -> None:
    """The hash of no topics is 0, too: a streams group whose source topic is not there has it."""
    topics = TopicHistory()
    for at, level in levels:
        topics.brokers.note_registration(1, LogPosition(0, at, at), level)
    topics.last_seen_ms = 10**6
    log = GroupLog(offset=10).write(member("m1", "t"), epoch(2, 0), target("m1"), target_epoch(2))
    (row,) = log.rebalances(topics, Coverage({0: [(0, 3), (10, 100)]}))
    assert (row.missing is None) == is_first


@pytest.mark.parametrize(("later_ms", "how"), [(0, "end not seen"), (5_000, "group deleted")])
def test_an_unreadable_record_at_the_end_of_a_group_may_go_on_with_it(later_ms: int, how: str) -> None:
    """A group that is converted ends and goes on in one batch."""
    log = GroupLog()
    log.write(member("m1", "t"), epoch(2), target("m1", 0), target_epoch(2), current("m1", 2, 0))
    log.write(*gone("m1"), *GROUP_GONE)
    fold = GroupFold(Group(GROUP, from_start=True), coverage=Coverage({0: [(0, 100)]}))
    rows = [row for record in log.records for row in fold.feed(record)]
    rows += fold.lose(LogPosition(0, log.offset, log.time_ms + later_ms), "a record")
    so_far = [row for row in (*rows, *fold.open_rows()) if isinstance(row, GroupEpochRow)]
    assert [row.ended_by for row in so_far] == [how], "also where no other record of the group follows"
    log.skip(1).write(member("m2", "t"), epoch(9), after_ms=10_000)
    rows += [row for record in log.records[-2:] for row in fold.feed(record)]
    (ended,) = [row for row in rows if isinstance(row, GroupEpochRow)]
    assert ended.ended_by == how
    (begun,) = [row for row in fold.open_rows() if isinstance(row, GroupEpochRow)]
    assert not begun.history_complete


def test_share_state_behind_lost_records_may_have_gone() -> None:
    there = {"topicId": A, "topicName": "t", "partitions": [0]}
    listed = {"initializingTopics": [], "deletingTopics": [], "initializedTopics": [there]}
    log = GroupLog().write((RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, {}, listed))
    (row,) = [row for row in log.rows() if isinstance(row, ShareInitializationRow)]
    known = LostRecords({(GROUP_LOG, 0): [(5, 9)]}).as_known(row)
    assert isinstance(known, ShareInitializationRow)
    assert (row.outcome, known.outcome, known.is_open, known.history_complete) == ("open", "unknown", True, False)


@pytest.mark.parametrize("is_lost", [False, True], ids=["read", "lost"])
def test_a_lost_epoch_may_have_seen_changes_of_topics_before_its_group_became_classic(*, is_lost: bool) -> None:
    """The generation of the downgrade has the number of the last epoch, whether that was read or not."""
    topics = existing(t=4)
    log = GroupLog().write(member("m1", "t"), member("m2", "t"), epoch(5, hash_of(Topic("t", A, 4))))
    topics.open_version(LogPosition(0, 9, log.time_ms + 500))
    topics.remove_topic("t")
    log.write(epoch(6, 0), target_epoch(6))
    coverage = Coverage({0: [(0, 100)]})
    at = log.records[-2].at
    log.write(*gone("m1"), *gone("m2"), *GROUP_GONE, generation(6, {"m1": classic({})}))
    log.write(generation(7, {"m1": classic({}), "m3": classic({})}))
    fold = GroupFold(Group(GROUP, from_start=True), topics=topics, coverage=coverage)
    rows: list[HistoryRow] = []
    for record in log.records:
        if is_lost and record.at == at:
            rows += fold.lose(at, "a record")
        else:
            rows += fold.feed(record)
    downgrade, later = [row for row in [*rows, *fold.open_rows()] if isinstance(row, RebalanceRow)][-2:]
    assert (downgrade.from_epoch, downgrade.to_epoch) == (6, 6)
    assert (later.from_epoch, later.to_epoch, later.history_complete) == (6, 7, not is_lost)
    assert "topic_deleted" not in kinds(later)


def test_no_topic_is_known_to_be_there_behind_the_end_of_the_metadata_log() -> None:
    topics = existing(t=4)
    topics.last_seen_ms = 5_000
    assert [topics.was_there("t", A, time_ms, 10_000) for time_ms in (4_000, 6_000)] == [True, False]


def test_a_static_member_replaced_behind_lost_records_has_no_known_first_epoch() -> None:
    """An epoch may have opened in what is lost; one that opens later is not the first one, either."""
    log = GroupLog().write(member("s1", "t", instance="i"), epoch(2), target("s1", 0), target_epoch(2))
    log.write(current("s1", 2, 0)).skip(5).write(*gone("s1"), member("s2", "t", instance="i"), current("s2", 3, 0))
    log.write(member("m1", "t"), epoch(4))
    coverage = Coverage({0: [(0, 5), (10, 100)]})
    rows = [row for row in log.rows(coverage=coverage) if isinstance(row, MembershipRow) and row.member_id == "s2"]
    (came,) = rows
    assert (came.came_by, came.first_epoch, came.history_complete) == ("static replacement", None, False)
    (whole,) = [row for row in log.rows() if isinstance(row, MembershipRow) and row.member_id == "s2"]
    assert (whole.first_epoch, whole.history_complete) == (2, True)


@pytest.mark.parametrize(("instance", "begin", "came_by"), [("i", 10, "unknown"), (None, 10, "join"), ("i", 0, "join")])
def test_a_static_member_behind_lost_records_may_have_replaced_another(
    instance: str | None, begin: int, came_by: str
) -> None:
    """It opens no epoch, as one that waits for its regex; the tombstones of the member before name no instance id."""
    log = GroupLog(offset=begin)
    log.write(member("m1", "t"), epoch(5 if begin else 1), target("m1", 0), target_epoch(5 if begin else 1))
    log.write(*(gone("s1") if begin else ()), member("s2", instance=instance, subscribedTopicRegex="t.*"))
    coverage = Coverage({0: [(0, 3), (10, 100)] if begin else [(0, 100)]})
    (row,) = [row for row in log.rows(coverage=coverage) if isinstance(row, MembershipRow) and row.member_id == "s2"]
    assert (row.came_by, row.history_complete) == (came_by, came_by == "join")


@pytest.mark.parametrize(
    ("is_lost", "went_by", "is_known"), [(False, "leave or expiry", True), (True, "upgrade", False)]
)
def test_a_member_that_an_upgrade_may_have_taken_on_is_in_doubt(is_lost: bool, went_by: str, *, is_known: bool) -> None:
    """A record in the batch cannot be read: it may be the one with which the member goes on."""
    log = GroupLog().write(member("a", "t"), epoch(1), *gone("a"), *group_gone())
    log.write(generation(1, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    log.write((RecordType.GROUP_METADATA, {"group": GROUP}, None), member("a", "t"), member("c", "t"), epoch(1))
    coverage = ReadableCoverage(Coverage({0: [(0, 100)]}))
    fold = GroupFold(Group(GROUP, from_start=True), coverage=coverage)
    rows: list[HistoryRow] = []
    for record in log.records:
        if is_lost and record.key.get("memberId") == "c":
            hole = Hole(record.at, "a record")
            coverage.lose(hole)
            rows += fold.lose(*hole)
        else:
            rows += fold.feed(record)
    rows += fold.open_rows()
    (left,) = [row for row in rows if isinstance(row, MembershipRow) and row.member_id == "b"]
    assert (left.went_by, left.history_complete) == (went_by, is_known)


def test_an_upgrade_goes_on_from_the_last_generation_though_that_is_lost() -> None:
    log = GroupLog().write(generation(1, {"m1": classic({"t": [0]})})).skip(1)
    log.write((RecordType.GROUP_METADATA, {"group": GROUP}, None), member("m1", "t"), epoch(2))
    upgraded = log.rebalances(coverage=Coverage({0: [(0, 0), (2, 100)]}))[1]
    assert (kinds(upgraded), upgraded.from_epoch, upgraded.to_epoch) == (["group_upgraded"], 2, 2)


@pytest.mark.parametrize(("first", "is_certain"), [(0, True), (1, False)])
def test_a_record_behind_a_missing_one_of_its_batch_is_not_the_first_of_its_group(
    first: int, *, is_certain: bool
) -> None:
    """A member joins with a regular expression, which is resolved later and opens the first epoch."""
    log = GroupLog(offset=10).write(member("m", subscribedTopicRegex="t.*"), current("m", 1))
    resolved = {"topics": ["t"], "version": 1, "timestamp": 0}
    log.write((RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, {"regularExpression": "t.*"}, resolved), epoch(2))
    log.records = log.records[first:]
    (opened,) = (row for row in log.rows(coverage=Coverage({0: [(10 + first, 100)]})) if isinstance(row, GroupEpochRow))
    assert opened.history_complete == is_certain


@pytest.mark.parametrize(("lost", "hint"), [((), None), ((5,), AWAY_LOST)])
def test_a_static_member_whose_leave_may_be_lost_is_not_said_to_be_fenced(
    lost: tuple[int, ...], hint: str | None
) -> None:
    log = GroupLog().write(member("s1", "t", instance="i"), epoch(2), target("s1", 0), target_epoch(2))
    log.write(current("s1", 2, 0)).skip(1).write(*gone("s1"), member("s2", "t", instance="i"), current("s2", 2, 0))
    coverage = Coverage({0: [(0, 4), (6, 100)] if lost else [(0, 100)]})
    old = next(row for row in log.rows(coverage=coverage) if isinstance(row, MembershipRow) and row.member_id == "s1")
    assert (old.went_by, old.hint) == ("static replacement", hint)


@pytest.mark.parametrize(("generation_behind", "is_certain"), [(3, True), (4, False)])
def test_a_member_may_have_gone_through_a_conversion_there_and_back_in_lost_records(
    generation_behind: int, is_certain: bool
) -> None:
    """It would keep its id; the group would have a generation more."""
    log = GroupLog()
    for number in (1, 2):
        log.write(generation(number, {"m": classic({"t": [0]})}))
    log.skip(6).write(generation(generation_behind, {"m": classic({"t": [0]})}))
    rows = log.rows(coverage=Coverage({0: [(0, 1), (8, 8)]}))
    (stay,) = (row for row in rows if isinstance(row, MembershipRow))
    assert (stay.joined.offset, stay.history_complete) == (0, is_certain)


def test_an_empty_classic_group_may_have_been_replaced_behind_lost_records() -> None:
    """Another group begins in its place, with a first epoch."""
    log = GroupLog().write(generation(4, {"m1": classic({"t": [0]})})).skip(1)
    log.write((RecordType.GROUP_METADATA, {"group": GROUP}, None), member("new", "t"), epoch(2))
    upgraded = log.rebalances(coverage=Coverage({0: [(0, 0), (2, 100)]}))[1]
    assert (upgraded.from_epoch, upgraded.to_epoch) == (None, 2)


def test_a_group_that_had_members_was_converted_where_what_follows_is_lost() -> None:
    """Only a group without members is deleted."""
    log = GroupLog().write(member("a", "t"), epoch(2), *gone("a"), *group_gone()).skip(1)
    log.write(generation(3, {"b": classic({"t": [0]})}))
    end = log.records[-1].at.offset
    row = log.rebalances(coverage=Coverage({0: [(0, end - 2), (end, 100)]}))[0]
    assert (row.outcome, row.finished) == ("unknown", None)


def test_a_downgrade_behind_lost_records_does_not_tell_who_was_there_before() -> None:
    log = GroupLog(offset=7).write(current("b", 3, 0))
    log.write(*gone("b"), *group_gone(), generation(3, {"b": classic({"t": [0]}), "c": classic({"t": [1]})}))
    rows = log.rows(coverage=Coverage({0: [(7, 100)]}))
    downgraded = [row for row in rows if isinstance(row, RebalanceRow)][-1]
    assert (kinds(downgraded), downgraded.members_before) == (["group_downgraded"], None)
    (taken_on,) = [row for row in rows if isinstance(row, MembershipRow) and row.member_id == "c"]
    assert (taken_on.came_by, taken_on.history_complete) == ("unknown", False)


def a_group_that_lost_records(*, epochs: int) -> tuple[GroupLog, Coverage]:
    """A member has yet to reach epoch 2; so many epochs open in what is lost, and another one behind it."""
    one, two = (hash_of(Topic("t", A, partitions)) for partitions in (1, 2))
    log = GroupLog().write(member("m1", "t"), epoch(2, one), target("m1", 0), target_epoch(2)).skip(6)
    log.write(member("m2", "t"), epoch(3 + epochs, two), target_epoch(3 + epochs), current("m1", 3 + epochs, 0))
    return log, Coverage({0: [(0, 3), (10, 100)]})


@pytest.mark.parametrize(("epochs", "before"), [(0, 2), (2, None)])
def test_a_rebalance_may_have_converged_among_lost_records(epochs: int, before: int | None) -> None:
    """And where the number of the next epoch shows that others are lost, the epoch before it is one of them."""
    log, coverage = a_group_that_lost_records(epochs=epochs)
    first, second = log.rebalances(coverage=coverage)
    assert (first.outcome, first.finished, first.duration_max_ms, first.members_behind) == ("unknown", None, None, None)
    assert (second.from_epoch, second.to_epoch) == (before, 3 + epochs)


@pytest.mark.parametrize(("epochs", "kinds"), [(0, ["topic_grown"]), (2, ["unknown"])])
def test_a_change_of_topics_may_be_the_cause_of_an_epoch_that_is_lost(epochs: int, kinds: list[str]) -> None:
    topics = existing(t=1)
    topics.open_version(LogPosition(0, 1, 2500))
    topics.put_topic(Topic("t", A, 2))
    log, coverage = a_group_that_lost_records(epochs=epochs)
    assert [each.kind for each in log.rebalances(topics, coverage)[1].causes] == kinds


def test_an_epoch_behind_lost_records_may_have_no_member_left() -> None:
    log = alone(GroupLog())
    log.skip(3).write(epoch(3))
    row = log.rebalances(coverage=Coverage({0: [(0, 4), (8, 100)]}))[-1]
    assert (row.outcome, row.is_open, row.members_after) == ("unknown", True, None)


def test_an_open_rebalance_may_have_converged_in_what_is_lost_at_the_end() -> None:
    log, _ = a_group_that_lost_records(epochs=0)
    row = log.rebalances()[-1]
    assert row.outcome == "open"
    known = LostRecords({(GROUP_LOG, 0): [(90, 99)]}).as_known(row)
    assert isinstance(known, RebalanceRow)
    assert (known.outcome, known.is_open, known.history_complete) == ("unknown", True, False)


@pytest.mark.parametrize(("last_of_state", "is_known"), [(-1, True), (90, False)], ids=["a commit", "a target"])
def test_a_commit_that_cannot_be_decoded_takes_nothing_from_who_owned_what(
    last_of_state: int, *, is_known: bool
) -> None:
    log = GroupLog()
    log.write(member("m1", "t"), epoch(2), target("m1", 0), target_epoch(2), current("m1", 2, 0))
    lost = LostRecords(unreadable={(GROUP_LOG, 0): {GROUP: Unreadable(80, 99, last_of_state)}})
    rows = [row for row in log.rows() if isinstance(row, AssignmentRow | MembershipRow | GroupEpochRow)]
    assert {type(row) for row in rows} == {AssignmentRow, MembershipRow, GroupEpochRow}
    assert all(known.history_complete == is_known for known in lost.all_known(rows))


def test_a_group_that_was_deleted_may_have_been_empty_before() -> None:
    """Who was in it is not known behind lost records: the last of them may have left in the epoch that opens there."""
    log = GroupLog().write(member("m1", "t"), epoch(2), target("m1", 0), target_epoch(2)).skip(6)
    log.write(*gone("m2"), epoch(3)).write(*group_gone())
    assert [row.outcome for row in log.rebalances(coverage=Coverage({0: [(0, 3), (10, 100)]}))] == ["unknown"] * 2


@pytest.mark.parametrize("opens", [True, False])
def test_a_member_that_left_right_before_lost_records_may_go_on_in_a_converted_group(opens: bool) -> None:
    """An epoch in the same operation shows that it did not."""
    log = alone(GroupLog()).write(*gone("m1"), *([epoch(3)] if opens else []))
    fold, rows = GroupFold(Group(GROUP, from_start=True), None, None, Coverage({0: [(0, 100)]})), list[HistoryRow]()
    for record in log.records:
        rows += fold.feed(record)
    rows += fold.lose(LogPosition(0, log.offset, log.time_ms), unreadable_record(log.offset))
    (left,) = [row for row in (*rows, *fold.open_rows()) if isinstance(row, MembershipRow)]
    assert left.missing == (None if opens else unreadable_record(log.offset))


def test_a_tombstone_of_another_type_shows_a_life_that_is_missing() -> None:
    """The group was converted to the classic protocol and back; the generations are lost, and the last one's number."""
    log = GroupLog().write(member("a", "t"), epoch(6)).skip(5)
    log.write((RecordType.GROUP_METADATA, {"group": GROUP}, None), member("a", "t"), epoch(7))
    before, after = log.rebalances(coverage=Coverage({0: [(0, 1), (7, 100)]}))
    assert (before.outcome, before.finished) == ("unknown", None)
    assert (after.from_epoch, after.to_epoch, after.members_before) == (None, 7, None)


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_member_that_names_no_topics_opens_no_epoch(*, is_lost: bool) -> None:
    """Speaking the classic protocol it writes its record whenever it joins again, so that it may have been there."""
    log = alone(GroupLog()).skip(5 if is_lost else 0)
    client = {"sessionTimeoutMs": 45000, "supportedProtocols": []}
    log.write(member("b", classicMemberMetadata=client), current("b", 2)).write(*gone("m1"), epoch(3))
    rows = log.rows(coverage=Coverage({0: [(0, 4), (10, 100)] if is_lost else [(0, 100)]}))
    (row,) = [row for row in rows if isinstance(row, MembershipRow) and row.member_id == "b"]
    assert (row.came_by, row.first_epoch) == (("unknown", None) if is_lost else ("join", 3))
    last = [row for row in rows if isinstance(row, GroupEpochRow)][-1]
    assert "member_joined" not in [each.kind for each in last.causes]


@pytest.mark.parametrize("is_lost", [False, True])
def test_share_state_behind_lost_records_may_have_gone_another_way(*, is_lost: bool) -> None:
    """It may have been initialized, and deleted with its topic then."""
    log = GroupLog()
    for listed in ({"initializingTopics": [{"topicId": A, "topicName": "t", "partitions": [0]}]}, {}):
        lists = {"initializingTopics": [], "initializedTopics": [], "deletingTopics": [], **listed}
        log.write((RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, {}, lists)).skip(5 if is_lost else 0)
    coverage = Coverage({0: [(0, 0), (6, 6)] if is_lost else [(0, 100)]})
    (row,) = [row for row in log.rows(existing(u=1), coverage) if isinstance(row, ShareInitializationRow)]
    assert row.outcome == ("unknown" if is_lost else "topic deleted")
