"""History of classic groups, from hand-built logs."""

import pytest

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.groups.group import Group
from coordinator_core.history.classic_causes import IF_BY_PATTERN
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.memberships import NO_COMMIT, NOT_SAID, SLOW_POLL
from coordinator_core.history.rows import MembershipRow, RebalanceRow
from coordinator_core.records import GROUP_LOG, LogPosition, RecordType
from coordinator_core.wire.embedded import decode_subscription, encode_blob
from tests.core.cluster.test_broker_history import changed
from tests.core.cluster.test_metadata_log import Log, broker, hash_of, partition, remove, topic
from tests.core.history.logs import (
    GROUP,
    A,
    B,
    GroupLog,
    classic,
    commit,
    current,
    eager_worker,
    epoch,
    existing,
    generation,
    gone,
    group_gone,
    kinds,
    member,
    target,
    target_epoch,
    worker,
)

C, D = "AAAAAAAAAAAAAAAAAAAAAw", "AAAAAAAAAAAAAAAAAAAABA"


def born(log: GroupLog) -> GroupLog:
    return log.write(generation(0, {}, protocolType=""))


def test_a_generation_is_logged_when_it_is_complete_and_bounds_the_rest():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0, 1]})}))
    log.write(generation(2, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}, currentStateTimestamp=3900))
    first, second = log.rebalances()
    assert (first.from_epoch, first.to_epoch, kinds(first)) == (0, 1, ["member_joined"])
    assert (second.outcome, second.units_moved, second.members_before, second.members_after) == ("converged", 1, 1, 2)
    assert (second.began_after_ms, second.began_before_ms) == (3000, 3900)
    assert (second.duration_min_ms, second.duration_max_ms) == (100, 1000)
    assert second.time_to_converge_ms is None, "when the join phase began is not logged"
    assert second.history_complete
    assert [row.state for row in log.epochs()] == ["EMPTY", "STABLE", "STABLE"]


@pytest.mark.parametrize("gap", [0, 1])
def test_who_was_there_before_a_gap_and_the_tombstone_may_have_left_in_the_gap(gap: int) -> None:
    """Only an empty group is deleted: that its member left is a record, too, which compaction may have taken."""
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]})})).skip(gap)
    log.write((RecordType.GROUP_METADATA, {}, None))
    (row,) = [row for row in log.rows(coverage=Coverage({0: [(0, 1), (2 + gap, 9)]})) if isinstance(row, MembershipRow)]
    assert (row.went_by, row.history_complete) == ("group deleted", gap == 0)


def test_skipped_generations_never_completed_if_nothing_is_missing():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]})}))
    log.skip(5).write(generation(5, {"a": classic({"t": [0]}), "b": classic({"t": []}, "t")}))
    row = log.rebalances()[1]
    assert row.skipped_generations == 3
    assert row.missing == "generations 2 to 4 were never completed, or not recorded"
    whole = log.rebalances(coverage=Coverage({0: [(0, 100)]}))[1]
    assert (whole.skipped_generations, whole.missing, whole.history_complete) == (3, None, True)


def test_a_member_may_have_left_in_a_generation_that_is_not_recorded():
    first = {"a": classic({"t": [0]}), "b": classic({"t": [1]}), "s1": classic({"t": []}, "t", instance="i")}
    later = {"a": classic({"t": [0, 1]}), "s2": classic({"t": []}, "t", instance="i")}
    log = born(GroupLog()).write(generation(1, first)).skip(3).write(generation(3, later))
    gone, replaced, stayed = (log.memberships()[name] for name in ("b", "s2", "a"))
    assert (gone.first_epoch, gone.last_epoch, gone.history_complete) == (1, None, False)
    assert (replaced.came_by, replaced.replaces, replaced.first_epoch) == ("unknown", "s1", None)
    assert not replaced.history_complete
    assert stayed.history_complete
    assert gone.missing is not None
    assert "generation 2" in gone.missing


def there(log: GroupLog) -> Coverage:
    """The offsets of its records."""
    return Coverage({0: [(record.at.offset, record.at.offset) for record in log.records]})


@pytest.mark.parametrize(("number", "instance", "is_seen"), [(6, None, True), (6, "i", False), (3, None, False)])
def test_a_member_may_have_left_in_another_generation_or_a_first_writing(number, instance, is_seen):
    """Without static members none is written again. One that is not the next one is of another life."""
    members = {"b": classic({"t": [1]}), "s": classic({"t": []}, instance=instance)}
    log = GroupLog().write(generation(5, members)).skip(1).write(generation(number, {"s": members["s"]}))
    (left,) = (row for row in log.rows(None, there(log)) if isinstance(row, MembershipRow) and row.member_id == "b")
    missing = "records between offsets 0 and 2"
    assert (left.last_epoch, left.missing) == ((5, left.missing) if is_seen else (None, left.missing or missing))


@pytest.mark.parametrize(
    ("known", "again", "missing"), [(2, False, None), (2, True, None), (3, False, "what generation 2 took away")]
)
def test_an_eager_leader_may_not_have_known_what_it_took_away_behind_a_hole(known, again, missing):
    """What no member has is in flight; that a generation is written again makes it no better known."""
    both = {"a": classic({"t": [0, 1]}, instance="i")}
    log = GroupLog().write(generation(1, both)).skip(1).write(generation(2, both))
    log = log.write(generation(2, both)) if again else log
    last = log.write(generation(3, both)).rebalances(existing(t=known), there(log))[-1]
    assert (last.to_epoch, last.missing) == (3, missing)


def test_what_a_generation_took_away_is_not_better_known_as_it_is_written_again():
    both = {"a": classic({"t": [0, 1]}, instance="i")}
    log = GroupLog().write(generation(1, both, "cooperative-sticky")).skip(1)
    for number in (2, 2, 3):
        log.write(generation(number, both, "cooperative-sticky"))
    assert log.rebalances(coverage=there(log))[-1].missing == "what generation 2 took away"


def test_a_static_member_that_was_given_what_it_does_not_want_may_have_asked_for_it_before():
    """The generation may have been written before, when another client had the instance id."""
    unwanted = {"s": classic({"t": [0]}, "u", instance="i")}
    log = GroupLog().write(generation(1, {"s": classic({"t": [0]}, instance="i")})).skip(1)
    log.write(generation(2, unwanted)).write(generation(3, {"s": classic({"u": [0]}, instance="i")}))
    _, second, third = log.rebalances(coverage=there(log))
    assert third.missing == second.missing == "records between offsets 0 and 2"


def test_a_static_bounce_writes_the_same_generation_again():
    log = born(GroupLog()).write(generation(1, {"s1": classic({"t": [0]}, instance="i")}))
    log.write(generation(1, {"s2": classic({"t": [0]}, instance="i")}))
    assert len(log.rebalances()) == 1
    members = log.memberships()
    assert members["s1"].went_by == "static replacement"
    assert (members["s2"].came_by, members["s2"].replaces, members["s2"].first_epoch) == ("static replacement", "s1", 1)


