"""Why a client of Kafka gets no answer.

librdkafka tries again until a request times out, and the error then says no more than that. What went wrong, such as a
refused login, it reports apart, and only to a client that polls.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Final, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException

from coordinator_core.errors import InputError

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

POLL_S: Final = 0.1
PATIENCE_S: Final = 5.0
"""How long a first answer is waited for after a report: another broker, or the next attempt, may give it."""

CONSUMER: Final = {
    "group.id": "coordinator-audit",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
}
"""Settings of a consumer of logs: it never joins a group and never commits an offset, as it is given its partitions."""

PASSING: Final = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)
"""Errors after which a client connects again by itself."""

HOPELESS: Final = (KafkaError._AUTHENTICATION, KafkaError._SSL)
"""Reports after which no attempt can succeed."""

WRONG_PORT: Final = "or this port is not one of security.protocol"
"""What librdkafka does not report: a port that closes the connection, as it wants TLS or a login."""

Answer = TypeVar("Answer")


class Reports:
    """The reports of one client. ``settings`` are its settings, which send them here instead of to a log."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self.errors: list[KafkaError] = []
        self.servers = config.get("bootstrap.servers", "")
        self.settings: dict[str, Any] = {**config, "log_level": "0", "error_cb": self.errors.append}

    @property
    def is_hopeless(self) -> bool:
        """Whether a report says that no attempt can succeed."""
        return any(error.code() in HOPELESS for error in self.errors)

    def first_answer(self, client: Consumer | AdminClient, asked: Future[Answer]) -> Answer:
        """Return the first answer of a cluster. Raise InputError as soon as reports say that none will come."""
        reported_s: float | None = None
        while not asked.done():
            client.poll(POLL_S)
            if self.errors and reported_s is None:
                reported_s = time.monotonic()
            is_late = reported_s is not None and time.monotonic() - reported_s > PATIENCE_S
            if is_late or self.is_hopeless:
                raise self.failure()
        try:
            return asked.result()
        except KafkaException as error:
            raise self.failure(error) from error

    def listed(self, consumer: Consumer | AdminClient, timeout_s: float) -> Any:
        """Return the metadata of all topics: a broker may create one that is asked for by its name.

        Raise InputError once a report, or the time-out, says that no answer will come.
        """
        end_s = time.monotonic() + timeout_s
        while True:
            try:
                return consumer.list_topics(timeout=min(PATIENCE_S, timeout_s))
            except KafkaException as error:
                consumer.poll(0)
                if self.errors or time.monotonic() > end_s:
                    raise self.failure(error) from error

    def failure(self, error: KafkaException | None = None) -> InputError:
        """Return the error of this client: what it raised, if anything, with the report that tells most."""
        texts = [] if error is None else [error.args[0].str()]
        weightiest = max(self.errors, key=_weight, default=None)
        if weightiest is not None:
            texts += [weightiest.str()] if weightiest.str() not in texts else []
            texts += [WRONG_PORT] if weightiest.code() == KafkaError._ALL_BROKERS_DOWN else []
        return InputError(f"{self.servers}: {': '.join(texts) or 'no answer'}")


def _weight(error: KafkaError) -> int:
    """Return how much a report tells: that all brokers are down comes with the cause of each."""
    code = error.code()
    return 0 if code == KafkaError._ALL_BROKERS_DOWN else 2 if code in HOPELESS else 1
