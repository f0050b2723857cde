"""The subscriptions and assignments of threads on the classic protocol, as bytes (KIP-1071, online migration).

Streams puts its own data into the consumer's subscription and assignment: SubscriptionInfo and AssignmentInfo.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from coordinator_core.assignors.inputs import TaskId, Tasks
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.consumer_protocol import HIGHEST_VERSION, SUBSCRIPTION
from coordinator_core.groups.streams.state import Endpoint
from coordinator_core.groups.streams.topology import ConfiguredTopology
from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    StreamsAssignmentInfo,
    StreamsAssignmentInfoStandbyTask,
    StreamsAssignmentInfoTaskId,
    StreamsAssignmentInfoTopicPartition,
    StreamsSubscriptionInfo,
    StreamsSubscriptionInfoTaskId,
)
from coordinator_core.whole_numbers import whole_number
from coordinator_core.wire.embedded import Blob, blob_of, decode_subscription, encode_blob, of_version

_Task = StreamsSubscriptionInfoTaskId | StreamsAssignmentInfoTaskId | StreamsAssignmentInfoStandbyTask
PROBING_INTERVAL_MS = 600_000
"""When a thread that warms tasks up is to ask for another rebalance (probing.rebalance.interval.ms)."""
NO_REBALANCE = 2**63 - 1


class ThreadInfo(NamedTuple):
    """A thread: its process and what it has. ``owned`` are input partitions, ``standby`` tasks (None: not given)."""

    process_id: str
    endpoint: Endpoint | None
    client_tags: dict[str, str]
    offsets: dict[TaskId, int]
    owned: set[tuple[str, int]]
    standby: set[TaskId] | None


def thread_info(metadata: bytes) -> ThreadInfo:
    """Read a thread's subscription; raises DecodeError if it is not one of Streams."""
    blob, nested = _subscription(metadata)
    info = nested.fields
    tags = {_text(tag["key"]): _text(tag["value"]) for tag in info.get("clientTags", ())}
    standby = {_task(task) for task in info["standbyTasks"]} if "standbyTasks" in info else None
    listed = blob.fields.get("ownedPartitions", ())
    owned = {(topic["topic"], number) for topic in listed for number in topic["partitions"]}
    offsets = {task: offset for task, offset in _offset_sums(info) if offset >= 0}
    return ThreadInfo(info["processId"], _endpoint(info.get("userEndPoint") or b""), tags, offsets, owned, standby)


def assignment(
    tasks: Tasks, configured: ConfiguredTopology | None, topics: TopicImage, metadata: bytes, now: int, error: int = 0
) -> bytes:
    """Return a thread's assignment in the versions of its subscription; warm-ups are standbys in it.

    ``error`` is the code that a leader sends where it could assign nothing (0: none).

    Raises DecodeError if the subscription is not one of Streams.
    """
    blob, nested = _subscription(metadata)
    version = nested.version
    sources = {} if configured is None else {key: each.sources for key, each in configured.subtopologies.items()}

    def partitions(subtopology_id: str, number: int) -> list[tuple[str, int]]:
        names = sorted(sources.get(subtopology_id, ()))
        return [(name, number) for name in names if name in topics.by_name and number < topics.by_name[name].partitions]

    # Streams takes the i-th active task for the i-th of the assigned partitions in order: so a task is listed once for
    # each of its partitions.
    read = sorted((partition, task) for task in _units(tasks.active) for partition in partitions(*task))
    copies = sorted({*_units(tasks.standby), *_units(tasks.warmup)})
    standby: list[StreamsAssignmentInfoStandbyTask] = []
    for task in copies:
        inputs: list[StreamsAssignmentInfoTopicPartition] = [
            {"topic": name, "partition": number} for name, number in partitions(*task)
        ]
        standby.append({**_task_fields(task), "partitions": inputs})
    info: StreamsAssignmentInfo = {
        "commonlySupportedVersion": version,
        "activeTasks": [_task_fields(task) for _, task in read],
        "standbyTasks": standby,
        "partitionsByHost": [],
        "topicNames": [],
        "activePartitionsByHost": [],
        "standbyPartitionsByHost": [],
        "errCode": error,
        "nextRebalanceMs": now + PROBING_INTERVAL_MS if any(tasks.warmup.values()) else NO_REBALANCE,
    }
    by_topic: dict[str, list[int]] = {}
    for (name, number), _ in read:
        by_topic.setdefault(name, []).append(number)
    fields: ConsumerProtocolAssignment = {
        "assignedPartitions": [{"topic": name, "partitions": numbers} for name, numbers in by_topic.items()],
        "userData": encode_blob(StreamsAssignmentInfo, version, of_version(StreamsAssignmentInfo, version, info)),
    }
    return encode_blob(ConsumerProtocolAssignment, min(blob.version, HIGHEST_VERSION), fields)


def is_known_by_number(subtopology_id: str) -> bool:
    """Whether threads on the classic protocol can be assigned tasks of the subtopology."""
    number = _number(subtopology_id)
    return number is not None and number < 2**31


def _subscription(metadata: bytes) -> tuple[Blob[ConsumerProtocolSubscription], Blob[StreamsSubscriptionInfo]]:
    """Return a thread's subscription and what Streams put into it; raise DecodeError if there is nothing of Streams."""
    blob = decode_subscription(CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL, metadata)
    info = blob_of(StreamsSubscriptionInfo, blob.nested) if blob is not None else None
    if blob is None or info is None:
        raise DecodeError("no data of Streams in it", record_type=SUBSCRIPTION)
    return blob, info


def _task(task: _Task) -> TaskId:
    return str(task["topicGroupId"]), task["partition"]


def _task_fields(task: TaskId) -> StreamsAssignmentInfoTaskId:
    return {"topicGroupId": int(task[0]), "partition": task[1], "namedTopology": None}


def _offset_sums(info: StreamsSubscriptionInfo) -> Iterable[tuple[TaskId, int]]:
    for sums in info.get("taskOffsetSums", ()):
        subtopology_id = str(sums["topicGroupId"])
        if "partitionToOffsetSum" in sums:
            for one in sums["partitionToOffsetSum"]:
                yield (subtopology_id, one["partition"]), one["offsetSum"]
        else:
            yield (subtopology_id, sums["partition"]), sums["offsetSum"]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")


def _endpoint(text: bytes) -> Endpoint | None:
    host, _, port = _text(text).rpartition(":")
    number = _number(port)
    return Endpoint(host, number) if host and number is not None and number < 2**16 else None


def _number(text: str) -> int | None:
    """Return the number that plain digits are, however many zeros come first, as Java reads them."""
    return whole_number(text.lstrip("0") or text[:1])


def _units(tasks: Mapping[str, Iterable[int]]) -> list[TaskId]:
    return [(key, number) for key, numbers in tasks.items() if is_known_by_number(key) for number in numbers]
