"""The input and the result of assignors as plain data, for every type of group.

Orders are part of the data: members, topics and partitions are in the order in which Kafka's coordinator (or the
group's leader) iterates over them, because Kafka's assignors break ties by it. ``coordinator_view`` builds such specs
from the state of a group; where the order does not matter, any order may be used.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Generic, TypeVar

Partitions = Mapping[str, Sequence[int]]
"""Topic (id for consumer and share groups, name for classic ones) or subtopology to partition numbers, in order."""

NO_PARTITIONS: Partitions = {}


class AssignedGroupType(StrEnum):
    """The types of group, by their names in ListGroups; Connect's name is that of its KIP-848 proposal."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"
    CONNECT = "connect"


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """One member of a consumer or share group.

    ``topics`` holds the ids of the subscribed topics that exist; ``names`` counts the subscribed names, including those
    of missing topics (-1: as many as ``topics``), since Kafka sizes its sets by it. ``previous`` is the member's target
    assignment before this one.
    """

    topics: Sequence[str]
    previous: Partitions = field(default_factory=lambda: NO_PARTITIONS)
    instance_id: str | None = None
    rack_id: str | None = None
    names: int = -1

    @property
    def subscribed(self) -> int:
        """How many topic names the member subscribes to, existing or not."""
        return len(self.topics) if self.names < 0 else self.names


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A consumer or share group (KIP-848, KIP-932).

    ``homogeneous`` is the coordinator's own judgement whether all members subscribe to the same topics (it can be
    stale). ``assigned`` holds the partitions that the coordinator's inverted target assignment knows as assigned (None:
    those of the members' previous assignments). ``assignable`` limits the partitions (share groups: those initialised;
    None: all).
    """

    members: Mapping[str, MemberSpec]
    homogeneous: bool = True
    assigned: Mapping[str, Collection[int]] | None = None
    assignable: Mapping[str, Collection[int]] | None = None
    type: AssignedGroupType = AssignedGroupType.CONSUMER


@dataclass(frozen=True, slots=True)
class Tasks:
    """Tasks of one streams member by role; each maps a subtopology id to partition numbers."""

    active: Partitions = field(default_factory=lambda: NO_PARTITIONS)
    standby: Partitions = field(default_factory=lambda: NO_PARTITIONS)
    warmup: Partitions = field(default_factory=lambda: NO_PARTITIONS)


TaskId = tuple[str, int]
"""Subtopology id and partition."""


@dataclass(frozen=True, slots=True)
class StreamsMemberSpec:
    """One member (thread) of a streams group (KIP-1071).

    ``task_offsets`` and ``task_end_offsets`` are the sums of changelog offsets that the member's process reported for
    tasks whose state it has; their difference is the task's lag.
    """

    process_id: str
    previous: Tasks = field(default_factory=Tasks)
    instance_id: str | None = None
    rack_id: str | None = None
    client_tags: Mapping[str, str] = field(default_factory=dict)
    task_offsets: Mapping[TaskId, int] = field(default_factory=dict)
    task_end_offsets: Mapping[TaskId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubtopologyTasks:
    """One configured subtopology: its number of tasks (most partitions of its inputs) and whether it has state."""

    id: str
    tasks: int
    stateful: bool


@dataclass(frozen=True, slots=True)
class StreamsConfigs:
    """The group configurations that streams assignors read, with Kafka's defaults (KIP-1071, KIP-441, KIP-708)."""

    num_standby_replicas: int = 0
    num_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    rack_aware_tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class StreamsGroupSpec:
    """A streams group: its members, its configured topology in the order of subtopologies, its configurations.

    ``stale`` are the members whose topology is older than the group's: they get no new tasks (KIP-1071).
    """

    members: Mapping[str, StreamsMemberSpec]
    subtopologies: Sequence[SubtopologyTasks]
    configs: StreamsConfigs = field(default_factory=StreamsConfigs)
    stale: Collection[str] = ()
    type: AssignedGroupType = AssignedGroupType.STREAMS


@dataclass(frozen=True, slots=True)
class ClassicMemberSpec:
    """One member of a classic group as its leader sees it.

    ``owned`` and ``user_data`` are None if the member sent none; ``generation`` is None before subscription version 2
    or if it is absent. ``rack_id`` is empty if librdkafka has none: its sticky assignor takes that for a rack.
    """

    topics: Sequence[str]
    owned: Sequence[tuple[str, int]] | None = None
    generation: int | None = None
    user_data: bytes | None = None
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class ClassicGroupSpec:
    """A classic group; ``memory`` is what the leader's assignor kept from its last round (None: a new assignor).

    ``client`` is the leader's client (``assignors.client.clients``), ``leader`` its member id, ``topic_order`` the
    order in which it knows the topics. The assignors of some clients depend on them.
    """

    members: Mapping[str, ClassicMemberSpec]
    memory: Any = None
    client: str = "java"
    leader: str = ""
    topic_order: Sequence[str] = ()
    type: AssignedGroupType = AssignedGroupType.CLASSIC


ConnectorTask = tuple[str, int]
"""Connector name and task number."""


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker of a Connect group: its URL, how far it has read the config topic, and what it runs (KIP-415)."""

    url: str
    config_offset: int
    connectors: Sequence[str] = ()
    tasks: Sequence[ConnectorTask] = ()


@dataclass(frozen=True, slots=True)
class ConnectGroupSpec:
    """A Connect group in one rebalance, as its leader sees it.

    ``connectors`` counts the tasks of each configured connector, as of ``config_offset``, up to which the leader has
    read the config topic. ``memory`` is what the leader's assignor kept from its last round (None: a new assignor).
    """

    members: Mapping[str, WorkerSpec]
    leader: str
    connectors: Mapping[str, int]
    config_offset: int
    generation: int
    last_completed_generation: int
    now_ms: int
    max_delay_ms: int
    memory: Any = None
    type: AssignedGroupType = AssignedGroupType.CONNECT


GroupSpecs = GroupSpec | StreamsGroupSpec | ClassicGroupSpec | ConnectGroupSpec

W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Assignment(Generic[W]):
    """The result of an assignor: work by member (``Partitions`` or ``Tasks``), in the order of Java's result map.

    ``memory`` is passed to the same leader's next round, if the assignor keeps any (classic sticky, Connect).
    """

    members: Mapping[str, W]
    memory: Any = None