def test_members_leave_and_their_commits_tell_who_expired():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    log.write(commit("t", 0), commit("t", 1)).write(commit("t", 1), after_ms=9000)
    log.write(generation(2, {}), after_ms=1000)
    a, b = log.rebalances()[1].causes
    assert (a.kind, b.kind) == ("member_left_or_expired", "member_left_or_expired")
    assert (
        a.hint == "its last commit was 10 s before, its session timeout is 10 s; "
        "a consumer without new records does not commit"
    )
    assert b.hint == "left: it committed 1.0 s before, well within its session timeout of 10 s"
    assert log.rebalances()[1].outcome == "emptied"


def test_a_static_member_that_went_without_a_commit_expired_or_was_removed_by_a_request() -> None:
    """A Streams application that fails, and ``CloseOptions`` from Kafka 4.1 on, have a static member leave."""
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]}, instance="i")}))
    log.write(commit("t", 0)).write(generation(2, {}), after_ms=52_000)
    (left,) = log.rebalances()[1].causes
    assert left.hint == f"{NOT_SAID}: its last commit was 52 s before, its session timeout is 10 s"


@pytest.mark.parametrize(
    ("instance", "is_new", "is_away"), [(None, True, False), (None, False, True), ("i", True, True)]
)
def test_who_joined_after_its_coordinator_was_away_did_not_go_by_that(instance, is_new, is_away):
    """A static member is kept in a generation that it does not join, and no member joins one that is written again."""
    members = {"a": classic({"t": [0]}, instance=instance), "b": classic({"t": [1]})}
    log = born(GroupLog()).write(generation(1, members))
    topics, away_ms = existing(t=2), log.time_ms + 1_000
    log.write(generation(2 if is_new else 1, members), after_ms=40_000)
    log.write(generation(3, {"b": members["b"]}), after_ms=60_000)
    topics.brokers.note_leader(GROUP_LOG, 0, 1, None, LogPosition(0, 0, 0))
    topics.brokers.note_leader(GROUP_LOG, 0, -1, None, LogPosition(0, 1, away_ms))
    topics.brokers.note_leader(GROUP_LOG, 0, 1, None, LogPosition(0, 2, away_ms + 30_000))
    hint = next(row.hint for row in log.rows(topics) if isinstance(row, MembershipRow) and row.member_id == "a")
    assert (hint or "").startswith("its coordinator was away until") is is_away


def test_what_the_owner_before_committed_is_no_commit_of_the_member_that_left() -> None:
    """The member had joined by then, and got the partition later."""
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0, 1]}), "b": classic({}, "t")}))
    log.write(commit("t", 0)).write(generation(2, {"a": classic({"t": [1]}), "b": classic({"t": [0]})}))
    left = [generation(3, {"a": classic({"t": [0, 1]})})]
    silent = log.write(*left)
    assert silent.memberships()["b"].hint == NO_COMMIT
    del silent.records[-1]
    assert silent.write(commit("t", 0)).write(*left).memberships()["b"].hint == (
        "left: it committed 1.0 s before, well within its session timeout of 10 s"
    )


@pytest.mark.parametrize(("client_id", "hint"), [("consumer-g-1", SLOW_POLL), ("kgo", NO_COMMIT)])
def test_only_clients_that_watch_their_application_leave_as_it_polls_too_late(client_id: str, hint: str) -> None:
    """Kafka's consumer sends max.poll.interval.ms as its rebalance timeout; that of franz-go is of rebalances alone."""
    both = {"a": classic({"t": [0]}), "b": classic({"t": [1]}) | {"clientId": client_id}}
    log = born(GroupLog()).write(generation(1, both)).write(commit("t", 0))
    log.write(generation(2, {"a": classic({"t": [0, 1]})}), after_ms=90_000)
    assert (log.memberships()["b"].hint or "").startswith(hint)


def test_a_member_whose_beginning_is_not_in_the_log_may_have_committed_before() -> None:
    members = {"a": classic({"t": [0]}), "b": classic({"t": [1]})}
    for log, expected in ((born(GroupLog()), NO_COMMIT), (GroupLog(), None)):
        log.write(generation(1 if expected else 7, members)).write(commit("t", 1))
        log.write(generation(2 if expected else 8, {}))
        assert log.memberships()["a"].hint == expected


@pytest.mark.parametrize("is_lost", [True, False])
def test_nothing_follows_from_commits_where_one_could_not_be_decoded(*, is_lost: bool) -> None:
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    log.write(commit("t", 1)).write(generation(2, {}))
    fold = GroupFold(Group(GROUP, from_start=True))
    rows = [row for record in log.records[:-1] for row in fold.feed(record)]
    if is_lost:
        fold.lose_commit()
    rows += [*fold.feed(log.records[-1]), *fold.open_rows()]
    hints = {row.member_id: row.hint for row in rows if isinstance(row, MembershipRow)}
    assert (hints["a"], hints["b"] is None) == (None if is_lost else NO_COMMIT, is_lost)


def test_members_may_come_and_go_before_their_first_generation_is_complete():
    log = born(GroupLog()).write(generation(2, {})).write(generation(3, {"a": classic({"t": [0]})}))
    whole = Coverage({0: [(0, 100)]})
    gone, joined = log.rebalances(coverage=whole)
    assert kinds(gone) == ["member_left_or_expired"]
    assert (gone.causes[0].member_id, gone.outcome, gone.skipped_generations) == (None, "emptied", 1)
    assert kinds(joined) == ["member_joined"]
    assert kinds(log.rebalances()[0]) == ["unknown"], "generation 1 may be a record that is missing"


def test_cooperative_rebalances_come_in_two_halves():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0, 1]})}, "cooperative-sticky"))
    members = {"a": classic({"t": [0]}, owned={"t": [0, 1]}), "b": classic({"t": []}, "t")}
    log.write(generation(2, members, "cooperative-sticky"))
    members = {"a": classic({"t": [0]}, owned={"t": [0]}), "b": classic({"t": [1]})}
    log.write(generation(3, members, "cooperative-sticky"), after_ms=400)
    _, first, second = log.rebalances(existing(t=2))
    assert (kinds(first), first.units_moved, first.units_lost) == (["member_joined"], 0, 1)
    assert [(each.member_id, each.units) for each in first.revocations] == [("a", 1)]
    assert kinds(second) == ["partitions_revoked"]
    assert second.causes[0].at == first.at
    assert (second.units_moved, second.idle_ms) == (1, 400)


def test_a_new_process_with_the_place_of_another_gives_nothing_up():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0, 1]}, instance="i")}, "cooperative-sticky"))
    members = {"a2": classic({"t": [0]}, instance="i"), "b": classic({"t": []}, "t")}
    log.write(generation(2, members, "cooperative-sticky"))
    log.write(generation(3, {"a2": members["a2"]}, "cooperative-sticky"))
    _, returns, leaves = log.rebalances()
    assert (kinds(returns), returns.revocations) == (["static_member_returned", "member_joined"], ())
    assert kinds(leaves) == ["member_left_or_expired"]


