"""What looks like a fault in a log of a group coordinator, and is none: no rule fires."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, Family, Fields, RecordType
from tests.core.builders import GroupLog, at_once, classic_member, consumer_member, without_times
from tests.core.cluster.test_metadata_log import Log, supporting
from tests.core.coordinator.transcript_connect import GROUP, played
from tests.core.history.logs import A, existing
from tests.core.whole_log import judge
from tests.shared_data import ROOT

Records = list[CoordinatorRecord]
WHOLE = Coverage({0: [(0, 10_000)]})


def targets_are_computed_in_batches(log: GroupLog) -> Records:
    """KIP-1263: within the assignment interval epochs open without a target; a joiner begins at the old one."""
    join = at_once(log.join("m1", 2, {"t": [0, 1]}))
    second = at_once([log.member("m2"), log.epoch(3), log.current("m2", 2, {}, previousMemberEpoch=0)])
    third = at_once([log.member("m3"), log.epoch(4), log.current("m3", 2, {}, previousMemberEpoch=0)])
    return [*join, *second, *third, *at_once([log.target("m2", {}), log.target("m3", {}), log.target_epoch(4)])]


def a_target_is_computed_beside_the_heartbeats(log: GroupLog) -> Records:
    """KIP-1263: meanwhile members come, go and take the place of others; what is written is of the epoch before that,
    for those who are there: nothing for who came, for a static member's successor what its predecessor was to have.
    """
    join = at_once(log.join("m1", 2, {"t": [0, 1, 2]}))
    join += at_once([log.member("m2", instanceId="i"), log.epoch(3), log.current("m2", 2, {}, previousMemberEpoch=0)])
    more = at_once([log.member("m3"), log.epoch(4), log.current("m3", 2, {}, previousMemberEpoch=0)])
    left = log.current("m2", -2, {}, previousMemberEpoch=2)
    back = [*log.gone("m2"), log.member("m4", instanceId="i"), log.current("m4", 0, {}, previousMemberEpoch=0)]
    back.append(log.current("m4", 2, {}, previousMemberEpoch=0))
    written = [log.target("m1", {"t": [0, 1]}), log.target("m3", {}), log.target("m4", {"t": [2]}), log.target_epoch(3)]
    return [*join, *more, left, *at_once(back), *at_once(written)]


def an_emptied_group_gets_no_target(log: GroupLog) -> Records:
    """The assignment epoch stays behind until somebody joins."""
    join, left = at_once(log.join("m1", 2, {"t": [0]})), at_once([*log.gone("m1"), log.epoch(3)])
    return [*join, *left, *at_once(log.join("m2", 4, {"t": [0]}))]


def a_group_of_an_older_broker_begins_with_epoch_one(log: GroupLog) -> Records:
    return at_once(log.join("m1", 1, {"t": [0]}))


def a_static_member_bounces(log: GroupLog) -> Records:
    """KIP-345: it leaves with -2; who takes its place is at epoch 0 on the way, and opens no epoch."""
    join = at_once(log.join("m1", 2, {"t": [0]}))
    join[0] = join[0]._replace(value={**(join[0].value or {}), "instanceId": "i"})
    left = log.current("m1", -2, {"t": [0]}, previousMemberEpoch=2)
    back = [
        *log.gone("m1"),
        log.member("m2", instanceId="i"),
        log.target("m2", {"t": [0]}),
        log.current("m2", 0, {"t": [0]}, previousMemberEpoch=0),
        log.member("m2", instanceId="i", rackId="r"),
        log.current("m2", 2, {"t": [0]}, previousMemberEpoch=0),
    ]
    return [*join, left, *at_once(back)]


def a_broker_of_today_drops_the_recorded_topics(log: GroupLog) -> Records:
    """After an upgrade the next epoch has a hash, and the record of the topics ends, whether it was there or not."""
    join = at_once(log.join("m1", 2, {"t": [0]}))
    more = at_once([log.epoch(3), log.tombstone(RecordType.CONSUMER_GROUP_PARTITION_METADATA), log.target_epoch(3)])
    return [*join, *more, log.current("m1", 3, {"t": [0]})]


def a_group_that_only_committed_becomes_a_consumer_group(log: GroupLog) -> Records:
    return [log.commit("t", 0, 5), *at_once(log.join("m1", 2, {"t": [0]})), log.commit("t", 0, 6)]


def generations_are_skipped(log: GroupLog) -> Records:
    """Rebalances that never completed are not logged; the first record of a group has neither type nor members."""
    first = log.classic(0, protocolType="")
    return [first, log.classic(11, [classic_member("m1")]), log.classic(120, [classic_member("m1")])]


def a_generation_is_written_again_for_a_static_member(log: GroupLog) -> Records:
    before = log.classic(4, [classic_member("m1", groupInstanceId="i")])
    return [before, log.classic(4, [classic_member("m2", groupInstanceId="i")])]


def a_classic_group_without_members_is_converted(log: GroupLog) -> Records:
    """Who joins it has no current assignment until the group's first epoch; its tombstone comes all the same."""
    empty = log.classic(0, protocolType="")
    convert = [
        log.tombstone(RecordType.GROUP_METADATA),
        log.epoch(0, 0),
        log.target_epoch(0, 0),
        log.member("m1", subscribedTopicNames=[], subscribedTopicRegex="x.*"),
    ]
    return [empty, *at_once(convert), *at_once([*log.gone("m1"), log.epoch(1, 0)])]


