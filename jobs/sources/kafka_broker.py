"""The Spark data source ``kafka_log``: a coordinator log read from a live broker, a batch from offsets to offsets.

Options: ``topic``, ``config`` (a JSON object of librdkafka settings with ``bootstrap.servers``) and ``ranges`` (a JSON
object of partition to [from, to]; null stands for the first or the last offset there is; all partitions if absent) and
``since`` (a JSON object of partition to the first offset that is new to the reader).
What is planned is what was there at planning time, so that a run ends.

A consumer sees neither control records nor batches: outcomes of transactions are unknown. It reads uncommitted, so that
no record is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from coordinator_core.errors import InputError
from jobs.sources.dump_batches import SPARK_SCHEMA, dumped_batches

TIMEOUT_S: Final = 30.0
LOOK_S: Final = 5.0
MESSAGES_A_CALL: Final = 2000

SETTINGS: Final = {
    "group.id": "coordinator-audit",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
}
"""No offset is ever committed and no group joined: partitions are assigned."""

TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")

PASSING: Final = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)
"""The client connects again by itself; if that takes too long, its silence says so."""

NOTHING_TAKEN: Final[Mapping[int, int]] = MappingProxyType({})

Bounds = tuple[int | None, int | None]


@dataclass(frozen=True)
class OffsetRange(InputPartition):
    """The offsets of one log partition that one task reads, the last one excluded."""

    topic: str
    partition: int
    first: int
    end: int


class KafkaLog(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What ``spark.read.format`` calls it."""
        return "kafka_log"

    def schema(self) -> StructType:
        """The columns of a dump."""
        return SPARK_SCHEMA

    def reader(self, schema: StructType) -> KafkaLogReader:
        """The reader of these options."""
        ranges = json.loads(self.options.get("ranges", "null"))
        wanted = ranges and {int(partition): tuple(bounds) for partition, bounds in ranges.items()}
        since = {int(partition): offset for partition, offset in json.loads(self.options.get("since", "{}")).items()}
        return KafkaLogReader(self.options["topic"], json.loads(self.options["config"]), wanted, since)


class KafkaLogReader(DataSourceReader):
    """Plans a range for each partition, and reads one."""

    def __init__(
        self, topic: str, config: Mapping[str, str], ranges: Mapping[int, Bounds] | None, since: Mapping[int, int]
    ) -> None:
        self.topic, self.config, self.ranges, self.since = topic, {**SETTINGS, **config}, ranges, since
        self.servers = config.get("bootstrap.servers", "")

    def partitions(self) -> Sequence[InputPartition]:
        """The ranges as the log is now."""
        consumer = Consumer(self.config)
        try:
            return plan(consumer, self.topic, self.ranges, self.since)
        except KafkaException as error:
            raise InputError(f"{self.servers}: {error.args[0].str()}") from error
        finally:
            consumer.close()

    def read(self, partition: OffsetRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        """The records of one range."""
        consumer = Consumer(self.config)
        source = f"{self.servers}/{partition.topic}"
        try:
            yield from dumped_batches({**row, "source": source} for row in read_range(consumer, partition))
        finally:
            consumer.close()


def topic_partitions(config: Mapping[str, str], topic: str) -> list[int]:
    """Return the partitions that a broker names for a topic; none where it is not reached from this process.

    Under Spark Connect the broker may be reached by Spark alone, and what is missing then shows when it reads.
    """
    consumer = Consumer({**SETTINGS, **config})
    try:
        return sorted(consumer.list_topics(topic, timeout=LOOK_S).topics[topic].partitions)
    except KafkaException:
        return []
    finally:
        consumer.close()


def plan(
    consumer: Any, topic: str, ranges: Mapping[int, Bounds] | None, since: Mapping[int, int] = NOTHING_TAKEN
) -> list[OffsetRange]:
    """The ranges wanted, cut to what the broker has and to what is new.

    Raises:
        InputError: no such topic or partition, or a log that ends before what was taken of it.
        KafkaException: the broker does not answer.
    """
    found = consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
    if found.error is not None:
        raise InputError(f"{topic}: {found.error.str()}")
    planned = []
    for partition, (first, end) in sorted((ranges or dict.fromkeys(found.partitions, (None, None))).items()):
        if partition not in found.partitions:
            raise InputError(f"{topic}: there is no partition {partition}, but 0 to {len(found.partitions) - 1}")
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        if (new := since.get(partition, low)) > high:
            raise InputError(
                f"{topic}-{partition}: the log ends at {high}, but was taken up to {new} before: it is another log, "
                "which wants tables, or a name of the cluster, of its own"
            )
        first = max(low, new) if first is None else max(first, low, new)
        end = high if end is None else min(end, high)
        if first < end:
            planned.append(OffsetRange(topic, partition, first, end))
    return planned


def read_range(consumer: Any, wanted: OffsetRange) -> Iterator[dict[str, Any]]:
    """The records of a range, by the columns of a dump.

    The range ends with the first record at or behind its end, or with the log: its last offsets may be control records,
    which a consumer does not get to see.

    Raises:
        InputError: the broker reports an error, or says nothing for a while.
    """
    name = f"{wanted.topic}-{wanted.partition}"
    consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.first)])
    reached = wanted.first
    while True:
        messages = consumer.consume(MESSAGES_A_CALL, timeout=TIMEOUT_S)
        if not messages:
            raise InputError(f"{name}: nothing from the broker for {TIMEOUT_S:.0f} s at offset {reached}")
        for message in messages:
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                if error.code() in PASSING:
                    continue
                raise InputError(f"{name} at offset {reached}: {error.str()}")
            if message.offset() >= wanted.end:
                return
            reached = message.offset() + 1
            yield _row(message)


def _row(message: Any) -> dict[str, Any]:
    timestamp_type, timestamp = message.timestamp()
    headers = message.headers()
    return {
        "log_topic": message.topic(),
        "log_partition": message.partition(),
        "log_offset": message.offset(),
        "timestamp_ms": timestamp,
        "timestamp_type": TIMESTAMP_TYPES[timestamp_type],
        "kind": "record",
        "key": message.key(),
        "value": message.value(),
        "headers": headers and [{"key": name, "value": value} for name, value in headers],
        "leader_epoch": message.leader_epoch(),
        "outcome": "unknown",
    }
