"""History of groups with epochs, from hand-built logs."""

import pytest

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import GROUP_RESOURCE, TopicHistory
from coordinator_core.durations import duration
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.grounds import TOPICS_IN_DOUBT
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.memberships import NOT_SAID
from coordinator_core.history.rows import AWAY_UNSEEN, MembershipRow, RebalanceRow
from coordinator_core.records import GROUP_LOG, SHARE_LOG, LogPosition, RecordType
from tests.core.cluster.test_metadata_log import Log, hash_of, partition, supporting, topic
from tests.core.history.logs import (
    GROUP,
    A,
    GroupLog,
    alone,
    commit,
    current,
    epoch,
    existing,
    gone,
    group_gone,
    kinds,
    member,
    target,
    target_epoch,
)


def two(log: GroupLog) -> GroupLog:
    """A second member joins; the first gives two partitions up, which the second gets a second later."""
    alone(log)
    log.write(
        member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3), current("m2", 3, state=2)
    )
    log.write(current("m1", 2, 0, 1, state=1, revoking=(2, 3)))
    log.write(current("m1", 3, 0, 1), after_ms=700)
    return log.write(current("m2", 3, 2, 3))


def test_a_join_opens_a_rebalance_that_converges_with_the_last_member():
    first, second = two(GroupLog()).rebalances()
    assert (first.from_epoch, first.to_epoch, first.outcome, first.time_to_converge_ms) == (None, 2, "converged", 0)
    assert (second.from_epoch, second.to_epoch, second.outcome) == (2, 3, "converged")
    assert kinds(second) == ["member_joined"]
    assert second.causes[0].member_id == "m2"
    assert second.causes[0].at == LogPosition(0, 5, 3000)
    assert second.target == LogPosition(0, 9, 3000)
    assert (second.time_to_target_ms, second.time_to_converge_ms) == (0, 1700 + 1000)
    assert (second.members_before, second.members_after) == (1, 2)
    assert (second.units_moved, second.units_moved_back, second.units_lost) == (2, 0, 0)
    assert (second.idle_ms, second.idle_max_ms) == (2000, 1000)
    assert second.history_complete
    (revocation,) = second.revocations
    assert (revocation.member_id, revocation.units, revocation.duration_ms) == ("m1", 2, 700)


def test_who_gives_up_last_what_another_waits_for_held_it_up():
    second = two(GroupLog()).rebalances()[1]
    assert second.delayed_by == "m1", "m2 was the last at the target, as it waited for m1"


def test_of_several_who_still_have_to_give_something_up_none_is_named():
    log = two(GroupLog())
    log.write(member("m3", "t"), epoch(4), target("m1", 0), target("m2", 2), target("m3", 1, 3), target_epoch(4))
    log.write(current("m1", 3, 0, state=1, revoking=(1,)))
    assert log.rebalances()[-1].delayed_by == "m1"
    log.write(current("m2", 3, 2, state=1, revoking=(3,)))
    assert log.rebalances()[-1].delayed_by is None


def test_nobody_delays_a_rebalance_that_takes_no_time():
    (first,) = alone(GroupLog()).rebalances()
    assert (first.outcome, first.duration_min_ms, first.delayed_by) == ("converged", 0, None)


def test_an_unreleased_member_is_not_there_yet():
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3), target("m2", 3), target_epoch(3), current("m2", 3, state=2))
    log.write(current("m1", 3, 0, 1, 2))
    (_, waiting) = log.rebalances()
    assert waiting.outcome == "open"
    assert waiting.is_open
    assert waiting.behind == ("m2",)
    log.write(current("m2", 3, 3))
    (_, done) = log.rebalances()
    assert (done.outcome, done.delayed_by) == ("converged", "m2")


