"""A snapshot of a cluster at one time, over the Admin protocol: topics with ids, racks and end offsets.

One row for each partition, with the columns of ``ROW``, and one for each group, with its configs. A file of such rows,
of one time or many, gives the lag of groups (``--end-offsets``), and the topics where the metadata log cannot be had
(``--topics``).
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.errors import InputError
from jobs.sources.end_offsets import JSON_SUFFIXES

ROW: Final = ("topic", "topic_id", "partition", "replica_racks", "timestamp_ms", "end_offset", "cluster_id")
"""The fields of a row. ``replica_racks``: the rack of each replica, null for a broker without one; times are in ms."""

TIMEOUT_S: Final = 30.0
TOPICS_A_REQUEST: Final = 500


def take(config: Mapping[str, str], time_ms: int, warn: Callable[[str], None]) -> list[dict[str, Any]]:
    """Return the rows of a cluster: partitions, then configs of groups.

    ``config`` has settings of librdkafka, ``time_ms`` is the time that the rows get. ``warn`` is called if the cluster
    does not give configs of groups.

    Raises:
        InputError: the cluster does not answer, or refuses.
    """
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    # librdkafka logs each attempt to connect; the error that is raised says the same once.
    quiet: dict[str, Any] = {"log_level": "0", "error_cb": lambda error: None}
    try:
        admin = AdminClient({**config, **quiet})
        found = list(rows(admin, time_ms))
    except KafkaException as error:
        raise InputError(f"{config.get('bootstrap.servers', '')}: {error.args[0].str()}") from error
    try:
        return [*found, *list(group_rows(admin, time_ms, found[0]["cluster_id"] if found else ""))]
    except KafkaException as error:
        warn(f"the snapshot has no configs of groups: {error.args[0].str()}")
        return found


def group_rows(admin: Any, time_ms: int, cluster_id: str) -> Iterator[dict[str, Any]]:
    """Yield a row for each group that the cluster lists: its configs, broker defaults included (KIP-848).

    Raises:
        KafkaException: the cluster does not list groups, or does not give the configs of one (brokers before 4.0).
    """
    from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

    listed = admin.list_consumer_groups(request_timeout=TIMEOUT_S).result()
    names = sorted(group.group_id for group in listed.valid)
    for first in range(0, len(names), TOPICS_A_REQUEST):
        wanted = [ConfigResource(ResourceType.GROUP, name) for name in names[first : first + TOPICS_A_REQUEST]]
        for resource, future in admin.describe_configs(wanted, request_timeout=TIMEOUT_S).items():
            configs = {name: entry.value for name, entry in sorted(future.result().items()) if entry.value is not None}
            named = {"resource_type": "GROUP", "resource": resource.name, "configs": configs}
            yield {**named, "timestamp_ms": time_ms, "cluster_id": cluster_id}


def rows(admin: Any, time_ms: int) -> Iterator[dict[str, Any]]:
    """Yield the rows of the cluster of this AdminClient, by topic and partition.

    A partition without a leader has no end offset: null.
    """
    from confluent_kafka import TopicCollection

    cluster = admin.describe_cluster(request_timeout=TIMEOUT_S).result()
    names = sorted(admin.list_topics(timeout=TIMEOUT_S).topics)
    for first in range(0, len(names), TOPICS_A_REQUEST):
        found = admin.describe_topics(
            TopicCollection(names[first : first + TOPICS_A_REQUEST]), request_timeout=TIMEOUT_S
        )
        topics = {name: future.result() for name, future in found.items()}
        ends = _end_offsets(admin, topics)
        for name, topic in sorted(topics.items()):
            for partition in sorted(topic.partitions, key=lambda each: each.id):
                racks = [replica.rack for replica in partition.replicas]
                identified = (name, _kafka_text(topic.topic_id), partition.id, racks, time_ms)
                yield dict(zip(ROW, (*identified, ends.get((name, partition.id)), cluster.cluster_id), strict=True))


def _kafka_text(topic_id: Any) -> str:
    """Return an id as Kafka writes it: librdkafka uses the other alphabet of base 64."""
    return str(topic_id).translate(str.maketrans("+/", "-_"))


def _end_offsets(admin: Any, topics: Mapping[str, Any]) -> dict[tuple[str, int], int]:
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

    wanted = {
        TopicPartition(name, partition.id): OffsetSpec.latest()  # type: ignore[no-untyped-call]
        for name, topic in topics.items()
        for partition in topic.partitions
        if partition.leader is not None
    }
    ends = {}
    for partition, future in (admin.list_offsets(wanted, request_timeout=TIMEOUT_S) if wanted else {}).items():
        try:
            ends[partition.topic, partition.partition] = future.result().offset
        except KafkaException:  # the leader moved between the two requests: the next snapshot has it
            continue
    return ends


def is_snapshot(path: str) -> bool:
    """Return whether a path is a local file of snapshots, by its first line."""
    if not (path.endswith(JSON_SUFFIXES) and Path(path).is_file()):
        return False
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            row = json.loads(file.readline())
    except (OSError, ValueError):
        return False
    return isinstance(row, dict) and "timestamp_ms" in row and ("end_offset" in row or "resource_type" in row)


def append(path: Path, found: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a file of JSON lines; the file is created if it is not there."""
    with path.open("a", encoding="utf-8") as file:
        for row in found:
            file.write(json.dumps(row) + "\n")


def read_topics(path: Path) -> TopicHistory:
    """Return the history of topics that a file of snapshots tells.

    Raises:
        InputError: the file cannot be read, or a line of it is not a row of a snapshot.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if "resource" not in row:
                numbers = {name: int(row[name]) for name in ("timestamp_ms", "partition")}
                found.append({**row, "topic": row["topic"], **numbers})
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}: line {number} is not a row of a snapshot: {error!r}") from error
    if not found:
        raise InputError(f"{path}: contains no snapshot")
    return topics_of(found)


def topics_of(rows: Iterable[Mapping[str, Any]]) -> TopicHistory:
    """Return the history of topics in rows of snapshots: ``ROW``, without the end offset."""
    listed: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        name, time_ms = row["topic"], row["timestamp_ms"]
        topic = listed.setdefault(
            (time_ms, name), {"name": name, "id": row.get("topic_id"), "time": time_ms, "racks": {}}
        )
        topic["racks"][row["partition"]] = list(row.get("replica_racks") or ())
    return fold_snapshots(map(_listed, listed.values()))


def _listed(topic: Mapping[str, Any]) -> dict[str, Any]:
    """Return a topic with its partitions counted; a topic of which a partition is missing has unknown racks."""
    racks: dict[int, list[str | None]] = topic["racks"]
    count = max(racks) + 1
    known = [racks[number] for number in range(count)] if len(racks) == count else []
    has_racks = any(rack is not None for each in known for rack in each)
    return {**topic, "partitions": count, "racks": known if has_racks else []}
