"""Work that nobody does, from hand-made logs: streams groups that are not ready, tasks and share partitions."""

import pytest

from coordinator_core.audit.explain import explain
from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.folds.topics_at_end import NO_TOPICS, CountedLife, TopicsAtEnd
from coordinator_core.cluster.client_view import METADATA_AGE_MS
from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.describe import Surroundings, describe
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.history.causes import CauseKind, cause
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import Fields, LogPosition, RecordType
from jobs.settings import load
from tests.core.history import logs
from tests.core.history.logs import A, GroupLog, classic, generation
from tests.core.history.test_other_types import (
    CLIENT,
    TOPOLOGY,
    share,
    share_current,
    streams,
    streams_current,
    streams_member,
)
from tests.core.known_topics import at_end

LIMITS = load(environment={}).findings
HOUR = 3_600_000
IN = Topic("in", A, 3)
PROBLEMS = ("not_ready", "unassigned_partitions")


def topics(*versions: tuple[int, Topic | None], complete: bool = True) -> TopicHistory:
    """A metadata log in which the topic ``in`` is as given from these times on; None: it does not exist."""
    history = TopicHistory(complete=complete)
    for offset, (since_ms, topic) in enumerate(versions):
        history.open_version(LogPosition(0, offset, since_ms))
        if topic is None:
            history.remove_topic("in")
        else:
            history.put_topic(topic)
    history.last_seen_ms = HOUR
    return history


def epoch(number: int, *existing: Topic, validated: int = 0) -> tuple[RecordType, Fields, Fields | None]:
    seen = group_hash([(topic.name, topic_hash(topic)) for topic in existing])
    value = {"epoch": number, "metadataHash": seen, "validatedTopologyEpoch": validated, "lastAssignmentConfigs": []}
    return streams("METADATA", value)


def target(number: int) -> tuple[RecordType, Fields, Fields | None]:
    return streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": number})


def running(log: GroupLog) -> GroupLog:
    """A group with one member that has all three tasks."""
    return log.write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        epoch(2, IN),
        target(2),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, active=[0, 1, 2]), "m"),
    )


def stopped() -> GroupLog:
    """The group's source topic is deleted, and the coordinator notices it after 1000 s."""
    return running(GroupLog()).write(
        epoch(3, validated=-1),
        target(3),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(3), "m"),
        after_ms=1_000_000,
    )


DELETED = topics((0, IN), (900_000, None))


def gathered(log: GroupLog, known: TopicHistory | None, now_ms: int, partitions: dict[str, int]) -> GroupHistory:
    return GroupHistory.gather("g", now_ms, log.rows(known), at_end(partitions), NO_SHARE_LOGS)


def found(
    log: GroupLog, known: TopicHistory | None, now_ms: int = HOUR, partitions: dict[str, int] | None = None
) -> list[FindingRow]:
    history = gathered(log, known, now_ms, partitions or {})
    return [row for row in findings(history, LIMITS) if row.kind in PROBLEMS]


def test_a_deleted_source_topic_is_named_with_how_long_the_group_does_not_run() -> None:
    (row,) = found(stopped(), DELETED)
    assert (row.kind, row.value, row.since_ms, row.until_ms) == ("not_ready", HOUR - 1_002_000, 1_002_000, HOUR)
    assert row.detail == (
        "the group has not been ready for at least 43 min 18 s: 1 member without tasks; "
        "from epoch 3: MISSING_SOURCE_TOPICS: Source topics in are missing."
    )
    assert [at.offset for at in row.evidence] == [5]


def test_a_short_time_is_no_finding_once_it_is_over() -> None:
    log = stopped().write(
        epoch(4, IN),
        target(4),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(4, active=[0, 1, 2]), "m"),
        after_ms=LIMITS.not_ready_ms - 1,
    )
    assert found(log, topics((0, IN), (900_000, None), (1_010_000, IN))) == []


def test_a_log_that_ends_with_a_group_that_is_not_ready_says_so_at_once() -> None:
    (row,) = found(stopped(), DELETED, now_ms=1_002_000)
    assert (row.kind, row.value, row.score) == ("not_ready", 0, 0.0)


