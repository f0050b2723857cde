"""A classic group as its records define it (JoinGroup and SyncGroup)."""

from dataclasses import dataclass, field
from enum import StrEnum


class ClassicGroupState(StrEnum):
    """The states of a classic group. The log shows EMPTY and, on completion, STABLE; DEAD is a group that does
    not exist.
    """

    EMPTY = "EMPTY"
    PREPARING_REBALANCE = "PREPARING_REBALANCE"
    COMPLETING_REBALANCE = "COMPLETING_REBALANCE"
    STABLE = "STABLE"
    DEAD = "DEAD"


@dataclass(slots=True)
class ClassicMember:
    """A member at the end of a rebalance; timeouts in ms, ``subscription`` and ``assignment`` as the client wrote them.

    ``rebalance_timeout_ms`` is None in version 0 of the record, ``instance_id`` below version 3.
    """

    member_id: str
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int | None = None
    instance_id: str | None = None
    subscription: bytes = b""
    assignment: bytes = b""


@dataclass(slots=True)
class ClassicGroup:
    """A classic group as its last record (type 2) left it; None: no such record was seen.

    ``members`` is in the order of the record. ``protocol`` and ``leader`` are None in an empty group.
    ``current_state_timestamp`` is in milliseconds, None below version 2 of the record or where the broker set none.
    """

    generation: int | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp: int | None = None
    members: dict[str, ClassicMember] = field(default_factory=dict)