def test_a_bump_supersedes_and_what_is_in_flight_counts_for_the_next():
    log = alone(GroupLog())
    log.write(
        member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3), current("m2", 3, state=2)
    )
    log.write(current("m1", 3, 0, 1))
    log.write(*gone("m2"), epoch(4), target("m1", 0, 1, 2, 3), target_epoch(4), current("m1", 4, 0, 1, 2, 3))
    _, second, third = log.rebalances(existing(t=4))
    assert (second.outcome, second.finished, second.time_to_converge_ms) == ("superseded", third.at, None)
    assert second.units_lost == 2
    in_doubt = log.rebalances()[1]
    assert (in_doubt.units_lost, in_doubt.idle_ms) == (None, None), "the topic may be gone"
    assert (in_doubt.missing, in_doubt.history_complete) == (TOPICS_IN_DOUBT, True), "all of the group's log is there"
    assert log.rebalances()[2] == third, "it is there again, under its id"
    assert kinds(third) == ["member_left_or_expired"]
    assert (third.units_moved, third.units_moved_back, third.idle_ms) == (0, 2, 2000)


@pytest.mark.parametrize(("names", "idle_ms"), [(("t",), 2000), (("u",), None)])
def test_a_topic_without_a_name_may_be_one_that_the_group_came_back_to(
    names: tuple[str, ...], idle_ms: int | None
) -> None:
    """Nobody reads a topic while no member subscribes to it, and that is not idle time."""
    log = alone(GroupLog())
    both = current("m1", 3, 0, 1), current("m2", 3, state=2)
    log.write(member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3), *both)
    log.write(*gone("m2"), member("m1", *names), epoch(4), target("m1"), target_epoch(4), current("m1", 4, 0, 1))
    log.write(member("m1", "t", "u"), epoch(5), target("m1", 0, 1, 2, 3), target_epoch(5), current("m1", 5, 0, 1, 2, 3))
    (*_, last) = log.rebalances()
    assert last.idle_ms == (None if idle_ms is None else 2 * idle_ms)
    assert last.history_complete


@pytest.mark.parametrize(("names", "moved"), [(("t",), 2), (("u",), None)])
def test_what_a_group_unsubscribed_from_and_came_back_to_did_not_move(
    names: tuple[str, ...], moved: int | None
) -> None:
    log = alone(GroupLog())
    both = current("m1", 3, 0, 1), current("m2", 3, 2, 3)
    log.write(member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3), *both)
    log.write(*gone("m2"), member("m1", *names), epoch(4))
    log.write(member("m1", "t", "u"), epoch(5), target("m1", 0, 1, 2, 3), target_epoch(5), current("m1", 5, 0, 1, 2, 3))
    (*_, last) = log.rebalances()
    assert (last.units_moved, last.units_moved_back) == (moved, None if moved is None else 0)


def there_until(deleted_ms):
    """Topic ``t`` has four partitions, and is deleted at a time of the controller's clock."""
    topics = existing(t=4)
    topics.open_version(LogPosition(0, 1, deleted_ms))
    topics.remove_topic("t")
    return topics


THERE, NOT_THERE, OF_NO_VERSION = hash_of(Topic("t", A, 4)), 0, 7


@pytest.mark.parametrize(
    ("metadata_hash", "deleted_ms", "lost"),
    [
        (THERE, 4_700, 2),
        (THERE, 5_300, 2),
        (NOT_THERE, 4_700, 0),
        (NOT_THERE, 5_300, 0),
        (OF_NO_VERSION, 4_700, None),
        (OF_NO_VERSION, 5_300, None),
        (OF_NO_VERSION, 16_000, 2),
    ],
)
def test_the_hash_of_an_epoch_tells_whether_a_topic_was_there_and_not_two_clocks(metadata_hash, deleted_ms, lost):
    """Epoch 4 opens at 5,000 ms and ends the rebalance before; the controller's clock may be ahead or behind."""
    log = alone(GroupLog())
    log.write(
        member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3), current("m2", 3, state=2)
    )
    log.write(current("m1", 3, 0, 1))
    log.write(*gone("m2"), epoch(4, metadata_hash))
    second = log.rebalances(there_until(deleted_ms))[1]
    assert (second.finished.timestamp_ms, second.outcome, second.units_lost) == (5_000, "superseded", lost)
    assert second.missing == (TOPICS_IN_DOUBT if lost is None else None)


def test_what_an_epoch_has_proven_to_be_gone_is_not_there_by_a_late_clock():
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3, NOT_THERE), target("m1"), target("m2"), target_epoch(3), current("m2", 3))
    log.write(current("m1", 3))
    second = log.rebalances(there_until(4_300))[1]
    assert (second.finished.timestamp_ms, second.outcome, second.units_lost) == (4_000, "converged", 0)


