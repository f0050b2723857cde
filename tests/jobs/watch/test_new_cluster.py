"""A watch of a cluster to which no consumer has come: it has no log of groups yet."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from coordinator_core.errors import InputError
from coordinator_core.records import Family
from jobs.watch import live_broker
from jobs.watch.followed_log import LastRow, Reached
from jobs.watch.live_broker import LiveBroker, Look
from jobs.watch.new_rows import LogPlace

OFFSETS = "__consumer_offsets"


class Cluster:
    """A broker that creates a topic that somebody asks for by its name, as it does by default."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.assigned: list[tuple[str, int]] = []

    def list_topics(self, *names: str, timeout: float) -> Any:
        """The topics that are there."""
        assert not names, "the broker would create them"
        return SimpleNamespace(cluster_id="c", topics={"orders": SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        """Nothing is written yet."""
        return 0, 0

    def incremental_assign(self, partitions: Any) -> None:
        """What the watch reads from now on."""
        self.assigned += [(each.topic, each.partition) for each in partitions]

    def close(self) -> None:
        """Nothing is left open."""


def test_a_watch_waits_for_the_log_of_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(live_broker, "Consumer", Cluster)
    broker = LiveBroker("b:1", {}, said.append)
    assert broker.identify() == "c"
    broker.begin({})
    assert (broker.places(), broker.is_caught_up) == ([], True)
    (text,) = said
    assert text.startswith("b:1: there is no topic __consumer_offsets or ")
    assert text.endswith(" yet, as no consumer has come to a new cluster: waiting")
    # Partition 1 has no leader yet: to ask for its offsets would fail.
    monkeypatch.setattr(broker, "_look", lambda _: Look(1, {(OFFSETS, 0): 3, (OFFSETS, 1): -1}))
    monkeypatch.setattr(live_broker, "LOOK_S", 0.0)
    assert broker.look(list) is None
    while broker.look(list) is None:
        pass
    assert broker.places() == [LogPlace(OFFSETS, Family.GROUP, 0)]
    broker.close()


def test_a_watch_goes_on_where_the_leader_of_a_new_partition_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    away = [(OFFSETS, 1)]

    class Leaving(Cluster):
        def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
            if (partition.topic, partition.partition) in away:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "timed out"))
            return 0, 0

    monkeypatch.setattr(live_broker, "Consumer", Leaving)
    monkeypatch.setattr(live_broker, "LOOK_S", 0.0)
    broker = LiveBroker("b:1", {}, said.append)
    monkeypatch.setattr(broker, "_look", lambda _: Look(1, {(OFFSETS, number): 3 for number in range(3)}))

    def looked() -> list[int]:
        while broker.look(list) is None:
            pass
        return [place.partition for place in broker.places()]

    assert looked() == [0]
    assert said == ["b:1 does not answer (timed out): waiting"]
    assert not broker.is_caught_up
    away.clear()
    assert looked() == [0, 1, 2]
    assert broker._consumer.assigned == [(OFFSETS, number) for number in range(3)]
    broker.close()


def test_a_partition_that_is_listed_late_is_read_on_where_a_former_watch_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Partly(Cluster):
        def list_topics(self, *names: str, timeout: float) -> Any:
            return SimpleNamespace(cluster_id="c", topics={OFFSETS: SimpleNamespace(error=None, partitions={0: None})})

        def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
            return 0, 9

        def incremental_assign(self, partitions: Any) -> None:
            self.assigned += [(each.partition, each.offset) for each in partitions]

    monkeypatch.setattr(live_broker, "Consumer", Partly)
    monkeypatch.setattr(live_broker, "LOOK_S", 0.0)
    broker = LiveBroker("b:1", {}, pytest.fail)
    broker.begin({LogPlace(OFFSETS, Family.GROUP, number): Reached(LastRow(7, 0, 0), True) for number in (0, 1)})
    monkeypatch.setattr(broker, "_look", lambda _: Look(1, {(OFFSETS, 0): 3, (OFFSETS, 1): 3}))
    while broker.look(list) is None:
        pass
    assert broker._consumer.assigned == [(0, 7), (1, 7)]
    broker.close()


class Deleting(Cluster):
    """A broker that deletes the records at the begin of a log while a watch is behind."""

    low, high = 0, 20

    def list_topics(self, *names: str, timeout: float) -> Any:
        return SimpleNamespace(cluster_id="c", topics={OFFSETS: SimpleNamespace(error=None, partitions={0: None})})

    def get_watermark_offsets(self, partition: Any, timeout: float) -> tuple[int, int]:
        return self.low, self.high

    def incremental_assign(self, partitions: Any) -> None:
        (self.position,) = (max(each.offset, self.low) for each in partitions)

    def incremental_unassign(self, partitions: Any) -> None:
        self.position = None

    def consume(self, count: int, timeout: float) -> list[Any]:
        """Two records, or that those that are wanted are gone."""
        if self.position is None:
            return []
        if not self.low <= self.position <= self.high:
            return [message(self.position, KafkaError._AUTO_OFFSET_RESET)]
        first, self.position = self.position, self.position + 2
        return [message(offset) for offset in (first, first + 1)]


def message(offset: int, error: int | None = None) -> Any:
    values = {
        "error": None if error is None else KafkaError(error, "out of range"),
        "topic": OFFSETS,
        "partition": 0,
        "offset": offset,
        "timestamp": (1, offset),
        "key": b"k",
        "value": None,
        "leader_epoch": 1,
    }
    return SimpleNamespace(**{name: lambda value=value: value for name, value in values.items()})


@pytest.mark.parametrize("high", [20, 3], ids=["deleted", "cut"])
def test_a_watch_goes_on_behind_what_was_deleted_before_it_was_read(monkeypatch: pytest.MonkeyPatch, high: int) -> None:
    monkeypatch.setattr(live_broker, "Consumer", Deleting)
    monkeypatch.setattr(live_broker, "LOOK_S", 0.0)
    broker = LiveBroker("b:1", {}, pytest.fail)
    broker.begin({})
    monkeypatch.setattr(broker, "_look", lambda _: Look(1, {(OFFSETS, 0): 3}))

    def read() -> list[tuple[list[int], bool]]:
        return [([row.offset for row in new.rows], new.is_lost) for new in broker.poll()]

    assert [read(), read()] == [[([0, 1], False)], [([2, 3], False)]]
    broker._consumer.low, broker._consumer.high = (10, high) if high > 10 else (0, high)
    assert read() == []

    def look() -> None:
        while broker.look(list) is None:
            pass

    if high > 10:
        look()
        assert [read(), read()] == [[([10, 11], True)], [([12, 13], False)]]
    else:
        with pytest.raises(InputError, match="the log ends at 3, and the watch had read it up to offset 3"):
            look()
    broker.close()


def test_a_log_that_a_former_watch_read_and_that_is_gone_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_broker, "Consumer", Cluster)
    broker = LiveBroker("b:1", {}, pytest.fail)
    reached = {LogPlace(OFFSETS, Family.GROUP, 0): Reached(LastRow(7, 0, 0), from_start=True)}
    with pytest.raises(InputError, match="there is no topic"):
        broker.begin(reached)
    broker.close()
