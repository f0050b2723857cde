"""Steps of committed offsets: what is one step, who owned the partition, and why an offset went back or was removed."""

import pytest

from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.offsets.runs import CommitOrder, GroupCommits
from coordinator_core.audit.offsets.steps import (
    BEGIN_IN_DOUBT,
    END_IN_DOUBT,
    EPOCH_MISSING,
    GAP_BEFORE_FIRST,
    GAP_SINCE,
    NOT_SHOWN_SINCE,
    SAME_TOMBSTONES,
    TOPICS_MISSING,
    TWO_OWNERS,
    CommitStep,
    LifeReaders,
    StepCause,
    commit_steps,
)
from coordinator_core.cluster.given_topics import NO_REACH
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.lost_records import NOTHING_LOST, LostRecords, Unreadable
from coordinator_core.records import Family, RecordType
from coordinator_core.wire.embedded import encode_blob
from tests.core.audit.histories import assignment, at, epoch, member
from tests.core.builders import GroupLog, classic_member
from tests.core.known_topics import EVERYWHEN

MINUTE = 60


def steps_of(records, *, lost=(), unreadable=NOTHING_LOST, group_ends=(), topic_ends=None, reach=EVERYWHEN):
    there = [(each.at.offset, each.at.offset) for each in records if each.at.offset not in lost]
    there += [(span.first, span.last) for groups in unreadable.unreadable.values() for span in groups.values()]
    coverage = Coverage({0: there})
    fold, order = GroupAudit.begin("g", Family.GROUP, None, coverage, None, from_start=True), CommitOrder()
    rows, runs = [], []
    for record in records:
        rows += fold.feed(record, 0)
        if record.type == RecordType.OFFSET_COMMIT:
            runs += order.feed(record)
    history = GroupHistory.gather("g", 0, [*rows, *fold.open_rows()], NO_TOPICS, NO_SHARE_LOGS, unreadable)
    return commit_steps(history, GroupCommits(runs, coverage, group_ends, topic_ends or {}, 0, reach))


def told(steps: list[CommitStep]):
    return [(each.kind, each.commits, each.offset_before, each.offset_after) for each in steps]


def generation(log: GroupLog, number: int, **partitions: list[int]):
    members = []
    for name, held in partitions.items():
        subscription = encode_blob("ConsumerProtocolSubscription", 0, {"topics": ["orders"], "userData": None})
        assigned = {"assignedPartitions": [{"topic": "orders", "partitions": held}], "userData": None}
        assignment = encode_blob("ConsumerProtocolAssignment", 0, assigned)
        members.append(classic_member(name, subscription, assignment, clientId=f"client-{name}"))
    return log.classic(number, members)


def test_commits_that_go_forward_are_one_step_with_their_rate():
    log = GroupLog()
    records = [generation(log, 1, a=[0]), *(log.commit("orders", 0, offset) for offset in (10, 20, 20, 60))]
    first, forward = steps_of(records)
    assert told([first, forward]) == [("first", 1, None, 10), ("forward", 3, 10, 60)]
    assert forward.offsets_per_second == pytest.approx(50 / 3, abs=0.001)
    assert (forward.since.offset, forward.until.offset, forward.owner, forward.client_id) == (2, 4, "a", "client-a")
    assert forward.cause is None
    assert forward.history_complete


def test_the_next_owner_begins_another_step_and_a_lower_offset_is_a_takeover():
    log = GroupLog()
    records = [generation(log, 1, a=[0], b=[1]), log.commit("orders", 0, 10), log.commit("orders", 0, 20)]
    records += [generation(log, 2, b=[0, 1]), log.commit("orders", 0, 15), log.commit("orders", 0, 30)]
    steps = steps_of(records)
    assert told(steps) == [
        ("first", 1, None, 10),
        ("forward", 1, 10, 20),
        ("rewound", 1, 20, 15),
        ("forward", 1, 15, 30),
    ]
    assert [each.owner for each in steps] == ["a", "a", "b", "b"]
    assert steps[2].cause == StepCause.TAKEOVER


def test_why_a_member_went_back_is_unknown():
    log = GroupLog()
    records = [generation(log, 1, a=[0]), log.commit("orders", 0, 10), log.commit("orders", 0, 5)]
    *_, rewound = steps_of(records)
    assert (rewound.kind, rewound.cause, rewound.owner) == ("rewound", StepCause.UNKNOWN, "a")
    assert "log file of the consumer" in rewound.missing


