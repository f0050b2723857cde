"""The consumer protocol inside the classic one: subscriptions and assignments of members that speak JoinGroup."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    StreamsAssignmentInfo,
    StreamsAssignmentInfoStandbyTask,
    StreamsAssignmentInfoTaskId,
)
from coordinator_core.wire.embedded import blob_of, decode_assignment, decode_blob, encode_blob

SUBSCRIPTION = "ConsumerProtocolSubscription"
ASSIGNMENT = "ConsumerProtocolAssignment"
HIGHEST_VERSION = 3
"""The newest version of both messages; a newer one is treated as this."""


class EmbeddedSubscription(NamedTuple):
    """What a member asked for in its JoinGroup; topics by name."""

    version: int
    topics: list[str]
    rack_id: str | None
    owned: list[tuple[str, list[int]]]


def subscription(metadata: bytes) -> EmbeddedSubscription:
    """Read a member's protocol metadata as a broker does; raises DecodeError, also if fields of its version lack."""
    blob = decode_blob(ConsumerProtocolSubscription, metadata)
    if blob.is_short:
        raise DecodeError(f"it ends before the fields of its version {blob.version}", record_type=SUBSCRIPTION)
    owned = [(topic["topic"], topic["partitions"]) for topic in blob.fields.get("ownedPartitions", ())]
    return EmbeddedSubscription(blob.version, blob.fields["topics"], blob.fields.get("rackId") or None, owned)


def assigned_partitions(assignment: bytes) -> tuple[list[tuple[str, list[int]]], bytes | None]:
    """Read an assignment as topic names with partitions, and the assignor's own data; raises DecodeError."""
    fields = decode_blob(ConsumerProtocolAssignment, assignment).fields
    return [(partition["topic"], partition["partitions"]) for partition in fields["assignedPartitions"]], fields[
        "userData"
    ]


def assignment(partitions: Mapping[str, Iterable[int]], topics: TopicImage, metadata: bytes) -> bytes:
    """Return an assignment by topic id in the version of the member's metadata, without topics that were deleted.

    Raises DecodeError if the metadata has no version.
    """
    if len(metadata) < 2:
        raise DecodeError("no version", record_type=SUBSCRIPTION)
    version = int.from_bytes(metadata[:2], signed=True)
    if version < 0:
        raise DecodeError(f"version {version}", record_type=SUBSCRIPTION)
    named: list[ConsumerProtocolAssignmentTopicPartition] = [
        {"topic": topics.by_id[topic_id].name, "partitions": list(numbers)}
        for topic_id, numbers in partitions.items()
        if topic_id in topics.by_id
    ]
    fields: ConsumerProtocolAssignment = {"assignedPartitions": named, "userData": None}
    return encode_blob(ConsumerProtocolAssignment, min(version, HIGHEST_VERSION), fields)


def by_topic_id(named: Iterable[tuple[str, Sequence[int]]], topics: TopicImage) -> dict[str, list[int]]:
    """Return partitions by topic id, without topics that were deleted."""
    return {topics.by_name[name].id: list(numbers) for name, numbers in named if name in topics.by_name}


def assigned_tasks(assignment: bytes) -> Tasks:
    """Read the tasks in a thread's assignment; raises DecodeError if it is not an assignment of Streams."""
    if not assignment:
        return Tasks()
    blob = decode_assignment(CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL, assignment)
    info = blob_of(StreamsAssignmentInfo, blob.nested) if blob is not None else None
    if info is None:
        raise DecodeError("no data of Streams in it", record_type=ASSIGNMENT)
    return Tasks(_by_subtopology(info.fields["activeTasks"]), _by_subtopology(info.fields["standbyTasks"]))


def _by_subtopology(
    tasks: Iterable[StreamsAssignmentInfoTaskId | StreamsAssignmentInfoStandbyTask],
) -> dict[str, list[int]]:
    by_subtopology: dict[str, set[int]] = {}
    for task in tasks:
        # Classic threads number their subtopologies; a streams group has the same number as a text.
        by_subtopology.setdefault(str(task["topicGroupId"]), set()).add(task["partition"])
    return {key: sorted(numbers) for key, numbers in sorted(by_subtopology.items())}
