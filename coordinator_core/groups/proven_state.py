"""The part of a group's state that the log proves at a moment; the rest is taken out of the state, and named."""

from collections.abc import Collection, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from coordinator_core.groups.certainty import (
    CERTAIN,
    NO_OFFSET,
    Certainty,
    CommitRecords,
    LogGaps,
    RecordKey,
    record_key,
)
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.connect.state import ConnectGroup, ConnectMember
from coordinator_core.groups.consumer.state import ConsumerGroup
from coordinator_core.groups.epochs import EpochGroup, EpochMember
from coordinator_core.groups.group import Group, GroupState, ends_group
from coordinator_core.groups.offsets import Commits, GroupOffsets, TopicPartition
from coordinator_core.groups.record_types import CONSUMER_RECORDS, SHARE_RECORDS, STREAMS_RECORDS, RecordTypes
from coordinator_core.groups.share.state import ShareGroup
from coordinator_core.groups.streams.state import StreamsGroup
from coordinator_core.records import AnyRecord, ConnectRecordType, Family, Fields, RecordType

EpochState = TypeVar("EpochState", bound=EpochGroup[Any, Any])
StateT = TypeVar("StateT", bound=EpochGroup[Any, Any] | ConnectGroup)
AnyMember = TypeVar("AnyMember", bound=EpochMember)


class StateKeys(NamedTuple):
    """The record types of a group: of the group itself with what each of them sets, and of each of its members.

    ``target`` is None where one record has the targets of all members.
    """

    group: Mapping[int, tuple[str, ...]]
    member: int
    current: int
    target: int | None = None


def _with_epochs(types: RecordTypes, of_epoch: tuple[str, ...], others: Mapping[int, tuple[str, ...]]) -> StateKeys:
    epochs: dict[int, tuple[str, ...]] = {
        types.epoch: ("group_epoch", "metadata_hash", *of_epoch),
        types.target_epoch: ("assignment_epoch", "assignment_timestamp"),
    }
    return StateKeys({**epochs, **others}, types.member, types.current, types.target)


KEYS: Mapping[type, StateKeys] = {
    ConsumerGroup: _with_epochs(
        CONSUMER_RECORDS,
        (),
        {
            RecordType.CONSUMER_GROUP_PARTITION_METADATA: ("subscription_metadata",),
            RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION: (),
        },
    ),
    ShareGroup: _with_epochs(
        SHARE_RECORDS, (), {RecordType.SHARE_GROUP_STATE_PARTITION_METADATA: ("state_partitions",)}
    ),
    StreamsGroup: _with_epochs(
        STREAMS_RECORDS,
        ("validated_topology_epoch", "last_assignment_configs", "description_epochs"),
        {
            RecordType.STREAMS_GROUP_PARTITION_METADATA: ("subscription_metadata",),
            RecordType.STREAMS_GROUP_TOPOLOGY: ("topology",),
        },
    ),
    ConnectGroup: StateKeys(
        {
            ConnectRecordType.GROUP_METADATA: ("group_epoch",),
            ConnectRecordType.CONNECTORS_TASKS_METADATA: ("work_epoch", "work"),
            ConnectRecordType.TARGET_ASSIGNMENT: ("assignment_epoch", "targets"),
            ConnectRecordType.CONFIGURATION: ("configuration",),
        },
        ConnectRecordType.MEMBER_METADATA,
        ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT,
    ),
}
"""All but those of a classic group, which is one record with its members in it."""

CURRENT_FIELDS = ("member_epoch", "previous_member_epoch", "state", "assigned", "pending_revocation")
"""What a member of a group with epochs has from the record of its current assignment."""


@dataclass(slots=True)
class GroupKeys:
    """The keys of one group as seen from a moment: the offset of the last record before it, and what follows.

    ``present`` are the keys whose last record is not a tombstone, ``followed`` those with a later record.
    ``ended`` is the offset of the last tombstone of the group itself, which leaves none of its keys. ``unread`` has the
    offset of the last record of a key that cannot be decoded: the key was there, and nothing tells its value.
    """

    last: dict[RecordKey, int] = field(default_factory=dict)
    present: set[RecordKey] = field(default_factory=set)
    followed: set[RecordKey] = field(default_factory=set)
    ended: int = NO_OFFSET
    unread: dict[RecordKey, int] = field(default_factory=dict)

    def note_unreadable(self, record_type: int, key: Fields, offset: int) -> None:
        """Take the next record before the moment if its value cannot be decoded."""
        self.unread[record_key(record_type, key)] = offset

    def is_unread(self, key: RecordKey) -> bool:
        """Whether the last record that tells of a key cannot be decoded."""
        return self.unread.get(key, NO_OFFSET) > self.last_of(key)

    @property
    def has_unread(self) -> bool:
        """Whether something of the group cannot be decoded, and was not replaced since."""
        return any(map(self.is_unread, self.unread))

    def note(self, record: AnyRecord, group: Group) -> None:
        """Take the next record before the moment, but for offset commits; ``group`` is what it made of the group."""
        key = record_key(record.type, record.key)
        self.last[key] = record.at.offset
        if record.value is not None:
            self.present.add(key)
            return
        self.present.discard(key)
        if group.state is None and ends_group(record.type, group.family):
            self.ended = record.at.offset
            self.present.clear()

    def last_of(self, key: RecordKey) -> int:
        """The offset of the last record that tells of a key, -1 if there is none."""
        return max(self.last.get(key, NO_OFFSET), self.ended)