def test_what_nobody_gets_is_lost_until_the_end():
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3), target("m1", 0), target("m2", 1), target_epoch(3))
    log.write(current("m1", 3, 0))
    log.write(current("m2", 3, 1), after_ms=500)
    _, second = log.rebalances(existing(t=4))
    assert (second.outcome, second.units_moved, second.units_lost) == ("converged", 1, 2)
    assert (second.idle_ms, second.idle_max_ms) == (3 * 500, 500)


def test_members_that_ask_for_different_assignors_are_counted():
    log = alone(GroupLog()).write(member("m2", "t", serverAssignor="range"), epoch(3), target("m2", 1), target_epoch(3))
    assert [row.assignor for row in log.epochs()] == ["uniform", "uniform"], "between equals, Java's map decides"
    log.write(member("m3", "t", serverAssignor="range"), epoch(4), target("m3", 2), target_epoch(4))
    assert log.epochs()[-1].assignor == "range"


def test_equal_votes_for_assignors_open_epochs_without_a_record_of_a_member():
    tied = alone(GroupLog()).write(member("m2", "t", serverAssignor="range"), epoch(3), epoch(4))
    (found,) = tied.rebalances()[-1].causes
    assert found.kind == "assignor_tied"
    assert found.detail is not None
    assert found.detail.startswith("range and uniform have equal votes")
    assert kinds(alone(GroupLog()).write(member("m2", "t"), epoch(3), epoch(4)).rebalances()[-1]) == ["unknown"]
    older = Log().batch(supporting(1, 31)).history()
    assert kinds(tied.rebalances(topics=older)[-1]) == ["unknown"], "brokers before 4.4 open no epoch for that"


def test_the_last_member_leaves():
    log = alone(GroupLog()).write(*gone("m1"), epoch(3))
    _, last = log.rebalances(existing(t=4))
    assert (last.outcome, last.members_after, last.units_lost) == ("emptied", 0, 4)
    left = log.memberships()["m1"]
    assert (left.came_by, left.went_by, left.left) == ("join", "leave or expiry", LogPosition(0, 7, 3000))
    assert (left.first_epoch, left.last_epoch) == (2, 2)
    assert [row.state for row in log.epochs()] == ["STABLE", "EMPTY"]


def test_a_static_member_leaves_and_returns_without_a_rebalance():
    log = GroupLog().write(
        member("s1", "t", instance="i"), epoch(2), target("s1", 0), target_epoch(2), current("s1", 2, 0)
    )
    log.write(current("s1", -2, 0))
    assert [row.state for row in log.epochs()] == ["RECONCILING"]
    log.write(
        *gone("s1"),
        member("s2", "t", instance="i"),
        target("s2", 0),
        current("s2", 0, 0),
        member("s2", "t", instance="i"),
        current("s2", 2, 0),
    )
    assert [row.state for row in log.epochs()] == ["STABLE"]
    assert len(log.rebalances()) == 1
    members = log.memberships()
    assert (members["s1"].went_by, members["s1"].away_since) == ("static replacement", LogPosition(0, 5, 3000))
    assert (members["s2"].came_by, members["s2"].replaces) == ("static replacement", "s1")


def test_a_group_does_not_converge_while_a_static_member_is_away_that_had_reached_the_target():
    log = GroupLog().write(
        member("s1", "t", instance="i"),
        member("m1", "t"),
        epoch(2),
        target("s1", 0),
        target("m1", 1),
        target_epoch(2),
        current("s1", 2, 0),
    )
    log.write(current("s1", -2, 0)).write(current("m1", 2, 1))
    (row,) = log.rebalances()
    assert (row.outcome, row.behind) == ("open", ("s1",))
    assert [row.state for row in log.epochs()] == ["RECONCILING"]


