"""What threads on the classic protocol say of themselves and are told to run, as bytes (KIP-1071, online migration).

Streams puts its own data into the consumer's subscription and assignment: SubscriptionInfo and AssignmentInfo.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from coordinator_core.assignors.inputs import TaskId, Tasks
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.consumer_protocol import ASSIGNMENT, HIGHEST_VERSION
from coordinator_core.groups.streams.state import Endpoint
from coordinator_core.groups.streams.topology import ConfiguredTopology
from coordinator_core.records import Fields
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription, encode_blob, of_version

ASSIGNMENT_INFO = "StreamsAssignmentInfo"
PROBING_INTERVAL_MS = 600_000
"""When a thread that warms tasks up is to ask for another rebalance (probing.rebalance.interval.ms)."""
NO_REBALANCE = 2**63 - 1


class ThreadInfo(NamedTuple):
    """A thread: its process and what it holds. ``owned`` are input partitions, ``standby`` tasks (None: not said)."""

    process_id: str
    endpoint: Endpoint | None
    client_tags: dict[str, str]
    offsets: dict[TaskId, int]
    owned: set[tuple[str, int]]
    standby: set[TaskId] | None


def thread_info(metadata: bytes) -> ThreadInfo:
    """Read a thread's subscription; raises DecodeError if it is not one of Streams."""
    blob = _of_streams(
        decode_subscription(CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL, metadata), "ConsumerProtocolSubscription"
    )
    info = _nested(blob)
    tags = {
        each["key"].decode(errors="replace"): each["value"].decode(errors="replace")
        for each in _list(info, "clientTags")
    }
    standby = {_task(each) for each in info["standbyTasks"]} if "standbyTasks" in info else None
    owned = {(each["topic"], number) for each in _list(blob.fields, "ownedPartitions") for number in each["partitions"]}
    offsets = {task: offset for task, offset in _offset_sums(info) if offset >= 0}
    return ThreadInfo(info["processId"], _endpoint(info.get("userEndPoint") or b""), tags, offsets, owned, standby)


def assigned_tasks(assignment: bytes) -> Tasks:
    """Read what a thread was told to run; raises DecodeError if it is not an assignment of Streams."""
    if not assignment:
        return Tasks()
    blob = _of_streams(decode_assignment(CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL, assignment), ASSIGNMENT)
    info = _nested(blob)
    return Tasks(_by_subtopology(info["activeTasks"]), _by_subtopology(info["standbyTasks"]))


def assignment(
    tasks: Tasks, configured: ConfiguredTopology | None, topics: TopicImage, metadata: bytes, now: int
) -> bytes:
    """What a thread is told to run, in the versions of its subscription; warm-ups are standbys to it.

    Raises DecodeError if the subscription is not one of Streams.
    """
    blob = _of_streams(
        decode_subscription(CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL, metadata), "ConsumerProtocolSubscription"
    )
    version = 0 if blob.nested is None else blob.nested.version
    sources = {} if configured is None else {key: each.sources for key, each in configured.subtopologies.items()}

    def partitions(subtopology_id: str, number: int) -> list[tuple[str, int]]:
        names = sorted(sources.get(subtopology_id, ()))
        return [(name, number) for name in names if name in topics.by_name and number < topics.by_name[name].partitions]

    read = sorted((partition, task) for task in _units(tasks.active) for partition in partitions(*task))
    copies = sorted({*_units(tasks.standby), *_units(tasks.warmup)})
    standby = []
    for task in copies:
        inputs = [{"topic": name, "partition": number} for name, number in partitions(*task)]
        standby.append({**_task_fields(task), "partitions": inputs})
    info: Fields = {
        "commonlySupportedVersion": version,
        "activeTasks": [_task_fields(task) for _, task in read],
        "standbyTasks": standby,
        "partitionsByHost": [],
        "topicNames": [],
        "activePartitionsByHost": [],
        "standbyPartitionsByHost": [],
        "errCode": 0,
        "nextRebalanceMs": now + PROBING_INTERVAL_MS if any(tasks.warmup.values()) else NO_REBALANCE,
    }
    by_topic: dict[str, list[int]] = {}
    for (name, number), _ in read:
        by_topic.setdefault(name, []).append(number)
    assigned = [{"topic": name, "partitions": numbers} for name, numbers in by_topic.items()]
    user_data = encode_blob(ASSIGNMENT_INFO, version, of_version(ASSIGNMENT_INFO, version, info))
    return encode_blob(
        ASSIGNMENT, min(blob.version, HIGHEST_VERSION), {"assignedPartitions": assigned, "userData": user_data}
    )


def is_known_by_number(subtopology_id: str) -> bool:
    """Whether threads on the classic protocol can be told of the subtopology."""
    return subtopology_id.isdecimal() and subtopology_id.isascii() and int(subtopology_id) < 2**31


def _of_streams(blob: Blob | None, message: str) -> Blob:
    if blob is None or blob.nested is None:
        raise DecodeError("no data of Streams in it", record_type=message)
    return blob


def _nested(blob: Blob) -> Fields:
    return {} if blob.nested is None else blob.nested.fields


def _list(fields: Fields, name: str) -> Iterable[Fields]:
    return fields.get(name) or ()


def _task(task: Fields) -> TaskId:
    return str(task["topicGroupId"]), task["partition"]


def _task_fields(task: TaskId) -> Fields:
    return {"topicGroupId": int(task[0]), "partition": task[1], "namedTopology": None}


def _offset_sums(info: Fields) -> Iterable[tuple[TaskId, int]]:
    for each in _list(info, "taskOffsetSums"):
        for one in each.get("partitionToOffsetSum", [each]):
            yield (str(each["topicGroupId"]), one["partition"]), one["offsetSum"]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _endpoint(text: bytes) -> Endpoint | None:
    host, _, port = _text(text).rpartition(":")
    return Endpoint(host, int(port)) if host and port.isdecimal() and port.isascii() and int(port) < 2**16 else None


def _by_subtopology(tasks: Iterable[Fields]) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for subtopology_id, partition in map(_task, tasks):
        found.setdefault(subtopology_id, set()).add(partition)
    return {key: sorted(numbers) for key, numbers in sorted(found.items())}


def _units(tasks: Mapping[str, Iterable[int]]) -> list[TaskId]:
    return [(key, number) for key, numbers in tasks.items() if is_known_by_number(key) for number in numbers]
