"""Which clients cannot work together in one classic group: who leads, who is a member, and what happens then.

Seen on a broker, and read from the clients' sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from coordinator_core.clients.known_clients import KnownClient

_JAVA, _RDKAFKA, _FRANZ_GO, _SARAMA = (
    KnownClient.JAVA,
    KnownClient.LIBRDKAFKA,
    KnownClient.FRANZ_GO,
    KnownClient.SARAMA,
)

SHORT: Final = frozenset((KnownClient.KAFKA_GO, KnownClient.PLATFORMATIC))
"""Clients that end their subscriptions before the fields of the version that they write in front."""
KEEPS_LAST_ENTRY: Final = frozenset((_FRANZ_GO, _SARAMA, KnownClient.KAFKA_GO, KnownClient.KAFKAJS))
"""Clients that, of a topic that their assignment lists several times, keep the last entry; others put them together."""


class Consequence(StrEnum):
    """What happens to a group while one client leads it and another is a member."""

    FAILS = "no generation is completed"
    """The leader fails on the member's subscription: no member gets an assignment, and all join again."""
    LEFT_OUT = "the member is left out"
    """The leader gives the member an assignment of zero bytes."""
    NOT_TAKEN = "the member does not read all that it is given"
    """The leader lists a topic several times, and the member keeps the last entry; it joins again and again."""


class Mixture(NamedTuple):
    """A client that leads, clients that are members, and what happens then.

    ``protocols``: with these assignors; none: with any. ``topics``: only members that subscribe to so many.
    """

    leader: KnownClient
    members: frozenset[KnownClient]
    consequence: Consequence
    why: str
    protocols: frozenset[str] = frozenset()
    topics: int = 1


_ENDS_EARLY = "cannot read a subscription that ends before the fields of its version"

MIXTURES: Final = (
    Mixture(_JAVA, SHORT, Consequence.FAILS, _ENDS_EARLY),
    Mixture(KnownClient.KAFKA_PYTHON, SHORT, Consequence.FAILS, _ENDS_EARLY),
    Mixture(_RDKAFKA, SHORT, Consequence.LEFT_OUT, _ENDS_EARLY),
    Mixture(
        KnownClient.KAFKA_GO,
        frozenset((_JAVA, _RDKAFKA, _FRANZ_GO, _SARAMA)),
        Consequence.FAILS,
        "cannot read a subscription with anything behind its user data",
    ),
    Mixture(
        _SARAMA,
        frozenset((_JAVA, KnownClient.AIOKAFKA, KnownClient.KAFKA_PYTHON)),
        Consequence.FAILS,
        "cannot read a subscription without user data, as a member of this client sends it at first",
        protocols=frozenset(("sticky",)),
    ),
    Mixture(
        _RDKAFKA,
        frozenset((_FRANZ_GO, _SARAMA)),
        Consequence.NOT_TAKEN,
        "may list a topic several times in an assignment, and this client keeps only the last entry",
        protocols=frozenset(("cooperative-sticky",)),
        topics=2,
    ),
)
"""All mixtures that are known to break."""
FAILS_WITH_OTHER_TOPICS: Final = frozenset(((KnownClient.KAFKA_PYTHON.value, "roundrobin"),))
"""Clients, and assignors, that fail where the member whose turn it is does not subscribe to a topic."""
LEAVES_OUT_SHORT: Final = frozenset(
    mixture.leader.value
    for mixture in MIXTURES
    if mixture.consequence is Consequence.LEFT_OUT and mixture.members == SHORT
)
"""Clients that give members whose subscriptions end early nothing, and share out among the others."""


def mixtures_of(
    leader: Iterable[KnownClient], member: Iterable[KnownClient], protocol: str | None, topics: int
) -> Iterator[Mixture]:
    """Yield what happens where a member leads, and another one subscribes to so many topics.

    Each may be one of several clients: then only what is true of all of them.
    """
    leaders, members = frozenset(leader), frozenset(member)
    if not leaders or not members:
        return
    for mixture in MIXTURES:
        fits = leaders == {mixture.leader} and members <= mixture.members and topics >= mixture.topics
        if fits and (not mixture.protocols or protocol in mixture.protocols):
            yield mixture


def document_rows() -> list[dict[str, str]]:
    """Return the mixtures for the docs: a dict for each, by the heads of its columns."""
    return [
        {
            "Leader": f"`{mixture.leader}`",
            "Member": ", ".join(f"`{client}`" for client in KnownClient if client in mixture.members),
            "Assignor": ", ".join(sorted(mixture.protocols)) or "any",
            "What happens": f"{mixture.consequence.value}: the leader {mixture.why}",
        }
        for mixture in MIXTURES
    ]
