"""A consumer group as its records define it (KIP-848)."""

from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import NamedTuple

from coordinator_core.groups.epochs import EpochGroup, EpochMember, PartitionEpochs, Partitions
from coordinator_core.groups.subscribed_topics import SubscribedTopic


class ConsumerMemberState(IntEnum):
    """How far a member is on the way to its target."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


MEMBER_STATES = frozenset(ConsumerMemberState)
"""The states that a broker writes."""


class ConsumerGroupState(StrEnum):
    """The state of the whole group, which follows from epochs and members."""

    EMPTY = "EMPTY"
    ASSIGNING = "ASSIGNING"
    RECONCILING = "RECONCILING"
    STABLE = "STABLE"


class ClassicProtocol(NamedTuple):
    """One protocol of a member that still speaks JoinGroup: its name and the serialised subscription."""

    name: str
    metadata: bytes


class ClassicMemberMetadata(NamedTuple):
    """What a member that still speaks JoinGroup sent beyond a consumer's metadata."""

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]


class ResolvedRegex(NamedTuple):
    """A subscribed regular expression as resolved: topics, metadata version and time (ms) of the resolution."""

    topics: list[str]
    version: int
    timestamp: int


@dataclass(slots=True)
class ConsumerMember(EpochMember):
    """A member: metadata (type 5) and current assignment (type 8); None where its record was not seen."""

    instance_id: str | None = None
    subscribed_topic_names: list[str] = field(default_factory=list)
    subscribed_topic_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    classic: ClassicMemberMetadata | None = None
    assigned: PartitionEpochs = field(default_factory=dict)
    pending_revocation: PartitionEpochs = field(default_factory=dict)

    @property
    def speaks_classic(self) -> bool:
        """See EpochMember."""
        return self.classic is not None

    def release(self) -> None:
        """See EpochMember."""
        self.assigned, self.pending_revocation = {}, {}


@dataclass(slots=True)
class ConsumerGroup(EpochGroup[ConsumerMember, Partitions]):
    """A consumer group. ``subscription_metadata`` is the type 4 record of older brokers, None if there is none."""

    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    subscription_metadata: dict[str, SubscribedTopic] | None = None
