"""A group of any type under one id: its type may change, and it may be deleted and created again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

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

_Handler = Callable[[Any, AnyRecord], Violations]


class GroupKind(NamedTuple):
    """One type of group: its state, what its records do to it, and the record whose tombstone ends it."""

    group_type: GroupType
    state: type[GroupState]
    handlers: Mapping[int, _Handler]
    ends: int


_KINDS = (
    GroupKind(GroupType.CLASSIC, ClassicGroup, classic.HANDLERS, RecordType.GROUP_METADATA),
    GroupKind(GroupType.CONSUMER, ConsumerGroup, consumer.HANDLERS, RecordType.CONSUMER_GROUP_METADATA),
    GroupKind(GroupType.SHARE, ShareGroup, share.HANDLERS, RecordType.SHARE_GROUP_METADATA),
    GroupKind(GroupType.STREAMS, StreamsGroup, streams.HANDLERS, RecordType.STREAMS_GROUP_METADATA),
)
_CONNECT = GroupKind(GroupType.CONNECT, ConnectGroup, connect.HANDLERS, ConnectRecordType.GROUP_METADATA)
"""Its log is another one, where the same numbers are other records."""
_TYPES: Mapping[type[GroupState], GroupType] = {kind.state: kind.group_type for kind in (*_KINDS, _CONNECT)}
_OF_RECORD = {type_: (kind, handler) for kind in _KINDS for type_, handler in kind.handlers.items()}
_OF_CONNECT_RECORD = {type_: (_CONNECT, handler) for type_, handler in _CONNECT.handlers.items()}
GROUP_ENDS = frozenset(RecordType(kind.ends) for kind in _KINDS)
"""Record types of the group log whose tombstone ends a group."""

# Looking a member of an enum up by its name is slow in Python 3.11, and this is asked of every record.
_GROUP_LOG = Family.GROUP


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
    def epoch(self) -> int | None:
        """The group epoch, or the generation; None: there is none, or it was not seen."""
        state = self.state
        return state.generation if isinstance(state, ClassicGroup) else None if state is None else state.group_epoch

    @property
    def is_simple(self) -> bool:
        """Whether the group has only ever committed offsets: a classic group without a record of its own."""
        return isinstance(self.state, ClassicGroup) and self.state.generation is None

    def apply(self, record: CoordinatorRecord) -> Violations:
        """Change the group by one of its records (for offset commits see ``commit``); return violations, raise nothing.

        The first record of another type begins the group again with that type: the log's last word holds.
        """
        entry = (_OF_RECORD if self.family is _GROUP_LOG else _OF_CONNECT_RECORD).get(record.type)
        if entry is None:
            return violation(Rule.UNKNOWN_RECORD_TYPE, record, f"record type {record.type}")
        kind, handler = entry
        state = self.state
        if type(state) is kind.state:
            seen = handler(state, record)
            if record.value is None and record.type == kind.ends:
                self.state, self.from_start = None, True
            return seen
        if record.value is None:
            # Held against an empty group of its own type: it may break a rule, and changes nothing of this one.
            return handler(kind.state(), record)
        simple = self.is_simple
        new_state = kind.state()
        if self.from_start and isinstance(new_state, EpochGroup):
            new_state.begin()
        self.state = new_state
        seen = handler(new_state, record)
        # A group that only committed offsets has no record that a tombstone could remove before.
        if state is None or simple:
            return seen
        detail = f"{kind.group_type} record while the group was {_TYPES[type(state)]}"
        return (*violation(Rule.TYPE_CHANGED_WITHOUT_TOMBSTONE, record, detail), *seen)

    def commit(self) -> None:
        """Note that an offset was committed, which creates a classic group where there is none.

        If the log does not begin at its start, the group may be of any type: then nothing is noted.
        """
        if self.state is None and self.from_start:
            self.state = ClassicGroup()


def ends_group(record_type: int, family: Family) -> bool:
    """Whether a tombstone of this type ends a group: what the group has of other keys is gone then."""
    return record_type in GROUP_ENDS if family is _GROUP_LOG else record_type == _CONNECT.ends
