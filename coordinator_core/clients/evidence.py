"""Which client a member is, and which one led: told from the blobs of a classic group, and then from defaults.

What each client writes is data: the forms of its subscriptions and, where it leads, of the assignments that it makes,
seen on a broker, and read from the clients' sources. One writer is a client, or a range of its releases that writes
alike. A version of a blob that a client took from Kafka is that of KIP-429 (1), KIP-792 (2) and KIP-881 (3).

What a blob proves is a set of writers: those that write so. Several blobs of one member prove the writers that all of
them have in common. ``decide`` turns that into clients.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Final, NamedTuple

from coordinator_core.clients.known_clients import (
    DEFAULTS,
    UNKNOWN_CLIENT,
    ClientCertainty,
    KnownClient,
    Told,
    default_client,
)
from coordinator_core.errors import DecodeError
from coordinator_core.record_fields.classic_group import GroupMetadataValue
from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    StickyAssignorUserData,
)
from coordinator_core.wire.embedded import CACHED_BLOBS, Blob, blob_of, decode_assignment, decode_subscription


class Data(Enum):
    """The user data of a blob."""

    NULL = auto()
    EMPTY = auto()
    """Of length 0."""
    EMPTY_AT_FIRST = auto()
    """In a subscription: of length 0, and there are no owned partitions."""
    GENERATION = auto()
    """The four bytes that cooperative-sticky of Kafka and sarama write; -1 at first."""
    ZEROS = auto()
    """Four bytes of zeros: no partitions of before, and no generation behind them."""
    NONE_KEPT = auto()
    """The layout of Kafka's sticky assignor, without partitions."""
    STICKY = auto()
    """The layout of Kafka's sticky assignor, with partitions."""
    VERSIONED = auto()
    """The layout of kafka-python's sticky assignor."""
    ECHO = auto()
    """In an assignment: the bytes of the member's own subscription."""
    OTHER = auto()


class Rack(Enum):
    """The rack of a subscription: below version 3 there is no field for it."""

    ABSENT = auto()
    NULL = auto()
    EMPTY = auto()
    NAMED = auto()


NULL, EMPTY, GENERATION = frozenset((Data.NULL,)), frozenset((Data.EMPTY,)), frozenset((Data.GENERATION,))
KEPT = frozenset((Data.NONE_KEPT, Data.STICKY))
EMPTY_OR_KEPT = EMPTY | KEPT
ECHO, ANY = frozenset((Data.ECHO,)), frozenset(Data)
EAGER: Final = ("range", "roundrobin")

_NO_RACK, _NULL_RACK, _EMPTY_RACK = (
    frozenset((Rack.ABSENT,)),
    frozenset((Rack.NULL, Rack.NAMED)),
    frozenset((Rack.EMPTY, Rack.NAMED)),
)

Forms = Mapping[str, frozenset[Data]]
"""User data by protocol; ``CUSTOM`` stands for the assignors that users write themselves."""
CUSTOM: Final = "*"


class BlobWriter(NamedTuple):
    """A client, or a range of its releases, and what it writes.

    ``subscription`` is the version of its subscriptions (None: any), ``user_data`` their user data by protocol, and
    ``racks`` their racks. ``is_short``: they end before the fields of that version. ``topics_sorted``: their topics
    are. ``assignment`` is the version of the assignments that it makes (None: any), ``given_data`` their user data.
    ``assigns_sorted``: they list topics and partitions in order. ``repeats_topics``: they may list a topic several
    times. ``is_old``: superseded for years, and no candidate where a writer of today fits, too.
    """

    client: KnownClient
    release: str | None
    subscription: int | None
    user_data: Forms
    assignment: int | None
    given_data: Forms
    racks: frozenset[Rack] = _NO_RACK
    is_short: bool = False
    topics_sorted: bool = False
    assigns_sorted: bool = False
    repeats_topics: bool = False
    is_old: bool = False


