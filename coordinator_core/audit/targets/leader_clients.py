"""Which client led a generation of a classic group, and so which assignors can have made its assignment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from coordinator_core.assignors.client.clients import CLIENTS, JAVA, JAVA_CLIENTS
from coordinator_core.clients.evidence import WRITERS, assignment_writers, decide, narrowed, subscription_writers
from coordinator_core.record_fields.classic_group import GroupMetadataValue

RELEASES: Final[Mapping[str, tuple[str, ...]]] = {
    "java": (JAVA, "java-3.5", "java-3.0"),
    "java 2.4": ("java-3.0", "java-2.6", "java-2.4"),
    "java 0.9": ("java-2.4",),
}
"""By writer of blobs, the releases of Kafka's own client whose assignors it can have; other writers are one client."""


def leader_clients(value: GroupMetadataValue) -> tuple[str, ...]:
    """Return the clients that can have led this generation, the likeliest first; none: no known client writes so."""
    protocol = value["protocol"] or ""
    writers = assignment_writers(
        protocol, ((member["subscription"], member["assignment"]) for member in value["members"])
    )
    leader = next((member for member in value["members"] if member["memberId"] == value["leader"]), None)
    if leader is None:
        return _profiles(writers)
    writers = narrowed(writers, subscription_writers(protocol, leader["subscription"]))
    told = decide(writers, leader["clientId"], leader["sessionTimeout"], leader.get("rebalanceTimeout"))
    likely = frozenset(name for name in writers if WRITERS[name].client in told.clients)
    return tuple(dict.fromkeys((*_profiles(likely), *_profiles(writers))))


def _profiles(writers: frozenset[str]) -> tuple[str, ...]:
    named = (RELEASES.get(name, (WRITERS[name].client.value,)) for name in WRITERS if name in writers)
    return tuple(dict.fromkeys(profile for profiles in named for profile in profiles))


def is_java(clients: tuple[str, ...]) -> bool:
    """Whether it was Kafka's own client, of whatever release."""
    return all(client in JAVA_CLIENTS for client in clients)


def with_assignor(clients: tuple[str, ...], protocol: str) -> tuple[str, ...]:
    """Return the clients whose assignor of that name can be recomputed; where no client is known, of all."""
    return tuple(client for client in clients or CLIENTS if protocol in CLIENTS[client])