def test_a_delay_of_connect_is_over_no_sooner_than_it_says():
    group = {"protocolType": "connect"}
    log = born(GroupLog()).write(generation(1, {"w1": worker(3, {}, delay=2000)}, "compatible", **group))
    joined = {"w1": worker(3, {}), "w2": worker(3, {})}
    log.write(generation(2, joined, "compatible", **group), after_ms=1950)
    assert kinds(log.rebalances()[1]) == ["member_joined"]


def test_subscription_and_protocol_changes():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]})}))
    log.write(generation(2, {"a": classic({"t": [0], "u": [0]})}, "roundrobin"))
    row = log.rebalances()[1]
    assert kinds(row) == ["protocol_changed", "subscription_changed"]
    assert row.causes[1].topics == ("u",)


def test_a_topic_that_grew_is_a_cause_once_the_leader_acts_on_it():
    topics = Log().batch(topic("t", A), partition(A, 0, 1)).batch(partition(A, 1, 1)).lasts(60_000).history()
    log = born(GroupLog(time_ms=500)).write(generation(1, {"a": classic({"t": [0]})}), after_ms=100)
    log.write(generation(2, {"a": classic({"t": [0]}), "b": classic({"t": []}, "t")}))
    log.write(generation(3, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    _, unaware, aware = log.rebalances(topics)
    assert kinds(unaware) == ["member_joined"]
    assert kinds(aware) == ["topic_grown"]
    assert aware.causes[0].at == LogPosition(0, 2, 2000)
    assert kinds(log.rebalances()[2]) == ["topic_metadata_changed"], "or the leader had not known the partition"


def test_a_topic_that_went_while_the_group_was_empty_is_no_cause_later():
    """No list of topics says when it went. Once it comes again, that is a cause."""
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0], "u": [0]})})).write(generation(2, {}))
    log.write(generation(3, {"b": classic({"u": [0]}, "t", "u"), "c": classic({}, "t", "u")}))
    log.write(generation(4, {"b": classic({"u": [0]}, "t", "u")}))
    log.write(generation(5, {"b": classic({"t": [0], "u": [0]})}))
    *_, came, left, again = log.rebalances()
    assert [kinds(row) for row in (came, left)] == [["member_joined"] * 2, ["member_left_or_expired"]]
    assert [(each.kind, each.topics) for each in again.causes] == [("topic_metadata_changed", ("t",))]


def test_a_leader_that_does_not_know_its_topics_yet_comes_to_know_them():
    topics = fold_snapshots([{"name": "t", "id": None, "partitions": 1, "time": 500}])
    log = born(GroupLog()).write(generation(1, {"a": classic({}, "t")}))
    log.write(generation(2, {"a": classic({"t": [0]})}))
    (cause,) = log.rebalances(topics)[1].causes
    assert (cause.kind, cause.topics, cause.at.offset) == ("topic_metadata_changed", ("t",), 1)


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_new_leader_may_not_know_new_partitions_yet(protocol: str) -> None:
    """The topic had grown before anyone subscribed to it; a partition that is only to be revoked is known."""
    topics = fold_snapshots([{"name": name, "id": None, "partitions": 3, "time": 500} for name in ("t", "u")])
    log = born(GroupLog()).write(generation(1, {"b": classic({"u": [0, 1, 2]})}, protocol))
    log.write(generation(2, {"a": classic({"t": [0]}), "b": classic({"u": [0, 1]}, owned={"u": [0, 1, 2]})}, protocol))
    log.write(generation(3, {"a": classic({"t": [0, 1, 2], "u": [2]}), "b": classic({"u": [0, 1]})}, protocol))
    found = [each for each in log.rebalances(topics)[2].causes if each.kind == "topic_metadata_changed"]
    assert [(each.topics, each.at.offset) for each in found] == [(("t",), 2)]
    assert found[0].detail == "the leader did not know partitions 1 to 2 yet when it assigned generation 2"


@pytest.mark.parametrize("created_ms", [900, 3300])
@pytest.mark.parametrize(("protocol", "kind"), [("stream", "topic_created"), ("sticky", "unknown")])
def test_a_streams_leader_joins_again_for_the_topics_that_it_created(protocol: str, kind: str, created_ms: int) -> None:
    """The repartition topic comes to be while generation 1 is assigned, and so does an input, which another created;
    by the clock of a controller that is ahead, after that.
    """
    names = (f"{GROUP}-counts-repartition", "input")
    topics = fold_snapshots(
        [{"name": "other", "id": None, "partitions": 1, "time": 0}]
        + [{"name": name, "id": None, "partitions": 1, "time": created_ms} for name in ("other", *names)]
    )
    log = born(GroupLog()).write(generation(1, {"a": classic({name: [0] for name in names})}, protocol))
    log.write(generation(2, {"a": classic({name: [0] for name in names})}, protocol))
    rebalance = log.rebalances(topics)[1]
    assert kinds(rebalance) == [kind]
    assert kind == "unknown" or rebalance.causes[0].topics == (names[0],)


def a_leader_whose_list_of_topics_shrinks(*own: str, leader: str = "a", after_ms: int = 1_000) -> GroupLog:
    """The member that read u leaves, and generation 3 follows with nothing else changed."""
    mine = {topic: [0] for topic in own}
    log = born(GroupLog()).write(generation(1, {"a": classic(mine), "b": classic({"u": [0]})}, leader="a"))
    log.write(generation(2, {"a": classic(mine), "c": classic({}, "t")}, leader=leader))
    return log.write(generation(3, {"a": classic(mine), "c": classic({}, "t")}, leader=leader), after_ms=after_ms)


def test_a_leader_joins_again_when_its_list_of_topics_has_shrunk():
    (cause,) = a_leader_whose_list_of_topics_shrinks("t").rebalances(listed("t", "u"))[2].causes
    assert (cause.kind, cause.topics, cause.at.offset) == ("topic_metadata_changed", ("u",), 2)


def test_it_does_so_at_the_next_refresh_of_its_metadata_at_the_latest() -> None:
    late = a_leader_whose_list_of_topics_shrinks("t", after_ms=300_000 + 60_001)
    assert kinds(late.rebalances(listed("t", "u"))[2]) == ["unknown"]
    fold = GroupFold(Group(GROUP), topics=listed("t", "u"), metadata_age_ms=300_001)
    rows = [row for record in late.records for row in fold.feed(record) if isinstance(row, RebalanceRow)]
    assert kinds(rows[2]) == ["topic_metadata_changed"]