def test_a_record_that_cannot_be_decoded_may_be_a_commit():
    log = GroupLog()
    records = [log.commit("orders", 0, offset) for offset in (10, 20, 30)]
    other = GroupLog()
    other.commit("orders", 0, 1)
    later = [other.commit("orders", 0, offset) for offset in (10, 20)]
    in_between = LostRecords(unreadable={("__consumer_offsets", 0): {"g": Unreadable(1, 1), "other": Unreadable(2, 2)}})
    before = LostRecords(unreadable={("__consumer_offsets", 0): {"g": Unreadable(0, 0)}})
    said = [steps_of([records[0], records[2]], unreadable=in_between), steps_of(later, unreadable=before)]
    lacks = [[(each.kind, each.history_complete) for each in steps] for steps in said]
    assert lacks == [[("first", True), ("forward", False)], [("first", False), ("forward", False)]]
    assert said[1][0].missing.startswith(GAP_BEFORE_FIRST)


def test_a_group_without_members_is_set_from_outside_both_ways():
    log = GroupLog()
    records = [generation(log, 1, a=[0]), log.commit("orders", 0, 10), log.classic(2)]
    records += [log.commit("orders", 0, 3), log.commit("orders", 0, 40)]
    _, back, forward = steps_of(records)
    assert told([back, forward]) == [("reset", 1, 10, 3), ("reset", 1, 3, 40)]
    assert {back.cause, forward.cause} == {StepCause.OUTSIDE}
    assert back.owner is None


def test_a_group_that_nobody_joins_goes_forward():
    log = GroupLog()
    steps = steps_of([log.commit("orders", 0, offset) for offset in (1, 5, 9, 4)])
    assert told(steps) == [("first", 1, None, 1), ("forward", 2, 1, 9), ("reset", 1, 9, 4)]


def test_a_commit_for_a_topic_that_was_created_again_is_a_first_one():
    log = GroupLog()
    *_, again = steps_of([log.commit("orders", 0, 9, topicId="old"), log.commit("orders", 0, 1, topicId="new")])
    assert (again.kind, again.cause) == ("first", StepCause.TOPIC_CREATED_AGAIN)


@pytest.mark.parametrize(("first", "cause"), [(9, StepCause.TOPIC_CREATED_AGAIN), (8, StepCause.UNKNOWN)])
@pytest.mark.parametrize("deleted", [True, False], ids=["offsets removed", "another topic id"])
def test_a_consumer_that_carries_its_offset_over_to_a_topic_that_was_created_again_goes_back(first, cause, deleted):
    """As Kafka's Java consumer did on brokers of 4.3.1; what it reads later goes back for another reason."""
    log = GroupLog()
    records = [generation(log, 1, a=[0]), log.commit("orders", 0, 9, topicId="old")]
    records += [log.no_commit("orders", 0)] if deleted else []
    deleted_ms = records[-1].at.timestamp_ms
    records += [log.commit("orders", 0, offset, topicId="new") for offset in (first, 12, 3, 7, 1)]
    steps = steps_of(records, topic_ends={"orders": [deleted_ms]})
    back, again = [step for step in steps if step.kind == "rewound"]
    assert (back.offset_before, back.offset_after, back.cause) == (12, 3, cause)
    assert (again.offset_after, again.cause) == (1, StepCause.UNKNOWN)


def removal(seconds=1, *, group_ends=(), topic_ends=None, reach=EVERYWHEN, **value):
    log = GroupLog()
    records = [log.commit("orders", 0, 9, **value)]
    log.offset += seconds
    records.append(log.no_commit("orders", 0))
    ends = [record.at for record in group_ends and [log.record(RecordType.GROUP_METADATA, None)]]
    ends = [at._replace(timestamp_ms=records[-1].at.timestamp_ms) for at in ends]
    *_, removed = steps_of(records, group_ends=ends, topic_ends=topic_ends, reach=reach)
    assert (removed.kind, removed.commits, removed.offset_before, removed.offset_after) == ("removed", 0, 9, None)
    return removed


