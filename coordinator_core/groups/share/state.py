"""A share group as its records define it (KIP-932)."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from coordinator_core.groups.epochs import EpochGroup, EpochMember, Partitions

MEMBER_STATE_STABLE = 0
"""The only state of a share group's member: no partition has to be revoked before it is assigned."""


class ShareGroupState(StrEnum):
    """The state of the whole group."""

    EMPTY = "EMPTY"
    STABLE = "STABLE"


class ShareTopic(NamedTuple):
    """Partitions of a topic whose share state is being or has been initialised."""

    name: str
    partitions: list[int]


@dataclass(slots=True)
class StatePartitionMetadata:
    """The share partitions that have state (type 15), by topic id; for topics that are being deleted, the name."""

    initializing: dict[str, ShareTopic] = field(default_factory=dict)
    initialized: dict[str, ShareTopic] = field(default_factory=dict)
    deleting: dict[str, str] = field(default_factory=dict)

    @property
    def names(self) -> dict[str, str]:
        """The names of its topics, by id."""
        with_state = {topic_id: topic.name for topic_id, topic in (self.initializing | self.initialized).items()}
        return self.deleting | with_state


@dataclass(slots=True)
class ShareMember(EpochMember):
    """A member: metadata (type 10) and current assignment (type 14); None where its record was not seen."""

    subscribed_topic_names: list[str] = field(default_factory=list)
    assigned: Partitions = field(default_factory=dict)

    def release(self) -> None:
        """See EpochMember."""
        self.assigned = {}


@dataclass(slots=True)
class ShareGroup(EpochGroup[ShareMember, Partitions]):
    """A share group. ``state_partitions`` is None if there is no such record."""

    members: dict[str, ShareMember] = field(default_factory=dict)
    targets: dict[str, Partitions] = field(default_factory=dict)
    state_partitions: StatePartitionMetadata | None = None
