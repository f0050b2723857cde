"""Numbers that a log claims and that cannot be meant: a violation, a verdict that says so, and no loop over them."""

import tracemalloc
from typing import Any

import pytest

from coordinator_core.assignors.inputs import GroupSpec, MemberSpec
from coordinator_core.assignors.plausible_counts import PlausibleCounts
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.rounds import rounds
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.records import CoordinatorRecord, Family, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob
from jobs.settings import load
from tests.core.audit.coordinated import EVERYTHING
from tests.core.builders import GroupLog, classic_member, internal_topic, subtopology
from tests.core.known_topics import at_end

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
HUGE = 2**31 - 1
A_FEW_MEGABYTES = 16 << 20


def audited(records: list[CoordinatorRecord], topics: TopicHistory | None = None) -> GroupHistory:
    """The whole story of the group, with little memory."""
    tracemalloc.start()
    audit = GroupAudit.begin("g", Family.GROUP, topics, EVERYTHING, AuditSettings(), from_start=True)
    rows = [row for record in records for row in audit.feed(record)] + audit.open_rows()
    history = GroupHistory.gather("g", 10**6, rows, at_end({"orders": HUGE}), NO_SHARE_LOGS)
    assert list(findings(history, load(None, flags={}).findings)) is not None
    list(rounds(records, Group("g", from_start=True), topics, AuditSettings()))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < A_FEW_MEGABYTES
    return history


def verdict(history: GroupHistory) -> TargetAuditRow:
    return history.targets[-1]


def implausible(history: GroupHistory) -> list[Violation]:
    return [each for each in history.violations if each.rule is Rule.COUNT_IMPLAUSIBLE]


def recorded_topics(log: GroupLog, partitions: int) -> CoordinatorRecord:
    """The topics of a group as brokers before 4.1 recorded them."""
    topics = [{"topicId": ID, "topicName": "orders", "numPartitions": partitions, "partitionMetadata": []}]
    return log.record(RecordType.CONSUMER_GROUP_PARTITION_METADATA, {"topics": topics})


def consumer_group(partitions: int) -> list[CoordinatorRecord]:
    log = GroupLog()
    joined = [log.member("m1"), recorded_topics(log, partitions), log.epoch(1)]
    return [*joined, log.target("m1", {ID: [0, 1]}), log.target_epoch(1), log.current("m1", 1, {ID: [0, 1]})]


def test_partitions_of_a_recorded_topic() -> None:
    history = audited(consumer_group(HUGE))
    assert verdict(history).verdict is Verdict.UNKNOWN
    problem = f"topic orders has {HUGE} partitions, plausible are 0 to 200000"
    assert verdict(history).missing == f"a plausible number of partitions: {problem}"
    assert [each.detail for each in implausible(history)] == [problem]


def test_a_count_that_may_be_but_of_which_the_target_has_nothing() -> None:
    history = audited(consumer_group(150_000))
    assert verdict(history).verdict is Verdict.UNKNOWN
    assert "150000 partitions or tasks, and its assignment lists 2" in (verdict(history).missing or "")
    assert not implausible(history)


def test_as_many_partitions_as_the_target_has() -> None:
    history = audited(consumer_group(2))
    assert verdict(history).verdict is Verdict.IDENTICAL
    assert not implausible(history)


def test_a_partition_that_a_member_cannot_have_had() -> None:
    image = TopicImage.of([Topic("orders", ID, 2)])
    group = GroupSpec({"m1": MemberSpec([ID], {ID: [0, HUGE]})})
    assert PlausibleCounts().problem(group, image) == f"member m1 had partition {HUGE}, plausible are 0 to 199999"
    assert PlausibleCounts().problem(GroupSpec({"m1": MemberSpec([ID], {ID: [0, 1]})}), image) is None


