"""A snapshot of a cluster at one time, over the Admin protocol: topics with end offsets, settings, and features.

One row for each partition, with the columns of ``ROW``, and one for each resource that has settings, with those of
``SETTINGS_ROW``: groups, brokers, and the levels of features, which tell the release of the brokers.
``snapshot_files`` reads files of such rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from coordinator_core.cluster.snapshot_settings import FIRST_OF_4_0, METADATA_VERSION, ResourceKind
from coordinator_core.cluster.topic_lists import ZERO_ID
from jobs.sources import broker_features
from jobs.sources.broker_features import BrokerAddress, FeatureAnswer

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

ROW: Final = ("topic", "topic_id", "partition", "replica_racks", "timestamp_ms", "end_offset", "cluster_id")
"""The fields of a partition. ``replica_racks``: of each replica, null for a broker without a rack; times are in ms."""

SETTINGS_ROW: Final = ("resource_type", "resource", "configs", "missing", "timestamp_ms", "cluster_id")
"""The fields of a resource. ``missing``: why the settings are not, or not all, in ``configs``; null: they are."""

TIMEOUT_S: Final = 30.0
TOPICS_A_REQUEST: Final = 500
"""Topics or groups that one request names; of more, several are made, each with an answer of a bounded size."""
ABOUT_GROUPS: Final = "group."
"""How the names of the brokers' configs begin that a snapshot has."""

NOT_KRAFT: Final = f"it names no level of {METADATA_VERSION}, as brokers without KRaft do"
NOBODY: Final = "no broker knows them"

SnapshotRow = dict[str, Any]


