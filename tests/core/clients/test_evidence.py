"""Which client wrote a subscription, and which one led: by the table alone, and in logs of real brokers."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator_core.clients.blob_writers import WRITERS
from coordinator_core.clients.evidence import (
    EVERY_WRITER,
    assignment_writers,
    decide,
    decide_by_id,
    narrowed,
    subscription_writers,
)
from coordinator_core.clients.known_clients import (
    DEFAULTS,
    FIRST_VERSION_ONLY,
    UNKNOWN_CLIENT,
    ClientCertainty,
    KnownClient,
    Told,
    count_text,
    default_client,
)
from coordinator_core.record_fields.classic_group import GroupMetadataValue
from coordinator_core.records import Family, RecordType
from coordinator_core.wire.embedded import encode_blob
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader, by_partition
from tests.core.real_logs import unpacked, wild
from tests.shared_data import CORPUS

SHORT_NAMES = {
    "java": KnownClient.JAVA,
    "rd": KnownClient.LIBRDKAFKA,
    "kcat": KnownClient.LIBRDKAFKA,
    "franz": KnownClient.FRANZ_GO,
    "sarama": KnownClient.SARAMA,
    "segmentio": KnownClient.KAFKA_GO,
    "kafkajs": KnownClient.KAFKAJS,
    "platformatic": KnownClient.PLATFORMATIC,
    "aio": KnownClient.AIOKAFKA,
    "kp": KnownClient.KAFKA_PYTHON,
}
"""The clients of the recordings, by their names there."""


def truth(folder: Path) -> dict[str, KnownClient]:
    """By member id, the client that said that it has this id."""
    plain, packed = folder / "truth.jsonl", folder / "truth.jsonl.gz"
    text = plain.read_text() if plain.exists() else gzip.decompress(packed.read_bytes()).decode()
    said = map(json.loads, text.splitlines())
    return {line["member"]: SHORT_NAMES[line["lib"]] for line in said if line.get("member") and line.get("lib")}


def generations(logs: Path) -> Iterator[GroupMetadataValue]:
    for parts in by_partition(find_logs([logs]))[Family.GROUP].values():
        for record in LogReader(parts, pytest.fail).records():
            value = record.value if record.type == RecordType.GROUP_METADATA else None
            if value is not None and value["members"] and value["protocolType"] == "consumer":
                yield value


def told(group: GroupMetadataValue) -> Iterator[tuple[str, Told]]:
    """The members of a generation, and then its leader by what it assigned, too."""
    protocol, leader = group["protocol"] or "", group["leader"]
    given = assignment_writers(protocol, ((each["subscription"], each["assignment"]) for each in group["members"]))
    for member in group["members"]:
        wrote = subscription_writers(protocol, member["subscription"])
        says = member["clientId"], member["sessionTimeout"], member.get("rebalanceTimeout")
        yield member["memberId"], decide(wrote, *says)
        if member["memberId"] == leader:
            yield "leader", decide(narrowed(given, wrote), *says)


def held_against_truth(folder: Path) -> Counter[str]:
    known, counts = truth(folder), Counter[str]()
    for group in generations(folder / "logs"):
        for name, who in told(group):
            right = known.get((group["leader"] or "") if name == "leader" else name)
            if right is not None:
                kind = "leader" if name == "leader" else "member"
                counts[
                    f"{kind} told" if who.client is right else f"{kind} among" if right in who.clients else "wrong"
                ] += 1
    return counts


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ("kafka_go_leads", {"leader told": 13, "member told": 20, "member among": 9}),
        ("topic_listed_twice", {"leader told": 49, "member told": 109}),
    ],
)
def test_members_and_leaders_of_other_clients(run: str, expected: dict[str, int]) -> None:
    assert held_against_truth(unpacked("clients") / run) == expected


@pytest.mark.skipif(not (CORPUS / "clients").is_dir(), reason="needs ../shared")
def test_members_and_leaders_of_ten_clients() -> None:
    counts = held_against_truth(CORPUS / "clients")
    assert counts["wrong"] == 0
    # kafka-python writes range and roundrobin as Java before 2.4 does, and here with a session timeout of nobody.
    assert counts["leader among"] < 0.05 * counts["leader told"]
    assert counts["member among"] < 0.12 * counts["member told"]


def test_java_members_are_never_called_another_client() -> None:
    names = Counter(who.name for group in generations(wild()) for _, who in told(group))
    assert names.keys() == {KnownClient.JAVA.value}


def subscription(
    version: int, user_data: bytes | None, rack: str | None = None, topics: tuple[str, ...] = ("t",)
) -> bytes:
    fields = {"topics": list(topics), "userData": user_data}
    if version >= 1:
        fields["ownedPartitions"] = []
    if version >= 2:
        fields["generationId"] = -1
    if version >= 3:
        fields["rackId"] = rack
    return encode_blob("ConsumerProtocolSubscription", version, fields)


def short(user_data: bytes | None) -> bytes:
    """A subscription that says that it is of version 1, and ends where version 0 ends."""
    return b"\x00\x01" + subscription(0, user_data)[2:]


@pytest.mark.parametrize(
    ("protocol", "data", "clients"),
    [
        ("range", subscription(3, None), {KnownClient.JAVA, KnownClient.FRANZ_GO, KnownClient.PLATFORMATIC}),
        ("range", subscription(3, b"", ""), {KnownClient.LIBRDKAFKA}),
        ("range", subscription(3, b"", "r1"), {KnownClient.LIBRDKAFKA}),
        ("range", subscription(3, None, topics=("b", "a")), set()),
        ("cooperative-sticky", subscription(3, b"\xff" * 4), {KnownClient.JAVA}),
        ("cooperative-sticky", subscription(3, bytes(4)), {KnownClient.FRANZ_GO}),
        ("sticky", subscription(3, bytes(4)), {KnownClient.FRANZ_GO}),
        ("sticky", subscription(3, None), {KnownClient.JAVA, KnownClient.PLATFORMATIC}),
        ("range", subscription(1, None), {KnownClient.JAVA, KnownClient.SARAMA, KnownClient.PLATFORMATIC}),
        ("range", short(None), {KnownClient.KAFKA_GO, KnownClient.PLATFORMATIC}),
        ("rack-affinity", short(b"r1"), {KnownClient.KAFKA_GO}),
        ("RoundRobinAssigner", subscription(0, b""), {KnownClient.KAFKAJS}),
        ("sticky", subscription(0, b"\x00\x01" + bytes(4) + b"\xff" * 4), {KnownClient.KAFKA_PYTHON}),
        ("cooperative-sticky", subscription(1, b""), {KnownClient.LIBRDKAFKA, KnownClient.KAFKA_PYTHON}),
        ("RoundRobinAssigner", short(b""), {KnownClient.KAFKAJS}),
        ("range", subscription(0, None), {KnownClient.FRANZ_GO, KnownClient.SARAMA}),
        ("roundrobin", subscription(1, None), {KnownClient.JAVA, KnownClient.SARAMA, KnownClient.PLATFORMATIC}),
        ("cooperative-sticky", subscription(3, None), {KnownClient.PLATFORMATIC}),
        ("range", b"", set()),
        ("range", b"\x00", set()),
    ],
)  # fmt: skip
def test_the_clients_that_write_a_subscription(protocol: str, data: bytes, clients: set[KnownClient]) -> None:
    assert {WRITERS[name].client for name in subscription_writers(protocol, data)} == clients


def test_defaults_decide_between_clients_that_write_alike() -> None:
    wrote = subscription_writers("range", subscription(3, None))
    assert decide(wrote, "app", 45_000, 60_000) == Told(
        (KnownClient.FRANZ_GO,), ClientCertainty.LIKELY, "1.14.1 or later"
    )
    assert decide(wrote, "app", 45_000, 300_000) == Told((KnownClient.JAVA,), ClientCertainty.LIKELY, "3.4 or later")
    assert decide(wrote, "kgo", 45_000, 300_000).client is KnownClient.FRANZ_GO
    assert decide(wrote, "app", 45_000, 7_000) == Told(
        (KnownClient.JAVA, KnownClient.FRANZ_GO), ClientCertainty.SEVERAL
    )
    assert decide(wrote, "app", 9_000, 7_000).name == "java or franz-go or platformatic"
    assert decide(frozenset()) == UNKNOWN_CLIENT
    assert UNKNOWN_CLIENT.name == "unknown"


def test_an_old_release_is_a_candidate_unless_a_client_has_its_own_timeouts_or_client_id() -> None:
    wrote = subscription_writers("range", subscription(0, b""))
    assert decide(wrote, "app", 45_000, 300_000) == Told((KnownClient.KAFKA_PYTHON,), ClientCertainty.LIKELY)
    assert decide(wrote, "consumer-1", 45_000, 300_000) == Told(
        (KnownClient.JAVA,), ClientCertainty.LIKELY, "before 2.4"
    )
    assert decide(wrote, "kafka-python-3.0.12", 45_000, 300_000).release == "3.0.12"
    assert decide(wrote, "app", 10_000, 300_000).name == "java or librdkafka or kafka-python"
    assert decide(wrote, "app", 30_000, 300_000).name == "java or librdkafka or kafka-python"
    assert decide(wrote, "app", 9_000, 7_000).name == "java or librdkafka or sarama or aiokafka or kafka-python"


def test_default_timeouts_decide_between_old_and_new_writers() -> None:
    wrote = subscription_writers("range", subscription(0, None))
    assert decide(wrote, "app", 10_000, 60_000).name == "sarama"
    both = (KnownClient.FRANZ_GO, KnownClient.SARAMA)
    assert decide(wrote, "app", 20_000, 60_000) == Told(both, ClientCertainty.SEVERAL, FIRST_VERSION_ONLY)
    assert decide(wrote, "app", 45_000, 60_000) == Told(
        (KnownClient.FRANZ_GO,), ClientCertainty.LIKELY, "before 1.14.1"
    )
    wrote = subscription_writers("roundrobin", subscription(1, None))
    assert decide(wrote, "app", 60_000, 102_000) == Told(
        (KnownClient.PLATFORMATIC,), ClientCertainty.LIKELY, "2.12 or later"
    )


@pytest.mark.parametrize("client_id", ["kafka-node-client", "no-kafka-client"])
def test_a_client_that_names_itself_as_another_is_none_of_those_that_write_alike(client_id: str) -> None:
    wrote = subscription_writers("range", subscription(0, None))
    assert decide(wrote, client_id, 30_000, 60_000) == UNKNOWN_CLIENT


def test_a_client_that_calls_itself_as_one_that_writes_otherwise_is_not_known() -> None:
    """bsm/sarama-cluster has the client id of sarama, and writes a version 1 that ends early."""
    wrote = subscription_writers("range", short(None))
    assert decide(wrote, "app", 30_000, 30_000).name == "kafka-go"
    assert decide(wrote, "sarama", 30_000, 30_000) == UNKNOWN_CLIENT
    assert decide(wrote, "", 30_000, 60_000).name == "platformatic", "an empty one names nobody else"


def test_an_assignor_of_an_application_may_be_of_any_client_that_takes_the_version_from_it() -> None:
    data = b"\x00\x04" + subscription(0, b"{}")[2:]
    assert decide(subscription_writers("own", data), "app", 1, 2).certainty is ClientCertainty.SEVERAL
    assert decide(subscription_writers("own", data), "faust-0.15.3", 1, 2).client is KnownClient.AIOKAFKA


@pytest.mark.parametrize("client", KnownClient)
def test_each_client_has_defaults_and_writes_something(client: KnownClient) -> None:
    assert client in DEFAULTS
    assert any(writer.client is client for writer in WRITERS.values())


def test_default_client_ids() -> None:
    ids = {
        "consumer-orders-1": KnownClient.JAVA,
        "rdkafka": KnownClient.LIBRDKAFKA,
        "kgo": KnownClient.FRANZ_GO,
        "sarama": KnownClient.SARAMA,
        "app@host (github.com/segmentio/kafka-go)": KnownClient.KAFKA_GO,
        "kafkajs": KnownClient.KAFKAJS,
        "": KnownClient.PLATFORMATIC,
        "aiokafka-0.14.0": KnownClient.AIOKAFKA,
        "kafka-python-3.0.12": KnownClient.KAFKA_PYTHON,
        "faust-0.15.3": KnownClient.AIOKAFKA,
        "orders": None,
    }
    assert {client_id: default_client(client_id) for client_id in ids} == ids


def test_the_ids_that_members_of_consumer_groups_choose() -> None:
    """Java and franz-go write the letters of URLs, franz-go with the padding; librdkafka those of MIME."""
    ids = {
        "eu_9XwKI2p3-iEGyItaojg==": "franz-go",
        "8FVQgfpVAYpXslGxO7At1A==": "franz-go",
        "eu_9XwKI2p3-iEGyItaojg": "java",
        "eu/9XwKI2p3+iEGyItaojg": "librdkafka",
        "8FVQgfpVAYpXslGxO7At1A": "java or librdkafka",
        "2da4d556-16dc-4d3e-a84d-0e60c1a6723e": "platformatic",
        "mine": "unknown",
    }
    assert {member_id: decide_by_id(member_id, "app").name for member_id in ids} == ids
    assert decide_by_id("8FVQgfpVAYpXslGxO7At1A", "app").release is None


def test_the_clients_of_a_group_are_counted() -> None:
    names = ["java", "kafka-go", "unknown", "java", "java"]
    assert count_text(names) == "3 java, 1 kafka-go, 1 unknown"


def test_assignments_of_zero_bytes_prove_nothing() -> None:
    assert assignment_writers("range", [(subscription(3, None), b"")]) == EVERY_WRITER