def test_unassigned_partitions_are_counted_and_not_walked() -> None:
    history = audited(consumer_group(2))
    found = [each for each in findings(history, load(None, flags={}).findings) if each.kind == "unassigned_partitions"]
    assert [each.value for each in found] == [HUGE - 2]
    assert found[0].detail.endswith(f"{HUGE - 2} of {HUGE} partitions of orders have no owner: 2, 3, 4, 5, 6, ...")


# --- streams ---------------------------------------------------------------------------------------------------------


def streams_topics() -> TopicHistory:
    history = TopicHistory()
    history.open_version(LogPosition(0, 0, 0))
    history.put_topic(Topic("orders", ID, 2))
    history.put_topic(Topic("repartition", "AAAAAAAAAAAAAAAAAAAAAg", 2))
    history.last_seen_ms = 10**6
    return history


def streams_group(standbys: str, repartition: int = 0) -> list[CoordinatorRecord]:
    log, topics = GroupLog(), streams_topics()
    version = topics.at(10**6)
    assert version is not None
    hashed = group_hash([("orders", topic_hash(version.image.by_name["orders"]))])
    metadata: Any = {
        "epoch": 1,
        "metadataHash": 0 if repartition else hashed,
        "validatedTopologyEpoch": 0,
        "lastAssignmentConfigs": [{"key": "num.standby.replicas", "value": standbys}],
    }
    more: Fields = {}
    if repartition:
        more["repartitionSourceTopics"] = [internal_topic("repartition", repartition)]
        more["repartitionSinkTopics"] = ["repartition"]
    return [
        log.streams_member("m1"),
        log.topology([subtopology("0", ["orders"], **more)]),
        log.record(RecordType.STREAMS_GROUP_METADATA, metadata),
        log.streams_target("m1", {"0": [0, 1]}),
        log.record(
            RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 1, "assignmentTimestamp": 1}
        ),
        log.streams_current("m1", 1, {"0": [0, 1]}),
    ]


def test_a_setting_of_standby_tasks_that_kafka_accepts() -> None:
    assert verdict(audited(streams_group("0"), streams_topics())).verdict is Verdict.IDENTICAL


@pytest.mark.parametrize("standbys", ["many", "", "-1", "1.5", "\u0661", "2147483648", "9" * 5000])
def test_a_setting_that_kafka_does_not_accept(standbys: str) -> None:
    row = verdict(audited(streams_group(standbys), streams_topics()))
    assert row.verdict is Verdict.UNKNOWN
    assert "num.standby.replicas" in (row.missing or "")
    assert "Kafka accepts a number from 0 on" in (row.missing or "")


def test_partitions_of_a_repartition_topic() -> None:
    history = audited(streams_group("0", HUGE), streams_topics())
    assert [each.detail for each in implausible(history)] == [
        f"topic repartition has {HUGE} partitions, plausible are 0 to 200000"
    ]


# --- classic Connect groups ------------------------------------------------------------------------------------------


def worker(task: int) -> Fields:
    work = [{"connector": "jdbc", "tasks": [-1, 0, task]}]
    assignment = {"error": 0, "leader": "w1", "leaderUrl": "u", "configOffset": 1, "assignment": work}
    metadata = {"url": "u", "configOffset": 1}
    return classic_member(
        "w1",
        encode_blob("ConnectProtocolMetadata", 0, metadata),
        encode_blob("ConnectProtocolAssignment", 0, assignment),
    )


def connect_group(task: int) -> list[CoordinatorRecord]:
    return [GroupLog().classic(1, [worker(task)], "default", protocolType="connect")]


def test_a_task_number_near_the_end_of_its_type() -> None:
    history = audited(connect_group(HUGE - 1))
    problem = f"connector jdbc has {HUGE} tasks, plausible are 0 to 10000"
    assert verdict(history).verdict is Verdict.UNKNOWN
    assert verdict(history).missing == f"plausible numbers of tasks: {problem}"
    assert [each.detail for each in implausible(history)] == [problem]


def test_ordinary_tasks() -> None:
    history = audited(connect_group(1))
    assert verdict(history).verdict is Verdict.IDENTICAL
    assert not implausible(history)