@pytest.mark.parametrize(
    ("own", "leader", "known"), [(("t", "u"), "a", ("t", "u")), (("t",), "c", ("t", "u")), (("t",), "a", ("t",))]
)
def test_it_does_not_where_the_list_is_the_same_or_another_leader_made_it(
    own: tuple[str, ...], leader: str, known: tuple[str, ...]
) -> None:
    """A topic that does not exist was in no list."""
    rebalances = a_leader_whose_list_of_topics_shrinks(*own, leader=leader).rebalances(listed(*known))
    assert kinds(rebalances[2]) == ["unknown"]


def listed(*names: str) -> TopicHistory:
    return fold_snapshots([{"name": name, "id": None, "partitions": 1, "time": 500} for name in names])


@pytest.mark.parametrize("protocol", ["range", "cooperative-sticky"])
def test_a_leader_may_forget_a_topic_of_others_and_learn_of_it_again(protocol: str) -> None:
    """It asks for the topics of others each time it becomes leader."""
    whole = {"a": classic({"t": [0]}), "b": classic({"u": [0]})}
    lacking = {"a": classic({"t": [0]}), "b": classic({}, "u")}
    log = born(GroupLog()).write(generation(1, whole, protocol)).write(generation(2, lacking, protocol))
    cause = log.write(generation(3, whole, protocol)).rebalances(listed("t", "u"))[2].causes[0]
    assert (cause.kind, cause.topics, cause.at.offset) == ("topic_metadata_changed", ("u",), 2)
    assert cause.detail == "the leader did not know them yet when it assigned generation 2"


def test_a_topic_that_a_cooperative_member_has_yet_to_revoke_is_known():
    revoking = {"a": classic({"t": [0]}, "t", owned={"t": [0], "u": [0]}), "b": classic({}, "u")}
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0], "u": [0]})}, "cooperative-sticky"))
    log.write(generation(2, revoking, "cooperative-sticky"))
    log.write(generation(3, {"a": classic({"t": [0]}), "b": classic({"u": [0]})}, "cooperative-sticky"))
    assert kinds(log.rebalances(listed("t", "u"))[2]) == ["partitions_revoked"]


def replaced_in_place(*topics: str, after_ms: int = 600) -> GroupLog:
    """A static member comes back with these topics, in the same generation; then the next generation is complete."""
    log = born(GroupLog()).write(generation(1, {"s1": classic({"t": [0], "u": [0]}, instance="i")}))
    log.write(generation(1, {"s2": classic({"t": [0], "u": [0]}, *topics, instance="i")}))
    return log.write(generation(2, {"s2": classic({"t": [0]}, *topics, instance="i")}), after_ms=after_ms)


def test_a_static_member_that_comes_back_with_fewer_topics_joins_again():
    (cause,) = replaced_in_place("t").rebalances()[1].causes
    assert (cause.kind, cause.member_id, cause.instance_id) == ("subscription_changed", "s2", "i")
    assert (cause.topics, cause.at.offset) == (("u",), 2)
    assert cause.detail == "-u, in place of s1 within generation 1, which left it with u"


@pytest.mark.parametrize("instance", ["i", None])
def test_a_generation_that_may_be_written_again_does_not_say_how_long_it_took(instance: str | None) -> None:
    """Compaction left the last record of it: a static member came back a minute after the group was stable."""
    members = {"s": classic({"t": [0]}, instance=instance)}
    log = GroupLog().skip(5).write(generation(5, members, currentStateTimestamp=1_000), after_ms=76_000)
    (row,) = log.rebalances(coverage=Coverage({0: [(5, 100)]}))
    assert (row.duration_min_ms is None) == (instance is not None)


@pytest.mark.parametrize("instance", ["i", None])
def test_behind_a_lost_record_a_static_member_may_have_another_subscription(instance: str | None) -> None:
    """The lost one may be the same generation with the process that this member replaced, which asked for ``u``."""
    members = {"s": classic({"t": [0], "u": [0]}, "t", instance=instance)}
    log = born(GroupLog()).write(generation(1, members)).skip(1).write(generation(2, members))
    log.write(generation(3, {"s": classic({"t": [0]}, instance=instance)}), after_ms=600)
    whole, hole = Coverage({0: [(0, 100)]}), Coverage({0: [(0, 1), (3, 100)]})
    mismatch = ["assignment_mismatch"]
    assert kinds(log.rebalances(coverage=whole)[-1]) == mismatch
    assert kinds(log.rebalances(coverage=hole)[-1]) == (mismatch if instance is None else ["unknown"])


@pytest.mark.parametrize("instance", ["i", None])
def test_behind_a_lost_record_it_is_not_known_what_the_leader_did_not_know(instance: str | None) -> None:
    first = {"s": classic({"t": [0]}, "t", "u", instance=instance)}
    log = born(GroupLog()).write(generation(1, first)).skip(1).write(generation(2, first))
    log.write(generation(3, {"s": classic({"t": [0], "u": [0]}, instance=instance)}), after_ms=600)
    changed = ["topic_metadata_changed"]
    topics = existing(t=1, u=1)
    assert kinds(log.rebalances(topics, Coverage({0: [(0, 100)]}))[-1]) == changed
    hole = Coverage({0: [(0, 1), (3, 100)]})
    assert kinds(log.rebalances(topics, hole)[-1]) == (changed if instance is None else ["unknown"])


@pytest.mark.parametrize(("topics", "after_ms"), [(("t", "u", "v"), 600), (("t", "u"), 600), (("t",), 60_001)])
def test_it_does_not_if_its_assignment_suits_it_nor_so_late(topics: tuple[str, ...], after_ms: int) -> None:
    assert kinds(replaced_in_place(*topics, after_ms=after_ms).rebalances(listed("t", "u"))[1]) == ["unknown"]


def test_a_member_that_is_assigned_topics_it_does_not_subscribe_to_joins_again():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0], "u": [0]}, "t"), "b": classic({"v": [0]})}))
    log.write(generation(2, {"a": classic({"t": [0]}), "b": classic({"v": [0]})}), after_ms=300)
    (cause,) = log.rebalances()[1].causes
    assert (cause.kind, cause.member_id, cause.topics, cause.at.offset) == ("assignment_mismatch", "a", ("u",), 1)
    log.write(generation(3, {"a": classic({"t": [0]}), "b": classic({"v": [0]})}), after_ms=300)
    assert kinds(log.rebalances()[2]) == ["unknown"], "once it is told it is over"


def test_a_topic_snapshot_proves_that_a_topic_was_deleted():
    rows = [{"name": name, "id": None, "partitions": 1, "time": 500} for name in "tu"]
    topics = fold_snapshots([*rows, {"name": "t", "id": None, "partitions": 1, "time": 3500}])
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0], "u": [0]})}))
    log.write(generation(2, {"a": classic({"t": [0]}, "t", "u")}))
    (cause,) = log.rebalances(topics)[1].causes
    assert (cause.kind, cause.topics, cause.source) == ("topic_deleted", ("u",), "topic snapshot")
    assert log.rebalances(topics)[1].units_lost == 0, "what is gone is not lost"
    assert kinds(log.rebalances()[1]) == ["topic_metadata_changed"]


