"""The live source against a consumer that plays a broker."""

import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition

from coordinator_core.errors import InputError
from jobs.sources import kafka_broker
from jobs.sources.dump_batches import dumped_batches
from jobs.sources.kafka_broker import TIMEOUT_S, BrokerRange, KafkaLogReader, plan, read_range

TOPIC = "__consumer_offsets"
EOF = KafkaError._PARTITION_EOF


class Message:
    """A message, or an event that librdkafka delivers as one."""

    def __init__(self, offset: int, error: int | None = None) -> None:
        self._offset, self._error = offset, error

    def error(self) -> Any:
        """The error of an event."""
        return None if self._error is None else KafkaError(self._error)

    def __getattr__(self, name: str) -> Any:
        values = {
            "topic": TOPIC,
            "partition": 1,
            "offset": self._offset,
            "timestamp": (1, 1000 + self._offset),
            "key": b"k",
            "value": None,
            "headers": [("h", b"1")] if self._offset == 3 else None,
            "leader_epoch": 7,
        }
        return lambda: values[name]


class Broker:
    """A log of three partitions whose offsets 5 and 9 are control records: never delivered."""

    def __init__(self, deliveries: list[list[Message]] | None = None) -> None:
        self.deliveries = iter(deliveries or [])
        self.assigned: list[TopicPartition] = []

    def list_topics(self, timeout: float) -> Any:
        """Metadata of all topics: a topic that is named might be created."""
        return SimpleNamespace(topics={TOPIC: SimpleNamespace(error=None, partitions=dict.fromkeys(range(3)))})

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        """Partition 2 is empty."""
        return (2, 10) if partition.partition < 2 else (0, 0)

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Where reading begins."""
        self.assigned = partitions

    def consume(self, count: int, timeout: float) -> list[Message]:
        """The next delivery, nothing when there are none left."""
        return next(self.deliveries, [])


def test_a_plan_covers_what_is_there_and_no_more() -> None:
    assert plan(Broker(), TOPIC, None) == [BrokerRange(TOPIC, 0, 2, 10), BrokerRange(TOPIC, 1, 2, 10)]
    wanted = {0: (4, 6), 1: (0, 99), 2: (None, None)}
    assert plan(Broker(), TOPIC, wanted) == [BrokerRange(TOPIC, 0, 4, 6), BrokerRange(TOPIC, 1, 2, 10)]


def test_of_a_log_that_was_taken_before_only_what_is_new_is_planned() -> None:
    assert plan(Broker(), TOPIC, None, {0: 8, 1: 10}) == [BrokerRange(TOPIC, 0, 8, 10)]
    with pytest.raises(InputError, match=rf"{TOPIC}-0: .*10.*11"):
        plan(Broker(), TOPIC, None, {0: 11})


def test_what_the_broker_does_not_have_is_named() -> None:
    with pytest.raises(InputError, match=r"nope: there is no such topic"):
        plan(Broker(), "nope", None)
    with pytest.raises(InputError, match=r"no partition 7.*0 to 2"):
        plan(Broker(), TOPIC, {7: (None, None)})


def offsets(deliveries: list[list[Message]], end: int) -> list[int]:
    return [row["log_offset"] for row in read_range(Broker(deliveries), BrokerRange(TOPIC, 1, 2, end))]


def test_a_range_ends_behind_its_end_or_with_the_log() -> None:
    """The last offset of a range may be a control record, so no record says that the end is reached."""
    assert offsets([[Message(2), Message(3)], [Message(4), Message(6)]], 6) == [2, 3, 4]
    assert offsets([[Message(8)], [Message(10, EOF)]], 10) == [8]


def test_a_lost_connection_is_waited_for() -> None:
    assert offsets([[Message(2, KafkaError._TRANSPORT)], [Message(2), Message(10, EOF)]], 10) == [2]


def test_a_range_of_few_records_takes_no_longer_than_they_do() -> None:
    """librdkafka waits until it has as many messages as it was asked for, or for all of the time that it is given."""
    writer = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = writer.list_topics(timeout=30).brokers.values()
    servers = f"{broker.host}:{broker.port}"
    for partition in range(3):
        writer.produce("t", b"value", b"key", partition)
    writer.flush()
    begin_s = time.monotonic()
    source = KafkaLogReader("t", {"bootstrap.servers": servers}, None, {})
    rows = [batch.num_rows for wanted in source.partitions() for batch in source.read(wanted)]
    assert rows == [1, 1, 1]
    assert time.monotonic() - begin_s < TIMEOUT_S


def test_rows_have_the_columns_of_a_dump() -> None:
    broker = Broker([[Message(3), Message(4, EOF)]])
    (batch,) = dumped_batches(read_range(broker, BrokerRange(TOPIC, 1, 3, 4)))
    (row,) = batch.to_pylist()
    assert (row["log_topic"], row["log_partition"], row["log_offset"], row["timestamp_ms"]) == (TOPIC, 1, 3, 1003)
    assert (row["timestamp_type"], row["leader_epoch"], row["outcome"]) == ("CreateTime", 7, "unknown")
    assert (row["key"], row["value"], row["headers"]) == (b"k", None, [{"key": "h", "value": b"1"}])
    assert (broker.assigned[0].partition, broker.assigned[0].offset) == (1, 3)


def test_silence_and_errors_are_no_end_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_broker, "TIMEOUT_S", 0.02)
    with pytest.raises(InputError, match="no answer from the broker for 0 s at offset 3"):
        offsets([[Message(2)]], 10)
    with pytest.raises(InputError, match="no answer from the broker for 0 s at offset 2"):
        offsets([[Message(2, KafkaError._TRANSPORT)]] * 1_000_000, 10)
    with pytest.raises(InputError, match=r"__consumer_offsets-1 at offset 2: .*[Oo]ffset out of range"):
        offsets([[Message(2, KafkaError.OFFSET_OUT_OF_RANGE)]], 10)