def test_internal_topics_that_the_broker_creates_have_time() -> None:
    changelog = {"name": "store", "partitions": 0, "replicationFactor": 0, "topicConfigs": []}
    (subtopology,) = TOPOLOGY["subtopologies"]
    stateful = {"epoch": 0, "subtopologies": [{**subtopology, "stateChangelogTopics": [changelog]}]}
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"), streams("TOPOLOGY", stateful), epoch(2, IN, validated=-1)
    )
    known, end = topics((0, IN)), log.time_ms + LIMITS.not_ready_ms
    assert found(log, known, now_ms=end - 1) == []
    row = next(each for each in found(log, known, now_ms=end) if each.kind == "not_ready")
    assert row.detail.endswith("MISSING_INTERNAL_TOPICS: Internal topics are missing: store")


def test_a_time_that_is_over_stays_a_finding() -> None:
    log = stopped().write(
        epoch(4, IN),
        target(4),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(4, active=[0, 1, 2]), "m"),
        after_ms=100_000,
    )
    (row,) = found(log, topics((0, IN), (900_000, None), (1_100_000, IN)))
    assert (row.value, row.until_ms, [at.offset for at in row.evidence]) == (100_000, 1_102_000, [5, 8])
    assert row.detail.startswith("the group was not ready for 1 min 40 s")


@pytest.mark.parametrize(
    ("known", "decides"),
    [
        (None, "the cluster metadata log (__cluster_metadata) decides it"),
        (topics((0, None), complete=False), "the coordinator may have seen other topics"),
    ],
)
def test_what_is_not_known_of_the_topics_is_said(known: TopicHistory | None, decides: str) -> None:
    if known is not None:
        known.open_version(LogPosition(0, 9, 950_000))
        known.put_topic(Topic("in", A, 4))
    log = running(GroupLog()).write(epoch(3, Topic("in", A, 5), validated=-1), target(3), after_ms=1_000_000)
    (row,) = [each for each in found(log, known) if each.kind == "not_ready"]
    assert "its status is not known" in row.detail
    assert decides in row.detail


def test_a_topic_that_part_of_a_metadata_log_does_not_show_may_exist() -> None:
    log = running(GroupLog()).write(epoch(3, IN, validated=-1), target(3), after_ms=1_000_000)
    (row,) = found(log, topics((0, None), complete=False))
    assert "its status is not known: the metadata log is not whole" in row.detail


def test_describe_and_explain_say_it() -> None:
    log = stopped()
    group = Group("g", from_start=True)
    for record in log.records:
        group.apply(record)
    image = DELETED.image_at(None)
    told = describe(group, GroupOffsets(), Surroundings(image))
    assert told["listing"]["groupState"] == "NOT_READY"
    assert told["topology_check"] == {"detail": "Source topics in are missing.", "status": "MISSING_SOURCE_TOPICS"}
    assert describe(group, GroupOffsets(), Surroundings())["topology_check"]["status"] is None
    history = gathered(log, DELETED, HOUR, {})
    first, last = (explain(history, row) for row in history.rebalances)
    assert not [each for each in first if "not ready" in each.text]
    texts = {each.text: each for each in last}
    why = texts["Why the group is not ready: MISSING_SOURCE_TOPICS: Source topics in are missing."]
    assert (why.source, why.evidence[0].offset) == ("cluster metadata", 1)


def test_describe_says_that_a_topic_is_gone_which_the_coordinator_has_not_noticed() -> None:
    group = Group("g", from_start=True)
    for record in running(GroupLog()).records:
        group.apply(record)
    assert "topology_check" not in describe(group, GroupOffsets(), Surroundings(topics((0, IN)).image_at(None)))
    told = describe(group, GroupOffsets(), Surroundings(DELETED.image_at(None)))
    assert (told["listing"]["groupState"], told["topology_check"]["status"]) == ("STABLE", "MISSING_SOURCE_TOPICS")


def test_the_number_of_tasks_is_that_of_the_topics() -> None:
    row = next(row for row in running(GroupLog()).rows(DELETED) if isinstance(row, GroupEpochRow))
    assert row.topology is not None
    assert (row.topology.status, row.topology.tasks) == ("READY", (("0", 3),))


def test_tasks_without_an_active_owner() -> None:
    log = running(GroupLog()).write(
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, active=[1], standby=[0]), "m")
    )
    (row,) = found(log, topics((0, IN)))
    assert (row.kind, row.value, row.subject) == ("unassigned_partitions", 2, "subtopology 0")
    assert row.detail == "2 of 3 tasks of subtopology 0 have no owner: 0_0, 0_2"
    assert found(running(GroupLog()), topics((0, IN))) == []