def test_a_topic_may_be_deleted_right_behind_the_end_of_the_metadata_log():
    log = born(GroupLog(time_ms=500)).write(generation(1, {"a": classic({"t": [0], "u": [0]})}))
    log.write(generation(2, {"a": classic({"t": [0]}, "t", "u")}))
    began = Log().batch(topic("t", A), partition(A, 0, 1), topic("u", B), partition(B, 0, 1))
    short, cut = log.rebalances(began.history()), log.rebalances(began.lasts(log.records[-1].at.timestamp_ms).history())
    assert [(kinds(row), row.units_lost) for row in (short[1], cut[1])] == [
        (["topic_metadata_changed"], None),
        (["unknown"], 1),
    ]
    assert "topics" in (short[1].missing or "")
    assert cut[1].missing is None


def test_a_topic_that_went_within_the_metadata_log_does_not_go_again_behind_its_end():
    log = born(GroupLog(time_ms=500)).write(generation(1, {"a": classic({"t": [0], "u": [0]})}))
    log.write(generation(2, {"a": classic({"t": [0]}, "t", "u")}))
    log.write(generation(3, {"a": classic({"t": [0]}, "t", "u"), "b": classic({"t": []}, "t", "u")}))
    topics, (_, first, _, last) = Log(), (record.at.timestamp_ms for record in log.records)
    topics.batch(topic("t", A), partition(A, 0, 1), topic("u", B), partition(B, 0, 1)).lasts(first).batch(remove(B))
    _, within, behind = log.rebalances(topics.lasts(last - 1).history())
    assert [kinds(within), kinds(behind)] == [["topic_deleted"], ["member_joined"]]


@pytest.mark.parametrize(("protocol", "first"), [("range", ["topic_deleted"]), ("cooperative-sticky", ["unknown"])])
def test_a_leader_may_see_a_topic_go_before_it_sees_it_come_again(protocol: str, first: list[str]) -> None:
    """A cooperative assignor may leave a topic out until members have revoked it: that is not proof."""
    lists = {500: "tu", 3300: "t", 3600: "tu"}
    rows = [{"name": name, "id": None, "partitions": 1, "time": at} for at, names in lists.items() for name in names]
    whole = {"a": classic({"t": [0], "u": [0]})}
    log = born(GroupLog()).write(generation(1, whole, protocol))
    log.write(generation(2, {"a": classic({"t": [0]}, "t", "u")}, protocol)).write(generation(3, whole, protocol))
    _, gone, back = log.rebalances(fold_snapshots(rows))
    assert kinds(gone) == first
    assert kinds(back) == (["topic_created"] if first == ["topic_deleted"] else ["topic_deleted", "topic_created"])


def test_topics_that_a_pattern_matches_come_and_go_with_the_subscription() -> None:
    lists = {500: "t", 3300: "tu", 4300: "t"}
    rows = [{"name": name, "id": None, "partitions": 1, "time": at} for at, names in lists.items() for name in names]
    some, all_ = {"a": classic({"t": [0]})}, {"a": classic({"t": [0], "u": [0]})}
    log = born(GroupLog()).write(generation(1, some)).write(generation(2, all_)).write(generation(3, some))
    _, came, went = log.rebalances(fold_snapshots(rows))
    assert [(each.kind, each.topics) for each in came.causes] == [
        ("subscription_changed", ("u",)),
        ("topic_created", ("u",)),
    ]
    assert [(each.kind, each.topics) for each in went.causes] == [
        ("subscription_changed", ("u",)),
        ("topic_deleted", ("u",)),
    ]
    assert [each.hint for each in (*came.causes, *went.causes)] == [None, IF_BY_PATTERN] * 2
    known_before = fold_snapshots([each | {"time": 500} for each in rows[:3]])
    assert kinds(log.rebalances(known_before)[1]) == ["subscription_changed"]


def test_a_null_list_of_connectors_and_tasks_is_an_empty_one():
    log = born(GroupLog()).write(generation(1, {"w1": worker(1, {"c": [-1]})}, "compatible", protocolType="connect"))
    log.write(generation(2, {"w1": worker(1, None, had={"c": [-1]})}, "compatible", protocolType="connect"))
    assert [(row.connector, row.is_open) for row in log.assignments()] == [("c", True)]


def test_connect_workers_have_connectors_and_tasks():
    group = {"protocolType": "connect"}
    log = born(GroupLog()).write(generation(1, {"w1": worker(-1, {})}, "compatible", **group))
    log.write(generation(2, {"w1": worker(3, {"c": [-1, 0, 1]})}, "compatible", **group))
    joined = {"w1": worker(3, {}, had={"c": [-1, 0, 1]}, revoked={"c": [1]}), "w2": worker(3, {})}
    log.write(generation(3, joined, "compatible", **group))
    landed = {"w1": worker(3, {}, had={"c": [-1, 0]}), "w2": worker(3, {"c": [1]})}
    log.write(generation(4, landed, "compatible", **group))
    log.write(generation(5, {"w1": worker(3, {}, had={"c": [-1, 0]}, delay=2000)}, "compatible", **group))
    log.write(generation(6, {"w1": worker(3, {"c": [1]}, had={"c": [-1, 0]})}, "compatible", **group), after_ms=2000)
    _, configured, joins, lands, leaves, delayed = log.rebalances()
    assert kinds(configured) == ["connectors_changed"]
    assert configured.causes[0].topics == ("c",)
    assert (kinds(joins), joins.revocations[0].units) == (["member_joined"], 1)
    assert (kinds(lands), lands.units_moved) == (["partitions_revoked"], 1)
    assert (kinds(leaves), leaves.delay_ms, leaves.units_lost) == (["member_left_or_expired"], 2000, 1)
    assert (kinds(delayed), delayed.idle_ms) == (["delay_elapsed"], 2000)
    roles = {(row.role, row.connector, row.partition) for row in log.assignments() if row.is_open}
    assert roles == {("connector", "c", -1), ("task", "c", 0), ("task", "c", 1)}


@pytest.mark.parametrize(("reads", "found"), [(12, "connectors_changed"), (10, "configs_differ")])
def test_a_leader_that_has_not_read_its_config_topic_yet_has_all_join_again(reads: int, found: str) -> None:
    """Its assignments say so (CONFIG_MISMATCH). Only where it cannot read on, its topic is another one."""
    group = {"protocolType": "connect"}
    log = born(GroupLog()).write(
        generation(1, {"w1": worker(10, {}, error=1), "w2": worker(12, {}, error=1)}, "compatible", **group)
    )
    log.write(generation(2, {"w1": worker(reads, {}), "w2": worker(12, {})}, "compatible", **group))
    (cause,) = log.rebalances()[-1].causes
    assert (cause.kind, cause.member_id) == (found, "w2" if found == "configs_differ" else None)


