"""Which release's assignors a target is compared with, by what the log tells of the brokers."""

from typing import Any

import pytest

from coordinator_core.assignors.inputs import (
    GroupSpec,
    MemberSpec,
    StreamsGroupSpec,
    StreamsMemberSpec,
    SubtopologyTasks,
)
from coordinator_core.assignors.profiles import profile
from coordinator_core.assignors.registry import assign
from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.releases import Releases, may_be_newer, profile_names, releases
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.snapshot_settings import LevelRun, Levels, SnapshotSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.group import Group
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.subscribed_topics import SubscribedTopic
from coordinator_core.record_fields.streams_group import StreamsGroupMetadataValue
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType
from coordinator_core.wire.record_codec import decode_value, encode_value
from tests.core.audit.coordinated import EVERYTHING
from tests.core.audit.targets.verdicts import audit_group
from tests.core.builders import GroupLog, subtopology, topic_partitions

ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ORDERS = Topic("orders", ID, 4)
OLD = {"orders": SubscribedTopic(ID, 4, {})}


def history(*levels: int) -> TopicHistory:
    """A cluster whose brokers support these levels of metadata.version."""
    topics = TopicHistory()
    topics.open_version(LogPosition(0, 0, 0))
    for broker, level in enumerate(levels):
        topics.brokers.note_registration(broker, LogPosition(0, broker, 0), level)
    topics.put_topic(ORDERS)
    topics.last_seen_ms = 10**6
    return topics


@pytest.mark.parametrize(
    ("levels", "known"),
    [
        ((), None),
        ((21,), Releases((3, 9), (3, 9))),
        ((20, 25), Releases((3, 9), (4, 0))),
        ((27, 29), Releases((4, 1), (4, 2))),
        ((29,), Releases((4, 1), (4, 2))),  # 4.1 with unstable features supports what 4.2 supports
        ((30, 33), Releases((4, 2), (4, 4))),
        ((31,), Releases((4, 3), (4, 3))),
        ((99,), Releases((4, 4), (4, 4))),
    ],
)
def test_releases_by_the_metadata_versions_that_brokers_support(
    levels: tuple[int, ...], known: Releases | None
) -> None:
    assert releases(history(*levels), 10**6) == known


def test_a_level_above_that_of_the_newest_release_is_of_a_later_one() -> None:
    """4.4.0 supports 33 (4.4-IV2), and 34 with unstable features."""
    assert [may_be_newer(history(level), 10**6) for level in (32, 33, 34)] == [False, False, True]


@pytest.mark.parametrize(
    ("state", "known", "names"),
    [
        (ConsumerGroup(subscription_metadata=OLD), None, ["kafka-4.0.1", "kafka-4.0", "kafka-3.9"]),
        (ConsumerGroup(subscription_metadata=OLD), Releases((3, 9), (3, 9)), ["kafka-3.9", "kafka-4.0", "kafka-4.0.1"]),
        (ConsumerGroup(), None, ["kafka-4.3.1"]),
        (ConsumerGroup(), Releases((4, 1), (4, 1)), ["kafka-4.1"]),
        (ShareGroup(), Releases((4, 1), (4, 1)), ["kafka-4.1"]),
        (ShareGroup(), Releases((4, 2), (4, 2)), ["kafka-4.3.1"]),
        (StreamsGroup(), Releases((4, 1), (4, 3)), ["kafka-4.3.1", "kafka-4.1"]),
        (StreamsGroup(), Releases((4, 3), (4, 4)), ["kafka-4.4", "kafka-4.3.1"]),
    ],
)
def test_profiles_to_try(
    state: ConsumerGroup | ShareGroup | StreamsGroup, known: Releases | None, names: list[str]
) -> None:
    assert profile_names(state, known, AuditSettings()) == names
    assert profile_names(state, known, AuditSettings(profile="kafka-4.3.1", older="kafka-4.0")) in (
        ["kafka-4.3.1"],
        ["kafka-4.0"],
    )


def test_algorithms_before_4_2_are_not_reproduced() -> None:
    image = TopicImage.of([ORDERS])
    share = GroupSpec({"m1": MemberSpec([ID])}, type="share")  # type: ignore[arg-type]
    streams = StreamsGroupSpec({"m1": StreamsMemberSpec("p")}, (SubtopologyTasks("0", 1, False),))
    for name, spec in (("simple", share), ("sticky", streams)):
        for release in ("kafka-4.0.1", "kafka-4.1"):
            with pytest.raises(InputError, match="another algorithm"):
                assign(name, spec, image, profile(release))
        assert assign(name, spec, image, profile("kafka-4.4")).members