class GroupThen(NamedTuple):
    """A group at a moment: what the log proves of it and of its offsets, and what is unknown."""

    group: Group
    offsets: GroupOffsets
    certainty: Certainty = CERTAIN

    @property
    def is_possible(self) -> bool:
        """Whether the group was there or may have been there."""
        known = self.certainty
        return self.group.state is not None or bool(self.offsets.committed or known.unknown or known.unknown_offsets)


def still_unread(commits: Mapping[TopicPartition, int], offsets: GroupOffsets) -> list[TopicPartition]:
    """Return the partitions among these whose last commit, at that offset, cannot be decoded.

    A group that ends by a conversion keeps its offsets; one that is deleted has a tombstone for each of them.
    """
    committed = offsets.committed
    return [
        partition
        for partition, offset in commits.items()
        if partition not in committed or offset > committed[partition].at.offset
    ]


def prove(group: Group, keys: GroupKeys, gaps: LogGaps) -> tuple[Group, Certainty]:
    """The group with what the log proves of it at the moment, and what is unknown; committed offsets apart.

    ``group`` is what all records before the moment make of it. If nothing of the group is proven, it has no state.
    """
    unknown = frozenset(
        key
        # Also keys without a record at the moment: a later one shows that there may have been one that it replaced.
        for key in {*keys.last, *keys.followed, *keys.unread, *_shown_keys(group.state)}
        if keys.is_unread(key) or not gaps.proves(keys.last_of(key), is_followed=key in keys.followed)
    )
    nothing_else = gaps.proves(keys.ended, is_followed=bool(keys.followed))
    proven = frozenset(keys.present) - unknown
    state = _proven_state(group.state, proven, unknown, has_only_offsets=nothing_else and not keys.has_unread)
    if state is not None:
        # Keys of other types are those of another life under this id: they say nothing of the state that is shown.
        unknown = frozenset(key for key in unknown if key.type in _types(state))
    certainty = Certainty(
        exists=bool(proven) or keys.has_unread,
        unknown=unknown,
        unknown_members=_unknown_members(group.family, state, unknown),
        all_members=nothing_else or isinstance(state, ClassicGroup),
    )
    return replace(group, state=state, from_start=gaps.proves(keys.ended, is_followed=False)), certainty


def _types(state: GroupState) -> tuple[int, ...]:
    """The record types of a group in this state."""
    if isinstance(state, ClassicGroup):
        return (RecordType.GROUP_METADATA,)
    of = KEYS[type(state)]
    return (*of.group, of.member, of.current, *(() if of.target is None else (of.target,)))


def _shown_keys(state: GroupState | None) -> Iterator[RecordKey]:
    """The keys that a description of the group rests on, whether they have a record or not."""
    if isinstance(state, ClassicGroup):
        yield RecordKey(RecordType.GROUP_METADATA)
    elif state is not None:
        of = KEYS[type(state)]
        yield from map(RecordKey, of.group)
        for member_id in state.members:
            yield RecordKey(of.member, member_id)
            yield RecordKey(of.current, member_id)
            if of.target is not None:
                yield RecordKey(of.target, member_id)


def _proven_state(
    state: GroupState | None, proven: frozenset[RecordKey], unknown: frozenset[RecordKey], *, has_only_offsets: bool
) -> GroupState | None:
    """What is left of the state without what is unknown; a group with only offsets counts if it was nothing else."""
    if isinstance(state, ClassicGroup) and state.generation is None:
        return state if has_only_offsets else None
    if state is None or not any(key.type in _types(state) for key in proven):
        return None
    if isinstance(state, ClassicGroup):
        return state
    if isinstance(state, ConnectGroup):
        return _proven_connect(state, unknown)
    return _proven_epochs(state, unknown)


