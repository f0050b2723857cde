"""What the clients behind members are called: a name that survives restarts, and the client library."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

from coordinator_core.clients.known_clients import ClientCertainty, KnownClient, count_text
from coordinator_core.history.rows import GroupEpochRow, MembershipRow

AT_ONCE = 2
"""A client may be this many members at once: one that crashed, and its successor before the session expires."""


class OfClient(Protocol):
    """What names the client behind a member."""

    @property
    def member_id(self) -> str:
        """The id that the coordinator, or a client of KIP-848, gave the member."""

    @property
    def instance_id(self) -> str | None:
        """That of a static member."""

    @property
    def client_id(self) -> str | None:
        """None: not known."""

    @property
    def client_host(self) -> str | None:
        """The address of the client."""


def named(client: OfClient) -> str:
    """Return the name of the client behind a member, and behind it the member id: ``app-1 at 10.0.0.1 (q3f...)``."""
    name = client_name(client)
    return name if name == client.member_id else f"{name} ({client.member_id})"


def client_name(row: OfClient) -> str:
    """Return what stays the same when a member starts again: its instance id, or its client id and host."""
    if row.instance_id is not None:
        return f"instance {row.instance_id}"
    return row.member_id if row.client_id is None else client_at(row.client_id, row.client_host)


def client_at(client_id: str | None, host: str | None) -> str:
    """Return a client id, which may be empty, and its host: ``app-1 at 10.0.0.1``."""
    return f"{client_id or 'client without an id'} at {(host or '?').lstrip('/')}"


def client_library(row: MembershipRow) -> str | None:
    """Return the client library of a member, or that it is unknown; None: it is Java, or can be, as most are."""
    if KnownClient.JAVA in row.client.split(" or "):
        return None
    return "unknown client" if row.client == ClientCertainty.UNKNOWN else row.client


def shared_names(memberships: Sequence[MembershipRow]) -> Iterator[str]:
    """Yield the client names that do not identify one client: more members than AT_ONCE had them at the same time."""
    by_name: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in memberships:
        moments = by_name[client_name(row)]
        moments.append((row.joined.offset, 1))
        if row.left is not None:
            moments.append((row.left.offset, -1))
    for name, moments in by_name.items():
        # At one offset -1 sorts first: a successor that comes with the record that removes the other is not one more.
        if max(accumulate(step for _, step in sorted(moments))) > AT_ONCE:
            yield name


def clients_of(epoch: GroupEpochRow, members: Mapping[str, MembershipRow], *, with_leader: bool) -> str | None:
    """Return in words who leads an epoch, and how many of its members each client library has.

    ``members``: by member id. None: all of them are Java, or can be.
    """
    rows = [members[member_id] for member_id in epoch.members or () if member_id in members]
    if all(client_library(row) is None for row in rows):
        return None
    leader = members.get(epoch.leader or "")
    counts = count_text(row.client for row in rows)
    if leader is None or not with_leader:
        return counts
    return f"leader {leader.member_id} ({leader.client}); {counts}"