def test_a_group_that_rebalances_has_time_to_assign() -> None:
    log = running(GroupLog()).write(
        epoch(3, IN), target(3), streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(3, 2, active=[1]), "m")
    )
    began = log.time_ms
    assert found(log, topics((0, IN)), now_ms=began + LIMITS.slow_rebalance_ms - 1) == []
    (row,) = found(log, topics((0, IN)), now_ms=began + LIMITS.slow_rebalance_ms)
    assert (row.kind, row.value) == ("unassigned_partitions", 2)


def test_a_group_that_its_last_member_left_needs_no_owners() -> None:
    gone = [
        streams(kind, None, "m")
        for kind in ("CURRENT_MEMBER_ASSIGNMENT", "TARGET_ASSIGNMENT_MEMBER", "MEMBER_METADATA")
    ]
    assert found(running(GroupLog()).write(*gone, epoch(3, IN), target(3)), topics((0, IN))) == []


def test_share_partitions_that_no_member_has() -> None:
    held = [{"topicId": A, "partitions": [0, 2]}]
    log = GroupLog().write(
        share("MEMBER_METADATA", {**CLIENT, "subscribedTopicNames": ["in"]}, "m"),
        share("METADATA", {"epoch": 2, "metadataHash": 0}),
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        share("CURRENT_MEMBER_ASSIGNMENT", share_current(2, held), "m"),
    )
    known = topics((0, IN))
    (row,) = found(log, known, partitions={"in": 3})
    assert (row.subject, row.detail) == ("in", "1 of 3 partitions of in have no owner: 1")
    assert found(log, known, now_ms=log.time_ms + LIMITS.slow_rebalance_ms - 1, partitions={"in": 3}) == []


def test_what_members_gave_up_waits_for_the_second_half_of_a_cooperative_rebalance() -> None:
    """KIP-429: the member that gives a partition up joins again, and the next generation assigns it."""
    log = GroupLog().write(generation(1, {"a": classic({"in": [0, 1, 2]})}))
    log.write(generation(2, {"a": classic({"in": [0, 1]}), "b": classic({}, "in")}))
    known, counts = topics((0, IN)), {"in": 3}
    assert found(log, known, now_ms=log.time_ms + LIMITS.slow_rebalance_ms - 1, partitions=counts) == []
    (row,) = found(log, known, now_ms=log.time_ms + LIMITS.slow_rebalance_ms, partitions=counts)
    assert (row.kind, row.value, row.detail) == ("unassigned_partitions", 1, "1 of 3 partitions of in have no owner: 2")
    log.write(generation(3, {"a": classic({"in": [0]}), "b": classic({}, "in")}), after_ms=1)
    assert [row.value for row in found(log, known, now_ms=log.time_ms, partitions=counts)] == [1], "2 is not new there"
    log.write(generation(4, {"b": classic({"in": [1]})}), after_ms=1)
    assert [row.value for row in found(log, known, now_ms=log.time_ms, partitions=counts)] == [2], "a is not there"


def test_a_group_that_was_stable_until_its_static_members_went_has_time_to_assign_what_one_leaves() -> None:
    """All clients are stopped, and their sessions end one after the other: the epoch before is an hour old."""
    log = GroupLog().write(logs.member("a", "in", instance="i"), logs.member("b", "in", instance="j"), logs.epoch(2))
    log.write(logs.target("a", 0, 1), logs.target("b", 2), logs.target_epoch(2))
    log.write(logs.current("a", 2, 0, 1), logs.current("b", 2, 2))
    log.write(logs.current("a", -2, 0, 1), after_ms=HOUR).write(logs.current("b", -2, 2))
    log.write(*logs.gone("a"), logs.epoch(3))
    known, counts = topics((0, IN)), {"in": 3}
    assert found(log, known, now_ms=log.time_ms + LIMITS.slow_rebalance_ms - 1, partitions=counts) == []
    (row,) = found(log, known, now_ms=log.time_ms + LIMITS.slow_rebalance_ms, partitions=counts)
    assert row.detail == "2 of 3 partitions of in have no owner: 0, 1"


def test_what_a_downgrade_writes_is_no_assignment_that_lasts() -> None:
    """The member whose leave converts the group had partitions; those that stay join again, and all are assigned."""
    log = GroupLog().write(generation(11, {"a": classic({"in": [0, 1]})}))
    known = topics((0, IN))
    history = GroupHistory.gather("g", HOUR, log.rows(known), TopicsAtEnd.of(known), NO_SHARE_LOGS)
    (written,) = history.epochs
    for kind, count in ((CauseKind.GROUP_DOWNGRADED, 0), (CauseKind.MEMBER_LEFT_OR_EXPIRED, 1)):
        there = history.replaced(epochs=[written._replace(causes=(cause(kind, written.opened),))])
        assert len([row for row in findings(there, LIMITS) if row.kind in PROBLEMS]) == count