@pytest.mark.parametrize("received", [True, False])
def test_a_worker_that_never_received_its_assignment_has_not_lost_its_configurations(received: bool) -> None:
    """The next rebalance began before its SyncGroup request: it brings the assignment of before, and reads on."""
    had, group = {"c": [0]}, {"protocolType": "connect"}
    given = worker(12, had)
    log = born(GroupLog()).write(generation(1, {"w1": worker(10, had)}, "compatible", **group))
    joined = worker(10, {}, had=had)["subscription"]
    log.write(generation(2, {"w1": given | {"subscription": joined}}, "compatible", **group))
    if received:  # its config offset is below that of the assignment that it brings
        allocation = decode_subscription("connect", "compatible", worker(12, {}, had=had)["subscription"])
        assert allocation is not None
        joined = encode_blob("ConnectProtocolMetadata", 1, {**allocation.fields, "configOffset": 10})
    log.write(generation(3, {"w1": given | {"subscription": joined}, "w2": worker(12, {})}, "compatible", **group))
    assert ("configs_differ" in kinds(log.rebalances()[-1])) is received


@pytest.mark.parametrize(
    ("worker_id", "protocol_type", "causes"),
    [
        ("ZquU0fxJT3SqC-3XlpBxEA", "connect", ["group_downgraded"]),
        ("worker-1-db224719-1058-4fd4-bd0d-0ee928b6b4b7", "connect", ["member_joined"]),
        ("ZquU0fxJT3SqC-3XlpBxEA", "consumer", ["member_joined"]),
    ],
)
def test_ids_that_workers_chose_prove_that_they_were_on_kip_848(
    worker_id: str, protocol_type: str, causes: list[str]
) -> None:
    log = GroupLog()
    for number, workers in (7, (worker_id,)), (8, (worker_id, "w2")):
        members = dict.fromkeys(workers, worker(-1, {}))
        log.write(generation(number, members, "compatible", protocolType=protocol_type))
    first, second = log.rebalances(coverage=Coverage({0: [(0, 100)]}))
    assert (kinds(first), kinds(second)) == (causes, ["member_joined"])


def test_blobs_that_cannot_be_read_are_no_exception():
    broken = {**classic({"t": [0]}), "subscription": b"\x00", "assignment": b"\xff\xff\xff"}
    log = born(GroupLog()).write(generation(1, {"a": broken})).write(generation(2, {"a": broken, "b": broken}))
    assert kinds(log.rebalances()[1]) == ["member_joined"]
    assert log.assignments() == []


