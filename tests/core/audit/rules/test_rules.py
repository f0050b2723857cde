"""Each rule of the protocols, broken once by hand; and the sample log, in which none is."""

import random
from collections.abc import Callable
from itertools import islice

import pytest

from coordinator_core.audit.rules.rule_fold import RuleFold
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.topic_changes import HistoryGap
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule, document_rows
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, Family, Fields, LogPosition, RecordType
from tests.core import recorded
from tests.core.audit.rules.mutations import CONNECT_MUTATIONS, MUTATIONS, Mutation, mutations_of
from tests.core.audit.rules.test_batches import BATCH_RULES
from tests.core.audit.rules.test_share_state import BROKEN as BROKEN_SHARE_STATE
from tests.core.builders import GroupLog, at_once, classic_member, consumer_member, internal_topic, subtopology
from tests.core.stored import next_rules
from tests.core.whole_log import judge
from tests.differential.logs_by_group import Log, recorded_log
from tests.shared_data import ROOT

Records = list[CoordinatorRecord]
SAMPLE = ROOT / "data" / "samples" / "known" / "decoded.jsonl.gz"
WHOLE = Coverage({0: [(0, 10_000)]})


@pytest.fixture(scope="module")
def sample() -> Log:
    return recorded_log(SAMPLE)


def sample_topics() -> TopicHistory:
    return recorded.sample()[1]


def broken(records: Records, family: Family = Family.GROUP, topics: TopicHistory | None = None) -> set[Rule]:
    group = Group("g", from_start=True, family=family)
    settings = AuditSettings(profile="kafka-4.4")  # newer brokers may break some rules
    return {violation.rule for violation in judge(records, group, WHOLE, 0, topics, settings)}


def settled(log: GroupLog) -> Records:
    """A group of one: m1 at epoch 2 with partitions 0 and 1 of t."""
    return at_once(log.join("m1", 2, {"t": [0, 1]}))


def test_no_rule_fires_on_the_sample_log(sample: Log) -> None:
    for (_, group_id), records in sample.groups.items():
        assert list(judge(records, Group(group_id, from_start=True), sample.coverage, topics=sample_topics())) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_one_changed_record_of_the_sample_log_makes_the_right_rule_fire(mutation: Mutation, sample: Log) -> None:
    rng = random.Random(mutation.name)
    for (_, group_id), records in sample.groups.items():
        for log in islice(mutations_of(mutation, records, rng), 2):
            group = Group(group_id, from_start=True)
            found = {violation.rule for violation in judge(log, group, sample.coverage, topics=sample_topics())}
            assert mutation.explains(found), (group_id, found)


# --- by hand: what a change of one record of the sample log does not reach -------------------------------------------


def assignment_overdue(log: GroupLog) -> Records:
    """Twenty seconds after a target the group is an epoch further, and a member moves by the old one."""
    records = settled(log)
    target = records[3]
    records[3] = target._replace(value={"assignmentEpoch": 2, "assignmentTimestamp": target.at.timestamp_ms + 1})
    log.offset += 20
    return [*records, log.epoch(3), log.current("m1", 2, {"t": [0, 1]})]


def assigned_before_revoked(log: GroupLog) -> Records:
    """m1 is asked to give up partition 1, and m2 gets it before it has."""
    records = settled(log)
    join = [
        log.member("m2"),
        log.epoch(3),
        log.target("m1", {"t": [0]}),
        log.target("m2", {"t": [1]}),
        log.target_epoch(3),
        log.current("m2", 3, {}, state=2),
    ]
    asked = log.current("m1", 2, {"t": [0]}, {"t": [1]}, state=1, previousMemberEpoch=2)
    too_early = log.current("m2", 3, {"t": [1]}, previousMemberEpoch=3)
    return [*records, *at_once(join), asked, too_early]


def streams_group(log: GroupLog) -> Records:
    return at_once(
        [
            log.streams_member("m1", processId="p"),
            log.topology(),
            log.streams_epoch(2),
            log.streams_target("m1", {"0": [0]}),
            log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 2}),
            log.streams_current("m1", 2, {"0": [0]}),
        ]
    )


