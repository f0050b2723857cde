"""The clients that are known, what each calls itself by default, and how sure it is which one a member is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
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
    one has this client id or this rebalance timeout by default, or is a release of today. ``one of several``: nothing
    decides between the clients named. ``unknown``: no known client writes so.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    SEVERAL = "one of several"
    UNKNOWN = "unknown"


class Defaults(NamedTuple):
    """What a client sends unless its user says otherwise.

    ``client_id`` matches its client ids, with the release as the group ``version`` where they have it;
    ``rebalance_timeout_ms`` is None where it is the session timeout.
    """

    client_id: re.Pattern[str]
    rebalance_timeout_ms: int | None


DEFAULTS: Final[Mapping[KnownClient, Defaults]] = {
    KnownClient.JAVA: Defaults(re.compile(r"(connector-)?consumer-.+|.+-StreamThread-\d+-consumer"), 300_000),
    KnownClient.LIBRDKAFKA: Defaults(re.compile("rdkafka"), 300_000),
    KnownClient.FRANZ_GO: Defaults(re.compile("kgo"), 60_000),
    KnownClient.SARAMA: Defaults(re.compile("sarama"), 60_000),
    KnownClient.KAFKA_GO: Defaults(re.compile(r".+@.+ \(github\.com/segmentio/kafka-go\)"), 30_000),
    KnownClient.KAFKAJS: Defaults(re.compile("kafkajs"), 60_000),
    KnownClient.PLATFORMATIC: Defaults(re.compile(""), 120_000),
    KnownClient.AIOKAFKA: Defaults(re.compile(r"aiokafka-(?P<version>\d.*)"), None),
    KnownClient.KAFKA_PYTHON: Defaults(re.compile(r"kafka-python-(?P<version>\d.*)"), 300_000),
}


class Told(NamedTuple):
    """The clients that a member can be, in the order of ``KnownClient``, and how sure that is; none: an unknown client.

    ``release`` is that of the client id, or the range of releases that write such blobs, of a single client; None: not
    known.
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
    KnownClient.AIOKAFKA: "aiokafka",
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
            "Default client id": f"`{DEFAULTS[client].client_id.pattern}`"
            if DEFAULTS[client].client_id.pattern
            else "empty",
            "Default rebalance timeout": _in_seconds(defaults.rebalance_timeout_ms),
        }
        for client, defaults in DEFAULTS.items()
    ]


def _in_seconds(timeout_ms: int | None) -> str:
    return "the session timeout" if timeout_ms is None else f"{timeout_ms // 1000} s"
