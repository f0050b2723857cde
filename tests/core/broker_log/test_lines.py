"""Lines of brokers' application logs, in every layout that is usual, as events."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.lines import MOST_TEXT, MOST_VALUE, events, time_of_line
from coordinator_core.broker_log.messages import messages
from coordinator_core.broker_log.times import time_before
from coordinator_core.wire.schema import broker_messages

AT = 1_795_443_907_123
LOGGER = "org.apache.kafka.coordinator.group.GroupMetadataManager"
CONTEXT = "[GroupCoordinator id=1 topic=__consumer_offsets partition=3] "
LEFT = f"{CONTEXT}[GroupId shop] Member c-1 left the consumer group."
DEFAULT = f"[2026-11-23 14:25:07,123] INFO {LEFT} ({LOGGER})"
LAYOUTS = {
    "default": (DEFAULT, None),
    "iso": (f"2026-11-23T14:25:07.123+01:00 [data-plane-1] INFO  {LOGGER} - {LEFT}", AT - 3_600_000),
    "utc": (f"2026-11-23T14:25:07.123456Z INFO {LEFT}", AT),
    "container": (f"2026-11-23T13:25:07.200000000Z stdout F {DEFAULT}", AT - 3_600_000),
    "collector": (f"kafka-0 kafka {DEFAULT}\r", None),
    "template": (
        json.dumps({"@timestamp": "2026-11-23T14:25:07.123Z", "log.level": "INFO", "message": LEFT, "logger": LOGGER}),
        AT,
    ),
    "instant": (
        json.dumps(
            {"instant": {"epochSecond": AT // 1000, "nanoOfSecond": 123_000_000}, "level": "INFO", "message": LEFT}
        ),
        AT,
    ),
    "docker": (
        json.dumps({"log": DEFAULT + "\n", "stream": "stdout", "time": "2026-11-23T12:25:07.3Z"}),
        AT - 7_200_000,
    ),
    "shipped": ("kafka-0 " + json.dumps({"ts": AT, "level": "INFO", "msg": LEFT}), AT),
}


def one(line: str) -> BrokerEvent:
    (found,) = events(line.rstrip("\r"), "server.log", 7)
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_line_says_the_same_in_every_layout(layout: str) -> None:
    line, at_ms = LAYOUTS[layout]
    found = one(line)
    assert (found.kind, found.group_id, found.member_id) == (EventKind.MEMBER_LEFT, "shop", "c-1")
    assert (found.broker_id, found.log_partition, found.level, found.place) == (1, 3, "INFO", "server.log:7")
    assert found.timestamp_ms == at_ms
    assert found.local_ms is not None
    assert found.local_ms % 1000 == 123


MESSAGES = [
    (
        "[GroupId g] Dynamic member m-1 has left group through explicit `LeaveGroup` request; client reason: consumer "
        "poll timeout has expired.",
        (EventKind.MEMBER_LEFT, "g", "m-1", None, "consumer poll timeout has expired.", None),
    ),
    (
        "[Group g] Static Member m-1 with instance id i has left group through explicit `LeaveGroup` request; client "
        "reason: x",
        (EventKind.MEMBER_LEFT, "g", "m-1", None, "x", None),
    ),
    (
        "[GroupId g][MemberId m-1] Member m-1 left the streams group.",
        (EventKind.MEMBER_LEFT, "g", "m-1", None, None, None),
    ),
    (
        "[GroupId g] Static member m-1 with instance id i temporarily left the consumer group.",
        (EventKind.MEMBER_AWAY, "g", "m-1", None, None, None),
    ),
    (
        "[GroupId g] Member m-1 fenced from the group because the member session expired.",
        (EventKind.MEMBER_EXPIRED, "g", "m-1", None, "the member session expired", None),
    ),
    (
        "[GroupId g] Member m-1 fenced from the group because it failed to transition from epoch 3 within 4000ms.",
        (EventKind.MEMBER_TIMED_OUT, "g", "m-1", 3, None, 4000),
    ),
    (
        "Member m-1 in group g has failed, removing it from the group.",
        (EventKind.MEMBER_EXPIRED, "g", "m-1", None, None, None),
    ),
    (
        "Preparing to rebalance group g in state PreparingRebalance with old generation 7 (__consumer_offsets-2) "
        "(reason: Adding new member m-1 with group instance id None; client reason: not provided).",
        (
            EventKind.REBALANCE_BEGAN,
            "g",
            None,
            7,
            "Adding new member m-1 with group instance id None; client reason: not provided",
            None,
        ),
    ),
    (
        "[GroupId g] Computed a new target assignment for epoch 5 with 'uniform' assignor in 3ms.",
        (EventKind.TARGET_COMPUTED, "g", None, 5, "uniform", 3),
    ),
    ("[GroupId g] Bumped group epoch to 5.", (EventKind.EPOCH_BUMPED, "g", None, 5, None, None)),
    (
        "[GroupId g][MemberId m-1] Bumped streams group epoch to 5 with metadata hash 1 and validated topic epoch 0.",
        (EventKind.EPOCH_BUMPED, "g", None, 5, None, None),
    ),
    (
        "Finished loading of metadata from __consumer_offsets-3 with epoch 2 in 40ms where 1ms was spent in the "
        "scheduler. Loaded 7 records which total to 100 bytes.",
        (EventKind.COORDINATOR_LOADED, None, None, 2, None, 40),
    ),
    (
        "Finished loading of metadata from __consumer_offsets-0 with epoch 0 and LoadSummary=LoadSummary("
        "startTimeMs=1795901857001, endTimeMs=1795901857057, numRecords=9, numBytes=100).",
        (EventKind.COORDINATOR_LOADED, None, None, 0, None, None),
    ),
    ("[GroupId g] Expired offset for partition=my-topic-3", (EventKind.OFFSET_EXPIRED, "g", None, None, None, None)),
    (
        "Generated 6 tombstone records while cleaning up group metadata in 1 milliseconds.",
        (EventKind.CLEANED_UP, None, None, None, None, 1),
    ),
    (
        "[GroupId g] Streams member m-1 fenced from the group because the member session expired..",
        (EventKind.MEMBER_EXPIRED, "g", "m-1", None, "the member session expired", None),
    ),
    (
        "[GroupId g] Computed a new target assignment for epoch 7 with "
        "'org.apache.kafka.coordinator.group.assignor.SimpleAssignor@3775614c' assignor in 0ms.",
        (EventKind.TARGET_COMPUTED, "g", None, 7, "simple", 0),
    ),
    (
        "[GroupId g] Static member m-2 with instance id i cannot join the group because the instance id is owned by "
        "member m-1.",
        (EventKind.STATIC_MEMBER_FENCED, "g", "m-2", None, "m-1", None),
    ),
    (
        "Request memberId=m-2 for static member with groupInstanceId=i is fenced by existing memberId=m-1 during "
        "operation Optional[static-sync]",
        (EventKind.STATIC_MEMBER_FENCED, None, "m-2", None, "m-1", None),
    ),
    (
        "Cannot upgrade classic group a group to consumer group because online upgrade is disabled.",
        (EventKind.CONVERSION_REFUSED, "a group", None, None, "online upgrade is disabled", None),
    ),
    (
        "Cannot join the consumer group g with the classic protocol because the group migration is disabled.",
        (EventKind.CONVERSION_REFUSED, "g", None, None, "the group migration is disabled", None),
    ),
    (
        "Started unloading metadata for __consumer_offsets-3 with epoch OptionalInt[4].",
        (EventKind.COORDINATOR_UNLOADED, None, None, 4, None, None),
    ),
    (
        "Finished loading offsets and group metadata from __consumer_offsets-45 in 5 milliseconds for epoch 3, of "
        "which 1 milliseconds was spent in the scheduler.",
        (EventKind.COORDINATOR_LOADED, None, None, 3, None, 5),
    ),
    (
        "Finished unloading __consumer_offsets-45 for coordinator epoch Some(3). Removed 0 cached offsets and 2 cached "
        "groups.",
        (EventKind.COORDINATOR_UNLOADED, None, None, None, None, None),
    ),
    (
        "Failed to write records to __consumer_offsets-3 because this broker is no longer the leader of the partition.",
        (EventKind.WRITE_FAILED, None, None, None, "this broker is no longer the leader of the partition", None),
    ),
]


NEVER_SERVED = [
    "Scheduling unloading of metadata for __consumer_offsets-3 with epoch OptionalInt[4]",
    "Ignored unloading metadata for __consumer_offsets-3 in epoch OptionalInt[4] since metadata was never loaded.",
    "Scheduling unloading of offsets and group metadata from __consumer_offsets-3",
    "Finished unloading __consumer_offsets-3. Removed 0 cached offsets and 0 cached groups.",
]
"""What a broker writes, among others, that becomes a follower of a log partition whose groups it never coordinated."""


@pytest.mark.parametrize("message", NEVER_SERVED)
def test_a_broker_that_never_served_the_groups_is_not_away(message: str) -> None:
    assert list(events(f"[2026-11-23 14:25:07,123] INFO {CONTEXT}{message} ({LOGGER})", "server.log", 7)) == []


@pytest.mark.parametrize(("message", "said"), MESSAGES)
def test_what_a_message_says(message: str, said: tuple[object, ...]) -> None:
    found = one(f"[2026-11-23 14:25:07,123] INFO {CONTEXT}{message} ({LOGGER})")
    assert (found.kind, found.group_id, found.member_id, found.epoch, found.reason, found.duration_ms) == said


def test_the_broker_says_that_it_stops_before_its_coordinator_does() -> None:
    found = one("[2026-11-23 14:25:07,123] INFO [BrokerServer id=2] shutting down (kafka.server.BrokerServer)")
    assert (found.kind, found.broker_id, found.log_partition) == (EventKind.COORDINATOR_STOPPED, 2, None)
    assert not list(events("[BrokerServer id=2] Transition from STARTED to SHUTTING_DOWN", "server.log", 1))


def test_one_line_about_several_members_is_an_event_for_each() -> None:
    ids = [f"c{each}-00000000-0000-4000-8000-00000000000{each}" for each in range(3)]
    line = f"{CONTEXT}Group g removed dynamic members who haven't joined: [{', '.join(ids)}]"
    found = list(events(line, "server.log", 1))
    assert [(each.kind, each.member_id) for each in found] == [(EventKind.MEMBER_TIMED_OUT, each) for each in ids]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[2026-11-23 14:25:07,123] INFO nothing of it",
        f"[2026-11-23 14:25:07,123] INFO {CONTEXT}something else ({LOGGER})",
        "{" * 5000 + CONTEXT,
        '{"log": {"log": "x"}} [GroupCoordinator ',
        '{"level": 1, "message": 2} ' + CONTEXT,
    ],
)
def test_other_lines_say_nothing(line: str) -> None:
    assert list(events(line, "server.log", 1)) == []


def test_half_characters_of_json_are_replaced() -> None:
    line = json.dumps({"message": f"{CONTEXT}[GroupId a\ud800b] Member m left the consumer group."})
    assert one(line).group_id == "a?b"


def test_values_are_text_and_are_cut() -> None:
    reason = "\x1b[31m<script>alert(1)</script>" + "x" * 100_000
    said = "Dynamic member m has left group through explicit `LeaveGroup` request; client reason: "
    line = f"{CONTEXT}[GroupId g] {said}{reason}"
    found = one(line)
    assert found.reason == reason[:MOST_VALUE]
    assert len(found.text) == MOST_TEXT


@given(st.text(max_size=300))
def test_no_text_breaks_the_reader(text: str) -> None:
    for line in (text, text + DEFAULT, CONTEXT + text, f'{{"message": {json.dumps(CONTEXT + text)}}}'):
        for each in events(line, "server.log", 1):
            assert each.kind in set(EventKind)
    time_of_line(text)


def test_every_message_has_its_needle_and_every_kind_is_one_of_the_events() -> None:
    kinds = {each.kind for each in messages()} - {"members_late", "groups_deleted"}
    assert kinds <= set(EventKind)
    assert all(each.has for each in messages())


@pytest.mark.parametrize("text", ["2026-13-45 99:99:99,000", "0000-00-00 00:00:00"])
def test_a_time_that_is_none(text: str) -> None:
    assert time_before(text).local_ms is None


def test_each_message_is_one_of_kafkas() -> None:
    """``python -m tests.broker.witness.templates`` looks in the jars."""
    assert not [each["about"] for each in broker_messages() if not each["releases"]]