def test_a_streams_group_commits_what_its_topology_reads() -> None:
    """A member that has not the topology yet that the group has may commit what it reads by another one."""
    for topic, epoch, rules in (
        ("orders", 0, set()),
        ("other", 0, {Rule.COMMIT_BY_NO_SUBSCRIBER}),
        ("other", 1, set()),
    ):
        log = GroupLog()
        later = [log.streams_member("m1", processId="p", topologyEpoch=epoch)] if epoch else []
        records = [*streams_group(log), *later, log.commit(topic, 0, 5, topicId="topic-id-of-commit----")]
        assert broken(records) & {Rule.COMMIT_BY_NO_SUBSCRIBER} == rules


def task_twice_in_process(log: GroupLog) -> Records:
    first = streams_group(log)
    join = [
        log.streams_member("m2", processId="p"),
        log.streams_epoch(3),
        log.streams_target("m2", {}, {"0": [0]}),
        log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 3}),
        log.streams_current("m2", 3, {}, {"0": [0]}),
    ]
    return [*first, *at_once(join)]


def topology_epoch_wrong(log: GroupLog) -> Records:
    return [*streams_group(log), log.topology(epoch=4), log.topology(epoch=3)]


def group_removed_in_part(log: GroupLog) -> Records:
    first = settled(log)
    gone = at_once([*log.gone("m1"), log.epoch(3)])
    return [*first, *gone, log.tombstone(3)]


def group_removed_with_members(log: GroupLog) -> Records:
    return [*settled(log), *at_once([log.tombstone(6), log.tombstone(3)])]


def member_removed_with_assignment(log: GroupLog) -> Records:
    return [*settled(log), *at_once([log.tombstone(5, memberId="m1"), log.epoch(3)])]


def type_changed_without_tombstone(log: GroupLog) -> Records:
    return [*settled(log), log.classic(1, [classic_member("m1")])]


def type_changed_in_part(log: GroupLog) -> Records:
    return [log.classic(1, [classic_member("m1")]), log.tombstone(2)]


def conversion_epoch_wrong(log: GroupLog) -> Records:
    classic = log.classic(7, [classic_member("m1")])
    upgrade = [log.tombstone(2), log.member("m1"), log.epoch(3), log.target("m1", {}), log.target_epoch(3)]
    return [classic, *at_once([*upgrade, log.current("m1", 3, {})])]


def assignment_without_member(log: GroupLog) -> Records:
    return [*settled(log), log.current("m9", 2)]


def target_without_member(log: GroupLog) -> Records:
    return [*settled(log), log.target("m9", {})]


def tombstone_without_value(log: GroupLog) -> Records:
    return [*settled(log), log.tombstone(8, memberId="m9")]


def unknown_record_type(log: GroupLog) -> Records:
    return [*settled(log), log.record(99, {})]


def assignment_epoch_went_back(log: GroupLog) -> Records:
    first = settled(log)
    return [*first, *at_once([log.epoch(3), log.target_epoch(3)]), log.target_epoch(2)]


def member_epoch_went_back(log: GroupLog) -> Records:
    first = settled(log)
    bump = at_once([log.epoch(3), log.target_epoch(3), log.current("m1", 3, {"t": [0, 1]})])
    return [*first, *bump, log.current("m1", 2, {"t": [0, 1]}, previousMemberEpoch=3)]


def share_group(log: GroupLog) -> Records:
    return at_once(
        [
            log.share_member("m1"),
            log.record(RecordType.SHARE_GROUP_METADATA, {"epoch": 2, "metadataHash": 0}),
            log.record(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, {"topicPartitions": []}, memberId="m1"),
            log.record(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 2}),
            log.share_current("m1", 2, {}),
        ]
    )


def commit_in_share_group(log: GroupLog) -> Records:
    return [*share_group(log), log.commit("orders", 0, 5)]


def generation_changed_in_place(log: GroupLog) -> Records:
    return [log.classic(3, [classic_member("m1")]), log.classic(3, [classic_member("m1"), classic_member("m2")])]


