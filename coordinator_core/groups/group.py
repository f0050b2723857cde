"""A group of any type under one id: its type may change, and it may be deleted and created again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from coordinator_core.groups.classic import replay as classic
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.connect import replay as connect
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.consumer import replay as consumer
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epochs import EpochGroup
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.share import replay as share
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams import replay as streams
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.groups.violations import Violations, violation
from coordinator_core.records import AnyRecord, ConnectRecordType, CoordinatorRecord, Family, RecordType
from coordinator_core.state_json import OneOf

GroupState = ClassicGroup | ConsumerGroup | ShareGroup | StreamsGroup | ConnectGroup

_TYPES: Mapping[type[GroupState], GroupType] = {
    ClassicGroup: GroupType.CLASSIC,
    ConsumerGroup: GroupType.CONSUMER,
    ShareGroup: GroupType.SHARE,
    StreamsGroup: GroupType.STREAMS,
    ConnectGroup: GroupType.CONNECT,
}

# Looking a member of an enum up by its name is slow in Python 3.11, and this is asked of every record.
_GROUP_LOG = Family.GROUP

_Handler = Callable[[Any, AnyRecord], Violations]
_Handlers = Mapping[int, tuple[type[GroupState], _Handler]]
_HANDLERS: _Handlers = {
    **{type_: (ClassicGroup, handler) for type_, handler in classic.HANDLERS.items()},
    **{type_: (ConsumerGroup, handler) for type_, handler in consumer.HANDLERS.items()},
    **{type_: (ShareGroup, handler) for type_, handler in share.HANDLERS.items()},
    **{type_: (StreamsGroup, handler) for type_, handler in streams.HANDLERS.items()},
}
_CONNECT_HANDLERS: _Handlers = {type_: (ConnectGroup, handler) for type_, handler in connect.HANDLERS.items()}
_ENDS_GROUP = frozenset(
    (
        (ClassicGroup, RecordType.GROUP_METADATA),
        (ConsumerGroup, RecordType.CONSUMER_GROUP_METADATA),
        (ShareGroup, RecordType.SHARE_GROUP_METADATA),
        (StreamsGroup, RecordType.STREAMS_GROUP_METADATA),
        (ConnectGroup, ConnectRecordType.GROUP_METADATA),
    )
)
"""The record whose tombstone ends a group of that type."""
_ENDS_CONNECT_LOG = frozenset(number for state, number in _ENDS_GROUP if state is ConnectGroup)
_ENDS_GROUP_LOG = frozenset(number for state, number in _ENDS_GROUP if state is not ConnectGroup)


@dataclass(slots=True)
class Group:
    """The group of one id.

    ``state`` is of its present type; None: there is no such group, or none of its records was seen. ``from_start``:
    what was not seen does not exist, because the log was read from its start or the group's end was seen in it.
    Compaction does not change that. Then a group with epochs begins with the epochs of a new group; otherwise they are
    None until they are seen. ``family`` is that of the log: Connect groups (KIP-848 proposal) have a log of their own,
    where the same numbers are other records. ``reloaded``: a coordinator loaded the group, and none of its members has
    sent a heartbeat since.
    """

    group_id: str
    state: Annotated[GroupState, OneOf(_TYPES)] | None = None
    from_start: bool = False
    family: Family = Family.GROUP
    reloaded: bool = False

    @property
    def type(self) -> GroupType | None:
        """The present type, None without state."""
        return None if self.state is None else _TYPES[type(self.state)]

    @property
    def is_simple(self) -> bool:
        """Whether the group has only ever committed offsets: a classic group without a record of its own."""
        return isinstance(self.state, ClassicGroup) and self.state.generation is None

    def apply(self, record: CoordinatorRecord) -> Violations:
        """Change the group by one of its records (for offset commits see ``commit``); return violations, raise nothing.

        The first record of another type begins the group again with that type: the log's last word holds.
        """
        entry = (_HANDLERS if self.family is _GROUP_LOG else _CONNECT_HANDLERS).get(record.type)
        if entry is None:
            return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type}")
        state_class, handler = entry
        state = self.state
        if type(state) is state_class:
            seen = handler(state, record)
            if record.value is None and (state_class, record.type) in _ENDS_GROUP:
                self.state, self.from_start = None, True
            return seen
        if record.value is None:
            return handler(state_class(), record)
        simple = self.is_simple
        new_state = state_class()
        if self.from_start and isinstance(new_state, EpochGroup):
            new_state.begin()
        self.state = new_state
        seen = handler(new_state, record)
        if state is None or simple:
            return seen
        detail = f"{_TYPES[state_class]} record while the group was {_TYPES[type(state)]}"
        return (*violation(Rule.TYPE_CHANGED_WITHOUT_TOMBSTONE, record, detail), *seen)

    def commit(self) -> None:
        """Note that an offset was committed, which creates a classic group where there is none.

        If the log does not begin at its start, the group may be of any type: then nothing is noted.
        """
        if self.state is None and self.from_start:
            self.state = ClassicGroup()


def ends_group(record_type: int, family: Family) -> bool:
    """Whether a tombstone of this type ends a group: what the group has of other keys is gone then."""
    return record_type in (_ENDS_GROUP_LOG if family is _GROUP_LOG else _ENDS_CONNECT_LOG)
