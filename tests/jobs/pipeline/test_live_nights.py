"""Nights that read the log of groups from a broker; librdkafka itself plays one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from coordinator_core.records import GROUP_LOG
from jobs.pipeline import ingest
from jobs.sources import kafka_broker
from jobs.sources.dump import Kafka, open_dump
from jobs.tables.delta import Tables
from tests.core.builders import GroupLog
from tests.jobs.logs import batch
from tests.jobs.watch.test_deleted_groups import rows_of

PARTITIONS = 4


class Broker:
    """A broker whose log of groups gets commits."""

    def __init__(self) -> None:
        self._writer = Producer({"bootstrap.servers": "none:1", "test.mock.num.brokers": 1, "log_level": 0})
        (broker,) = self._writer.list_topics(timeout=30).brokers.values()
        self.url = f"kafka://{broker.host}:{broker.port}/{GROUP_LOG}"

    def commit(self, partition: int, offset: int) -> None:
        (row,) = rows_of(batch(GroupLog(f"g{partition}").commit("orders", 0, offset)))
        self._writer.produce(GROUP_LOG, row.value, row.key, partition)
        self._writer.flush()


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The partitions that are read, each time."""
    found: list[int] = []
    read = kafka_broker.KafkaLogReader.read

    def noted(source: Any, wanted: Any) -> Any:
        found.append(wanted.partition)
        return read(source, wanted)

    monkeypatch.setattr(kafka_broker.KafkaLogReader, "read", noted)
    return found


def night(tables: Tables, broker: Broker) -> list[tuple[Any, ...]]:
    """Return partitions and offsets that the tables have after another night."""
    since = ingest.next_offsets(tables, "c")
    ingest.run(tables, open_dump(None, [broker.url], kafka=Kafka(since=since)), "c")
    return [*tables.engine().tuples("SELECT log_partition, log_offset FROM $log_records ORDER BY 1, 2")]


def test_what_is_new_is_read_once(tmp_path: Path, reads: list[int]) -> None:
    broker, tables = Broker(), Tables(None, str(tmp_path / "tables"))
    for partition in range(PARTITIONS):
        broker.commit(partition, 1)
    assert night(tables, broker) == [(partition, 0) for partition in range(PARTITIONS)]
    broker.commit(1, 2)
    broker.commit(3, 2)
    for _ in range(2):
        assert night(tables, broker) == [(0, 0), (1, 0), (1, 1), (2, 0), (3, 0), (3, 1)]
    assert reads == [*range(PARTITIONS), 1, 3]