def test_a_static_member_that_returns_with_another_subscription_makes_a_rebalance():
    log = GroupLog().write(
        member("s1", "t", instance="i"), epoch(2), target("s1", 0), target_epoch(2), current("s1", 2, 0)
    )
    log.write(current("s1", -2, 0))
    log.write(
        *gone("s1"),
        member("s2", "t", instance="i"),
        target("s2", 0),
        current("s2", 0, 0),
        member("s2", "u", instance="i"),
        epoch(3),
    )
    assert kinds(log.rebalances()[1]) == ["static_member_returned", "subscription_changed"]


def test_a_static_member_that_does_not_return():
    log = GroupLog().write(member("s1", "t", instance="i"), epoch(2), target_epoch(2), current("s1", 2))
    log.write(current("s1", -2)).write(*gone("s1"), epoch(3))
    (cause,) = log.rebalances()[1].causes
    assert (cause.kind, cause.instance_id) == ("static_member_left", "i")
    assert (cause.detail, cause.hint) == ("left at offset 4 and did not return", "it had been away for 1.0 s")


@pytest.mark.parametrize(
    ("timeout_ms", "said"), [(1500, "expired: it had been away"), (2500, "removed by a request: it had been away")]
)
def test_a_static_member_that_is_removed_within_its_session_did_not_expire(timeout_ms: int, said: str):
    topics = existing(t=4)
    topics.put_config(GROUP_RESOURCE, GROUP, "consumer.session.timeout.ms", str(timeout_ms))
    log = GroupLog().write(member("s1", "t", instance="i"), epoch(2), target_epoch(2), current("s1", 2))
    log.write(current("s1", -2)).write(*gone("s1"), epoch(3))
    (cause,) = log.rebalances(topics)[1].causes
    assert cause.hint == f"{said} for 1.0 s, its session timeout is {duration(timeout_ms)}"
    (row,) = (row for row in log.rows(topics) if isinstance(row, MembershipRow))
    assert row.hint == cause.hint


def test_a_static_member_of_the_classic_protocol_may_have_been_away_before_another_one_replaced_it():
    """It sends nothing when it goes, in a consumer group neither."""
    metadata = {"sessionTimeoutMs": 45_000, "supportedProtocols": []}
    log = GroupLog().write(
        member("s1", "t", instance="i", classicMemberMetadata=metadata), epoch(2), target_epoch(2), current("s1", 2)
    )
    log.write(*gone("s1"), member("s2", "t", instance="i"), current("s2", 2), member("s2", "u", instance="i"), epoch(3))
    assert kinds(log.rebalances()[1]) == ["static_member_returned", "subscription_changed"]
    assert {name: row.hint for name, row in log.memberships().items()} == {"s1": AWAY_UNSEEN, "s2": None}


def test_the_commits_of_a_departed_member_give_a_hint():
    log = alone(GroupLog()).write(commit("t", 1)).write(*gone("m1"), epoch(3), after_ms=800)
    (cause,) = log.rebalances()[1].causes
    assert cause.hint == "its last commit was 800 ms before"
    log = alone(GroupLog()).write(commit("t", 1)).write(*gone("m1"), epoch(3), after_ms=2)
    (cause,) = log.rebalances()[1].causes
    assert cause.hint == "left: it committed 2 ms before, and no session timeout is so short"


@pytest.mark.parametrize(
    ("after_ms", "hint"),
    [
        (800, f"{NOT_SAID}; its last commit was 800 ms before"),
        (2, "removed by a request: it committed 2 ms before, and no session timeout is so short"),
    ],
)
def test_a_static_member_that_said_nothing_before_may_have_been_removed_by_a_request(after_ms: int, hint: str):
    """LeaveGroup with an instance id: Admin's removeMembersFromConsumerGroup, whatever protocol the member speaks."""
    log = GroupLog().write(
        member("s1", "t", instance="i"), epoch(2), target("s1", 0), target_epoch(2), current("s1", 2, 0)
    )
    log.write(commit("t", 0)).write(*gone("s1"), epoch(3), after_ms=after_ms)
    assert [cause.hint for cause in log.rebalances()[1].causes] == [hint]


def test_a_member_that_does_not_revoke_in_time_expired():
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3), target("m1", 0), target_epoch(3), current("m2", 3))
    log.write(current("m1", 2, 0, state=1, revoking=(1, 2, 3))).write(*gone("m1"), epoch(4), after_ms=5000)
    (cause,) = log.rebalances()[2].causes
    assert cause.hint == "expired: it did not revoke within its rebalance timeout of 5.0 s"
    assert log.rebalances()[1].revocations[0].given is None