# --- streams groups --------------------------------------------------------------------------------------------------


def streams_group(*owners: str, release: tuple[int, int] = (4, 3)) -> list[CoordinatorRecord]:
    """Two members come at once; their targets have the tasks 0 to 3 with these owners.

    The records have the fields that a broker of the release writes.
    """
    log = GroupLog()
    metadata: dict[str, Any] = {"epoch": 1, "metadataHash": group_hash([("orders", topic_hash(ORDERS))])}
    if release >= (4, 2):
        metadata |= {"validatedTopologyEpoch": 0, "lastAssignmentConfigs": []}
    target_epoch = {"assignmentEpoch": 1} | ({"assignmentTimestamp": 1} if release >= (4, 3) else {})
    return [
        log.streams_member("m1"),
        log.streams_member("m2"),
        log.topology([subtopology("0", ["orders"])]),
        log.record(RecordType.STREAMS_GROUP_METADATA, metadata),
        *(
            log.streams_target(member, {"0": [number for number, owner in enumerate(owners) if owner == member]})
            for member in ("m1", "m2")
        ),
        log.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, target_epoch),
    ]


def verdict(
    topics: TopicHistory, *owners: str, settings: AuditSettings | None = None, release: tuple[int, int] = (4, 3)
) -> TargetAuditRow:
    group = Group("g", from_start=True)
    return next(iter(audit_group(streams_group(*owners, release=release), group, topics, settings, EVERYTHING)))


def share_verdict(topics: TopicHistory, *owners: str, release: tuple[int, int]) -> TargetAuditRow:
    """Two members of a share group, whose targets have the partitions 0 to 3 with these owners."""
    log = GroupLog()
    metadata = {"epoch": 1, "metadataHash": group_hash([("orders", topic_hash(ORDERS))])}
    target_epoch = {"assignmentEpoch": 1} | ({"assignmentTimestamp": 1} if release >= (4, 3) else {})
    records = [
        log.share_state({ID: ("orders", [0, 1, 2, 3])}),
        log.share_member("m1"),
        log.share_member("m2"),
        log.record(RecordType.SHARE_GROUP_METADATA, metadata),
        *(
            log.record(
                RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
                {"topicPartitions": topic_partitions({ID: [n for n, owner in enumerate(owners) if owner == member]})},
                memberId=member,
            )
            for member in ("m1", "m2")
        ),
        log.record(RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, target_epoch),
    ]
    return next(iter(audit_group(records, Group("g", from_start=True), topics, None, EVERYTHING)))


RIGHT = ("m1", "m2", "m1", "m2")
OTHER = ("m1", "m1", "m1", "m2")


def test_brokers_of_4_3() -> None:
    assert verdict(history(30), *RIGHT).verdict is Verdict.IDENTICAL
    assert verdict(history(30), *OTHER).verdict is Verdict.DIVERGENT


def test_brokers_of_4_1() -> None:
    row = verdict(history(27), *OTHER, release=(4, 1))
    assert row.verdict is Verdict.UNKNOWN
    assert "the assignor 'sticky' of kafka-4.1 is another algorithm" in (row.missing or "")
    setting = AuditSettings(profile="kafka-4.3.1")
    assert verdict(history(27), *OTHER, settings=setting, release=(4, 1)).verdict is Verdict.DIVERGENT


@pytest.mark.parametrize("level", [29, 30])
def test_records_of_4_1_whatever_the_brokers_support(level: int) -> None:
    """A broker of 4.1 with unstable features registers as one of 4.2, and the next one may have come since."""
    row = verdict(history(level), *RIGHT, release=(4, 1))
    assert row.verdict is Verdict.UNKNOWN
    assert "of kafka-4.1 is another algorithm" in (row.missing or "")


def test_records_without_known_brokers() -> None:
    topics = history()
    assert verdict(topics, *OTHER, release=(4, 3)).verdict is Verdict.DIVERGENT
    assert verdict(topics, *RIGHT, release=(4, 2)).verdict is Verdict.IDENTICAL
    assert verdict(topics, *OTHER, release=(4, 2)).verdict is Verdict.DIVERGENT
    assert verdict(topics, *OTHER, release=(4, 1)).verdict is Verdict.UNKNOWN