def _proven_epochs(state: EpochState, unknown: frozenset[RecordKey]) -> EpochState:
    of = KEYS[type(state)]
    members: dict[str, object] = {}
    for member_id, member in state.members.items():
        known = _proven_member(
            member,
            metadata=RecordKey(of.member, member_id) not in unknown,
            current=RecordKey(of.current, member_id) not in unknown,
        )
        if known.has_metadata or known.has_current:
            members[member_id] = known
    targets: dict[str, object] = {
        member_id: target for member_id, target in state.targets.items() if (of.target, member_id) not in unknown
    }
    known_state = _without_records(replace(state, members=members, targets=targets), unknown)
    if isinstance(known_state, ConsumerGroup):
        of_regex, regexes = RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, known_state.regexes
        known_state.regexes = {name: regexes[name] for name in regexes if RecordKey(of_regex, name) not in unknown}
    return known_state


def _without_records(state: StateT, unknown: frozenset[RecordKey]) -> StateT:
    """The state without what its unknown records set: that is as in a group of which no record was seen."""
    # The state may be changed here: callers give a copy, and what was replayed goes on.
    unseen = type(state)()
    for record_type, names in KEYS[type(state)].group.items():
        if RecordKey(record_type) in unknown:
            for name in names:
                setattr(state, name, getattr(unseen, name))
    return state


def _proven_member(member: AnyMember, *, metadata: bool, current: bool) -> AnyMember:
    """A member without its metadata or its current assignment."""
    if metadata and current:
        return member
    # A copy: what is taken away here stays in the state that was replayed.
    known: AnyMember = copy(member) if metadata else type(member)(member.member_id)
    if not current:
        known.member_epoch = known.previous_member_epoch = known.state = None
        known.release()
    elif not metadata:
        for name in CURRENT_FIELDS:
            if hasattr(member, name):
                setattr(known, name, getattr(member, name))
    return known


def _proven_connect(state: ConnectGroup, unknown: frozenset[RecordKey]) -> ConnectGroup:
    known = replace(state, members={})
    for member_id, member in state.members.items():
        kept = ConnectMember(member_id)
        if RecordKey(ConnectRecordType.MEMBER_METADATA, member_id) not in unknown:
            kept = replace(member, member_epoch=None, current=None)
        if RecordKey(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, member_id) not in unknown:
            kept.member_epoch, kept.current = member.member_epoch, member.current
        if kept.client_id is not None or kept.current is not None:
            known.members[member_id] = kept
    return _without_records(known, unknown)


def _unknown_members(family: Family, state: GroupState | None, unknown: frozenset[RecordKey]) -> tuple[str, ...]:
    """The members that may have been there: those whose metadata is unknown, and that nothing else proves."""
    if state is None:
        # The type of the group is not known either: keys of members of every type of this log count.
        of_family = [of for group, of in KEYS.items() if (group is ConnectGroup) == (family is Family.CONNECT)]
        return tuple(sorted({key.about for of in of_family for key in unknown if key.type == of.member}))
    if isinstance(state, ClassicGroup):
        return ()
    of = KEYS[type(state)]
    return tuple(sorted({key.about for key in unknown if key.type == of.member} - state.members.keys()))


def prove_offsets(
    then: GroupThen,
    records: Mapping[TopicPartition, CommitRecords],
    gaps: LogGaps,
    *,
    transactions_are_known: bool,
    unread: Collection[TopicPartition] = (),
) -> GroupThen:
    """The group with the offsets that the log proves for the moment; ``records`` are about its partitions.

    ``transactions_are_known``: no transaction was open of which nothing is left. ``unread`` are partitions with a
    commit that cannot be decoded.
    """
    group, offsets, certainty = then
    unknown = frozenset(unread) | {partition for partition, record in records.items() if not record.is_known(gaps)}
    committed = _without(offsets.committed, unknown)
    pending = {producer_id: _without(commits, unknown) for producer_id, commits in offsets.pending.items()}
    offsets = GroupOffsets(committed, {producer_id: commits for producer_id, commits in pending.items() if commits})
    return GroupThen(
        group,
        offsets,
        replace(
            certainty,
            exists=certainty.exists or bool(committed),
            unknown_offsets=unknown,
            all_offsets=gaps.lists_all,
            transactions_are_known=transactions_are_known,
        ),
    )


def undecided(then: GroupThen) -> GroupThen:
    """Return a group of a dump that does not show which commits are in transactions, nor how these ended."""
    commits_hold = not then.offsets.committed
    certainty = replace(then.certainty, transactions_are_known=False, commits_hold=commits_hold)
    return then._replace(certainty=certainty)


def _without(commits: Commits, unknown: frozenset[TopicPartition]) -> Commits:
    return {partition: commit for partition, commit in commits.items() if partition not in unknown}
