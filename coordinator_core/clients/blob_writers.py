"""What each client writes into the blobs of a classic group: the forms of its subscriptions and, where it leads, of the
assignments that it makes, seen on a broker, and read from the clients' sources.

One writer is a client, or a range of its releases that writes alike. A version of a blob that a client took from Kafka
is that of KIP-429 (1), KIP-792 (2) and KIP-881 (3).
"""

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, NamedTuple

from coordinator_core.clients.known_clients import NOT_WHOLE, WHOLE, KnownClient


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
    times. ``session_ms`` is the default session timeout of these releases; None: that of today.
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
    session_ms: int | None = None


def _data(eager: frozenset[Data], **others: frozenset[Data]) -> dict[str, frozenset[Data]]:
    """User data of range and roundrobin, and of others: ``cooperative``, ``sticky`` and ``custom``."""
    names = {"cooperative": "cooperative-sticky", "sticky": "sticky", "custom": CUSTOM}
    return dict.fromkeys(EAGER, eager) | {names[name]: forms for name, forms in others.items()}


_JAVA = _data(NULL, sticky=NULL | KEPT, cooperative=GENERATION, custom=ANY)
_JAVA_FIRST = _data(EMPTY, sticky=EMPTY_OR_KEPT, custom=ANY)
_GIVES_NULL = _data(NULL, sticky=NULL, cooperative=NULL, custom=ANY)
_RDKAFKA = BlobWriter(
    KnownClient.LIBRDKAFKA,
    "1.6 to 2.1",
    1,
    _data(EMPTY, cooperative=KEPT | {Data.EMPTY_AT_FIRST}),
    0,
    _data(ECHO, cooperative=ECHO),
    topics_sorted=True,
    repeats_topics=True,
)
_FRANZ_GO = BlobWriter(
    KnownClient.FRANZ_GO,
    "before 1.14.1",
    1,
    {"cooperative-sticky": KEPT | {Data.ZEROS}},
    0,
    _GIVES_NULL,
    topics_sorted=True,
    assigns_sorted=True,
)
_SARAMA = BlobWriter(
    KnownClient.SARAMA,
    "before 1.61, or configured for Kafka before 2.4",
    0,
    _data(NULL | EMPTY, sticky=NULL | EMPTY_OR_KEPT, cooperative=GENERATION, custom=ANY),
    0,
    _data(NULL, sticky=KEPT, cooperative=NULL, custom=ANY),
)
_NULL_COOPERATIVE = {"cooperative-sticky": NULL}
_PLATFORMATIC = BlobWriter(
    KnownClient.PLATFORMATIC,
    WHOLE,
    3,
    _data(NULL, sticky=NULL, custom=ANY),
    0,
    _data(NULL, sticky=NULL, custom=ANY),
    racks=_NULL_RACK,
    topics_sorted=True,
)
_KAFKAJS = {"RoundRobinAssigner": EMPTY}
_KAFKA_PYTHON = BlobWriter(
    KnownClient.KAFKA_PYTHON,
    "3 or later",
    0,
    _data(EMPTY, sticky=EMPTY | {Data.VERSIONED}, custom=ANY),
    0,
    _data(EMPTY, sticky=EMPTY, cooperative=EMPTY, custom=ANY),
    assigns_sorted=True,
)