@pytest.mark.parametrize(("empty_s", "members", "young"), [(59, 0, True), (60, 0, False), (60, 1, True)])
def test_offsets_of_an_empty_classic_group_expire_by_the_time_since_it_is_empty(empty_s, members, young):
    """KIP-211: an offset that was committed a moment ago goes with the others. Which of them went is not told apart."""
    log = GroupLog()
    records = [log.classic(3, [classic_member("m")] * members)]
    log.offset += empty_s - 2
    records.append(log.commit("orders", 0, 9))
    records.append(log.no_commit("orders", 0))
    assert records[2].at.timestamp_ms - records[0].at.timestamp_ms == empty_s * 1_000
    for ends, cause in (((), StepCause.DELETED), ([records[2].at._replace(offset=999)], StepCause.GROUP_DELETED)):
        *_, removed = steps_of(records, group_ends=ends)
        kept = StepCause.GROUP_ENDED if ends else StepCause.UNKNOWN
        assert (removed.kind, removed.cause) == ("removed", cause if young else kept)


def test_why_an_offset_was_removed():
    assert removal().cause == StepCause.DELETED
    unsure = removal(reach=NO_REACH)
    assert (unsure.cause, TOPICS_MISSING in unsure.missing) == (StepCause.UNKNOWN, True)
    assert removal(reach=NO_REACH, group_ends=[True]).cause == StepCause.GROUP_DELETED
    assert removal(topic_ends={"orders": [1_000]}).cause == StepCause.TOPIC_DELETED
    assert removal(group_ends=[True]).cause == StepCause.GROUP_DELETED
    assert removal(expireTimestamp=1_500).cause == StepCause.EXPIRED
    late = removal(2 * MINUTE)
    assert (late.cause, late.detail) == (StepCause.UNKNOWN, "2 min 1 s after the commit")
    assert SAME_TOMBSTONES in late.missing
    with_group = removal(2 * MINUTE, group_ends=[True])
    assert (with_group.cause, with_group.missing.startswith(SAME_TOMBSTONES)) == (StepCause.GROUP_ENDED, True)


def test_without_times_nothing_tells_what_was_removed_with_the_group():
    log = GroupLog()
    records = [log.commit("orders", 0, 9), log.no_commit("orders", 0), log.record(RecordType.GROUP_METADATA, None)]
    records = [record._replace(at=record.at._replace(timestamp_ms=-1)) for record in records]
    *_, removed = steps_of(records, group_ends=[records[-1].at])
    assert (removed.kind, removed.cause) == ("removed", StepCause.UNKNOWN)


def test_what_is_missing_since_the_commit_before_is_said():
    log = GroupLog()
    records = [log.commit("orders", 0, offset) for offset in (1, 5, 9)]
    first, forward = steps_of(records, lost=[1])
    assert first.history_complete
    assert not forward.history_complete
    assert "other commits in between" in forward.missing


def test_commits_of_a_transaction_hold_from_its_marker_unless_a_later_one_came_before():
    log, order = GroupLog(), CommitOrder()
    in_transaction, plain, other = log.commit("t", 0, 5), log.commit("t", 0, 7), log.commit("t", 1, 3)
    assert list(order.feed(in_transaction, 77)) == []
    assert [run.offset for run in order.feed(plain)] == [7]
    assert list(order.feed(other, 77)) == []
    assert order.left_out == 2
    assert [run.partition.partition for run in order.end_transaction(77, committed=True)] == [1]
    assert order.left_out == 0


def test_commits_whose_transaction_is_lost_are_counted_until_a_tombstone():
    log, order = GroupLog(), CommitOrder()
    assert list(order.feed(log.commit("t", 0, 5), 77)) == []
    order.give_up_transactions()
    assert list(order.end_transaction(77, committed=True)) == []
    assert order.left_out == 1
    (removed,) = order.feed(log.no_commit("t", 0))
    assert (removed.before, removed.offset) == (None, None)
    assert order.left_out == 0
    assert commit_steps(GroupHistory("g", 0), GroupCommits([removed], Coverage({0: [(0, 1)]}))) == []
    (step,) = commit_steps(GroupHistory("g", 0), GroupCommits([removed], Coverage({0: [(1, 1)]})))
    assert (step.kind, step.offset_before, step.history_complete) == ("removed", None, False)