def _data(eager: frozenset[Data], **others: frozenset[Data]) -> dict[str, frozenset[Data]]:
    """User data of range and roundrobin, and of others: ``cooperative``, ``sticky`` and ``custom``."""
    names = {"cooperative": "cooperative-sticky", "sticky": "sticky", "custom": CUSTOM}
    return dict.fromkeys(EAGER, eager) | {names[name]: forms for name, forms in others.items()}


_JAVA = _data(NULL, sticky=NULL | KEPT, cooperative=GENERATION, custom=ANY)
_JAVA_GIVES = _data(NULL, sticky=NULL, cooperative=NULL, custom=ANY)
_JAVA_FIRST = _data(EMPTY, sticky=EMPTY_OR_KEPT, custom=ANY)
_RDKAFKA = _data(EMPTY, cooperative=KEPT | {Data.EMPTY_AT_FIRST})
_RDKAFKA_GIVES = _data(ECHO, cooperative=ECHO)
_SARAMA = _data(NULL | EMPTY, sticky=NULL | EMPTY_OR_KEPT, cooperative=GENERATION, custom=ANY)
_SARAMA_GIVES = _data(NULL, sticky=KEPT, cooperative=NULL, custom=ANY)
_KAFKAJS = {"RoundRobinAssigner": EMPTY, CUSTOM: ANY}
_KAFKA_PYTHON_GIVES = _data(EMPTY, sticky=EMPTY, cooperative=EMPTY, custom=ANY)

