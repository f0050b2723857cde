"""The client libraries of a group's members at a moment, told from what the group's records say of them then."""

from collections import Counter
from functools import reduce

from coordinator_core.clients.evidence import (
    EVERY_WRITER,
    Writers,
    assignment_writers,
    classic_writers,
    decide,
    decide_by_id,
    narrowed,
    subscription_writers,
)
from coordinator_core.clients.known_clients import ONLY_JAVA, Told
from coordinator_core.groups.classic.protocols import CONSUMER_PROTOCOL_TYPE, STREAMS_PROTOCOL
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerMember
from coordinator_core.groups.group import GroupState


def clients_of(state: GroupState | None) -> dict[str, Told]:
    """Return the client of each member, by member id; that of a classic leader also by what it assigned."""
    if state is None:
        return {}
    if isinstance(state, ClassicGroup):
        return _of_generation(state)
    return {member_id: client_of(member_id, member)[0] for member_id, member in state.members.items()}


def client_of(member_id: str, member: object, writers: Writers = EVERY_WRITER) -> tuple[Told, Writers]:
    """Return the client of a member of a group with epochs, and the writers that can have written all its blobs.

    ``writers`` are those of the blobs that it wrote before. Of a member that speaks the classic protocol its
    subscriptions tell, of others of a consumer group the id that they chose.
    """
    if not isinstance(member, ConsumerMember):
        return ONLY_JAVA, writers
    if member.classic is None:
        return decide_by_id(member_id, member.client_id), writers
    offered = [subscription_writers(name, metadata) for name, metadata in member.classic.supported_protocols]
    writers = reduce(narrowed, offered, writers)
    told = decide(writers, member.client_id or "", member.classic.session_timeout_ms, member.rebalance_timeout_ms)
    return told, writers


def _of_generation(group: ClassicGroup) -> dict[str, Told]:
    told = {}
    for member_id, member in group.members.items():
        writers = classic_writers(group.protocol_type, group.protocol, member.subscription)
        if member_id == group.leader and group.protocol_type == CONSUMER_PROTOCOL_TYPE:
            blobs = ((each.subscription, each.assignment) for each in group.members.values())
            writers = narrowed(assignment_writers(group.protocol or "", blobs), writers)
        told[member_id] = decide(writers, member.client_id, member.session_timeout_ms, member.rebalance_timeout_ms)
    return told


def is_of_consumers(state: GroupState | None) -> bool:
    """Whether members of any client can be in such a group; of the known clients only Java has the others."""
    if isinstance(state, ClassicGroup):
        return state.protocol_type == CONSUMER_PROTOCOL_TYPE and state.protocol != STREAMS_PROTOCOL
    return isinstance(state, ConsumerGroup)


def count_clients(state: GroupState | None) -> dict[str, int]:
    """Return how many members of a group of consumers each client has, by its name; empty for other groups."""
    return (
        dict(sorted(Counter(told.name for told in clients_of(state).values()).items()))
        if is_of_consumers(state)
        else {}
    )


def leader_client(state: GroupState | None) -> str | None:
    """Return the name of the client that leads a classic group of consumers; None: there is no such leader."""
    if not isinstance(state, ClassicGroup) or not is_of_consumers(state) or state.leader not in state.members:
        return None
    return clients_of(state)[state.leader].name