def an_empty_group_is_forgotten_and_begins_again(log: GroupLog) -> Records:
    """Kafka 4.3 drops it from memory, without a record, when it refuses a JoinGroup."""
    left = [*at_once(log.join("m1", 2, {"t": [0]})), *at_once([*log.gone("m1"), log.epoch(3)])]
    return [*left, *at_once(log.join("m2", 2, {"t": [0]}))]


def a_member_never_saw_its_assignment(log: GroupLog) -> Records:
    """The next rebalance began before its SyncGroup request: it has what it had before, and says the generation."""
    members = [
        consumer_member("m1", assigned=assigned, owned=[0, 1], generation=generation)
        for generation, assigned in enumerate(([0, 1], [0], [0]))
    ]
    return [log.classic(at, [member], protocol="cooperative-sticky") for at, member in enumerate(members, 1)]


def a_share_group_of_4_0_has_no_share_state(log: GroupLog) -> Records:
    """Its early access of share groups records neither the partitions that have a state nor a hash of the topics."""
    join = [
        log.share_member("m1"),
        log.record(RecordType.SHARE_GROUP_METADATA, {"epoch": 1}),
        log.record(
            RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
            {"topicPartitions": [{"topicId": A, "partitions": [0]}]},
            memberId="m1",
        ),
        log.record(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 1}),
        log.share_current("m1", 1, {A: [0]}),
    ]
    return at_once(join)


def a_broker_of_4_2_asks_for_what_is_no_longer_subscribed(log: GroupLog) -> Records:
    """The member stays at its epoch, and so does the epoch before; its acknowledgement is of the same epoch, too."""
    join = [log.member("m1"), log.epoch(2), log.target("m1", {"t": [0]}), log.target_epoch(2, 0)]
    join = at_once([*join, log.current("m1", 2, {"t": [0]})])
    changed = [log.member("m1", subscribedTopicNames=["u"]), log.current("m1", 2, {}, {"t": [0]}, 1)]
    changed[1] = changed[1]._replace(value={**(changed[1].value or {}), "previousMemberEpoch": 0})
    return [*join, *at_once(changed), log.current("m1", 2)]


def a_plugin_stores_the_description_of_a_topology(log: GroupLog) -> Records:
    """Kafka 4.4 writes the group's epoch again, with the topology epoch that the plugin stored."""
    join = [
        log.streams_member("m1"),
        log.topology(),
        log.streams_epoch(3),
        log.streams_target("m1", {"0": [0]}),
        log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 3}),
        log.streams_current("m1", 3, {"0": [0]}),
    ]
    again = log.streams_epoch(3)
    return [*at_once(join), again._replace(value={**(again.value or {}), "storedDescriptionTopologyEpoch": 0})]