WRITERS: Final[Mapping[str, BlobWriter]] = {
    "java": BlobWriter(
        KnownClient.JAVA, "3.4 or later", 3, _JAVA, 3, _JAVA_GIVES, racks=_NULL_RACK, topics_sorted=True
    ),
    "java 2.4": BlobWriter(
        KnownClient.JAVA, "2.4 to 3.3", 1, _JAVA | {"cooperative-sticky": GENERATION | NULL}, 1, _JAVA_GIVES
    ),
    "java 0.9": BlobWriter(KnownClient.JAVA, "before 2.4", 0, _JAVA_FIRST, 0, _JAVA_FIRST, is_old=True),
    "librdkafka": BlobWriter(
        KnownClient.LIBRDKAFKA,
        "2.2 or later",
        3,
        _RDKAFKA,
        0,
        _RDKAFKA_GIVES,
        racks=_EMPTY_RACK,
        topics_sorted=True,
        repeats_topics=True,
    ),
    "librdkafka 1.6": BlobWriter(
        KnownClient.LIBRDKAFKA, "1.6 to 2.1", 1, _RDKAFKA, 0, _RDKAFKA_GIVES, topics_sorted=True, repeats_topics=True
    ),
    "librdkafka 0.9": BlobWriter(KnownClient.LIBRDKAFKA, "before 1.6", 0, _data(EMPTY), 0, _data(ECHO), is_old=True),
    "franz-go": BlobWriter(
        KnownClient.FRANZ_GO,
        None,
        3,
        _data(
            NULL,
            sticky=frozenset((Data.ZEROS, Data.NONE_KEPT)),
            cooperative=frozenset((Data.ZEROS, Data.NONE_KEPT, Data.STICKY)),
            custom=ANY,
        ),
        0,
        _data(NULL, sticky=NULL, cooperative=NULL, custom=ANY),
        racks=_NULL_RACK,
        topics_sorted=True,
        assigns_sorted=True,
    ),
    "sarama": BlobWriter(KnownClient.SARAMA, "configured for Kafka 2.4 to 3.1", 1, _SARAMA, 0, _SARAMA_GIVES),
    "sarama 3.2": BlobWriter(KnownClient.SARAMA, "configured for Kafka 3.2 or later", 2, _SARAMA, 0, _SARAMA_GIVES),
    "sarama 0.9": BlobWriter(
        KnownClient.SARAMA, "configured for Kafka before 2.4", 0, _SARAMA, 0, _SARAMA_GIVES, is_old=True
    ),
    "kafka-go": BlobWriter(
        KnownClient.KAFKA_GO,
        None,
        1,
        _data(NULL, custom=ANY) | {"rack-affinity": ANY},
        1,
        _data(NULL, custom=NULL) | {"rack-affinity": NULL},
        is_short=True,
    ),
    "platformatic": BlobWriter(
        KnownClient.PLATFORMATIC, None, None, _data(NULL, custom=ANY), 0, _data(EMPTY, custom=ANY), is_short=True
    ),
    "kafkajs": BlobWriter(KnownClient.KAFKAJS, None, 0, _KAFKAJS, None, _KAFKAJS),
    "kafkajs custom": BlobWriter(KnownClient.KAFKAJS, None, None, {CUSTOM: ANY}, None, {CUSTOM: ANY}, is_short=True),
    "aiokafka": BlobWriter(
        KnownClient.AIOKAFKA,
        None,
        0,
        _data(EMPTY, sticky=EMPTY_OR_KEPT, custom=ANY),
        0,
        _data(EMPTY, sticky=EMPTY, custom=ANY),
        assigns_sorted=True,
    ),
    "kafka-python": BlobWriter(
        KnownClient.KAFKA_PYTHON,
        "3 or later",
        0,
        _data(EMPTY, sticky=EMPTY | {Data.VERSIONED}, custom=ANY),
        0,
        _KAFKA_PYTHON_GIVES,
        assigns_sorted=True,
    ),
    "kafka-python cooperative": BlobWriter(
        KnownClient.KAFKA_PYTHON,
        "3 or later",
        1,
        {"cooperative-sticky": EMPTY},
        1,
        _KAFKA_PYTHON_GIVES,
        assigns_sorted=True,
    ),
    "kafka-python 2": BlobWriter(
        KnownClient.KAFKA_PYTHON,
        "before 3",
        0,
        _data(EMPTY, sticky=EMPTY_OR_KEPT, custom=ANY),
        0,
        _KAFKA_PYTHON_GIVES,
        is_old=True,
    ),
}
"""By its name, each writer; stored states name them."""
OWN_PROTOCOLS: Final[Mapping[str, KnownClient]] = {
    "rack-affinity": KnownClient.KAFKA_GO,
    "RoundRobinAssigner": KnownClient.KAFKAJS,
    "stream": KnownClient.JAVA,
}
"""Assignors that only one client has."""
CHOSEN_IDS: Final[Sequence[tuple[re.Pattern[str], tuple[KnownClient, ...]]]] = (
    (re.compile(r"[\w-]{22}==", re.ASCII), (KnownClient.FRANZ_GO,)),
    (re.compile(r"(?=.*[+/])[A-Za-z0-9+/]{22}"), (KnownClient.LIBRDKAFKA,)),
    (re.compile(r"(?=.*[-_])[\w-]{22}", re.ASCII), (KnownClient.JAVA,)),
    (re.compile(r"[A-Za-z0-9]{22}"), (KnownClient.JAVA, KnownClient.LIBRDKAFKA)),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), (KnownClient.PLATFORMATIC,)),
)
"""The member ids that clients choose in consumer groups (KIP-848), and who writes such: the first form that fits.

Java writes the letters of URLs (KIP-848's UUIDs), franz-go those with the padding, and librdkafka those of MIME.
"""


Writers = frozenset[str]
"""Names of writers."""
EVERY_WRITER: Final[Writers] = frozenset(WRITERS)
JAVA_WRITERS: Final[Writers] = frozenset(name for name, writer in WRITERS.items() if writer.client is KnownClient.JAVA)
_KNOWN_PROTOCOLS = frozenset(protocol for writer in WRITERS.values() for protocol in writer.user_data) - {CUSTOM}
_FIRST_WORDS = {
    "CooperativeStickyAssignorUserData": Data.GENERATION,
    "KafkaPythonStickyUserData": Data.VERSIONED,
    "StickyAssignorUserData": Data.STICKY,
}


