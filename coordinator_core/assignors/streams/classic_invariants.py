"""Invariants of an assignment of Kafka Streams on a classic group (protocol ``stream``).

The leader has the topology, the log does not, so the assignment cannot be recomputed; its invariants can be checked.

Sources: Kafka 4.3.1 ``StreamsPartitionAssignor``, KIP-441 (warm-ups are written as standbys), KIP-429.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import utf16
from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
    StreamsAssignmentInfo,
    StreamsAssignmentInfoStandbyTask,
    StreamsAssignmentInfoTaskId,
    StreamsSubscriptionInfo,
)
from coordinator_core.wire.embedded import Blob, blob_of

Partition = tuple[str, int]

Task = tuple[str, int]
"""Subtopology (after the named topology, if any) and partition."""


class TaskInvariant(StrEnum):
    """The invariants."""

    TASKS_MATCH = "a member's active tasks are those of its partitions"
    SUBSCRIBED = "a member gets partitions of topics that it subscribes to"
    ONE_SUBTOPOLOGY = "a topic is read by the tasks of one subtopology"
    PARTITION_ONCE = "a partition is assigned once"
    ACTIVE_ONCE = "a task is active once"
    STANDBY_APART = "a standby is not in the process of the active task"
    STANDBY_ONCE = "a task has one standby in a process"
    STILL_OWNED = "a partition that a member still owns is given to no other"
    COMPLETE = "every partition is assigned, unless its task waits for a member to give it up"


class StreamsAssignorError(IntEnum):
    """What a leader sends its members where it assigns nothing (``AssignorError`` of Kafka Streams)."""

    INCOMPLETE_SOURCE_TOPIC_METADATA = 1
    VERSION_PROBING = 2
    ASSIGNMENT_ERROR = 3
    SHUTDOWN_REQUESTED = 4


@dataclass(frozen=True, slots=True)
class TaskBreach:
    """One broken invariant: the task, partition or topic (``subject``), and the members that break it."""

    invariant: TaskInvariant
    subject: Task | Partition | str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StreamsConsumer:
    """One consumer (thread) of a classic Streams application in one generation.

    ``active`` has one task for each of ``partitions``, in order. ``owned`` is what the consumer still had when it
    joined. ``error`` is the assignor's error code (0: none); a failed assignment is empty.
    """

    process_id: str
    topics: Collection[str]
    owned: Collection[Partition]
    partitions: Sequence[Partition]
    active: Sequence[Task]
    standby: Collection[Task]
    error: int = 0


def streams_consumer(
    subscription: Blob[ConsumerProtocolSubscription], assignment: Blob[ConsumerProtocolAssignment]
) -> StreamsConsumer | None:
    """Return a consumer from the decoded blobs of its group's record; None if their user data is not that of
    Streams.
    """
    subscribed = blob_of(StreamsSubscriptionInfo, subscription.nested)
    assigned = blob_of(StreamsAssignmentInfo, assignment.nested)
    if subscribed is None or assigned is None:
        return None
    info = assigned.fields
    return StreamsConsumer(
        process_id=subscribed.fields["processId"],
        topics=subscription.fields["topics"],
        owned=list(_partitions(subscription.fields.get("ownedPartitions") or ())),
        partitions=sorted(_partitions(assignment.fields["assignedPartitions"]), key=lambda p: (utf16(p[0]), p[1])),
        active=[_task(task) for task in info["activeTasks"]],
        standby=[_task(task) for task in info["standbyTasks"]],
        error=info.get("errCode", 0),
    )


def breaches(members: Mapping[str, StreamsConsumer], image: TopicImage | None = None) -> list[TaskBreach]:
    """Return every broken invariant of one generation; ``image`` has the partitions that exist (None: not known)."""
    if any(member.error for member in members.values()):
        return []
    generation = _Generation.of(members, image)
    return [breach for check in _CHECKS for breach in check(generation)]


@dataclass(frozen=True, slots=True)
class _Generation:
    """One generation by what the checks look up.

    ``readers`` has by partition the members that were assigned it, ``runners`` by task those that have it active, each
    once, ``standbys`` by task and process those that have it as standby, and ``owners`` by partition the member that
    still owned it when it joined.
    """

    members: Mapping[str, StreamsConsumer]
    image: TopicImage | None
    readers: Mapping[Partition, Sequence[str]]
    runners: Mapping[Task, Collection[str]]
    standbys: Mapping[tuple[Task, str], Sequence[str]]
    owners: Mapping[Partition, str]

    @classmethod
    def of(cls, members: Mapping[str, StreamsConsumer], image: TopicImage | None) -> "_Generation":
        """Index the members of a generation."""
        readers: dict[Partition, list[str]] = defaultdict(list)
        runners: dict[Task, dict[str, None]] = defaultdict(dict)
        standbys: dict[tuple[Task, str], list[str]] = defaultdict(list)
        for member, consumer in members.items():
            for partition in consumer.partitions:
                readers[partition].append(member)
            for task in consumer.active:
                runners[task][member] = None
            for task in consumer.standby:
                standbys[task, consumer.process_id].append(member)
        owners = {partition: member for member, consumer in members.items() for partition in consumer.owned}
        return cls(members, image, readers, runners, standbys, owners)


def _tasks_and_subscriptions(generation: _Generation) -> Iterator[TaskBreach]:
    """TASKS_MATCH and SUBSCRIBED, member by member."""
    for member, consumer in generation.members.items():
        if len(consumer.active) != len(consumer.partitions):
            yield TaskBreach(TaskInvariant.TASKS_MATCH, member, (member,))
        for partition, task in zip(consumer.partitions, consumer.active, strict=False):
            if partition[1] != task[1]:
                yield TaskBreach(TaskInvariant.TASKS_MATCH, partition, (member,))
        for partition in consumer.partitions:
            if partition[0] not in consumer.topics:
                yield TaskBreach(TaskInvariant.SUBSCRIBED, partition, (member,))


def _once(generation: _Generation) -> Iterator[TaskBreach]:
    """PARTITION_ONCE, then ACTIVE_ONCE."""
    once = ((TaskInvariant.PARTITION_ONCE, generation.readers), (TaskInvariant.ACTIVE_ONCE, generation.runners))
    for invariant, holders in once:
        yield from (TaskBreach(invariant, held, tuple(who)) for held, who in holders.items() if len(who) > 1)


def _standbys(generation: _Generation) -> Iterator[TaskBreach]:
    """STANDBY_ONCE and STANDBY_APART, task by task."""
    for (task, process), who in generation.standbys.items():
        if len(who) > 1:
            yield TaskBreach(TaskInvariant.STANDBY_ONCE, task, tuple(who))
        runners = generation.runners.get(task, ())
        together = [member for member in runners if generation.members[member].process_id == process]
        if together:
            yield TaskBreach(TaskInvariant.STANDBY_APART, task, (*together, *who))


def _one_subtopology(generation: _Generation) -> Iterator[TaskBreach]:
    reading: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for member, consumer in generation.members.items():
        for (topic, _), (subtopology, _) in zip(consumer.partitions, consumer.active, strict=False):
            reading[topic][subtopology].append(member)
    for topic, subtopologies in reading.items():
        if len(subtopologies) > 1:
            readers = dict.fromkeys(member for who in subtopologies.values() for member in who)
            yield TaskBreach(TaskInvariant.ONE_SUBTOPOLOGY, topic, tuple(readers))


def _still_owned(generation: _Generation) -> Iterator[TaskBreach]:
    owners, members = generation.owners, generation.members
    for partition, who in generation.readers.items():
        # Two may say that they own it, and the index has one of them: the member that was given it may be the other.
        if partition in owners and not any(partition in members[member].owned for member in who):
            yield TaskBreach(TaskInvariant.STILL_OWNED, partition, (owners[partition], *who))


def _complete(generation: _Generation) -> Iterator[TaskBreach]:
    """COMPLETE, where the topics are known; a task that waits is told by its number, which its partitions share."""
    if generation.image is None:
        return
    readers = generation.readers
    waiting = {number for topic, number in generation.owners if (topic, number) not in readers}
    by_name = generation.image.by_name
    subscribed = {topic for consumer in generation.members.values() for topic in consumer.topics}
    for topic in sorted(subscribed & by_name.keys()):
        for number in range(by_name[topic].partitions):
            if (topic, number) not in readers and number not in waiting:
                yield TaskBreach(TaskInvariant.COMPLETE, (topic, number), ())


_CHECKS = (_tasks_and_subscriptions, _once, _standbys, _one_subtopology, _still_owned, _complete)


def _partitions(
    topics: Iterable[ConsumerProtocolSubscriptionTopicPartition | ConsumerProtocolAssignmentTopicPartition],
) -> Iterator[Partition]:
    for topic in topics:
        for number in topic["partitions"]:
            yield topic["topic"], number


def _task(task: StreamsAssignmentInfoTaskId | StreamsAssignmentInfoStandbyTask) -> Task:
    named = task.get("namedTopology")
    subtopology = f"{named}__{task['topicGroupId']}" if named else str(task["topicGroupId"])
    return subtopology, task["partition"]