def test_a_member_that_still_had_to_revoke_may_have_taken_too_long():
    """Also where a later epoch has opened since it was asked: it commits until the coordinator removes it."""
    topics = existing(t=4)
    topics.put_config(GROUP_RESOURCE, GROUP, "consumer.session.timeout.ms", "45000")
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3), target("m1", 0), target_epoch(3), current("m2", 3))
    log.write(current("m1", 2, 0, state=1, revoking=(1, 2, 3)))
    log.write(member("m3", "t"), epoch(4), target_epoch(4), current("m3", 4)).write(commit("t", 0))
    log.write(*gone("m1"), epoch(5), after_ms=100)
    (cause,) = log.rebalances(topics)[3].causes
    assert cause.hint == "its last commit was 100 ms before, its session timeout is 45 s"


def test_a_changed_subscription_names_the_topics():
    log = alone(GroupLog()).write(member("m1", "t", "u"), epoch(3))
    (cause,) = log.rebalances()[1].causes
    assert (cause.kind, cause.topics, cause.detail) == ("subscription_changed", ("u",), "+u")


def test_an_assignor_that_changed_without_a_bump_is_no_cause_of_a_later_one():
    log = alone(GroupLog()).write(member("m1", "t", serverAssignor="range")).write(member("m2", "t"), epoch(3))
    assert kinds(log.rebalances()[1]) == ["member_joined"]


@pytest.mark.parametrize(
    ("installed", "then", "state"),
    [
        ((), (), "ASSIGNING"),
        ((target_epoch(3),), (), "STABLE"),
        ((), (target_epoch(3),), "STABLE"),
        ((), (current("m2", 0), target_epoch(3)), "RECONCILING"),
    ],
)
def test_an_emptied_group_is_not_empty_while_a_member_waits_for_its_regex(installed, then, state):
    """The member opens no epoch before its regex is resolved; the state is the one that ``describe`` gives."""
    log = alone(GroupLog()).write(*gone("m1"), epoch(3), *installed)
    assert log.epochs()[-1].state == "EMPTY"
    log.write(member("m2", subscribedTopicRegex="t.*"), current("m2", 3)).write(*then)
    assert log.epochs()[-1].state == state


def test_an_emptied_group_was_empty_until_a_member_joined():
    log = alone(GroupLog()).write(*gone("m1"), epoch(3)).write(member("m2", "t"), epoch(4), current("m2", 3))
    assert [row.state for row in log.epochs()] == ["STABLE", "EMPTY", "ASSIGNING"]


def test_a_group_does_not_begin_with_a_regex_that_is_resolved():
    """The member that has it joined before, in an operation of its own."""
    regex = RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, {"regularExpression": "t.*"}
    log = GroupLog(offset=5).write((*regex, {"topics": ["t1"], "version": 1, "timestamp": 1}), epoch(2))
    (row,) = log.rebalances(coverage=Coverage({0: [(5, 6)]}))
    assert (row.members_after, row.missing) == (None, "the log does not show the group before epoch 2")


def test_a_regex_that_is_resolved_later_brings_the_member_in():
    regex = RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, {"regularExpression": "t.*"}
    log = GroupLog().write(member("m1", subscribedTopicRegex="t.*"), current("m1", 1))
    log.write((*regex, {"topics": ["t1", "t2"], "version": 1, "timestamp": 1}), epoch(2))
    log.write((*regex, {"topics": ["t1", "t2"], "version": 2, "timestamp": 2}))
    log.write((*regex, {"topics": ["t1"], "version": 3, "timestamp": 3}), epoch(3))
    first, second = log.rebalances()
    assert kinds(first) == ["member_joined", "regex_resolved"]
    assert kinds(second) == ["regex_resolved"]
    assert second.causes[0].topics == ("t2",)
    assert log.memberships()["m1"].came_by == "join"


