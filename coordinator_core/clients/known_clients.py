"""The clients that are known, what each calls itself by default, how sure it is which one a member is, and which of
them cannot work together in one classic group: who leads, who is a member, and what happens then.

Mixtures were seen on a broker, and read from the clients' sources.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final, NamedTuple


class KnownClient(StrEnum):
    """A client library; wrappers of one are that one (confluent-kafka and kcat are librdkafka)."""

    JAVA = "java"
    LIBRDKAFKA = "librdkafka"
    FRANZ_GO = "franz-go"
    SARAMA = "sarama"
    KAFKA_GO = "kafka-go"
    KAFKAJS = "kafkajs"
    PLATFORMATIC = "platformatic"
    AIOKAFKA = "aiokafka"
    KAFKA_PYTHON = "kafka-python"


class ClientCertainty(StrEnum):
    """How sure it is which client a member is.

    ``certain``: no other known client writes what it wrote. ``likely``: others can have written it, and of these only
    one has this client id, or these timeouts, by default. ``one of several``: nothing decides between the clients
    named. ``unknown``: no known client writes so.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    SEVERAL = "one of several"
    UNKNOWN = "unknown"


class Defaults(NamedTuple):
    """What a client sends unless its user says otherwise.

    ``client_id`` matches its client ids, with the release as the group ``version`` where they have it;
    ``rebalance_timeout_ms`` is None where it is the session timeout. The timeouts are those of today.
    """

    client_id: re.Pattern[str]
    session_timeout_ms: int
    rebalance_timeout_ms: int | None


DEFAULTS: Final[Mapping[KnownClient, Defaults]] = {
    KnownClient.JAVA: Defaults(re.compile(r"(connector-)?consumer-.+|.+-StreamThread-\d+-consumer"), 45_000, 300_000),
    KnownClient.LIBRDKAFKA: Defaults(re.compile("rdkafka"), 45_000, 300_000),
    KnownClient.FRANZ_GO: Defaults(re.compile("kgo"), 45_000, 60_000),
    KnownClient.SARAMA: Defaults(re.compile("sarama"), 10_000, 60_000),
    KnownClient.KAFKA_GO: Defaults(re.compile(r".+@.+ \(github\.com/segmentio/kafka-go\)"), 30_000, 30_000),
    KnownClient.KAFKAJS: Defaults(re.compile("kafkajs"), 30_000, 60_000),
    KnownClient.PLATFORMATIC: Defaults(re.compile(""), 60_000, 102_000),
    KnownClient.AIOKAFKA: Defaults(re.compile(r"aiokafka-(?P<version>\d.*)|faust-\d.*"), 10_000, None),
    KnownClient.KAFKA_PYTHON: Defaults(re.compile(r"kafka-python-(?P<version>\d.*)"), 45_000, 300_000),
}
NAMES_ITSELF: Final = frozenset(KnownClient) - {KnownClient.JAVA, KnownClient.PLATFORMATIC}
"""Clients whose default client ids name them: nobody else is called so."""
OTHER_CLIENTS: Final = frozenset(("kafka-node-client", "no-kafka-client", "ruby-kafka"))
"""The default client ids of clients that write as known ones do, and are none of them."""


class Told(NamedTuple):
    """The clients that a member can be, in the order of ``KnownClient``, and how sure that is; none: an unknown client.

    ``release`` is that of the client id, or the range of releases that write such blobs, of a single client, or
    ``FIRST_VERSION_ONLY``; None: not known.
    """

    clients: tuple[KnownClient, ...] = ()
    certainty: ClientCertainty = ClientCertainty.UNKNOWN
    release: str | None = None

    @property
    def client(self) -> KnownClient | None:
        """The client if it is a single one."""
        return self.clients[0] if len(self.clients) == 1 else None

    @property
    def name(self) -> str:
        """``franz-go``, ``kafka-go or platformatic``, ``unknown``."""
        return " or ".join(self.clients) or ClientCertainty.UNKNOWN.value


ABOUT: Final[Mapping[KnownClient, str]] = {
    KnownClient.JAVA: "Kafka's own consumer, Kafka Streams, Connect",
    KnownClient.LIBRDKAFKA: "confluent-kafka for Python, .NET, Go and JavaScript, rdkafka for Rust, Ruby and PHP, kcat",
    KnownClient.FRANZ_GO: "twmb/franz-go",
    KnownClient.SARAMA: "IBM/sarama",
    KnownClient.KAFKA_GO: "segmentio/kafka-go",
    KnownClient.KAFKAJS: "kafkajs",
    KnownClient.PLATFORMATIC: "@platformatic/kafka",
    KnownClient.AIOKAFKA: "aiokafka, Faust",
    KnownClient.KAFKA_PYTHON: "kafka-python",
}
"""What each is, or is known as."""

UNKNOWN_CLIENT: Final = Told()
ONLY_JAVA: Final = Told((KnownClient.JAVA,), ClientCertainty.CERTAIN)
"""A member of a group of a kind that, of the known clients, only Java has: share, streams and Connect."""


def default_client(client_id: str, among: Iterable[KnownClient] = tuple(KnownClient)) -> KnownClient | None:
    """Return the client whose default client ids this is one of; None: there is none."""
    return next((client for client in among if DEFAULTS[client].client_id.fullmatch(client_id)), None)