def group_of_two_logs(log: GroupLog) -> Records:
    """The dumps of two clusters, one after the other, of which one has more partitions."""
    other = GroupLog()
    elsewhere = [record._replace(at=record.at._replace(partition=7)) for record in settled(other)]
    return [*settled(log), *elsewhere]


def member_epoch_not_the_targets(log: GroupLog) -> Records:
    """The group is at epoch 4, and so is its target: m1 goes to epoch 3."""
    records = [*settled(log), *at_once([log.epoch(3), log.target_epoch(3)])]
    records += at_once([log.epoch(4), log.target_epoch(4)])
    return [*records, log.current("m1", 3, {"t": [0, 1]})]


def dropped_without_revocation(log: GroupLog) -> Records:
    """m1 is to give up partition 1, and loses partition 0 with it, which it is to keep."""
    records = settled(log)
    retarget = at_once([log.epoch(3), log.target("m1", {"t": [0]}), log.target_epoch(3)])
    return [*records, *retarget, log.current("m1", 2, {}, {"t": [1]}, state=1)]


def target_incomplete(log: GroupLog) -> Records:
    """m2 joins, and the target that is installed then has no record of it."""
    records = settled(log)
    return [*records, *at_once([log.member("m2"), log.epoch(3), log.target_epoch(3), log.current("m2", 3)])]


def replacement_not_a_copy(log: GroupLog) -> Records:
    """m2 takes the place of m1, but not its whole target."""
    begin = [
        log.member("m1", instanceId="i"),
        log.epoch(2),
        log.target("m1", {"t": [0, 1]}),
        log.target_epoch(2),
        log.current("m1", 2, {"t": [0]}, state=2),
    ]
    replace = [
        *log.gone("m1"),
        log.member("m2", instanceId="i"),
        log.target("m2", {"t": [0]}),
        log.current("m2", 0, {"t": [0]}, state=2),
        log.member("m2", instanceId="i"),
        log.current("m2", 2, {"t": [0]}),
    ]
    return [*at_once(begin), *at_once(replace)]


def member_listed_twice(log: GroupLog) -> Records:
    return [log.classic(1, [classic_member("m1"), classic_member("m1")])]


def member_epoch_not_positive(log: GroupLog) -> Records:
    """A member that is not static is away for a while."""
    return [*settled(log), log.current("m1", -2, {"t": [0, 1]})]


def owned_not_assigned(log: GroupLog) -> Records:
    """A cooperative member says that it has a partition of generation 1 that it was not assigned then."""
    first, second = (consumer_member("m1", assigned=[0], owned=owned) for owned in ([], [0, 1]))
    return [
        log.classic(1, [first], protocol="cooperative-sticky"),
        log.classic(2, [second], protocol="cooperative-sticky"),
    ]


def share_state_lost(log: GroupLog) -> Records:
    records = share_group(log)
    return [*records, *(log.share_state({"t": ("orders", partitions)}) for partitions in ([0, 1], [0]))]


def count_implausible(log: GroupLog) -> Records:
    topic = {"topicId": "t", "topicName": "orders", "numPartitions": 2**31 - 1, "partitionMetadata": []}
    return [*settled(log), log.record(RecordType.CONSUMER_GROUP_PARTITION_METADATA, {"topics": [topic]})]


BY_HAND: tuple[Callable[[GroupLog], Records], ...] = (
    assignment_overdue,
    group_of_two_logs,
    assigned_before_revoked,
    task_twice_in_process,
    topology_epoch_wrong,
    group_removed_in_part,
    group_removed_with_members,
    member_removed_with_assignment,
    type_changed_without_tombstone,
    type_changed_in_part,
    conversion_epoch_wrong,
    assignment_without_member,
    target_without_member,
    tombstone_without_value,
    unknown_record_type,
    assignment_epoch_went_back,
    member_epoch_went_back,
    commit_in_share_group,
    generation_changed_in_place,
    member_epoch_not_the_targets,
    dropped_without_revocation,
    target_incomplete,
    replacement_not_a_copy,
    owned_not_assigned,
    member_listed_twice,
    member_epoch_not_positive,
    share_state_lost,
    count_implausible,
)