def test_topic_history_names_what_the_hash_only_proves():
    metadata = Log().batch(topic("t", A), partition(A, 0, 1)).batch(partition(A, 1, 1)).lasts(60_000)
    topics = metadata.history()
    one, both = Topic("t", A, 1, ((),), ((1,),)), Topic("t", A, 2, ((), ()), ((1,), (1,)))
    log = GroupLog(time_ms=500).write(member("m1", "t"), epoch(2, hash_of(one)), target_epoch(2), current("m1", 2))
    log.write(epoch(3, hash_of(both)))
    first, second = log.epochs(topics)
    assert (first.topics_proven, first.topics_at) == (True, LogPosition(0, 1, 1000))
    (cause,) = second.causes
    assert (cause.kind, cause.topics, cause.detail) == ("topic_grown", ("t",), "1 to 2 partitions")
    assert (cause.source, cause.at) == ("cluster metadata", LogPosition(0, 2, 2000))
    assert log.epochs()[1].causes[0].kind == "topic_metadata_changed"
    assert log.epochs()[0].topics_proven is None
    log.write(epoch(4, 12345))
    assert log.epochs(topics)[2].topics_proven is False


@pytest.mark.parametrize(("after_ms", "found"), [(1_000, []), (30_000, ["topic_grown"])])
def test_a_change_of_topics_about_the_time_of_an_epoch_is_no_cause_where_no_hash_tells(after_ms, found):
    """The metadata log begins too late to verify hashes. The hash is another one for what the member subscribes to now;
    the coordinator may not have known the change yet, or long before.
    """
    metadata = Log().batch(topic("t", A), partition(A, 0, 1)).lasts(100_000)
    metadata.batch(partition(A, 1, 1)).lasts(400_000)
    topics = metadata.history()
    topics.gaps.append(HistoryGap(LogPosition(0, 0, 0), "the log begins later"))
    grown_ms = topics.positions[-1].timestamp_ms
    log = GroupLog(time_ms=grown_ms - 30_000).write(member("m1", "t"), epoch(2, 1), target_epoch(2), current("m1", 2))
    log.write(member("m1", "t", "u"), epoch(3, 2), after_ms=30_000 + after_ms)
    assert kinds(log.epochs(topics)[1]) == ["subscription_changed", *found]


def test_an_epoch_without_a_cause_says_so():
    log = alone(GroupLog()).write(epoch(3))
    (cause,) = log.rebalances()[1].causes
    assert (cause.kind, cause.detail) == ("unknown", "the log does not show a cause")


def test_a_group_that_is_deleted_and_born_again():
    log = alone(GroupLog()).write(*gone("m1"), epoch(3)).write(*group_gone())
    deleted = log.epochs()[-1]
    assert (deleted.epoch, deleted.ended_by, deleted.ended) == (3, "group deleted", LogPosition(0, 10, 4000))
    assert not deleted.is_open
    log.write(member("m9", "t"), epoch(2))
    *_, deleted, reborn = log.epochs()
    assert not deleted.is_open
    assert (reborn.epoch, reborn.history_complete, kinds(reborn)) == (2, True, ["member_joined"])


@pytest.mark.parametrize(("number", "is_seen"), [(2, True), (7, False)])
def test_records_that_are_missing_behind_the_end_of_a_group_may_be_those_of_its_next_life(number, is_seen):
    log = alone(GroupLog()).write(*gone("m1"), epoch(3)).write(*group_gone())
    end = log.offset
    log.skip(20).write(member("m9", "t"), epoch(number), target_epoch(number))
    coverage = Coverage({0: [(0, end - 1), (end + 20, log.offset - 1)]})
    reborn = log.rebalances(coverage=coverage)[-1]
    assert (reborn.history_complete, reborn.members_before) == ((True, 0) if is_seen else (False, None))
    assert kinds(reborn) == ["member_joined" if is_seen else "unknown"]


def test_a_log_that_starts_in_the_middle_does_not_know_who_joined():
    log = GroupLog(offset=500).write(member("m1", "t"), epoch(9), target_epoch(9), current("m1", 9, 0))
    (row,) = log.rebalances()
    assert (row.history_complete, row.from_epoch) == (False, None)
    assert row.missing == "the log does not show the group before epoch 9"
    assert (kinds(row), row.members_before) == (["unknown"], None)
    joined = log.memberships()["m1"]
    assert (joined.came_by, joined.history_complete) == ("unknown", False)
    assert [row.history_complete for row in log.assignments()] == [False]
    (row,) = log.rebalances(coverage=Coverage({0: [(0, 600)]}))
    assert (row.history_complete, kinds(row)) == (True, ["member_joined"])


