"""Which client a member is, and which one led: told from the blobs of a classic group, and then from defaults.

What each client writes is data: see ``blob_writers``. What a blob proves is a set of writers: those that write so.
Several blobs of one member prove the writers that all of them have in common. ``decide`` turns that into clients.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from coordinator_core.clients.blob_writers import CUSTOM, OWN_PROTOCOLS, WRITERS, BlobWriter, Data, Rack
from coordinator_core.clients.known_clients import (
    DEFAULTS,
    FIRST_VERSION_ONLY,
    NAMES_ITSELF,
    OTHER_CLIENTS,
    UNKNOWN_CLIENT,
    ClientCertainty,
    Defaults,
    KnownClient,
    Told,
    default_client,
)
from coordinator_core.errors import DecodeError
from coordinator_core.record_fields.classic_group import GroupMetadataValue
from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    StickyAssignorUserData,
)
from coordinator_core.wire.embedded import CACHED_BLOBS, Blob, blob_of, decode_assignment, decode_subscription

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


FIRST_VERSION: Final = bytes(2)
"""How a subscription begins that has topics and user data alone."""
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

    Where several clients write so, the one whose default client id or default rebalance timeout it has is likely; who
    calls itself as one that does not write so is none of them.
    """
    fitting = [WRITERS[name] for name in WRITERS if name in writers]
    clients = _clients(fitting)
    named = default_client(client_id, NAMES_ITSELF)
    if client_id in OTHER_CLIENTS or named not in (None, *clients):
        return UNKNOWN_CLIENT
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


def shows_itself(value: GroupMetadataValue) -> bool:
    """Whether the leader of a generation shows which client it is, also among those that are not known here: by its
    client id, by an assignor that only one client has, or by a subscription that has more than version 0, which any
    client may write.
    """
    leader, protocol = value["leader"], value["protocol"] or ""
    of_leader = (member for member in value["members"] if member["memberId"] == leader)
    for member in of_leader:
        writers = subscription_writers(protocol, member["subscription"])
        named = default_client(member["clientId"], {WRITERS[name].client for name in writers})
        is_first = member["subscription"].startswith(FIRST_VERSION)
        return named is not None or (bool(writers) and (protocol in OWN_PROTOCOLS or not is_first))
    return False


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
        wrote = [writer for writer in fitting if writer.client in chosen]
        is_first = bool(wrote) and all(writer.subscription == 0 for writer in wrote)
        return Told(chosen, ClientCertainty.SEVERAL, FIRST_VERSION_ONLY if is_first else None)
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
    waits = session_timeout_ms if rebalance_timeout_ms is None else rebalance_timeout_ms
    rebalances = [each for each in fitting if waits == (_usual(each).rebalance_timeout_ms or session_timeout_ms)]
    chosen = rebalances or fitting
    sessions = [each for each in chosen if session_timeout_ms == (each.session_ms or _usual(each).session_timeout_ms)]
    return _clients(sessions or chosen)


def _usual(writer: BlobWriter) -> Defaults:
    return DEFAULTS[writer.client]


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
    repeats = len(set(topics)) < len(topics)
    is_sorted = topics == sorted(topics) and all(entry["partitions"] == sorted(entry["partitions"]) for entry in listed)
    return frozenset(
        name
        for name, writer in WRITERS.items()
        if writer.assignment in (None, blob.version)
        and data & _forms(writer, protocol, given=True)
        and (is_sorted or not writer.assigns_sorted)
        and (not repeats or writer.repeats_topics)
    )


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
