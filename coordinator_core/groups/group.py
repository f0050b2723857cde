"""A group of any type under one id: its type may change in its life, and it may die and be born again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from coordinator_core.groups.classic import replay as classic
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.consumer import replay as consumer
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.share import replay as share
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams import replay as streams
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.violations import Rule, Violations, violation
from coordinator_core.records import CoordinatorRecord, RecordType


class GroupType(StrEnum):
    """Group types by the names of Kafka's Admin client; CONNECT is the one proposed on KIP-848."""

    CLASSIC = "CLASSIC"
    CONSUMER = "CONSUMER"
    SHARE = "SHARE"
    STREAMS = "STREAMS"
    CONNECT = "CONNECT"


GroupState = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup

_TYPES: dict[type[GroupState], GroupType] = {
    ClassicGroup: GroupType.CLASSIC,
    ConsumerGroup: GroupType.CONSUMER,
    ShareGroup: GroupType.SHARE,
    StreamsGroup: GroupType.STREAMS,
}

_Handler = Callable[[Any, CoordinatorRecord], Violations]
_HANDLERS: dict[int, tuple[type[GroupState], _Handler]] = {
    RecordType.GROUP_METADATA: (ClassicGroup, classic.apply),
    **{type_: (ConsumerGroup, handler) for type_, handler in consumer.HANDLERS.items()},
    **{type_: (ShareGroup, handler) for type_, handler in share.HANDLERS.items()},
    **{type_: (StreamsGroup, handler) for type_, handler in streams.HANDLERS.items()},
}
_ENDS_GROUP = frozenset(
    (
        RecordType.GROUP_METADATA,
        RecordType.CONSUMER_GROUP_METADATA,
        RecordType.SHARE_GROUP_METADATA,
        RecordType.STREAMS_GROUP_METADATA,
    )
)


@dataclass(slots=True)
class Group:
    """The group of one id. ``state`` is of its present type; None: no such group, or a simple one, of offsets only."""

    group_id: str
    state: GroupState | None = None

    @property
    def type(self) -> GroupType | None:
        """The present type, None without state."""
        return None if self.state is None else _TYPES[type(self.state)]

    def apply(self, record: CoordinatorRecord) -> Violations:
        """Changes the group by one of its records (offset commits are none of them); raises nothing.

        The first record of another type begins the group anew with that type: what the log says now is what holds.
        """
        entry = _HANDLERS.get(record.type)
        if entry is None:
            return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type}")
        state_class, handler = entry
        state = self.state
        if type(state) is state_class:
            seen = handler(state, record)
            if record.value is None and record.type in _ENDS_GROUP:
                self.state = None
            return seen
        if record.value is None:
            return handler(state_class(), record)
        self.state = state_class()
        seen = handler(self.state, record)
        if state is None:
            return seen
        detail = f"{_TYPES[state_class]} record while the group was {_TYPES[type(state)]}"
        return (*violation(Rule.TYPE_CHANGED_WITHOUT_TOMBSTONE, record, detail), *seen)


def is_group_record(record_type: int) -> bool:
    """Whether records of this type change a group, as opposed to its committed offsets."""
    return record_type in _HANDLERS
