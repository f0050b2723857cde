"""A classic group as its coordinator keeps it in memory.

The log contains a classic group only as of the end of a rebalance. Everything in between (which members asked to join
with which protocols, which still have to, which requests are parked) is only here: all of it is soft state. Loading a
record makes the group again from it.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE
from coordinator_core.groups.classic.state import ClassicGroup, ClassicGroupState
from coordinator_core.groups.consumer_protocol import subscription
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.java.hash_codes import STRING
from coordinator_core.java.order import HashMap
from coordinator_core.record_fields.coordinator_requests import JoinGroupRequest, SyncGroupRequest
from coordinator_core.records import CoordinatorRecord, Fields, RecordType

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata of each protocol that a member supports, in its order of preference."""


class ConvertedMember(Protocol):
    """A member of another type of group that speaks the classic protocol, as it continues in a classic group."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    client_host: str | None
    rebalance_timeout_ms: int


@dataclass(slots=True)
class LiveClassicMember:
    """A member; ``assignment`` is what its last SyncGroup response contained. Parked requests are not answered yet."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Protocols
    assignment: bytes = b""
    awaiting_join: Request[JoinGroupRequest] | None = None
    awaiting_sync: Request[SyncGroupRequest] | None = None
    is_new: bool = False

    @classmethod
    def of(cls, member: ConvertedMember, session_timeout_ms: int, protocols: Protocols) -> "LiveClassicMember":
        """Return the member as one of a classic group, without an assignment."""
        return cls(
            member.member_id,
            member.instance_id,
            member.client_id or "",
            member.client_host or "",
            member.rebalance_timeout_ms,
            session_timeout_ms,
            protocols,
        )

    @property
    def satisfies_heartbeat(self) -> bool:
        """Whether a parked request counts as a heartbeat; never for a member in its first JoinGroup."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)

    def metadata(self, protocol: str | None) -> bytes:
        """Return the metadata that the member sent for this protocol; raises ApiError where Kafka fails without it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, f"Member does not support protocol {protocol}")


