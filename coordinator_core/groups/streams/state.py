"""A streams group as its records define it (KIP-1071)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple

from coordinator_core.groups.epochs import EpochGroup, EpochMember, PartitionEpochs, Partitions
from coordinator_core.groups.subscribed_topics import SubscribedTopic
from coordinator_core.java.hash_codes import utf16
from coordinator_core.record_fields.streams_group import StreamsGroupTargetAssignmentMemberTaskIds


class StreamsMemberState(IntEnum):
    """How far a member is on the way to its target."""

    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3


NO_DESCRIPTION = (-1, -1)
MEMBER_STATES = frozenset(StreamsMemberState)
"""The states that a broker writes."""


class StreamsGroupState(StrEnum):
    """The state of the whole group, which follows from epochs, topology and members."""

    EMPTY = "EMPTY"
    NOT_READY = "NOT_READY"
    ASSIGNING = "ASSIGNING"
    RECONCILING = "RECONCILING"
    STABLE = "STABLE"


class Endpoint(NamedTuple):
    """The host and port at which a member answers interactive queries."""

    host: str
    port: int


class InternalTopic(NamedTuple):
    """A changelog or repartition topic: 0 partitions or replicas mean that the broker decides."""

    name: str
    partitions: int
    replication_factor: int
    configs: dict[str, str]


class CopartitionGroup(NamedTuple):
    """Topics that need equal partition counts, as indexes into the lists of their subtopology."""

    source_topics: list[int]
    source_topic_regex: list[int]
    repartition_source_topics: list[int]


class Subtopology(NamedTuple):
    """One subtopology with its topics by their use."""

    subtopology_id: str
    source_topics: list[str]
    source_topic_regex: list[str]
    state_changelog_topics: list[InternalTopic]
    repartition_sink_topics: list[str]
    repartition_source_topics: list[InternalTopic]
    copartition_groups: list[CopartitionGroup]


class Topology(NamedTuple):
    """The topology (type 23) of the application, with its epoch."""

    epoch: int
    subtopologies: list[Subtopology]


def by_subtopology(topology: Topology) -> dict[str, Subtopology]:
    """Return the subtopologies by id: topologies with equal ones are the same, whatever the order."""
    return {subtopology.subtopology_id: subtopology for subtopology in topology.subtopologies}


@dataclass(slots=True)
class TargetTasks:
    """Tasks by role, each as subtopology id to partitions."""

    active: Partitions = field(default_factory=dict)
    standby: Partitions = field(default_factory=dict)
    warmup: Partitions = field(default_factory=dict)


@dataclass(slots=True)
class CurrentTasks:
    """Tasks by role; active tasks with the epoch in which each was assigned."""

    active: PartitionEpochs = field(default_factory=dict)
    standby: Partitions = field(default_factory=dict)
    warmup: Partitions = field(default_factory=dict)


@dataclass(slots=True)
class StreamsMember(EpochMember):
    """A member: metadata (type 19) and current tasks (type 22); None where its record was not seen."""

    instance_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology_epoch: int | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: dict[str, str] = field(default_factory=dict)
    assigned: CurrentTasks = field(default_factory=CurrentTasks)
    pending_revocation: CurrentTasks = field(default_factory=CurrentTasks)

    def release(self) -> None:
        """See EpochMember."""
        self.assigned, self.pending_revocation = CurrentTasks(), CurrentTasks()


@dataclass(slots=True)
class StreamsGroup(EpochGroup[StreamsMember, TargetTasks]):
    """A streams group.

    ``validated_topology_epoch`` is -1 if no topology was validated, None if it was not seen, or the record is of Kafka
    4.1 or of KIP-1071, which do not say it. ``subscription_metadata`` is the type 18 record of KIP-1071, None if there
    is none. ``description_epochs`` are the topology epochs whose description a plugin of the broker has stored, and has
    refused (4.4), -1: none.
    """

    members: dict[str, StreamsMember] = field(default_factory=dict)
    targets: dict[str, TargetTasks] = field(default_factory=dict)
    topology: Topology | None = None
    validated_topology_epoch: int | None = None
    last_assignment_configs: dict[str, str] = field(default_factory=dict)
    description_epochs: tuple[int, int] = NO_DESCRIPTION
    subscription_metadata: dict[str, SubscribedTopic] | None = None

    @property
    def is_validated(self) -> bool | None:
        """Whether the topology was validated; None: the log does not say."""
        if self.topology is None:
            return False
        if self.validated_topology_epoch is None:
            return None
        return self.validated_topology_epoch == self.topology.epoch


def task_ids(tasks: Mapping[str, Iterable[int]]) -> list[StreamsGroupTargetAssignmentMemberTaskIds]:
    """Return tasks by subtopology id, then partition."""
    return [{"subtopologyId": key, "partitions": sorted(tasks[key])} for key in sorted(tasks, key=utf16)]


def task_units(tasks: Mapping[str, Iterable[int]]) -> Iterator[tuple[str, int]]:
    """Yield each task as subtopology id and partition."""
    for subtopology_id, partitions in tasks.items():
        for partition in partitions:
            yield subtopology_id, partition