def test_epochs_that_are_missing_are_named():
    log = alone(GroupLog()).skip(40).write(member("m2", "t"), epoch(7))
    row = log.rebalances()[1]
    assert row.missing == "epochs 3 to 6 were not in the log"
    assert kinds(row) == ["member_joined"]


def test_a_member_left_over_by_compaction_was_not_seen_to_join():
    log = GroupLog(offset=10).write(member("m1", "t"), current("m1", 5, 0)).write(member("m2", "t"), epoch(9))
    assert log.memberships()["m1"].came_by == "unknown"
    assert [row.history_complete for row in log.assignments()] == [False]


def test_intervals_of_targets_and_current_assignments():
    log = two(GroupLog())
    given_up = [row for row in log.assignments() if row.member_id == "m1" and not row.is_open]
    assert sorted((row.partition, row.since.offset, row.until.offset) for row in given_up) == [(2, 4, 12), (3, 4, 12)]
    taken = [row for row in log.assignments() if row.member_id == "m2" and row.until is None]
    assert sorted((row.partition, row.since.timestamp_ms) for row in taken) == [(2, 5700), (3, 5700)]
    targets = log.assignments("target")
    assert {row.epoch for row in targets if row.member_id == "m2"} == {3}
    assert {row.topic for row in targets} == {None}, "nobody told the name of the id"
    log.write(commit("t", 0)).write(*gone("m1"), epoch(4))
    assert {row.topic for row in log.assignments() if row.member_id == "m1" and row.until.offset > 14} == {"t"}


def test_an_epoch_that_goes_back_is_history_all_the_same():
    log = alone(GroupLog()).write(epoch(1))
    assert log.violations() == ["epoch_went_back"]
    assert log.epochs()[-1].epoch == 1


def test_who_joins_with_the_next_epoch_is_not_behind_in_the_one_before():
    log = alone(GroupLog()).write(member("m2", "t"), epoch(3), current("m2", 2))
    log.write(member("m3", "t"), epoch(4))
    _, superseded, _ = log.rebalances()
    assert (superseded.outcome, superseded.behind) == ("superseded", ("m1", "m2"))


@pytest.mark.parametrize(("broker", "at_ms", "blamed"), [(1, 4_000, None), (2, 4_000, "m1"), (1, 60_000, "m1")])
def test_no_member_delayed_a_rebalance_while_a_broker_was_down(broker, at_ms, blamed):
    """Broker 1 registers again meanwhile, another for the first time, or broker 1 long after."""
    topics = TopicHistory()
    topics.brokers.note_registration(1, LogPosition(0, 0, -60_000))
    topics.brokers.note_registration(broker, LogPosition(0, 1, at_ms))
    topics.last_seen_ms = 10**6
    second = two(GroupLog()).rebalances(topics)[1]
    assert (second.outcome, second.delayed_by) == ("converged", blamed)
    assert (second.broker_away is True) == (blamed is None)


@pytest.mark.parametrize(
    ("topic", "partition", "at_ms", "blamed"),
    [
        (GROUP_LOG, 0, 4_000, None),
        (GROUP_LOG, 0, 60_000, "m1"),
        (GROUP_LOG, 1, 4_000, "m1"),
        (SHARE_LOG, 0, 4_000, "m1"),
    ],
)
def test_no_member_delayed_a_rebalance_while_another_broker_became_its_coordinator(topic, partition, at_ms, blamed):
    """The coordinator stops within the rebalance, and starts again long after: another broker goes on."""
    topics = TopicHistory()
    topics.brokers.note_leader(topic, partition, 1, 0, LogPosition(0, 0, 0))
    topics.brokers.note_leader(topic, partition, 2, None, LogPosition(0, 1, at_ms))
    topics.last_seen_ms = 10**6
    second = two(GroupLog()).rebalances(topics)[1]
    assert (second.outcome, second.delayed_by) == ("converged", blamed)


