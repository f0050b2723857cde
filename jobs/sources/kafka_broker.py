"""Reads a coordinator log from a live broker, as a batch of offset ranges.

Ranges end at the end offsets at planning time, so that a run ends.

A consumer sees neither control records nor batches, so outcomes of transactions are unknown. It reads uncommitted
records as well, so that no record is left out.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_core.errors import InputError
from jobs.sources.dump_batches import dumped_batches
from jobs.sources.kafka_reports import CONSUMER, PASSING, Reports

TIMEOUT_S: Final = 30.0
"""How long a broker may take for an answer, as Kafka's clients wait by default (request.timeout.ms)."""
LOOK_S: Final = 5.0
"""The same where the answer is not needed: it only says how many partitions a topic has."""
WAIT_S: Final = 0.05
"""How long a call waits for messages: librdkafka waits so long for all that it was asked for, whatever it has."""
MESSAGES_A_CALL: Final = 2000
"""Messages that a call returns at most: so many Python objects are in memory at a time."""

TIMESTAMP_TYPES: Final = ("NoTimestampType", "CreateTime", "LogAppendTime")

NOTHING_TAKEN: Final[Mapping[int, int]] = MappingProxyType({})

Bounds = tuple[int | None, int | None]


@dataclass(frozen=True)
class BrokerRange:
    """The offsets of one log partition that one task reads; ``end`` is excluded."""

    topic: str
    partition: int
    first: int
    end: int


class KafkaLogReader:
    """Plans a range for each partition, and reads one.

    ``config``: settings of librdkafka, with ``bootstrap.servers``. ``ranges``: [from, to) by partition; None: the first
    or the last offset; empty: all partitions. ``since``: by partition, the first offset that was not ingested before.
    """

    def __init__(
        self, topic: str, config: Mapping[str, str], ranges: Mapping[int, Bounds] | None, since: Mapping[int, int]
    ) -> None:
        self.topic, self.config, self.ranges, self.since = topic, {**CONSUMER, **config}, ranges, since
        self.servers = config.get("bootstrap.servers", "")

    def partitions(self) -> Sequence[BrokerRange]:
        """Return the ranges, with the end offsets of now."""
        consumer, reports = _opened(self.config)
        try:
            reports.listed(consumer, TIMEOUT_S)
            return plan(consumer, self.topic, self.ranges, self.since)
        except KafkaException as error:
            raise reports.failure(error) from error
        finally:
            consumer.close()

    def size(self, partition: BrokerRange) -> int:
        """Return 0: how large the records of a range are, the broker does not say."""
        return 0

    def read(self, partition: BrokerRange) -> Iterator[pa.RecordBatch]:
        """Yield the records of one range."""
        consumer, _ = _opened(self.config)
        source = f"{self.servers}/{partition.topic}"
        try:
            yield from dumped_batches({**row, "source": source} for row in read_range(consumer, partition))
        finally:
            consumer.close()


def topic_partitions(config: Mapping[str, str], topic: str) -> list[int]:
    """Return the partitions of a topic; an empty list if this process cannot reach the broker.

    With Spark Connect, perhaps only Spark can reach the broker; missing partitions are then found when Spark reads.

    Raises:
        InputError: the broker refuses the login.
    """
    consumer, reports = _opened({**CONSUMER, **config})
    try:
        described = reports.listed(consumer, LOOK_S).topics.get(topic)
        return [] if described is None else sorted(described.partitions)
    except InputError:
        if reports.is_hopeless:
            raise
        return []
    finally:
        consumer.close()


def _opened(config: Mapping[str, str]) -> tuple[Consumer, Reports]:
    """Return a consumer and its reports. Raise InputError for settings that librdkafka does not know."""
    reports = Reports(config)
    try:
        return Consumer(reports.settings), reports
    except KafkaException as error:
        raise reports.failure(error) from error


def plan(
    consumer: Consumer, topic: str, ranges: Mapping[int, Bounds] | None, since: Mapping[int, int] = NOTHING_TAKEN
) -> list[BrokerRange]:
    """Return the requested ranges, limited to offsets that the broker has and that were not ingested before.

    Raises:
        InputError: the topic or a partition does not exist, or the log ends before an offset that was ingested.
        KafkaException: the broker does not answer.
    """
    metadata = consumer.list_topics(timeout=TIMEOUT_S).topics.get(topic)
    if metadata is None or metadata.error is not None:
        raise InputError(f"{topic}: {'there is no such topic' if metadata is None else metadata.error.str()}")
    planned = []
    for partition, (first, end) in sorted((ranges or dict.fromkeys(metadata.partitions, (None, None))).items()):
        if partition not in metadata.partitions:
            raise InputError(f"{topic} has no partition {partition}: use 0 to {len(metadata.partitions) - 1}")
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        if (new := since.get(partition, low)) > high:
            raise InputError(
                f"{topic}-{partition}: the log ends at {high}, but was ingested up to {new} before. It has lost "
                "records, or is the log of another cluster: give it its own name (--cluster) or its own tables"
            )
        # Records may have been deleted since (DeleteRecords, retention): the log begins at low now.
        first = max(low, new) if first is None else max(first, low, new)
        end = high if end is None else min(end, high)
        if first < end:
            planned.append(BrokerRange(topic, partition, first, end))
    return planned


def read_range(consumer: Any, wanted: BrokerRange) -> Iterator[dict[str, object]]:
    """Yield the records of a range as rows with the columns of a dump.

    The range ends at the first record at or after its end, or at the end of the log: its last offsets may be control
    records, which a consumer does not see.

    Raises:
        InputError: the broker reports an error, or does not answer for ``TIMEOUT_S``.
    """
    name = f"{wanted.topic}-{wanted.partition}"
    consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.first)])
    reached, answered_s = wanted.first, time.monotonic()
    while True:
        if time.monotonic() - answered_s > TIMEOUT_S:
            raise InputError(f"{name}: no answer from the broker for {TIMEOUT_S:.0f} s at offset {reached}")
        for message in consumer.consume(MESSAGES_A_CALL, timeout=WAIT_S):
            if (error := message.error()) is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                if error.code() in PASSING:
                    continue
                raise InputError(f"{name} at offset {reached}: {error.str()}")
            # The offset before the end may be a marker, which no consumer gets: only a later record shows that the end
            # was passed.
            if message.offset() >= wanted.end:
                return
            reached = message.offset() + 1
            yield _row(message)
            answered_s = time.monotonic()  # not before: who takes the row may take long
            if reached == wanted.end:  # else the broker would wait a while for more
                return


def _row(message: Any) -> dict[str, object]:
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