def clients_named(name: str) -> tuple[KnownClient, ...]:
    """Return the clients of ``Told.name``; none where the client is unknown."""
    return () if name == ClientCertainty.UNKNOWN else tuple(map(KnownClient, name.split(" or ")))


def notices_within_ms(name: str, usual_ms: int) -> int:
    """Return within which time a leader sees new partitions, by its ``Told.name``: ``usual_ms`` of most clients."""
    clients = clients_named(name) or tuple(KnownClient)
    return max(usual_ms, *(REFRESHES_RARELY.get(client, 0) for client in clients))


def count_text(names: Iterable[str]) -> str:
    """Return how many of the names (``Told.name``) each client has, the most frequent first: ``3 java, 1 kafka-go``."""
    counts = Counter(sorted(names))
    return ", ".join(f"{count} {name}" for name, count in counts.most_common())


def document_rows() -> list[dict[str, str]]:
    """Return the clients for the docs, with what they send by default: a dict for each, by the heads of its columns."""
    return [
        {
            "Client": f"`{client}`",
            "What it is": ABOUT[client],
            "Default client id": f"`{defaults.client_id.pattern}`" if defaults.client_id.pattern else "empty",
            "Default session timeout": f"{defaults.session_timeout_ms // 1000} s",
            "Default rebalance timeout": f"{defaults.rebalance_timeout_ms // 1000} s"
            if defaults.rebalance_timeout_ms
            else "the session timeout",
        }
        for client, defaults in DEFAULTS.items()
    ]


_JAVA, _RDKAFKA, _FRANZ_GO, _SARAMA = (
    KnownClient.JAVA,
    KnownClient.LIBRDKAFKA,
    KnownClient.FRANZ_GO,
    KnownClient.SARAMA,
)

SHORT: Final = frozenset((KnownClient.KAFKA_GO, KnownClient.PLATFORMATIC))
"""Clients that end their subscriptions before the fields of the version that they write in front."""
WHOLE, NOT_WHOLE = "2.12 or later", "before 2.12"
"""The releases of @platformatic/kafka that write all fields, and those that do not."""
FIRST_VERSION_ONLY: Final = "a release that writes version 0 of the subscription"
"""What is known of the release where several clients are possible, each in such a release."""
ENDS_WITH_USER_DATA: Final = frozenset(
    (
        "before 2.4",
        "before 1.6",
        "before 1.14.1",
        "before 1.61, or configured for Kafka before 2.4",
        NOT_WHOLE,
        FIRST_VERSION_ONLY,
    )
)
"""The releases of Kafka's client, librdkafka, franz-go, sarama and @platformatic/kafka that end with the user data."""
LEAVES_IF_NOT_POLLED: Final = frozenset((_JAVA, _RDKAFKA, KnownClient.KAFKA_PYTHON))
"""Clients that leave once their application has not polled for max.poll.interval.ms, which they send as their rebalance
timeout (KIP-62).
"""
REFRESHES_RARELY: Final[Mapping[KnownClient, int]] = {_SARAMA: 600_000}
"""After so long (ms) a leader asks for its topics again by default, of clients that are slower than others."""
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

    ``protocols``: with these assignors; none: with any. ``topics``: only members that subscribe to so many. ``spared``:
    releases of these clients to which it does not happen.
    """

    leader: KnownClient
    members: frozenset[KnownClient]
    consequence: Consequence
    why: str
    protocols: frozenset[str] = frozenset()
    topics: int = 1
    spared: frozenset[str] = frozenset()


_ENDS_EARLY = "cannot read a subscription that ends before the fields of its version"

MIXTURES: Final = (
    Mixture(_JAVA, SHORT, Consequence.FAILS, _ENDS_EARLY, spared=frozenset((WHOLE,))),
    Mixture(KnownClient.KAFKA_PYTHON, SHORT, Consequence.FAILS, _ENDS_EARLY, spared=frozenset((WHOLE,))),
    Mixture(_RDKAFKA, SHORT, Consequence.LEFT_OUT, _ENDS_EARLY, spared=frozenset((WHOLE,))),
    Mixture(
        KnownClient.KAFKA_GO,
        frozenset((_JAVA, _RDKAFKA, _FRANZ_GO, _SARAMA, KnownClient.PLATFORMATIC)),
        Consequence.FAILS,
        "cannot read a subscription with anything behind its user data",
        spared=ENDS_WITH_USER_DATA,
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
    leader: Iterable[KnownClient],
    member: Iterable[KnownClient],
    protocol: str | None,
    topics: int,
    release: str | None = None,
) -> Iterator[Mixture]:
    """Yield what happens where a member leads, and another one, of this release, subscribes to so many topics.

    Each may be one of several clients: then only what is true of all of them.
    """
    leaders, members = frozenset(leader), frozenset(member)
    if not leaders or not members:
        return
    for mixture in MIXTURES:
        # All that the member may be must fail: else a healthy mixture would be accused.
        fits = leaders == {mixture.leader} and members <= mixture.members and topics >= mixture.topics
        if fits and release not in mixture.spared and (not mixture.protocols or protocol in mixture.protocols):
            yield mixture


def document_mixtures() -> list[dict[str, str]]:
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
