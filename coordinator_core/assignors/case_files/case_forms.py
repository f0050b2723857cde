"""What a case is, as JSON: docs/cases-and-traces.md says what the fields mean, and which of them a kind has."""

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict

Owned = list[tuple[str, list[int]]]
"""A topic, or its id, with numbers of partitions."""


class CaseTopic(TypedDict):
    """A topic of consumer and share groups."""

    name: str
    id: str
    partitions: int


class CaseSubscriber(TypedDict):
    """A member of a consumer or share group."""

    id: str
    topics: list[str]
    regex: NotRequired[str]
    instance: NotRequired[str]
    rack: NotRequired[str]


class BrokerChanges(TypedDict):
    """What may change with any step, and the member whose heartbeat causes the assignment."""

    by: NotRequired[str]
    topics: NotRequired[list[CaseTopic]]
    regexes: NotRequired[dict[str, list[str]]]
    uninitialized: NotRequired[list[tuple[str, int]]]


class JoinStep(BrokerChanges):
    """A member joins, or changes."""

    op: Literal["join"]
    member: CaseSubscriber


class BulkStep(BrokerChanges):
    """Members are loaded."""

    op: Literal["bulk"]
    members: list[CaseSubscriber]


class LeaveStep(BrokerChanges):
    """Members leave, by their ids."""

    op: Literal["leave"]
    members: list[str]


class TargetStep(BrokerChanges):
    """Targets are replaced."""

    op: Literal["set_target"]
    assignments: dict[str, Owned]


class TopicsStep(BrokerChanges):
    """Only topics change."""

    op: Literal["topics"]


BrokerStep = JoinStep | BulkStep | LeaveStep | TargetStep | TopicsStep


class BrokerCase(TypedDict):
    """A consumer or share group."""

    topics: NotRequired[list[CaseTopic]]
    steps: list[BrokerStep]


class CaseSubtopology(TypedDict):
    """A part of a topology."""

    id: str
    tasks: int
    stateful: bool


class CaseProcess(TypedDict):
    """A member of a streams group; offsets by task, as ``0_3``."""

    id: str
    process_id: str
    instance: NotRequired[str]
    rack: NotRequired[str]
    tags: NotRequired[dict[str, str]]
    offsets: NotRequired[dict[str, int]]
    end_offsets: NotRequired[dict[str, int]]


class CaseTopology(TypedDict):
    """Subtopologies and configurations of a streams group; only ``highly_available`` reads the last three."""

    subtopologies: NotRequired[list[CaseSubtopology]]
    num_standby_replicas: NotRequired[int]
    num_warmup_replicas: NotRequired[int]
    acceptable_recovery_lag: NotRequired[int]
    rack_aware_tags: NotRequired[list[str]]


class CaseTasks(TypedDict):
    """The tasks of a member by role and subtopology."""

    active: dict[str, list[int]]
    standby: dict[str, list[int]]
    warmup: NotRequired[dict[str, list[int]]]


class TopologyChanges(CaseTopology):
    """What may change with any step, and the member whose heartbeat causes the assignment."""

    by: NotRequired[str]


class ProcessJoins(TopologyChanges):
    """A member joins, or changes."""

    op: Literal["join"]
    member: CaseProcess


class ProcessesStep(TopologyChanges):
    """Members are loaded, or report their offsets."""

    op: Literal["bulk", "report"]
    members: list[CaseProcess]


class ProcessesLeave(TopologyChanges):
    """Members leave, by their ids."""

    op: Literal["leave"]
    members: list[str]


class TasksStep(TopologyChanges):
    """Targets are replaced."""

    op: Literal["set_target"]
    assignments: dict[str, CaseTasks]


class TopologyStep(TopologyChanges):
    """Only the topology changes."""

    op: Literal["topology"]


StreamsStep = ProcessJoins | ProcessesStep | ProcessesLeave | TasksStep | TopologyStep


class StreamsInput(CaseTopology):
    """A streams group."""

    steps: list[StreamsStep]


class CaseBroker(TypedDict):
    """A broker with its rack."""

    id: int
    rack: NotRequired[str]


class LeaderTopic(TypedDict):
    """A topic as the leader of a classic group sees it; ``replicas`` are the brokers of each partition."""

    name: str
    partitions: int
    replicas: NotRequired[list[list[int]]]


class CaseMember(TypedDict):
    """A member of a classic group."""

    id: str
    topics: list[str]
    instance: NotRequired[str]
    rack: NotRequired[str]
    owned: NotRequired[Owned]
    generation: NotRequired[int]
    user_data: NotRequired[str]


class ClassicRound(TypedDict):
    """A generation of a classic group."""

    topics: list[LeaderTopic]
    leader: str
    members: list[CaseMember]


class ClassicCase(TypedDict):
    """A classic group of consumers."""

    client: NotRequired[str]
    brokers: list[CaseBroker]
    steps: list[ClassicRound]


class CaseWorker(TypedDict):
    """A Connect worker, and what it runs."""

    id: str
    url: str
    offset: int
    connectors: NotRequired[list[str]]
    tasks: NotRequired[list[str]]


class ConnectRound(TypedDict):
    """A generation of a Connect group."""

    now_ms: int
    leader: str
    generation: int
    last_completed_generation: NotRequired[int]
    members: list[CaseWorker]
    config_offset: int
    config: dict[str, int]


class ConnectCase(TypedDict):
    """A Connect group."""

    max_delay: int
    protocol: str
    steps: list[ConnectRound]
