"""The recorded logs as Kafka's own classes decoded them: records, transaction markers and checkpoints."""

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.records import CoordinatorRecord, LogPosition

Line = dict[str, Any]


class LogEntry(NamedTuple):
    """A record with the producer of its transaction, or with ``record`` None the marker that ends one."""

    at: LogPosition
    record: CoordinatorRecord | None
    producer_id: int | None
    leader_epoch: int
    committed: bool = False


def read_lines(path: Path) -> Iterator[Line]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def log_entries(path: Path) -> Iterator[LogEntry]:
    """The entries of a ``decoded*.jsonl.gz``, in its order, which is that of each partition's log.

    Batches that compaction emptied are left out.
    """
    for line in read_lines(path):
        if line.get("emptyBatch"):
            continue
        at = LogPosition(line["partition"], line["offset"], line["timestamp"])
        if line["isControl"]:
            if line.get("control") in ("COMMIT", "ABORT"):
                yield LogEntry(at, None, line["producerId"], line["leaderEpoch"], line["control"] == "COMMIT")
            continue
        value = with_bytes(line["value"])
        record = CoordinatorRecord(at, line["type"], line["key"], value, line["valueVersion"], line["batchBase"])
        yield LogEntry(at, record, line["producerId"] if line["isTransactional"] else None, line["leaderEpoch"])


def with_bytes(value: Line | None) -> Line | None:
    """The decoded value with its ``bytes`` fields, which JSON holds in base64, as bytes."""
    if value is None:
        return None
    if "protocolType" in value:
        for member in value["members"]:
            member["subscription"] = base64.b64decode(member["subscription"])
            member["assignment"] = base64.b64decode(member["assignment"])
    classic = value.get("classicMemberMetadata")
    if classic is not None:
        for protocol in classic["supportedProtocols"]:
            protocol["metadata"] = base64.b64decode(protocol["metadata"])
    return value


def topic_image(checkpoint: Line) -> TopicImage:
    return TopicImage.of(Topic(name, topic["id"], topic["partitions"]) for name, topic in checkpoint["topics"].items())


def data_end(checkpoint: Line) -> dict[TopicPartition, int]:
    return {
        TopicPartition(*_split(partition)): offset for partition, offset in (checkpoint.get("data_end") or {}).items()
    }


def _split(topic_partition: str) -> tuple[str, int]:
    topic, _, partition = topic_partition.rpartition("-")
    return topic, int(partition)
