"""Loads that failed: which known fault of Kafka one shows, by the words of the broker, and which is none."""

import pytest

from coordinator_core.broker_log.all_files import failed_loads, known_faults
from coordinator_core.broker_log.events import EventKind
from tests.core.audit.folds.test_witness import UNLOADED, said

FAILED = (
    "Failed to load metadata from __consumer_offsets-0 with epoch 9 due to java.lang.RuntimeException: Replaying "
    "record CoordinatorRecord(key={}) from __consumer_offsets-0 at offset 7 failed due to: {}"
)


UNNAMED = "a fault without an issue"
BOTH = ["KAFKA-20254", UNNAMED]


@pytest.mark.parametrize(
    ("key", "why", "release", "issues"),
    [
        ("StreamsGroupMetadataKey(groupId='g')", "Group g is not a streams group.", None, BOTH),
        ("StreamsGroupMetadataKey(groupId='g')", "", (4, 1, 2), BOTH),
        # As brokers of 4.4.0 said of groups behind consumer groups: the line ends before the cause.
        ("StreamsGroupMemberMetadataKey(groupId='g')", "", (4, 4, 0), [UNNAMED]),
        ("ShareGroupMemberMetadataKey(groupId='g')", "", (4, 4, 0), [UNNAMED]),
        ("ShareGroupCurrentMemberAssignmentKey(groupId='g'), value=null", "", (4, 4, 0), [UNNAMED]),
        ("ShareGroupMemberMetadataKey(groupId='g')", "", (4, 4, 1), []),
        (
            "ConsumerGroupCurrentMemberAssignmentKey(groupId='g')",
            "still owned at a different epoch",
            None,
            ["KAFKA-19862"],
        ),
        ("ConsumerGroupCurrentMemberAssignmentKey(groupId='g')", "", (4, 2, 0), []),
        ("ApiMessageAndVersion(x)", "Consumer group g not found.", (3, 9, 1), ["KAFKA-17306"]),
        ("ConsumerGroupMetadataKey(groupId='g')", "Group g is not a consumer group", (4, 4, 0), ["KAFKA-21117"]),
        ("OffsetCommitKey(group='g')", "java.lang.OutOfMemoryError: Java heap space", None, ["KAFKA-19716"]),
        ("OffsetCommitKey(group='g')", "the disk is full", None, []),
    ],
)
def test_the_words_of_the_broker_and_its_release_show_the_fault(
    key: str, why: str, release: tuple[int, ...] | None, issues: list[str]
) -> None:
    assert [each.issue for each in known_faults(said(FAILED.format(key, why), 1), release)] == issues


def test_what_a_broker_that_stops_does_not_load_is_no_fault() -> None:
    text = "Failed to load metadata from __consumer_offsets-0 with epoch 9 due to {}.."
    kind = {"kind": EventKind.COORDINATOR_FAILED, "log_partition": 0}
    failed, stops = (
        said(text.format(why), 1)._replace(**kind) for why in ("the disk is full", "Coordinator loader is closed")
    )
    assert failed_loads([failed, stops], {})[0].times == 1
    assert failed_loads([stops], {}) == {}


def test_a_log_partition_that_another_broker_may_have_loaded_has_a_coordinator() -> None:
    """Its file need not be given: the broker that failed has given the partition up, or records were written since."""
    text = "Failed to load metadata from __consumer_offsets-0 with epoch 9 due to the disk is full.."
    failed = said(text, 10)._replace(kind=EventKind.COORDINATOR_FAILED, log_partition=0)
    assert failed_loads([failed], {})[0].times == 1
    assert failed_loads([failed, said(UNLOADED, 20)], {}) == {}
    assert failed_loads([failed, said(UNLOADED, 20, broker=2)], {})[0].last is failed
    assert failed_loads([said(UNLOADED, 5), failed], {0: 15_000, 1: 99_000})[0].last is failed
    assert failed_loads([failed], {0: 15_001}) == {}