@dataclass(slots=True)
class LiveClassicGroup:
    """The group. Members iterate in Java's order, which decides the next leader and whose vote counts first."""

    type: ClassVar = GroupType.CLASSIC

    group_id: str
    state: ClassicGroupState = ClassicGroupState.EMPTY
    previous_state: ClassicGroupState = ClassicGroupState.DEAD
    state_timestamp_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: HashMap[str, LiveClassicMember] = field(default_factory=lambda: HashMap(STRING))
    static_members: dict[str, str] = field(default_factory=dict)
    pending_join: set[str] = field(default_factory=set)
    pending_sync: set[str] = field(default_factory=set)
    new_member_added: bool = False
    protocol_counts: dict[str, int] = field(default_factory=dict)
    subscribed_topics: frozenset[str] | None = None

    timer_keys: ClassVar = ()

    @property
    def is_empty(self) -> bool:
        """Whether the group is in state EMPTY; a group in its first rebalance no longer is."""
        return self.state is ClassicGroupState.EMPTY

    def tombstones(self) -> list[tuple[RecordType, Fields, None]]:
        """Return the tombstone of the group's only record."""
        return [(RecordType.GROUP_METADATA, {"group": self.group_id}, None)]

    def follow(self, record: CoordinatorRecord, log: CoordinatorShard) -> tuple[set[str], set[str]]:
        """Apply the record and make the group again from it. Return no topics: the leader watches them."""
        log.apply(record)
        state = log.groups[self.group_id].state
        if isinstance(state, ClassicGroup):
            self._load(state)
        return set(), set()

    def request_metadata_refresh(self) -> None:
        """Do nothing: the leader watches the topics."""

    def _load(self, logged: ClassicGroup) -> None:
        self.state = ClassicGroupState.STABLE if logged.members else ClassicGroupState.EMPTY
        self.previous_state = ClassicGroupState.DEAD
        self.state_timestamp_ms = -1 if logged.current_state_timestamp is None else logged.current_state_timestamp
        self.generation = logged.generation or 0
        self.protocol_type = logged.protocol_type or None
        self.protocol = logged.protocol
        self.leader = logged.leader
        self.members = HashMap(STRING)
        self.static_members = {}
        self.pending_join, self.pending_sync = set(), set()
        self.protocol_counts = {}
        for member in logged.members.values():
            rebalance_timeout = member.rebalance_timeout_ms
            self.add(
                LiveClassicMember(
                    member.member_id,
                    member.instance_id,
                    member.client_id,
                    member.client_host,
                    # Values before version 1 have no rebalance timeout: Kafka takes the session timeout in its place.
                    member.session_timeout_ms if rebalance_timeout in (None, -1) else rebalance_timeout,
                    member.session_timeout_ms,
                    ((logged.protocol or "", member.subscription),),
                    member.assignment,
                ),
                self.protocol_type,
            )
        self.subscribed_topics = self.current_topics()

    @property
    def awaiting_join(self) -> int:
        """How many members have a parked JoinGroup."""
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        """Whether every member asked to join, and no member id was given out that has not joined yet."""
        return not self.pending_join and all(member.awaiting_join is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members, not below 0."""
        return max((0, *(member.rebalance_timeout_ms for member in self.members.values())))

    def transition(self, state: ClassicGroupState, now: int) -> None:
        """Enter this state."""
        self.previous_state, self.state = self.state, state
        self.state_timestamp_ms = now

    def add(self, member: LiveClassicMember, protocol_type: str | None) -> None:
        """Add a member. The first one leads and decides the group's protocol type."""
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count(member.protocols, 1)
        self.pending_join.discard(member.member_id)

    def change_protocols(self, member: LiveClassicMember, protocols: Protocols) -> None:
        """Set the protocols that the member supports."""
        self._count(member.protocols, -1)
        member.protocols = protocols
        self._count(protocols, 1)

    def replace_static(self, old: LiveClassicMember, member_id: str) -> LiveClassicMember:
        """Replace a static member's old member id by a new one; parked requests are not passed on."""
        del self.members[old.member_id]
        new = replace(old, member_id=member_id, awaiting_join=None, awaiting_sync=None, is_new=False)
        self.members[member_id] = new
        if self.leader == old.member_id:
            self.leader = member_id
        if old.instance_id is not None:
            self.static_members[old.instance_id] = member_id
        return new

    def remove(self, member_id: str) -> None:
        """Remove a member, or an id that was given out; if the member was the leader, the first remaining one
        becomes leader.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.protocols, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)

    def elect_joined_leader(self) -> bool:
        """Keep a leader that asked to join, or choose the first member that did; return False if no member did."""
        if self.leader is None:
            return False
        if self.members[self.leader].awaiting_join is not None:
            return True
        joined = next((member.member_id for member in self.members.values() if member.awaiting_join is not None), None)
        if joined is not None:
            self.leader = joined
        return joined is not None

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether a member with these protocols can join: an empty group accepts any, otherwise one must be shared."""
        if self.state is ClassicGroupState.EMPTY:
            return bool(protocol_type and protocols)
        if self.protocol_type is None or self.protocol_type != protocol_type:
            return False
        return any(self.protocol_counts.get(name, 0) == len(self.members) for name, _ in protocols)

    def select_protocol(self) -> str:
        """Return the protocol with most votes: each member votes for the first one on its list that all members
        support.
        """
        votes: HashMap[str, int] = HashMap(STRING)
        for member in self.members.values():
            vote = next((name for name, _ in member.protocols if self.protocol_counts[name] == len(self.members)), None)
            if vote is None:
                raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, "Member does not support any of the candidate protocols")
            votes[vote] = votes.get(vote, 0) + 1
        # max takes the first of equals, in the order of Java's map.
        return max(votes, key=votes.__getitem__)

    def current_topics(self) -> frozenset[str] | None:
        """Return the topics that members subscribe to; None if they are not consumers, or do not list them."""
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE or (self.members and self.protocol is None):
            return None
        try:
            subscriptions = [subscription(member.metadata(self.protocol)) for member in self.members.values()]
        except DecodeError:
            return None
        return frozenset(topic for each in subscriptions for topic in each.topics)

    def _count(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self.protocol_counts[name] = self.protocol_counts.get(name, 0) + by