@lru_cache(maxsize=CACHED_BLOBS)
def subscription_writers(protocol: str, subscription: bytes) -> Writers:
    """Return the writers of such a subscription for the assignor ``protocol``; none if no known client writes so."""
    try:
        blob = decode_subscription("consumer", protocol, subscription)
    except DecodeError:
        return frozenset()
    if blob is None:
        return frozenset()
    data, rack, topics = {_data_of(blob)}, _rack_of(blob), blob.fields["topics"]
    if Data.EMPTY in data and not blob.fields.get("ownedPartitions"):
        data.add(Data.EMPTY_AT_FIRST)
    is_sorted = topics == sorted(topics)
    return frozenset(
        name
        for name, writer in WRITERS.items()
        if writer.subscription in (None, blob.version)
        and writer.is_short == blob.is_short
        and data & _forms(writer, protocol, given=False)
        and rack in writer.racks
        and (is_sorted or not writer.topics_sorted)
    )


def assignment_writers(protocol: str, members: Iterable[tuple[bytes, bytes]]) -> Writers:
    """Return the writers of the assignments of one generation: those of the client that led.

    ``members`` are the subscription and the assignment of each member. Assignments of zero bytes prove nothing; none
    of a known client: no writers.
    """
    writers = EVERY_WRITER
    for subscription, assignment in members:
        if assignment:
            writers &= _assignment_writers(protocol, subscription, assignment)
    return writers


def narrowed(before: Writers, now: Writers) -> Writers:
    """Return the writers that two blobs of the same client have in common; those of the later one if there are none."""
    return before & now or now


@lru_cache(maxsize=CACHED_BLOBS)
def decide(
    writers: Writers, client_id: str = "", session_timeout_ms: int = -1, rebalance_timeout_ms: int | None = None
) -> Told:
    """Return the client of a member from the writers of its blobs, what it calls itself and its timeouts.

    Where several clients write so, the one whose default client id or default rebalance timeout it has is likely.
    """
    fitting = [WRITERS[name] for name in WRITERS if name in writers]
    clients = _clients(fitting)
    if len(clients) < 2:
        return _told(clients, clients, fitting, client_id)
    chosen = _by_defaults(fitting, clients, client_id, session_timeout_ms, rebalance_timeout_ms)
    return _told(clients, chosen, fitting, client_id)


@lru_cache(maxsize=CACHED_BLOBS)
def decide_by_id(member_id: str, client_id: str | None) -> Told:
    """Return the client of a member that chose its own member id (KIP-848), from that and what it calls itself."""
    clients = next((clients for form, clients in CHOSEN_IDS if form.fullmatch(member_id)), ())
    named = default_client(client_id or "", clients)
    return _told(clients, clients if named is None else (named,), (), client_id or "")


def leader_client(value: GroupMetadataValue) -> Told:
    """Return the client that led a generation: from its own subscription, and from all that it assigned.

    Connect workers are Java. A group of another protocol type than consumer has an unknown one.
    """
    leader = next((member for member in value["members"] if member["memberId"] == value["leader"]), None)
    if leader is None:
        return UNKNOWN_CLIENT
    protocol = value["protocol"] or ""
    asked = classic_writers(value["protocolType"], protocol, leader["subscription"])
    blobs = ((member["subscription"], member["assignment"]) for member in value["members"])
    if value["protocolType"] == "consumer":
        asked = narrowed(assignment_writers(protocol, blobs), asked)
    says = leader["clientId"], leader["sessionTimeout"], leader.get("rebalanceTimeout")
    return decide(asked, *says)


def classic_writers(protocol_type: str | None, protocol: str | None, subscription: bytes) -> Writers:
    """Return the writers of a member's metadata in a classic group: of Connect it is Java, of other types unknown."""
    if protocol_type == "connect":
        return JAVA_WRITERS
    return subscription_writers(protocol or "", subscription) if protocol_type == "consumer" else frozenset()


def _told(
    possible: Sequence[KnownClient], chosen: tuple[KnownClient, ...], fitting: Sequence[BlobWriter], client_id: str
) -> Told:
    if not chosen:
        return UNKNOWN_CLIENT
    if len(chosen) > 1:
        return Told(chosen, ClientCertainty.SEVERAL)
    certainty = ClientCertainty.CERTAIN if len(possible) == 1 else ClientCertainty.LIKELY
    return Told(chosen, certainty, _release(chosen[0], fitting, client_id))