CONSEQUENCES = {
    "assignment_epoch_went_back": [Rule.ASSIGNMENT_EPOCH_NOT_THE_GROUPS],
    "group_of_two_logs": [Rule.EPOCH_REPEATED, Rule.PREVIOUS_EPOCH_WRONG],
    "replacement_not_a_copy": [Rule.ASSIGNED_NOT_THE_TARGET],
    "member_removed_with_assignment": [Rule.MEMBER_REMOVED_IN_PART],
    "target_without_member": [Rule.TARGET_WITHOUT_EPOCH],
    "tombstone_without_value": [Rule.MEMBER_REMOVED_IN_PART],
}


@pytest.mark.parametrize("make", BY_HAND, ids=lambda make: make.__name__)
def test_a_rule_broken_by_hand(make: Callable[[GroupLog], Records]) -> None:
    """The right rule fires, and only it and its consequences."""
    assert broken(make(GroupLog())) == {Rule(make.__name__), *CONSEQUENCES.get(make.__name__, ())}


@pytest.mark.parametrize("make", [settled, streams_group, share_group], ids=lambda make: make.__name__)
def test_what_the_hand_made_logs_begin_with_breaks_nothing(make: Callable[[GroupLog], Records]) -> None:
    assert broken(make(GroupLog())) == set()


def orders(**versions: int) -> TopicHistory:
    """The topic orders with so many partitions, at so many minutes (``m0=1``)."""
    topics = TopicHistory()
    for offset, (minute, count) in enumerate(versions.items()):
        topics.open_version(LogPosition(0, offset, 60_000 * int(minute[1:])))
        topics.put_topic(Topic("orders", "o".ljust(22, "A"), count))
    topics.last_seen_ms = 10**9
    return topics


@pytest.mark.parametrize(
    ("metadata_hash", "rules"),
    [
        (group_hash([("orders", topic_hash(Topic("orders", "o".ljust(22, "A"), 3)))]), set()),
        (group_hash([("orders", topic_hash(Topic("orders", "o".ljust(22, "A"), 2)))]), {Rule.METADATA_HASH_WRONG}),
        (group_hash([("orders", topic_hash(Topic("orders", "o".ljust(22, "A"), 4)))]), set()),
        (7, {Rule.METADATA_HASH_WRONG}),
    ],
)
def test_a_metadata_hash_is_that_of_the_topics_not_long_ago(metadata_hash: int, rules: set[Rule]) -> None:
    """The topic has three partitions since minute 3; the epoch opens in minute 5. The fourth shows a wrong clock."""
    log = GroupLog()
    log.offset = 300
    join = [log.member("m1"), log.epoch(2, metadata_hash), log.target("m1", {}), log.target_epoch(2)]
    records, whole = at_once([*join, log.current("m1", 2)]), orders(m0=2, m3=3, m6=4)
    assert broken(records, topics=whole) == rules
    whole.is_of_groups = False
    assert broken(records, topics=whole) == (set() if metadata_hash == 7 else rules), "of another cluster no hash fits"
    whole.gaps.append(HistoryGap(LogPosition(0, 1, 0), "a hole"))
    assert broken(records, topics=whole) == set(), "some other version may have it"


@pytest.mark.parametrize(("of_release", "is_wrong"), [({}, False), ({"validatedTopologyEpoch": 0}, True)])
def test_brokers_of_4_1_write_no_hash_when_a_member_of_a_streams_group_leaves(
    of_release: Fields, is_wrong: bool
) -> None:
    """A record of 4.1 has no validated topology. The topic is five minutes old."""
    log = GroupLog()
    log.offset = 300
    epoch = {"epoch": 2, "metadataHash": 0, **of_release}
    records = [
        log.streams_member("m1"),
        log.topology(),
        log.record(RecordType.STREAMS_GROUP_METADATA, epoch),
        log.streams_target("m1", {"0": [0, 1]}),
        log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 2}),
        log.streams_current("m1", 2, {"0": [0, 1]}),
    ]
    assert (Rule.METADATA_HASH_WRONG in broken(at_once(records), topics=orders(m0=2))) is is_wrong