WRITERS: Final[Mapping[str, BlobWriter]] = {
    "java": BlobWriter(
        KnownClient.JAVA, "3.4 or later", 3, _JAVA, 3, _GIVES_NULL, racks=_NULL_RACK, topics_sorted=True
    ),
    "java 2.4": BlobWriter(
        KnownClient.JAVA, "2.4 to 3.3", 1, _JAVA | {"cooperative-sticky": GENERATION | NULL}, 1, _GIVES_NULL
    ),
    "java 0.9": BlobWriter(KnownClient.JAVA, "before 2.4", 0, _JAVA_FIRST, 0, _JAVA_FIRST, session_ms=10_000),
    "librdkafka": _RDKAFKA._replace(release="2.2 or later", subscription=3, racks=_EMPTY_RACK),
    "librdkafka 1.6": _RDKAFKA,
    "librdkafka 0.9": BlobWriter(
        KnownClient.LIBRDKAFKA, "before 1.6", 0, _data(EMPTY), 0, _data(ECHO), session_ms=10_000
    ),
    "franz-go": _FRANZ_GO._replace(
        release="1.14.1 or later",
        subscription=3,
        user_data=_data(
            NULL,
            sticky=frozenset((Data.ZEROS, Data.NONE_KEPT)),
            cooperative=frozenset((Data.ZEROS, Data.NONE_KEPT, Data.STICKY)),
            custom=ANY,
        ),
        racks=_NULL_RACK,
    ),
    "franz-go 1.0": _FRANZ_GO._replace(
        subscription=0, user_data=_data(NULL, sticky=KEPT | {Data.ZEROS}, custom=ANY), session_ms=45_000
    ),
    "franz-go 1.0 cooperative": _FRANZ_GO,
    "sarama": _SARAMA._replace(release="1.61 or later, configured for Kafka 2.4 to 3.1", subscription=1),
    "sarama 3.2": _SARAMA._replace(release="1.61 or later, configured for Kafka 3.2 or later", subscription=2),
    "sarama 0.9": _SARAMA,
    "kafka-go": BlobWriter(
        KnownClient.KAFKA_GO,
        None,
        1,
        _data(NULL, custom=ANY) | {"rack-affinity": ANY},
        1,
        _data(NULL, custom=NULL) | {"rack-affinity": NULL},
        is_short=True,
    ),
    # Its user chooses the name of the assignor, and the version of the subscription: 1 unless told otherwise.
    "platformatic 2.12": _PLATFORMATIC._replace(subscription=1, racks=_NO_RACK),
    "platformatic 2.12, version 3": _PLATFORMATIC,
    "platformatic 2.12 cooperative": _PLATFORMATIC._replace(
        user_data=_NULL_COOPERATIVE, assignment=3, given_data=_NULL_COOPERATIVE
    ),
    "platformatic 2.12 cooperative, version 1": _PLATFORMATIC._replace(
        subscription=1,
        user_data={"cooperative-sticky": GENERATION},
        assignment=3,
        given_data=_NULL_COOPERATIVE,
        racks=_NO_RACK,
    ),
    "platformatic": BlobWriter(
        KnownClient.PLATFORMATIC,
        NOT_WHOLE,
        None,
        _data(NULL, custom=ANY),
        0,
        _data(NULL | EMPTY, custom=ANY),
        is_short=True,
    ),
    "kafkajs": BlobWriter(
        KnownClient.KAFKAJS, "2.2.2 or later", 0, _KAFKAJS | {CUSTOM: ANY}, None, _KAFKAJS | {CUSTOM: ANY}
    ),
    "kafkajs 1": BlobWriter(KnownClient.KAFKAJS, "before 2.2.2", 1, _KAFKAJS, None, _KAFKAJS, is_short=True),
    "aiokafka": BlobWriter(
        KnownClient.AIOKAFKA,
        None,
        0,
        _data(EMPTY, sticky=EMPTY_OR_KEPT, custom=ANY),
        0,
        _data(EMPTY, sticky=EMPTY, custom=ANY),
        assigns_sorted=True,
    ),
    "kafka-python": _KAFKA_PYTHON,
    "kafka-python cooperative": _KAFKA_PYTHON._replace(
        subscription=1, user_data={"cooperative-sticky": EMPTY}, assignment=1
    ),
    "kafka-python 2": _KAFKA_PYTHON._replace(
        release="before 3",
        user_data=_data(EMPTY, sticky=EMPTY_OR_KEPT, custom=ANY),
        assigns_sorted=False,
        session_ms=10_000,
    ),
    **{
        f"{client} custom": BlobWriter(client, None, None, {CUSTOM: ANY}, None, {CUSTOM: ANY}, is_short=True)
        for client in (KnownClient.KAFKAJS, KnownClient.AIOKAFKA, KnownClient.KAFKA_PYTHON)
    },
}
"""By its name, each writer; stored states name them."""
OWN_PROTOCOLS: Final[Mapping[str, KnownClient]] = {
    "rack-affinity": KnownClient.KAFKA_GO,
    "RoundRobinAssigner": KnownClient.KAFKAJS,
    "stream": KnownClient.JAVA,
}
"""Assignors that only one client has."""