def _by_defaults(
    fitting: Sequence[BlobWriter],
    clients: tuple[KnownClient, ...],
    client_id: str,
    session_timeout_ms: int,
    rebalance_timeout_ms: int | None,
) -> tuple[KnownClient, ...]:
    named = default_client(client_id, clients)
    if named is not None:
        return (named,)
    today = _clients(writer for writer in fitting if not writer.is_old) or clients
    waits = session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms
    by_timeout = (client for client in today if (DEFAULTS[client].rebalance_timeout_ms or session_timeout_ms) == waits)
    return tuple(by_timeout) or today


def _clients(writers: Iterable[BlobWriter]) -> tuple[KnownClient, ...]:
    found = {writer.client for writer in writers}
    return tuple(client for client in KnownClient if client in found)


def _release(client: KnownClient, fitting: Sequence[BlobWriter], client_id: str) -> str | None:
    named = DEFAULTS[client].client_id.fullmatch(client_id)
    if named is not None and "version" in named.groupdict():
        return named["version"]
    releases = {writer.release for writer in fitting if writer.client is client}
    return releases.pop() if len(releases) == 1 else None


def _forms(writer: BlobWriter, protocol: str, *, given: bool) -> frozenset[Data]:
    forms = writer.given_data if given else writer.user_data
    # To all other clients such a name would be an assignor that a user wrote.
    owner = OWN_PROTOCOLS.get(protocol)
    if owner is not None and owner is not writer.client:
        return frozenset()
    return forms.get(protocol if protocol in _KNOWN_PROTOCOLS else CUSTOM, frozenset())


@lru_cache(maxsize=CACHED_BLOBS)
def _assignment_writers(protocol: str, subscription: bytes, assignment: bytes) -> Writers:
    try:
        blob = decode_assignment("consumer", protocol, assignment)
    except DecodeError:
        return frozenset()
    if blob is None:
        return EVERY_WRITER
    # An echo has another form, too, that of the subscription: a writer fits by either of the two.
    data = {_data_of(blob)} | ({Data.ECHO} if _is_echo(protocol, subscription, blob) else set())
    listed = blob.fields["assignedPartitions"]
    topics = [entry["topic"] for entry in listed]
    repeats, is_sorted = len(set(topics)) < len(topics), _is_sorted(listed)
    return frozenset(
        name
        for name, writer in WRITERS.items()
        if writer.assignment in (None, blob.version)
        and data & _forms(writer, protocol, given=True)
        and (is_sorted or not writer.assigns_sorted)
        and (not repeats or writer.repeats_topics)
    )


def _is_sorted(listed: Sequence[ConsumerProtocolAssignmentTopicPartition]) -> bool:
    topics = [entry["topic"] for entry in listed]
    return topics == sorted(topics) and all(entry["partitions"] == sorted(entry["partitions"]) for entry in listed)


def _is_echo(protocol: str, subscription: bytes, assignment: Blob[ConsumerProtocolAssignment]) -> bool:
    try:
        asked = decode_subscription("consumer", protocol, subscription)
    except DecodeError:
        return False
    return asked is not None and asked.fields["userData"] == assignment.fields["userData"]


def _data_of(blob: Blob[ConsumerProtocolSubscription] | Blob[ConsumerProtocolAssignment]) -> Data:
    data = blob.fields["userData"]
    if not data:
        return Data.NULL if data is None else Data.EMPTY
    # Before the layouts: no generation is 0, so four zeros are an empty list of partitions, with nothing behind it.
    if data == bytes(4):
        return Data.ZEROS
    if blob.nested is None:
        return Data.OTHER
    sticky = blob_of(StickyAssignorUserData, blob.nested)
    if sticky is not None and not sticky.fields["previousAssignment"]:
        return Data.NONE_KEPT
    return _FIRST_WORDS.get(blob.nested.message, Data.OTHER)


def _rack_of(blob: Blob[ConsumerProtocolSubscription]) -> Rack:
    if "rackId" not in blob.fields:
        return Rack.ABSENT
    rack = blob.fields["rackId"]
    return Rack.NULL if rack is None else Rack.NAMED if rack else Rack.EMPTY