def a_task_warms_up_before_it_moves(log: GroupLog) -> Records:
    """KIP-1071 in brokers after 4.4: the task stays where its state is, beside the target, and moves with an epoch of
    its own; the steps on the way are in no record.
    """

    def target_epoch(epoch: int) -> CoordinatorRecord:
        value = {"assignmentEpoch": epoch, "assignmentTimestamp": 9}
        return log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, value)

    join = [log.streams_member("m1"), log.topology(), log.streams_epoch(2), log.streams_target("m1", {"0": [0, 1]})]
    join = at_once([*join, target_epoch(2), log.streams_current("m1", 2, {"0": [0, 1]})])
    more = [log.streams_member("m2"), log.streams_epoch(3), log.streams_target("m1", {"0": [0]})]
    more += [log.streams_target("m2", {"0": [1]}), target_epoch(3), log.streams_current("m2", 3)]
    warms: Fields = {**(more[-1].value or {}), "warmupTasks": [{"subtopologyId": "0", "partitions": [1]}]}
    more[-1] = more[-1]._replace(value=warms)
    stays = log.streams_current("m1", 3, {"0": [0, 1]})
    warm = at_once(
        [log.streams_epoch(4), target_epoch(4), log.streams_current("m1", 3, {"0": [0]}, None, {"0": [1]}, 2)]
    )
    moved = [log.streams_current("m1", 4, {"0": [0]}), log.streams_current("m2", 4, {"0": [1]})]
    return [*join, *at_once(more), stays, *warm, *moved]


def a_consumer_waits_for_its_regex_while_a_target_is_computed(log: GroupLog) -> Records:
    """KIP-1263: it joins without an epoch, so that the target that was under way is that of the present one."""
    join = at_once(log.join("m1", 2, {"t": [0, 1]}))
    more = at_once([log.member("m2"), log.epoch(3), log.current("m2", 2, {}, previousMemberEpoch=0)])
    regex = log.member("m3", subscribedTopicNames=[], subscribedTopicRegex="t.*")
    more += at_once([regex, log.current("m3", 2, {}, previousMemberEpoch=0)])
    return [*join, *more, *at_once([log.target("m1", {"t": [0]}), log.target("m2", {"t": [1]}), log.target_epoch(3)])]


def a_member_comes_long_after_the_last_target(log: GroupLog) -> Records:
    """KIP-1263: what it gets at once is of that target, whatever its age."""
    join = at_once(log.join("m1", 2, {"t": [0]}))
    log.offset += 60
    more = at_once([log.member("m2"), log.epoch(3), log.current("m2", 2, {}, previousMemberEpoch=0)])
    return [*join, *more, *at_once([log.target("m2", {}), log.target_epoch(3)])]


def a_topic_of_a_share_group_is_deleted_while_a_target_is_computed(log: GroupLog) -> Records:
    """KIP-1263: its share state is gone by then."""

    def target(member_id: str, epoch: int) -> list[CoordinatorRecord]:
        assigned = {"topicPartitions": [{"topicId": A, "partitions": [0]}]}
        value = {"assignmentEpoch": epoch, "assignmentTimestamp": 9}
        written = log.record(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, assigned, memberId=member_id)
        return [written, log.record(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, value)]

    def epoch(number: int) -> CoordinatorRecord:
        return log.record(RecordType.SHARE_GROUP_METADATA, {"epoch": number, "metadataHash": 7})

    state = log.share_state({A: ("orders", [0])})
    join = [state, log.share_member("m1"), epoch(2), *target("m1", 2), log.share_current("m1", 2, {A: [0]})]
    more = [log.share_member("m2"), epoch(3), log.share_current("m2", 2, {})]
    return [*at_once(join), *at_once(more), log.share_state({}), *at_once(target("m2", 3))]


FALSE_ALARMS: tuple[Callable[[GroupLog], Records], ...] = (
    a_member_never_saw_its_assignment,
    targets_are_computed_in_batches,
    a_target_is_computed_beside_the_heartbeats,
    an_emptied_group_gets_no_target,
    a_group_of_an_older_broker_begins_with_epoch_one,
    a_static_member_bounces,
    a_broker_of_today_drops_the_recorded_topics,
    a_group_that_only_committed_becomes_a_consumer_group,
    generations_are_skipped,
    a_generation_is_written_again_for_a_static_member,
    a_classic_group_without_members_is_converted,
    an_empty_group_is_forgotten_and_begins_again,
    a_share_group_of_4_0_has_no_share_state,
    a_broker_of_4_2_asks_for_what_is_no_longer_subscribed,
    a_plugin_stores_the_description_of_a_topology,
    a_task_warms_up_before_it_moves,
    a_consumer_waits_for_its_regex_while_a_target_is_computed,
    a_topic_of_a_share_group_is_deleted_while_a_target_is_computed,
    a_member_comes_long_after_the_last_target,
)


@pytest.mark.parametrize("make", FALSE_ALARMS, ids=lambda make: make.__name__)
def test_no_rule_fires(make: Callable[[GroupLog], Records]) -> None:
    assert list(judge(make(GroupLog()), Group("g", from_start=True), WHOLE)) == []


