"""The coordinator's log of a running cluster, followed by a consumer that never joins a group or commits an offset.

A consumer sees neither control records nor batches, so that outcomes of transactions are unknown. It reads uncommitted
records as well, so that no record is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_core.errors import InputError
from coordinator_core.wire.batch_format import Kind
from jobs.sources.bounded_warnings import Warn
from jobs.sources.files import FAMILIES, GROUP_TOPICS
from jobs.sources.kafka_reports import Reports
from jobs.sources.log_reader import LogRow
from jobs.watch.new_rows import LogPlace, NewRows

TIMEOUT_S: Final = 30.0
WAIT_S: Final = 0.2
"""How long a poll waits for records; a line is printed at most that long after its record."""
MESSAGES_A_CALL: Final = 5_000

SETTINGS: Final = {
    "group.id": "coordinator-audit",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "earliest",
    "isolation.level": "read_uncommitted",
}

PASSING: Final = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
"""Errors after which the client connects again by itself."""


class LiveBroker:
    """The partitions of the logs of groups. ``poll`` gives what was written since the last one."""

    def __init__(self, servers: str, config: Mapping[str, str], warn: Warn) -> None:
        """Connect, and begin at the first offset of each partition.

        Raises:
            InputError: the broker refuses the login or does not answer, or there is no such topic.
        """
        self._servers, self._warn = servers, warn
        self._is_away = False
        reports = self._reports = Reports({**SETTINGS, **config, "bootstrap.servers": servers})
        try:
            self._consumer: Any = Consumer(reports.settings)
        except KafkaException as error:
            raise reports.failure(error) from error
        self._places: dict[tuple[str, int], LogPlace] = {}
        for topic in GROUP_TOPICS:
            described = reports.listed(self._consumer, topic, TIMEOUT_S).topics[topic]
            if described.error is None:
                self._places |= {
                    (topic, number): LogPlace(topic, FAMILIES[topic], number) for number in described.partitions
                }
        if not self._places:
            raise InputError(f"{servers}: there is no topic {' or '.join(GROUP_TOPICS)}")
        self._unread = set(self._places)
        self._from_start = {place: self._begins_at_zero(*place) for place in self._places}
        self._consumer.assign([TopicPartition(*place, OFFSET_BEGINNING) for place in self._places])

    @property
    def is_caught_up(self) -> bool:
        """Whether all partitions were read to the end that they had."""
        return not self._unread

    def poll(self) -> Iterator[NewRows]:
        """Yield new rows by partition; wait for some for a moment. A broker that is away is waited for.

        Raises:
            InputError: the broker reports an error that does not pass.
        """
        rows: dict[tuple[str, int], list[LogRow]] = {}
        for message in self._consumer.consume(MESSAGES_A_CALL, timeout=WAIT_S):
            error = message.error()
            if error is None:
                self._answers()
                rows.setdefault((message.topic(), message.partition()), []).append(_row(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                self._answers()
                self._unread.discard((message.topic(), message.partition()))
            elif error.code() in PASSING or error.retriable():
                self._stays_away(error.str())
            else:
                raise InputError(f"{self._servers}: {error.str()}")
        # That a broker is away is no message: the client reports it apart, while it is polled.
        reported = [*self._reports.errors]
        self._reports.errors.clear()
        if reported and not rows:
            self._stays_away(reported[-1].str())
        for place, some in sorted(rows.items()):
            yield NewRows(self._places[place], some, self._from_start[place])

    def close(self) -> None:
        """Leave the cluster."""
        self._consumer.close()

    def _begins_at_zero(self, topic: str, partition: int) -> bool:
        low, _ = self._consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=TIMEOUT_S)
        return bool(low == 0)

    def _stays_away(self, cause: str) -> None:
        if not self._is_away:
            self._is_away = True
            self._warn(f"{self._servers} does not answer ({cause}): waiting")

    def _answers(self) -> None:
        if self._is_away:
            self._is_away = False
            self._warn(f"{self._servers} answers again")


def _row(message: Any) -> LogRow:
    _, timestamp = message.timestamp()
    leader_epoch = message.leader_epoch()
    return LogRow(
        Kind.RECORD.value,
        message.offset(),
        timestamp,
        message.key() or b"",
        message.value(),
        None,
        False,
        -1,
        -1 if leader_epoch is None else leader_epoch,
        -1,
    )