def test_where_two_members_had_the_partition_both_are_named():
    log = GroupLog()
    records = [generation(log, 1, a=[0]), log.commit("orders", 0, 10)]
    records += [generation(log, 2, a=[0], b=[0]), log.commit("orders", 0, 15), log.commit("orders", 0, 12)]
    first, both, back = steps_of(records)
    assert (first.owner, first.others) == ("a", ())
    assert (both.owner, both.others, both.missing) == ("b", ("a",), TWO_OWNERS)
    assert (back.kind, back.others, back.cause, back.missing) == ("rewound", ("a",), "unknown", TWO_OWNERS)


def test_a_cooperative_member_commits_as_it_gives_a_partition_up():
    """The generation took it, and gives it to nobody before the next one (KIP-429)."""
    log = GroupLog()
    records = [generation(log, 1, a=[0, 1]), generation(log, 2, a=[0], b=[]), log.commit("orders", 1, 10)]
    records += [generation(log, 3, a=[0], b=[1]), log.commit("orders", 1, 11)]
    assert [each.owner for each in steps_of(records)] == ["a", "b"]
    records = [generation(log, 4, a=[0, 1]), generation(log, 5, b=[0]), log.commit("orders", 1, 10)]
    assert steps_of(records)[0].owner is None


def test_a_generation_takes_nothing_any_more_when_the_group_was_converted():
    """Who has the partition then is said by topic ids, whose names are not known."""
    taken = assignment("a", 1, at(1), at(5), group_type="CLASSIC")
    later = assignment("b", 1, at(8), topic=None, topic_id="nUQRgR5RT06lrNlUa2nKKg")
    epochs = [
        epoch(1, at(1), ended=at(5), group_type="CLASSIC", members=("a",)),
        epoch(2, at(5), ended=at(7), group_type="CLASSIC", members=("a",), ended_by="group upgraded"),
        epoch(2, at(7), members=("a", "b")),
    ]
    history = GroupHistory("g", 0, epochs, assignments=[taken, later], memberships=[member("a", at(1))])
    log, order, runs = GroupLog(), CommitOrder(), []
    for offset in (6, 9):
        log.offset = offset
        runs += order.feed(log.commit("t", 1, offset))
    steps = commit_steps(history, GroupCommits(runs, Coverage({0: [(0, 100)]})))
    assert [row.owner for row in steps] == ["a", None]


def test_the_tasks_of_a_streams_group_read_what_the_topology_of_their_life_says():
    """The group was deleted and created again, as another application; subtopology 0 reads another topic since."""

    def interval(member_id, since, until):
        return assignment(
            member_id, 0, at(since), at(until), role="active", resource="0", subtopology="0", topic=None, topic_id=None
        )

    history = GroupHistory(
        "g", 0, [epoch(1, at(0), members=None)], assignments=[interval("old", 1, 10), interval("new", 20, 30)]
    )
    log, order = GroupLog(), CommitOrder()
    runs = []
    for offset, topic in ((5, "a"), (25, "a"), (26, "b"), (27, "0")):
        log.offset = offset
        runs += order.feed(log.commit(topic, 0, offset))
    tasks = frozenset("0")
    lives = [LifeReaders(0, {"a": tasks}), LifeReaders(11, {"b": tasks})]
    steps = commit_steps(history, GroupCommits(runs, Coverage({0: [(0, 100)]})), lives)
    assert [(row.topic, row.since.offset, row.owner) for row in steps] == [
        ("0", 27, None),
        ("a", 5, "old"),
        ("a", 25, None),
        ("b", 26, "new"),
    ]


def test_a_step_may_go_on_in_records_that_are_lost():
    log = GroupLog()
    records = [generation(log, 1, a=[0]), *(log.commit("orders", 0, offset) for offset in (10, 20, 30, 5, 8))]
    lost = LostRecords(ranges={("__consumer_offsets", 0): [(3, 3)]})
    whole = steps_of(records)
    first, forward, rewound, last = steps_of([*records[:3], *records[4:]], lost=[3], unreadable=lost)
    assert all(each.history_complete for each in (*whole, first))
    assert (forward.history_complete, forward.missing) == (False, END_IN_DOUBT)
    assert (rewound.history_complete, last.history_complete) == (False, False)
    assert last.missing.startswith(BEGIN_IN_DOUBT)


