"""What a case is, as JSON: docs/cases-and-traces.md says what the fields mean, and which of them a kind has."""

from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

Member = TypeVar("Member")
Target = TypeVar("Target")

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


class CaseStep(TypedDict, Generic[Member, Target]):
    """What happens to a group whose broker assigns: members join or change (``join``), are loaded (``bulk``), report
    their offsets (``report``) or leave by their ids, targets are replaced, or only what may change with any step does.

    ``by`` is the member whose heartbeat causes the assignment.
    """

    op: Literal["join", "bulk", "report", "leave", "set_target", "topics", "topology"]
    by: NotRequired[str]
    member: NotRequired[Member]
    members: NotRequired[list[Any]]
    assignments: NotRequired[dict[str, Target]]


class BrokerStep(CaseStep[CaseSubscriber, Owned]):
    """A step of a consumer or share group, with what may change with any step."""

    topics: NotRequired[list[CaseTopic]]
    regexes: NotRequired[dict[str, list[str]]]
    uninitialized: NotRequired[list[tuple[str, int]]]


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


class StreamsStep(CaseStep[CaseProcess, CaseTasks], CaseTopology):
    """A step of a streams group; the topology may change with any."""


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