def changelog_topics(**configs: str) -> TopicHistory:
    topics = orders(m0=1)
    topics.put_topic(Topic("app-changelog", "c".ljust(22, "A"), 1))
    for name, value in configs.items():
        topics.put_config(2, "app-changelog", name.replace("_", "."), value)
    return topics


@pytest.mark.parametrize(
    ("configs", "details"),
    [
        ({"cleanup_policy": "compact", "retention_ms": "9"}, []),
        ({"cleanup_policy": "compact,delete", "retention_ms": "9"}, ["cleanup.policy is compact,delete, the topology"]),
        ({"retention_ms": "9"}, ["cleanup.policy is delete by default, the topology gives compact"]),
        ({}, ["cleanup.policy is delete by default", "retention.ms is 604800000 by default, the topology gives 9"]),
    ],
)
def test_internal_topics_have_the_configurations_of_the_topology(configs: dict[str, str], details: list[str]) -> None:
    log, topics = GroupLog(), changelog_topics(**configs)
    wanted = {"cleanup.policy": "compact", "retention.ms": "9", "min.compaction.lag.ms": "5"}
    changelog = internal_topic("app-changelog") | {
        "topicConfigs": [{"key": name, "value": value} for name, value in wanted.items()]
    }
    topology = [subtopology("0", ["orders"], stateChangelogTopics=[changelog])]
    records = at_once([log.streams_member("m1", processId="p"), log.topology(topology), log.streams_epoch(2)])
    rule = Rule.INTERNAL_TOPIC_CONFIG_DIFFERS
    found = [each for each in judge(records, Group("g", from_start=True), WHOLE, topics=topics) if each.rule is rule]
    assert len(found) == len(details)
    assert all(detail in each.detail for detail, each in zip(details, found, strict=True))
    assert found == [] or {each.at for each in found} == {records[-1].at}
    topics.gaps.append(HistoryGap(LogPosition(0, 1, 0), "a hole"))
    assert not any(each.rule is rule for each in judge(records, Group("g", from_start=True), WHOLE, topics=topics))


# --- coverage and pieces ---------------------------------------------------------------------------------------------


def test_where_records_may_be_missing_nothing_is_claimed() -> None:
    log = GroupLog()
    records = [*settled(log), log.epoch(3), log.epoch(9)]
    gap = Coverage({0: [(0, 5), (7, 10)]})
    last = records[-1]._replace(at=records[-1].at._replace(offset=7))
    assert broken(records) == {Rule.EPOCH_SKIPPED}
    assert list(judge([*records[:-1], last], Group("g"), gap)) == []
    assert list(judge(records, Group("g"))) == []


def test_the_state_of_the_rules_goes_through_json() -> None:
    records = assigned_before_revoked(GroupLog())
    rules, found = RuleFold(Group("g", from_start=True), None, WHOLE), []
    for record in records:
        rules = next_rules(rules, WHOLE)
        found += rules.feed(record)
    assert found == list(judge(records, Group("g", from_start=True), WHOLE))


# --- the table -------------------------------------------------------------------------------------------------------


def test_every_rule_is_tested_and_documented() -> None:
    assert all(rule.value == rule.name.lower() for rule in Rule)
    tested = {rule for mutation in MUTATIONS for rule in mutation.rules} | {Rule(make.__name__) for make in BY_HAND}
    tested |= {rule for mutation in CONNECT_MUTATIONS for rule in mutation.rules}
    tested |= {Rule.INTERNAL_TOPIC_CONFIG_DIFFERS, *BATCH_RULES}  # need topics, batches
    assert tested | {*BROKEN_SHARE_STATE.values()} == set(Rule)
    assert document_rows()[0].keys() == {"Rule", "Groups", "Says", "Source", "Severity"}