def test_who_had_a_partition_before_lost_records_need_not_be_its_owner_behind_them():
    log = GroupLog()
    records = [generation(log, 1, a=[0], b=[1]), log.commit("orders", 0, 10), generation(log, 2, b=[0, 1])]
    records += [log.no_commit("orders", 0), generation(log, 3, a=[0], b=[1]), log.commit("orders", 0, 5)]
    lost = LostRecords(ranges={("__consumer_offsets", 0): [(2, 2)]})
    whole, found = steps_of(records), steps_of([*records[:2], *records[3:]], lost=[2], unreadable=lost)
    assert [each.owner for each in whole] == ["a", "b", "a"]
    assert [each.owner for each in found] == ["a", None, "a"], "the next generation shows the owner again"
    assert found[1].missing == f"{GAP_SINCE}; {NOT_SHOWN_SINCE.missing}"


def test_an_owner_that_is_not_known_to_have_kept_the_partition_makes_no_step_certain():
    log = GroupLog()
    records = [log.commit("orders", 0, offset) for offset in (10, 20)]
    held = assignment("a", 0, at(0), topic="orders", epoch=None)
    history = GroupHistory("g", 0, epochs=[epoch(2, at(0), members=("a",))], assignments=[held])
    runs = [run for order in (CommitOrder(),) for record in records for run in order.feed(record)]
    steps = commit_steps(history, GroupCommits(runs, Coverage({0: [(0, 10)]})))
    assert {step.owner for step in steps} == {"a"}
    assert {step.missing for step in steps} == {EPOCH_MISSING}


@pytest.mark.parametrize(("ended_by", "missing"), [("group deleted", None), ("end not seen", END_IN_DOUBT)])
def test_a_step_beside_one_of_an_unknown_owner_is_in_doubt_where_the_end_of_the_group_was_not_seen(ended_by, missing):
    """As in a dump without times: no record is missing, and yet a group may have been converted."""
    log, order = GroupLog(), CommitOrder()
    runs = [run for offset in (10, 20, 30) for run in order.feed(log.commit("orders", 0, offset))]
    held = assignment("a", 0, at(0), at(2), topic="orders", is_open=False)
    epochs = [epoch(1, at(0), members=None, ended=at(9), ended_by=ended_by, is_open=False)]
    history = GroupHistory("g", 0, epochs, assignments=[held])
    _, forward, unowned = commit_steps(history, GroupCommits(runs, Coverage({0: [(0, 100)]})))
    assert (forward.owner, unowned.owner, forward.missing) == ("a", None, missing)


def test_a_commit_that_names_its_member_in_its_metadata_is_of_that_member():
    """franz-go does; the member may have lost the partition. Any other metadata names no member."""
    log, order = GroupLog(), CommitOrder()
    runs = [run for offset in (10, 20, 30, 40) for run in order.feed(log.commit("orders", 0, offset))]
    named = zip(runs, ("a", "a", "b", "app data"), strict=True)
    runs = [run._replace(metadata=metadata) for run, metadata in named]
    held = [assignment("a", 0, at(0), topic="orders"), assignment("b", 0, at(0), topic="orders")]
    history = GroupHistory(
        "g",
        0,
        epochs=[epoch(2, at(0), members=("a", "b"))],
        assignments=held,
        memberships=[member("a", at(0)), member("b", at(0))],
    )
    steps = commit_steps(history, GroupCommits(runs, Coverage({0: [(0, 100)]})))
    assert [(step.committer, step.commits) for step in steps] == [("a", 1), ("a", 1), ("b", 1), (None, 1)]
    assert [step.missing for step in steps][1:3] == [None, None], "it is known which of the two owners committed"
    assert steps[3].missing == TWO_OWNERS


@pytest.mark.parametrize(
    ("committer", "cause"), [("b", StepCause.NOT_OWNER), ("a", StepCause.UNKNOWN), ("not a member", StepCause.UNKNOWN)]
)
def test_a_member_that_did_not_own_the_partition_sets_it_back(committer, cause):
    """As a member of a franz-go client that has lost it, and still commits what it had read."""
    log = GroupLog()
    records = [generation(log, 1, a=[0], b=[1]), log.commit("orders", 0, 10, metadata="a")]
    records += [log.commit("orders", 0, 5, metadata=committer)]
    *_, rewound = steps_of(records)
    assert (rewound.kind, rewound.owner, rewound.cause) == ("rewound", "a", cause)
    if cause == StepCause.NOT_OWNER:
        assert (rewound.committer, rewound.detail) == ("b", "b committed, a owned the partition")
        assert rewound.missing is None
