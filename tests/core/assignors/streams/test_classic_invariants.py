"""The invariants of classic Kafka Streams assignments, each broken once."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from coordinator_core.assignors.streams.classic_invariants import (
    StreamsConsumer,
    TaskBreach,
    TaskInvariant,
    breaches,
    streams_consumer,
)
from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.wire.embedded import decode_assignment, decode_subscription, encode_blob

IMAGE = TopicImage.of([Topic("in", "", 2), Topic("side", "", 2)])

SOUND = {
    "m1": StreamsConsumer("P1", ["in", "side"], [], [("in", 0), ("side", 0)], [("0", 0), ("0", 0)], [("0", 1)]),
    "m2": StreamsConsumer("P2", ["in", "side"], [], [("in", 1), ("side", 1)], [("0", 1), ("0", 1)], [("0", 0)]),
}


def with_change(member: str, **change: object) -> Mapping[str, StreamsConsumer]:
    return SOUND | {member: replace(SOUND[member], **change)}


def test_a_sound_assignment_breaks_nothing() -> None:
    assert breaches(SOUND, IMAGE) == []


@pytest.mark.parametrize(
    ("members", "breach"),
    [
        (with_change("m1", active=[("0", 0)]), TaskBreach(TaskInvariant.TASKS_MATCH, "m1", ("m1",))),
        (with_change("m1", topics=["in"]), TaskBreach(TaskInvariant.SUBSCRIBED, ("side", 0), ("m1",))),
        (
            with_change("m1", active=[("0", 0), ("1", 0)]),
            TaskBreach(TaskInvariant.ONE_SUBTOPOLOGY, "side", ("m1", "m2")),
        ),
        (
            with_change("m2", partitions=[("in", 0), ("in", 1), ("side", 1)], active=[("0", 0), ("0", 1), ("0", 1)]),
            TaskBreach(TaskInvariant.PARTITION_ONCE, ("in", 0), ("m1", "m2")),
        ),
        (
            with_change("m2", partitions=[("in", 0), ("in", 1), ("side", 1)], active=[("0", 0), ("0", 1), ("0", 1)]),
            TaskBreach(TaskInvariant.ACTIVE_ONCE, ("0", 0), ("m1", "m2")),
        ),
        (with_change("m2", process_id="P1"), TaskBreach(TaskInvariant.STANDBY_APART, ("0", 1), ("m2", "m1"))),
        (
            with_change("m2", process_id="P1", standby=[("0", 1)]),
            TaskBreach(TaskInvariant.STANDBY_ONCE, ("0", 1), ("m1", "m2")),
        ),
        (with_change("m2", owned=[("in", 0)]), TaskBreach(TaskInvariant.STILL_OWNED, ("in", 0), ("m2", "m1"))),
        (with_change("m2", partitions=[], active=[]), TaskBreach(TaskInvariant.COMPLETE, ("in", 1), ())),
    ],
    ids=lambda value: value.invariant.name if isinstance(value, TaskBreach) else "",
)
def test_what_breaks_is_named(members: Mapping[str, StreamsConsumer], breach: TaskBreach) -> None:
    assert breach in breaches(members, IMAGE)


def test_a_task_that_another_has_to_give_up_may_wait() -> None:
    moving = with_change("m2", partitions=[], active=[]) | {"m1": replace(SOUND["m1"], owned=[("in", 1)], standby=[])}
    assert breaches(moving, IMAGE) == []


def test_without_topics_nothing_is_missing() -> None:
    assert breaches(with_change("m2", partitions=[], active=[])) == []


def test_a_failed_assignment_is_not_judged() -> None:
    failed = {name: replace(member, partitions=[], active=[], standby=[], error=1) for name, member in SOUND.items()}
    assert breaches(failed, IMAGE) == []


def test_a_consumer_is_read_from_its_blobs() -> None:
    subscription = encode_blob(
        "StreamsSubscriptionInfo",
        11,
        {
            "latestSupportedVersion": 11,
            "processId": "ffLIq-loSay38AWNBubWvQ",
            "userEndPoint": b"",
            "taskOffsetSums": [],
            "uniqueField": 0,
            "errorCode": 0,
            "clientTags": [],
        },
    )
    task = {"topicGroupId": 0, "partition": 1, "namedTopology": None}
    assignment = encode_blob(
        "StreamsAssignmentInfo",
        11,
        {
            "commonlySupportedVersion": 11,
            "activeTasks": [task, {**task, "partition": 0}],
            "standbyTasks": [{**task, "partition": 2, "partitions": [{"topic": "in", "partition": 2}]}],
            "topicNames": [],
            "activePartitionsByHost": [],
            "standbyPartitionsByHost": [],
            "errCode": 0,
            "nextRebalanceMs": 1,
        },
    )
    joined = decode_subscription(
        "consumer",
        "stream",
        encode_blob(
            "ConsumerProtocolSubscription",
            1,
            {"topics": ["in"], "userData": subscription, "ownedPartitions": [{"topic": "in", "partitions": [1]}]},
        ),
    )
    told = decode_assignment(
        "consumer",
        "stream",
        encode_blob(
            "ConsumerProtocolAssignment",
            1,
            {
                "assignedPartitions": [{"topic": "t", "partitions": [0]}, {"topic": "in", "partitions": [1]}],
                "userData": assignment,
            },
        ),
    )
    assert joined is not None
    assert told is not None
    assert streams_consumer(joined, told) == StreamsConsumer(
        process_id="ffLIq-loSay38AWNBubWvQ",
        topics=["in"],
        owned=[("in", 1)],
        partitions=[("in", 1), ("t", 0)],
        active=[("0", 1), ("0", 0)],
        standby=[("0", 2)],
    )
    assert streams_consumer(joined._replace(nested=None), told) is None