def test_an_upgrade_and_the_downgrade_after_it():
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    log.write(
        (RecordType.GROUP_METADATA, {"group": "g"}, None),
        member("a", "t"),
        member("b", "t"),
        epoch(1),
        member("c", "t"),
        epoch(2),
    )
    log.write(
        *gone("a"),
        *gone("b"),
        *gone("c"),
        (RecordType.CONSUMER_GROUP_METADATA, {}, None),
        generation(2, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}),
    )
    log.write(generation(3, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    _, upgraded, joined, downgraded, again = log.rebalances()
    assert (kinds(upgraded), upgraded.group_type, upgraded.members_before) == (["group_upgraded"], "CONSUMER", 2)
    assert kinds(joined) == ["member_joined"]
    assert kinds(downgraded) == ["member_left_or_expired", "group_downgraded"]
    assert downgraded.causes[0].member_id == "c"
    assert (kinds(again), again.group_type) == (["group_downgraded"], "CLASSIC")
    members = log.memberships()
    assert (members["a"].joined.offset, members["a"].left, members["a"].first_epoch) == (1, None, 1)
    assert members["c"].went_by == "leave or expiry"
    assert [row.ended_by for row in log.epochs()] == [
        "next epoch",
        "group upgraded",
        "next epoch",
        "group downgraded",
        "next epoch",
        None,
    ]


def test_an_empty_group_that_becomes_classic_begins_with_0_behind_its_last_epoch() -> None:
    log = GroupLog().write(epoch(2), member("a", "t")).write(*gone("a"), epoch(3))
    log.write((RecordType.CONSUMER_GROUP_METADATA, {}, None), generation(0, {}))
    downgraded = log.rebalances()[-1]
    assert (kinds(downgraded), downgraded.from_epoch, downgraded.to_epoch) == (["group_downgraded"], 3, 0)


def test_members_that_a_downgrade_takes_on_lose_nothing_by_it() -> None:
    """Their records end in the same batch; the rebalance that ends with it has lost what the others had."""
    log = GroupLog().write(member("a", "t"), member("b", "t"), epoch(2), target("a", 0, 1), target("b", 2, 3))
    log.write(target_epoch(2), current("a", 2, 0, 1), current("b", 2, 2, 3))
    log.write(member("c", "t"), epoch(3), target("c"), target_epoch(3))
    log.write(*gone("a"), *gone("b"), *gone("c"), *group_gone(), generation(3, {"a": classic({"t": [0, 1]})}))
    _, downgraded, _ = log.rebalances(existing(t=4))
    assert (downgraded.outcome, downgraded.units_lost, downgraded.units_moved_back) == ("group downgraded", 2, 0)


@pytest.mark.parametrize("has_batches", [True, False])
def test_a_member_that_an_upgrade_does_not_take_on_had_left(has_batches: bool) -> None:
    """A dump without batches shows it, too: the classic group's tombstone is right before its members."""
    log = born(GroupLog()).write(generation(1, {"a": classic({"t": [0]}), "b": classic({"t": [1]})}))
    log.write((RecordType.GROUP_METADATA, {"group": "g"}, None), member("a", "t"), epoch(1))
    if not has_batches:
        log.records[:] = [record._replace(batch=-1) for record in log.records]
    (upgraded,) = log.rebalances(coverage=Coverage({0: [(0, 100)]}))[1:]
    assert kinds(upgraded) == ["group_upgraded", "member_left_or_expired"]
    # A broker's line about the end of a member is found by the record that ends it.
    gone_rows = (row for row in log.rows(coverage=Coverage({0: [(0, 100)]})) if isinstance(row, MembershipRow))
    assert {cause.at for cause in upgraded.causes if cause.member_id} <= {row.left for row in gone_rows}


def test_what_the_first_leader_behind_a_downgrade_assigns_is_not_new() -> None:
    """Of the consumer group only what members had is known, which may not be all partitions that there were."""
    log = GroupLog().write(member("a", "t"), epoch(1), target("a", 0, 1), target_epoch(1), current("a", 1, 0))
    log.write(*gone("a"), *group_gone(), generation(1, {"a": classic({"t": [0]})}))
    log.write(generation(2, {"a": classic({"t": [0, 1]})}))
    downgraded, again = log.rebalances()[-2:]
    assert (kinds(downgraded), kinds(again)) == (["group_downgraded"], ["group_downgraded"])
    log.write(generation(3, {"a": classic({"t": [0, 1, 2]})}))
    assert kinds(log.rebalances()[-1]) == ["topic_metadata_changed"]


@pytest.mark.parametrize("shift_ms", [-300, 0, 300])
def test_what_a_consumer_group_had_not_seen_by_its_hash_is_a_cause_behind_its_downgrade(shift_ms: int) -> None:
    """The group becomes classic at 3,000 ms. Topic u is deleted about then, and created again with two partitions.

    A member that reads by a pattern takes topic v out of its subscription.
    """
    known = [Topic("t", A, 1), Topic("u", B, 1), Topic("v", C, 1)]
    topics = existing(t=1, u=1)
    topics.put_topic(known[2])
    topics.open_version(LogPosition(0, 1, 2_900 + shift_ms))
    topics.remove_topic("u")
    topics.remove_topic("v")
    topics.open_version(LogPosition(0, 2, 2_910 + shift_ms))
    topics.put_topic(Topic("u", D, 2))
    log = GroupLog().write(member("a", "t", "u", "v"), epoch(1, hash_of(*known)), target("a", 0), target_epoch(1))
    log.write(*gone("a"), *group_gone(), generation(1, {"a": classic({"t": [0], "u": [0]}, "t", "u", "v")}))
    log.write(generation(2, {"a": classic({"t": [0], "u": [0, 1]}, "t", "u")}))
    causes = [(cause.kind, cause.topics) for cause in log.rebalances(topics)[-1].causes]
    assert [cause for cause in causes if cause[1]] == [
        ("subscription_changed", ("v",)),
        ("topic_deleted", ("v",)),
        ("topic_deleted", ("u",)),
        ("topic_created", ("u",)),
    ]


def test_what_a_hole_before_took_away_says_nothing_of_a_static_member_that_comes_back() -> None:
    """Nothing is missing since the generation that the new process took part in."""
    first, second = ({name: classic({"t": [0]}, instance="i")} for name in ("s1", "s2"))
    log = born(GroupLog()).write(generation(1, first, "cooperative-sticky")).skip(3)
    log.write(generation(2, first, "cooperative-sticky")).write(generation(3, second, "cooperative-sticky"))
    whole_but_the_hole = Coverage({0: [(0, 1), (5, 100)]})
    rows = log.rows(coverage=whole_but_the_hole)
    (came,) = [row for row in rows if isinstance(row, MembershipRow) and row.member_id == "s2"]
    assert (came.came_by, came.first_epoch) == ("static replacement", 2)
    assert log.rebalances(coverage=whole_but_the_hole)[-1].missing == "what generation 2 took away"


def test_a_log_that_starts_in_the_middle():
    log = GroupLog(offset=70).write(generation(8, {"a": classic({"t": [0]})}))
    (row,) = log.rebalances()
    assert (row.missing, kinds(row), row.duration_max_ms) == (
        "the log does not show the group before generation 8",
        ["unknown"],
        None,
    )
    assert log.memberships()["a"].came_by == "unknown"
    assert not log.assignments()[0].history_complete


@pytest.mark.parametrize(("instance", "cause"), [(None, "member_joined"), ("i", "unknown")])
def test_behind_lost_records_a_first_generation_with_a_static_member_may_be_written_again(instance, cause) -> None:
    """The member came back with another id, which is no rebalance."""
    log = GroupLog(offset=70).write(generation(1, {"a": classic({"t": [0]}, instance=instance)}))
    (row,) = log.rebalances(coverage=Coverage({0: [(70, 100)]}))
    assert (kinds(row), row.history_complete) == ([cause], instance is None)
    (row,) = log.rebalances(coverage=Coverage({0: [(0, 100)]}))
    assert (kinds(row), row.history_complete) == (["member_joined"], True)


def test_the_tombstone_of_a_group_that_only_committed_is_nothing():
    log = GroupLog().write(commit("t", 0)).write((RecordType.GROUP_METADATA, {"group": "g"}, None))
    assert log.rows() == []


def test_what_a_static_member_has_stays_its_own_under_its_new_member_id():
    log = GroupLog().write(generation(1, {"s1": classic({"t": [0, 1]}, instance="i")}))
    log.write(generation(1, {"s2": classic({"t": [0, 1]}, instance="i")}))
    log.write(generation(2, {"s2": classic({"t": [0]}, instance="i"), "m": classic({"t": [1]})}))
    log.write(generation(3, {"s3": classic({"t": [0, 1]}, instance="i")}))
    _, second, third = log.rebalances()
    assert (second.units_moved, second.units_moved_back) == (1, 0)
    assert (third.units_moved, third.units_moved_back) == (1, 0), "partition 0 went from s2 to s3, which is the same"


def test_nobody_has_what_an_empty_group_had_and_nobody_waits_for_it():
    log = GroupLog().write(generation(1, {"m": classic({"t": [0, 1]})}))
    log.write(generation(2, {}), after_ms=5_000)
    log.write(generation(3, {"n": classic({"t": [0, 1]})}), after_ms=9_000)
    _, empty, full = log.rebalances(existing(t=2))
    assert (empty.outcome, empty.units_lost, empty.idle_ms) == ("emptied", 2, 0)
    assert (full.units_moved, full.units_lost, full.idle_ms) == (0, 0, 0)


def test_eager_workers_of_connect_stop_all_work_before_they_join():
    """Work of both tasks and of the connector stood still from when all had joined; incremental workers keep theirs."""
    work = {"c": [-1, 0, 1]}
    group = {"protocolType": "connect"}
    log = born(GroupLog()).write(generation(1, {"w1": eager_worker(work)}, "default", **group))
    again = {"w1": eager_worker({"c": [-1, 0]}), "w2": eager_worker({"c": [1]})}
    log.write(generation(2, again, "default", currentStateTimestamp=3900, **group))
    row = log.rebalances()[-1]
    lasted_ms = row.at.timestamp_ms - 3900
    assert (row.units_moved, row.idle_ms, row.idle_max_ms) == (1, 3 * lasted_ms, lasted_ms)
    kept = born(GroupLog()).write(generation(1, {"w1": worker(1, work)}, "compatible", **group))
    again = {"w1": worker(1, {}, had=work), "w2": worker(1, {})}
    kept.write(generation(2, again, "compatible", currentStateTimestamp=3900, **group))
    assert kept.rebalances()[-1].idle_ms == 0


def test_work_of_a_deleted_connector_is_not_lost():
    both = {"a": [-1, 0], "b": [-1, 0]}
    log = GroupLog().write(
        generation(1, {"w1": worker(1, both)}, "compatible", protocolType="connect"),
        generation(2, {"w1": worker(2, {}, both, {"b": [-1, 0]})}, "compatible", protocolType="connect"),
        generation(3, {"w1": worker(2, {}, {"a": [-1, 0]})}, "compatible", protocolType="connect"),
    )
    _, taken, after = log.rebalances()
    assert (taken.units_lost, after.units_lost, after.idle_ms) == (2, 0, 0)


def a_cluster_with_racks() -> Log:
    """One topic on brokers 1 and 2 of two racks, and a broker without one; the records are 1 s apart."""
    log = Log().batch(broker(1, "r1"), broker(2, "r2"), broker(3, None))
    return log.batch(topic("t", C), partition(C, 0, 1, 2), topic("u", D), partition(D, 0, 3))


def a_group_that_rebalances_without_a_reason(rack: str | None, topic: str = "t") -> GroupLog:
    """At 2 s, 3 s and 13 s; the last time with nothing to show for it."""
    there = {"a": classic({topic: [0]}, rack=rack)}
    log = born(GroupLog(time_ms=0)).write(generation(1, there))
    return log.write(generation(2, {"b": classic({}, topic), **there}, leader="a")).write(
        generation(3, {"b": classic({}, topic), **there}, leader="a"), after_ms=10_000
    )


def test_members_with_a_rack_join_again_as_a_broker_goes_and_comes_back() -> None:
    cluster = a_cluster_with_racks().lasts(5_000).batch(changed(2, fenced=1)).batch(changed(2, fenced=-1))
    causes = a_group_that_rebalances_without_a_reason("r1").rebalances(cluster.lasts(20_000).history())[2].causes
    assert [(cause.kind, cause.detail, cause.topics, cause.at.offset, cause.hint) for cause in causes] == [
        ("rack_changed", "broker 2 went: racks of its replicas", ("t",), 8, None),
        ("rack_changed", "broker 2 came back: racks of its replicas", ("t",), 9, None),
    ]


def test_the_leader_may_not_have_known_that_a_broker_went_before() -> None:
    cluster = a_cluster_with_racks().batch(changed(2, fenced=1)).lasts(20_000).history()
    (cause,) = a_group_that_rebalances_without_a_reason("r1").rebalances(cluster)[2].causes
    assert (cause.kind, cause.hint) == ("rack_changed", "if the leader of generation 2 did not know of it")


@pytest.mark.parametrize(("rack", "topic", "away"), [(None, "t", 2), ("r1", "u", 2), ("r1", "u", 3), ("r1", "t", 3)])
def test_others_do_not(rack: str | None, topic: str, away: int) -> None:
    """Members without a rack, and those of topics without a replica whose rack goes."""
    cluster = a_cluster_with_racks().lasts(5_000).batch(changed(away, fenced=1)).lasts(20_000).history()
    assert kinds(a_group_that_rebalances_without_a_reason(rack, topic).rebalances(cluster)[2]) == ["unknown"]


def of_librdkafka(assigned: dict[str, list[int]], *topics: str) -> dict[str, object]:
    """A member of librdkafka: its user data and its rack are empty, never null."""
    names = sorted(topics or assigned)
    asked = {"topics": names, "userData": b"", "ownedPartitions": [], "generationId": -1, "rackId": ""}
    given = [{"topic": topic, "partitions": numbers} for topic, numbers in assigned.items()]
    return classic(assigned) | {
        "subscription": encode_blob("ConsumerProtocolSubscription", 3, asked),
        "assignment": encode_blob("ConsumerProtocolAssignment", 0, {"assignedPartitions": given, "userData": b""}),
    }


def one_that_rebalances_after_its_topic_has_grown(one: dict[str, object], after_ms: int = 4_000) -> list[RebalanceRow]:
    """At 4 s for the topic that has grown at 3.5 s, and later with nothing to show for it."""
    there = {"a": classic({"t": [0]}), "b": one | {"clientId": "other"}}
    log = born(GroupLog()).write(generation(1, there, leader="a"))
    grown = {**there, "a": classic({"t": [0, 1]})}
    log.write(generation(2, grown, leader="a")).write(generation(3, grown, leader="a"), after_ms=after_ms)
    counts = {500: 1, 3_500: 2}
    return log.rebalances(
        fold_snapshots([{"name": "t", "id": None, "partitions": n, "time": at} for at, n in counts.items()])
    )


def test_each_member_of_librdkafka_joins_again_once_it_sees_that_its_topic_has_grown() -> None:
    _, grown, again = one_that_rebalances_after_its_topic_has_grown(of_librdkafka({}, "t"))
    assert kinds(grown) == ["topic_grown"]
    (cause,) = again.causes
    assert (cause.kind, cause.topics) == ("topic_grown", ("t",))
    assert cause.hint == "if a member of librdkafka had not seen it yet: each joins again once it does"


@pytest.mark.parametrize(("leader", "explained"), [("a", 2), ("b", 1)])
def test_a_member_of_librdkafka_comes_to_see_a_growth_once_and_knows_what_it_assigned(
    leader: str, explained: int
) -> None:
    """Members b and c of three rebalance the group; which of them it is, the log does not say."""
    there = {"a": classic({"t": [0]}), "b": of_librdkafka({}, "t"), "c": of_librdkafka({}, "t")}
    log = born(GroupLog()).write(generation(1, there, leader=leader))
    for number in range(2, 6):
        log.write(generation(number, {**there, "a": classic({"t": [0, 1]})}, leader=leader))
    lists = [{"name": "t", "id": None, "partitions": n, "time": at} for at, n in {500: 1, 3_500: 2}.items()]
    _, grown, *later = log.rebalances(fold_snapshots(lists))
    assert kinds(grown) == ["topic_grown"]
    found = [kind for row in later for kind in kinds(row)]
    assert found == ["topic_grown"] * explained + ["unknown"] * (3 - explained)


@pytest.mark.parametrize(
    ("one", "after_ms"),
    [(classic({}, "t"), 4_000), (of_librdkafka({}, "u"), 4_000), (of_librdkafka({}, "t"), 400_000)],
    ids=["of another client", "reads another topic", "long after"],
)
def test_no_other_member_does_nor_later_than_it_asks_for_its_topics(one: dict[str, object], after_ms: int) -> None:
    _, grown, again = one_that_rebalances_after_its_topic_has_grown(one, after_ms)
    assert (kinds(grown), kinds(again)) == (["topic_grown"], ["unknown"])


def test_a_topic_is_gone_although_a_member_that_has_not_seen_it_still_names_it() -> None:
    lists = {500: "tu", 3300: "t"}
    rows = [{"name": name, "id": None, "partitions": 1, "time": at} for at, names in lists.items() for name in names]
    b = of_librdkafka({}, "t", "u")
    log = born(GroupLog()).write(generation(1, {"a": of_librdkafka({"t": [0], "u": [0]}), "b": b}, leader="a"))
    log.write(generation(2, {"a": of_librdkafka({"t": [0]}), "b": b}, leader="a"))
    assert [(each.kind, each.topics) for each in log.rebalances(fold_snapshots(rows))[1].causes] == [
        ("subscription_changed", ("u",)),
        ("topic_deleted", ("u",)),
    ]