@pytest.mark.parametrize(
    ("make", "rules"),
    [
        (a_target_is_computed_beside_the_heartbeats, {Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS}),
        (a_task_warms_up_before_it_moves, {Rule.ASSIGNED_OUTSIDE_TARGET, Rule.ASSIGNED_NOT_THE_TARGET}),
        (a_consumer_waits_for_its_regex_while_a_target_is_computed, {Rule.TARGET_INCOMPLETE}),
        (a_topic_of_a_share_group_is_deleted_while_a_target_is_computed, {Rule.SHARE_STATE_MISSING}),
        (a_member_comes_long_after_the_last_target, {Rule.ASSIGNMENT_OVERDUE}),
    ],
)
def test_what_brokers_after_4_4_do_is_a_fault_of_those_before(
    make: Callable[[GroupLog], Records], rules: set[Rule]
) -> None:
    """The levels that brokers support tell of which release they are; 34 is a level after 4.4."""
    for level, broken in ((33, rules), (34, set())):
        topics = Log().batch(supporting(1, level)).history()
        found = judge(make(GroupLog()), Group("g", from_start=True), WHOLE, topics=topics)
        assert {violation.rule for violation in found} == broken


@pytest.mark.parametrize("make", [a_target_is_computed_beside_the_heartbeats, a_task_warms_up_before_it_moves])
def test_a_setting_names_the_release_where_no_level_is_known(make: Callable[[GroupLog], Records]) -> None:
    for profile, level, is_judged in (("kafka-4.4", None, True), ("kip-1071", None, False), ("kafka-4.4", 34, False)):
        topics = None if level is None else Log().batch(supporting(1, level)).history()
        rules = RuleFold(Group("g", from_start=True), None, WHOLE, topics, AuditSettings(profile=profile))
        assert any(rules.feed(record) for record in make(GroupLog())) is is_judged


# --- beyond a gap ----------------------------------------------------------------------------------------------------


def test_an_end_beyond_a_gap_says_nothing_of_the_members_before_it() -> None:
    """The generation in which the last member left is lost."""
    log = GroupLog()
    generation, _, end = log.classic(3, [classic_member("m1")]), log.classic(4), log.tombstone(2)
    gap = Coverage({0: [(0, 0), (2, 2)]})
    assert list(judge([generation, end], Group("g", from_start=True), gap)) == []


def test_a_group_that_ends_as_a_type_that_was_not_seen_was_something_else_meanwhile() -> None:
    """The upgrade, at generation 2, is lost: the downgrade begins with generation 0, and nothing went back."""
    log = GroupLog()
    before = log.classic(2, [classic_member("m1")])
    log.offset += 10
    downgrade = at_once([log.tombstone(6), log.tombstone(3), log.classic(0)])
    gap = Coverage({0: [(0, 0), (11, 20)]})
    assert list(judge([before, *downgrade], Group("g", from_start=True), gap)) == []


def test_a_classic_group_whose_generations_are_lost_may_have_been_converted() -> None:
    """Its tasks are copied before the topology is written (KIP-1071)."""
    log = GroupLog()
    log.offset += 10
    copied = [log.tombstone(RecordType.GROUP_METADATA), log.streams_member("m1"), log.streams_epoch(1, -1)]
    target_epoch: Fields = {"assignmentEpoch": 1}
    copied += [log.streams_target("m1", {"0": [0]})]
    copied += [log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, target_epoch)]
    copied += [log.streams_current("m1", 1, {"0": [0]}), log.topology()]
    lost, empty = Coverage({0: [(10, 100)]}), Coverage({0: [(0, 100)]})
    assert list(judge(at_once(copied), Group("g", from_start=True), lost)) == []
    found = {str(each.rule) for each in judge(at_once(copied), Group("g", from_start=True), empty)}
    assert {"topology_epoch_wrong", "task_outside_topology"} <= found, "no group was there that had members"