def test_a_classic_group_has_the_age_of_metadata_to_notice_new_partitions() -> None:
    """metadata.max.age.ms: the leader asks for the topics again so late; its group then has time to rebalance."""
    log = GroupLog().write(generation(1, {"a": classic({"in": [0, 1, 2]})}))
    known = topics((0, IN), (log.time_ms + 1, Topic("in", A, 5)))
    due_ms = log.time_ms + 1 + METADATA_AGE_MS + LIMITS.slow_rebalance_ms

    def of(now_ms: int, limits: Thresholds = LIMITS) -> list[tuple[str, int]]:
        history = GroupHistory.gather("g", now_ms, log.rows(known), TopicsAtEnd.of(known), NO_SHARE_LOGS)
        return [(row.detail, row.since_ms) for row in findings(history, limits) if row.kind in PROBLEMS]

    assert of(log.time_ms) == of(due_ms - 1) == []
    grown_ms = log.time_ms + 1
    assert of(due_ms) == [("2 of 5 partitions of in have no owner: 3, 4", grown_ms)], "nobody has them since then"
    older = load(environment={}, flags={"audit.metadata_age_ms": METADATA_AGE_MS + 9}).findings
    assert of(due_ms + 8, older) == []
    assert of(due_ms + 9, older) == of(due_ms)


@pytest.mark.parametrize(
    ("client", "minutes"), [("sarama", 10), ("java or sarama", 10), ("unknown", 10), ("kafkajs", 5)]
)
def test_a_leader_may_be_of_a_client_that_asks_for_its_topics_less_often(client: str, minutes: int) -> None:
    log = GroupLog().write(generation(1, {"a": classic({"in": [0, 1, 2]})}))
    known = topics((0, IN), (log.time_ms + 1, Topic("in", A, 5)))
    due_ms = log.time_ms + 1 + minutes * 60_000 + LIMITS.slow_rebalance_ms
    for now_ms, count in ((due_ms - 1, 0), (due_ms, 1)):
        history = GroupHistory.gather("g", now_ms, log.rows(known), TopicsAtEnd.of(known), NO_SHARE_LOGS)
        history = history.replaced(memberships=[row._replace(client=client) for row in history.memberships])
        assert len([row for row in findings(history, LIMITS) if row.kind in PROBLEMS]) == count


def test_partitions_that_were_there_before_the_topic_grew_have_had_no_owner_since_the_generation() -> None:
    log = GroupLog().write(generation(1, {"a": classic({"in": [0, 1]})}))
    known = topics((0, IN), (log.time_ms + 1, Topic("in", A, 5)))
    history = GroupHistory.gather("g", HOUR, log.rows(known), TopicsAtEnd.of(known), NO_SHARE_LOGS)
    (row,) = (row for row in findings(history, LIMITS) if row.kind in PROBLEMS)
    assert (row.detail, row.since_ms) == ("3 of 5 partitions of in have no owner: 2, 3, 4", log.time_ms)


def test_the_fewest_partitions_of_a_time() -> None:
    """What is there at the first time that is shown counts as older; who comes later was not there before."""
    new = CountedLife("new", 100, 200, 3), CountedLife("new", 200, 250, 5), CountedLife("new", 300, 400, 5)
    known = NO_TOPICS.counted([CountedLife("old", 0, 50, 3), CountedLife("old", 50, None, 3), *new])
    assert (known.partitions, known.earlier) == (
        {"old": 3},
        {"new": ((100, 0), (200, 3), (250, 5), (300, 0), (400, 5))},
    )

    def fewest(topic: str, first_ms: int, last_ms: int) -> int:
        """That of a log that ends at the last time."""
        history = GroupHistory("g", last_ms)
        return known.fewest_partitions(topic, history.has_lasted, last_ms - first_ms)

    asked = {(-1, 500): 0, (100, 199): 3, (199, 200): 3, (200, 249): 5, (200, 250): 0, (300, 399): 5, (99, 100): 0}
    assert {times: fewest("new", *times) for times in asked} == asked
    assert fewest("old", -1, 500) == 3
    assert fewest("another", -1, 500) == 0