def test_all_profiles_are_named_where_brokers_of_several_releases_registered() -> None:
    assert "kafka" not in (verdict(history(30), *RIGHT).fitted or "")
    assert "kafka-4.3.1" in (verdict(history(29, 30), *RIGHT, release=(4, 2)).fitted or "")


def test_brokers_of_4_1_and_4_3() -> None:
    assert verdict(history(27, 30), *RIGHT).verdict is Verdict.IDENTICAL
    assert verdict(history(27, 30), *OTHER).verdict is Verdict.DIVERGENT
    assert share_verdict(history(27, 30), *OTHER, release=(4, 3)).verdict is Verdict.DIVERGENT
    row = share_verdict(history(27, 30), *OTHER, release=(4, 2))
    assert (row.verdict, row.missing) == (
        Verdict.UNKNOWN,
        "what the assignor of kafka-4.1 does: a broker may have been of that release",
    )


def test_brokers_of_4_4() -> None:
    row = verdict(history(33), *RIGHT)
    assert row.verdict is Verdict.IDENTICAL
    assert "kafka-4.4" in (row.fitted or "")
    row = verdict(history(33), *OTHER)
    assert row.verdict is Verdict.UNKNOWN
    assert "heartbeats" in (row.missing or "")


def shown(*levels: int, after_ms: int = 10**6) -> TopicHistory:
    """A cluster without registrations; snapshots of 0 ms and of ``after_ms`` show brokers of these levels."""
    topics = history()
    run = LevelRun(Levels(min(levels), max(levels)), 0, after_ms)
    topics.snapshots = SnapshotSettings.of([run], [])
    return topics


def test_snapshots_show_the_release_where_the_metadata_log_is_missing() -> None:
    assert verdict(shown(30), *RIGHT).verdict is Verdict.IDENTICAL
    assert verdict(shown(30), *OTHER).verdict is Verdict.DIVERGENT
    assert "kafka-4.4" in (verdict(shown(33), *RIGHT).fitted or "")
    assert share_verdict(shown(30), *OTHER, release=(4, 2)).verdict is Verdict.DIVERGENT
    assert share_verdict(shown(27, 30), *OTHER, release=(4, 2)).verdict is Verdict.UNKNOWN
    assert verdict(shown(27), *OTHER, settings=AuditSettings(profile="kafka-4.3.1")).verdict is Verdict.DIVERGENT


def test_after_the_last_snapshot_a_later_release_is_possible() -> None:
    """All targets of the test are later than 0 ms."""
    known = verdict(shown(31, after_ms=0), *RIGHT)
    assert (known.verdict, "kafka-4." in (known.fitted or "")) == (Verdict.IDENTICAL, True)
    assert verdict(shown(31, after_ms=0), *OTHER).verdict is Verdict.UNKNOWN


def test_an_emptied_group_of_4_4_has_a_target_without_members() -> None:
    """Its broker records the target with the epoch that the last member leaves behind."""
    before = streams_group(*RIGHT)
    log = GroupLog()
    log.offset = len(before)
    metadata: Any = before[3].value
    left = [
        *(log.tombstone(kind, memberId=member) for member in ("m1", "m2") for kind in (22, 21, 19)),
        log.record(RecordType.STREAMS_GROUP_METADATA, {**metadata, "epoch": 2}),
        log.record(
            RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, {"assignmentEpoch": 2, "assignmentTimestamp": 1}
        ),
    ]
    rows = list(audit_group([*before, *left], Group("g", from_start=True), history(33), None, EVERYTHING))
    assert [row.verdict for row in rows] == [Verdict.IDENTICAL, Verdict.IDENTICAL]


def test_brokers_of_4_4_keep_the_invariants() -> None:
    records = streams_group(*RIGHT)
    twice = records[5]._replace(value=records[4].value)
    rows = list(
        audit_group([*records[:5], twice, *records[6:]], Group("g", from_start=True), history(33), None, EVERYTHING)
    )
    assert rows[0].verdict is Verdict.INVALID


def test_fields_that_4_4_added() -> None:
    """A newer release's fields without a name are kept under their tags."""
    value: StreamsGroupMetadataValue = {
        "epoch": 1,
        "metadataHash": 2,
        "validatedTopologyEpoch": 3,
        "lastAssignmentConfigs": None,
        "storedDescriptionTopologyEpoch": 4,
        "failedDescriptionTopologyEpoch": 5,
    }
    data = encode_value(RecordType.STREAMS_GROUP_METADATA, 0, value)
    assert decode_value(data, RecordType.STREAMS_GROUP_METADATA) == (0, value)