def test_a_conversion_with_a_lost_record_removes_no_member_in_part() -> None:
    """The end of the group comes after the gap, and makes all that follows known."""
    log = GroupLog()
    before = [*at_once(log.join("m1", 2, {"t": [0]})), *at_once(log.join("m2", 3, {"t": [1]}))]
    kinds = ((8, "m1"), (8, "m2"), (7, "m1"), (7, "m2"), (6, None), (5, "m1"), (5, "m2"), (3, None))
    end = at_once([log.tombstone(kind, **({} if member is None else {"memberId": member})) for kind, member in kinds])
    lost = end.pop(1).at.offset
    after = at_once([log.classic(4, [classic_member("m1")])])
    gap = Coverage({0: [(0, lost - 1), (lost + 1, 10_000)]})
    assert list(judge([*before, *end, *after], Group("g", from_start=True), gap)) == []
    assert list(judge([*before, *end, *after], Group("g", from_start=True), WHOLE)), "without a gap it is a violation"


@pytest.mark.parametrize("resolved", [["t"], []])
def test_a_regular_expression_whose_resolution_may_be_lost_proves_no_subscription(resolved: list[str]) -> None:
    """A member takes of its target what it subscribes to: it may no longer subscribe to ``t``."""
    log, topics = GroupLog(), existing(t=1)
    asked: Fields = {"subscribedTopicNames": [], "subscribedTopicRegex": "t.*"}
    join = [log.member("m1", **asked), log.regex("t.*", ["t"])]
    first = at_once([*join, log.epoch(2), log.target("m1", {}), log.target_epoch(2), log.current("m1", 2, {})])
    again = log.regex("t.*", resolved)
    known = log.member("m1", **asked, rackId="r")
    later = at_once([known, log.epoch(3), log.target("m1", {A: [0]}), log.target_epoch(3), log.current("m1", 3, {})])
    gap = Coverage({0: [(0, again.at.offset - 1), (again.at.offset + 1, 10_000)]})

    def broken(records: Records, coverage: Coverage) -> set[str]:
        rules = {str(each.rule) for each in judge(records, Group("g", from_start=True), coverage, topics=topics)}
        return rules & {"assigned_not_the_target"}

    assert broken([*first, *later], gap) == set()
    expected = {"assigned_not_the_target"} if resolved else set()
    assert broken([*first, again, *later], WHOLE) == expected


@pytest.mark.parametrize("regex", ["t.*", ""])
def test_without_topics_a_member_takes_part_of_what_others_subscribe_to_by_a_regular_expression(regex: str) -> None:
    """A target is of the topics of all members. Which of its ids are topics of one member is then not known."""
    log = GroupLog()
    other: Fields = {"subscribedTopicNames": [] if regex else ["t"], "subscribedTopicRegex": regex}
    one: Fields = {"subscribedTopicNames": [] if regex else ["t"]}
    epoch = [log.epoch(2), log.target("m1", {}), log.target("m2", {A: [0]}), log.target_epoch(2)]
    joined = [log.member("m1", **other), log.member("m2", **one), *epoch]
    records = at_once([*joined, log.current("m1", 2, {}), log.current("m2", 2, {})])
    rules = [str(each.rule) for each in judge(records, Group("g", from_start=True), WHOLE)]
    assert ("assigned_not_the_target" in rules) == (not regex)


TRANSCRIPTS = sorted((ROOT / "tests" / "data" / "transcripts").glob("connect_*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_the_coordinator_of_connect_groups_breaks_no_rule(path: Path) -> None:
    """In the worked examples of the document, fail-overs included."""
    play = played(path)
    rules = RuleFold(
        Group(GROUP, from_start=True, family=Family.CONNECT), None, Coverage({0: [(0, len(play.log) - 1)]})
    )
    found = [row for each in play.log for row in rules.feed(each, play.leader_epoch(each.at.offset))]
    assert [*found, *rules.open_rows()] == []
    assert len(play.log) > 10


def test_without_times_a_member_that_left_is_not_replaced_by_who_comes_later() -> None:
    """All records count as written at once: a static member leaves for good, another one joins with its instance."""
    log = GroupLog()
    join = at_once(log.join("m1", 2, {"t": [0]}))
    join[0] = join[0]._replace(value={**(join[0].value or {}), "instanceId": "i"})
    left = at_once([*log.gone("m1"), log.epoch(3), log.target_epoch(3)])
    new = log.member("m2", instanceId="i")
    came = at_once(
        [new, log.epoch(4), log.target("m2", {"t": [1]}), log.target_epoch(4), log.current("m2", 4, {"t": [1]})]
    )
    records = [*join, *left, *came]
    assert list(judge(records, Group(log.group_id, from_start=True), WHOLE)) == []
    assert list(judge(without_times(records), Group(log.group_id, from_start=True), WHOLE)) == []