def take(config: Mapping[str, str], time_ms: int, warn: Callable[[str], None]) -> list[SnapshotRow]:
    """Return the rows of a cluster: partitions, then features, configs of brokers, and configs of groups.

    ``config`` has settings of librdkafka, ``time_ms`` is the time that the rows get. ``warn`` is called for each kind
    of settings that the cluster does not give.

    Raises:
        InputError: the cluster does not answer, or refuses.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    from jobs.sources.kafka_reports import Reports

    reports = Reports(config)
    try:
        admin = AdminClient(reports.settings)
        cluster = reports.first_answer(admin, admin.describe_cluster(request_timeout=TIMEOUT_S))
        taken = list(rows(admin, cluster.cluster_id, time_ms))
    except KafkaException as error:
        raise reports.failure(error) from error
    if not taken:
        warn("the cluster shows no topics: it has none, or this user may not describe them")
    addresses = [BrokerAddress(node.id, node.host, node.port) for node in cluster.nodes]
    answers = broker_features.ask(addresses, config)
    silent = [answer for answer in answers if answer.missing is not None]
    if silent:
        count = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
        warn(f"the snapshot has no features of broker {silent[0].broker}{count}: {silent[0].missing}")
    place = {"timestamp_ms": time_ms, "cluster_id": cluster.cluster_id}
    taken += [{**row, **place} for row in feature_rows(answers)]
    # Both are generators: they ask only when they are read, where a refusal is caught.
    brokers = broker_rows(admin, sorted(address.broker for address in addresses))
    groups = group_rows(admin) if have_group_configs(answers) else iter(())
    for noun, asked in (("configs of brokers", brokers), ("configs of groups", groups)):
        try:
            taken += [{**row, **place} for row in asked]
        except KafkaException as error:
            warn(f"the snapshot has no {noun}: {error.args[0].str()}")
    return taken


def have_group_configs(answers: Sequence[FeatureAnswer]) -> bool:
    """Whether no broker is known to be older than Kafka 4.0: those have no configs of groups.

    They take the request for an error of theirs, and write it into their application log with a stack trace.
    """
    known = [answer.features.supported for answer in answers if answer.features is not None]
    return all(supported.get(METADATA_VERSION, 0) >= FIRST_OF_4_0 for supported in known)


def feature_rows(answers: Sequence[FeatureAnswer]) -> Iterator[SnapshotRow]:
    """Yield the levels of features that each broker supports, and those of the cluster, without time and cluster."""
    finalized: Mapping[str, int] | None = None
    for broker, features, missing in answers:
        supported = {} if features is None else features.supported
        if features is not None and features.finalized is not None:
            finalized = features.finalized
        if missing is None and METADATA_VERSION not in supported:
            missing = NOT_KRAFT
        yield _settings_row(ResourceKind.SUPPORTED_FEATURES, str(broker), supported, missing)
    yield _settings_row(ResourceKind.FINALIZED_FEATURES, "", finalized or {}, NOBODY if finalized is None else None)


def broker_rows(admin: AdminClient, brokers: Sequence[int]) -> Iterator[SnapshotRow]:
    """Yield the configs of each broker that are about groups. Raise KafkaException if a broker does not give them."""
    from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

    # librdkafka takes one broker in a request.
    asked = [
        admin.describe_configs([ConfigResource(ResourceType.BROKER, str(broker))], request_timeout=TIMEOUT_S)
        for broker in brokers
    ]
    for answered in asked:
        for resource, future in answered.items():
            configs = {name: value for name, value in _configs(future).items() if name.startswith(ABOUT_GROUPS)}
            yield _settings_row(ResourceKind.BROKER, resource.name, configs, None)


def group_rows(admin: AdminClient) -> Iterator[SnapshotRow]:
    """Yield the configs of each group that the cluster lists, broker defaults included (KIP-848).

    Raises:
        KafkaException: the cluster does not list groups, or does not give the configs of one (brokers before 4.0).
    """
    from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

    listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result()
    names = sorted(group.group_id for group in listed.valid)
    for first in range(0, len(names), TOPICS_A_REQUEST):
        wanted = [ConfigResource(ResourceType.GROUP, name) for name in names[first : first + TOPICS_A_REQUEST]]
        for resource, future in admin.describe_configs(wanted, request_timeout=TIMEOUT_S).items():
            yield _settings_row(ResourceKind.GROUP, resource.name, _configs(future), None)


def _configs(future: Any) -> dict[str, str]:
    return {name: entry.value for name, entry in sorted(future.result().items()) if entry.value is not None}


def _settings_row(kind: str, resource: str, settings: Mapping[str, object], missing: str | None) -> SnapshotRow:
    texts = {name: str(value) for name, value in settings.items()}
    return {"resource_type": kind, "resource": resource, "configs": texts or None, "missing": missing}


def rows(admin: AdminClient, cluster_id: str, time_ms: int) -> Iterator[SnapshotRow]:
    """Yield the partitions of the cluster of this AdminClient, by topic and partition.

    A partition without a leader has no end offset: null.
    """
    for described in _described(admin, admin.list_topics(timeout=TIMEOUT_S).topics):
        answers = {name: _unless_gone(future) for name, future in described.items()}
        topics = {name: topic for name, topic in answers.items() if topic is not None}
        led = [
            (name, partition.id)
            for name, topic in topics.items()
            for partition in topic.partitions
            if partition.leader is not None
        ]
        ends = end_offsets(admin, led)
        for name, topic in sorted(topics.items()):
            for partition in sorted(topic.partitions, key=lambda partition: partition.id):
                racks = [replica.rack for replica in partition.replicas]
                identified = (name, _kafka_text(topic.topic_id), partition.id, racks, time_ms)
                yield dict(zip(ROW, (*identified, ends.get((name, partition.id)), cluster_id), strict=True))


def _described(admin: AdminClient, names: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the descriptions of topics by name, as futures, those of a request at a time."""
    from confluent_kafka import TopicCollection

    ordered = sorted(names)
    for first in range(0, len(ordered), TOPICS_A_REQUEST):
        some = TopicCollection(ordered[first : first + TOPICS_A_REQUEST])
        yield admin.describe_topics(some, request_timeout=TIMEOUT_S)


def topic_ids(admin: AdminClient, names: Iterable[str]) -> dict[str, str]:
    """Return the ids of these topics by name, without those that are not given just now, or by brokers before 2.8."""
    from confluent_kafka import KafkaException

    ids = {}
    for described in _described(admin, names):
        for name, future in described.items():
            with suppress(KafkaException):
                ids[name] = _kafka_text(future.result().topic_id)
    return {name: topic_id for name, topic_id in ids.items() if topic_id != ZERO_ID}


def _unless_gone(described: Any) -> Any:
    """Return the description of a topic; None: it was deleted since topics were listed."""
    from confluent_kafka import KafkaError, KafkaException

    try:
        return described.result()
    except KafkaException as error:
        if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return None


def _kafka_text(topic_id: object) -> str:
    """Return an id as Kafka writes it: librdkafka uses the other alphabet of base 64."""
    return str(topic_id).translate(str.maketrans("+/", "-_"))


def end_offsets(admin: AdminClient, partitions: Iterable[tuple[str, int]]) -> dict[tuple[str, int], int]:
    """Return the end offsets of partitions by topic and partition, without those that are not given just now."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

    wanted = {TopicPartition(*each): OffsetSpec.latest() for each in partitions}  # type: ignore[no-untyped-call]
    ends = {}
    for partition, future in (admin.list_offsets(wanted, request_timeout=TIMEOUT_S) if wanted else {}).items():
        try:
            ends[partition.topic, partition.partition] = future.result().offset
        except KafkaException:  # the leader moved between two requests: the next snapshot has it
            continue
    return ends