@pytest.mark.parametrize(("epochs", "blamed"), [((4, 4), "m1"), ((4, 5), None), ((4, None), "m1"), ((5, 5), "m1")])
def test_the_leader_epochs_of_a_log_show_that_another_coordinator_took_over(epochs, blamed):
    """The records of the rebalance have the first one, all after its target the second one.

    They say it better than the metadata log, whose clock is another one: here it has a new leader 4 s into the log.
    """
    topics = TopicHistory()
    topics.brokers.note_leader(GROUP_LOG, 0, 1, 0, LogPosition(0, 0, 0))
    topics.brokers.note_leader(GROUP_LOG, 0, 2, None, LogPosition(0, 1, 4_000))
    topics.last_seen_ms = 10**6
    fold, rows = GroupFold(Group(GROUP), None, topics), []
    for record in two(GroupLog()).records:
        before, within = epochs
        rows += fold.feed(record, 4 if record.at.offset < 5 else before if record.at.offset < 10 else within)
    second = [row for row in rows if isinstance(row, RebalanceRow)][1]
    assert (second.outcome, second.delayed_by) == ("converged", blamed)
    assert (second.broker_away is True) == (blamed is None)


@pytest.mark.parametrize(("last", "is_away"), [(4, False), (None, True), (6, True)])
def test_what_was_written_before_a_coordinator_was_away_is_no_consequence_of_it(last, is_away):
    """By the controller's clock it was away already when the member went: its leader epochs tell otherwise."""
    log = alone(GroupLog()).write(*gone("m1"), epoch(3), target_epoch(3))
    went_ms, topics = log.time_ms, existing(t=4)
    topics.brokers.note_leader(GROUP_LOG, 0, 1, 4, LogPosition(0, 0, 0))
    topics.brokers.note_leader(GROUP_LOG, 0, -1, None, LogPosition(0, 1, went_ms - 300))
    topics.brokers.note_leader(GROUP_LOG, 0, 1, None, LogPosition(0, 2, went_ms + 5_000))
    fold, rows = GroupFold(Group(GROUP), None, topics), []
    for record in log.records:
        rows += fold.feed(record, last if last is None or record.at.timestamp_ms == went_ms else 4)
    (row,) = [row for row in (*rows, *fold.open_rows()) if isinstance(row, MembershipRow)]
    assert (row.hint or "").startswith("its coordinator was away until") is is_away


@pytest.mark.parametrize(("heard", "is_away"), [(5, False), (4, True), (None, False)])
def test_a_member_that_was_heard_after_its_coordinator_was_away_did_not_go_by_that(heard, is_away):
    """It took its assignment by a heartbeat; leader epochs tell better than clocks on which side of the time."""
    log = alone(GroupLog())
    topics, away_ms = existing(t=4), log.time_ms + 1_000
    log.write(current("m1", 2, 0, 1, 2, 3), after_ms=40_000).write(*gone("m1"), epoch(3), after_ms=40_000)
    topics.brokers.note_leader(GROUP_LOG, 0, 1, 4, LogPosition(0, 0, 0))
    topics.brokers.note_leader(GROUP_LOG, 0, -1, None, LogPosition(0, 1, away_ms))
    topics.brokers.note_leader(GROUP_LOG, 0, 1, 5, LogPosition(0, 2, away_ms + 30_000))
    fold, rows = GroupFold(Group(GROUP), None, topics), []
    for record in log.records:
        before, after = (None, None) if heard is None else (4, 5)
        time_ms = record.at.timestamp_ms
        rows += fold.feed(record, before if time_ms < away_ms else after if time_ms == log.time_ms else heard)
    (row,) = [row for row in (*rows, *fold.open_rows()) if isinstance(row, MembershipRow)]
    assert (row.hint or "").startswith("its coordinator was away until") is is_away


def test_who_is_behind_holds_a_rebalance_up_and_not_who_came_last():
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2), target_epoch(3))
    assert log.rebalances()[-1].delayed_by is None, "both are behind"
    log.write(current("m2", 3))
    waiting = log.rebalances()[-1]
    assert (waiting.outcome, waiting.behind, waiting.delayed_by) == ("open", ("m1",), "m1")
