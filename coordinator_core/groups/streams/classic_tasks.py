"""The tasks in an assignment of Kafka Streams on the classic protocol, as bytes (KIP-1071, online migration)."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.consumer_protocol import ASSIGNMENT
from coordinator_core.record_fields.embedded import (
    StreamsAssignmentInfo,
    StreamsAssignmentInfoStandbyTask,
    StreamsAssignmentInfoTaskId,
)
from coordinator_core.wire.embedded import blob_of, decode_assignment


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
        by_subtopology.setdefault(str(task["topicGroupId"]), set()).add(task["partition"])
    return {key: sorted(numbers) for key, numbers in sorted(by_subtopology.items())}
