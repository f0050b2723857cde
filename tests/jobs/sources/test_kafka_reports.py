"""What librdkafka reports while no answer comes, as the one line that a user reads."""

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from coordinator_core.errors import InputError
from jobs.sources import kafka_reports
from jobs.sources.kafka_reports import WRONG_PORT, Reports

DOWN = KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down")
REFUSED = KafkaError(KafkaError._TRANSPORT, "Connect failed: Connection refused")
LOGIN = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error")
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT, "Timed out"))


class Client:
    """A client that reports these errors, one whenever it is polled, and answers after the last one if it can."""

    def __init__(self, reports: list[KafkaError], answer: Any = None) -> None:
        self.answer, self.left, self.asked = answer, list(reports), Future()
        self.reports = Reports({"bootstrap.servers": "b:1", "sasl.username": "u"})

    def poll(self, timeout_s: float) -> None:
        """Report the next error."""
        if self.left:
            self.reports.settings["error_cb"](self.left.pop(0))
        elif isinstance(self.answer, KafkaException):
            self.asked.set_exception(self.answer)
        elif self.answer is not None:
            self.asked.set_result(self.answer)

    def list_topics(self, timeout: float) -> Any:
        """The answer, if nothing is left to report."""
        if self.left or self.answer is None:
            raise TIMED_OUT
        return self.answer


def test_the_settings_send_reports_here_and_nothing_to_a_log() -> None:
    settings = Reports({"sasl.username": "u"}).settings
    assert (settings["sasl.username"], settings["log_level"]) == ("u", "0")


def test_an_answer_that_comes_after_a_report_counts() -> None:
    client = Client([REFUSED], "answer")
    assert client.reports.first_answer(client, client.asked) == "answer"


@pytest.mark.parametrize(
    ("reports", "answer", "said"),
    [
        ([DOWN, LOGIN], None, "b:1: SASL authentication error"),
        ([REFUSED, DOWN], None, "b:1: Connect failed: Connection refused"),
        ([DOWN], None, f"b:1: 1/1 brokers are down: {WRONG_PORT}"),
        ([], TIMED_OUT, "b:1: Timed out"),
        ([REFUSED], TIMED_OUT, "b:1: Timed out: Connect failed: Connection refused"),
    ],
)
def test_the_error_has_the_report_that_tells_most(
    monkeypatch: pytest.MonkeyPatch, reports: list[KafkaError], answer: Any, said: str
) -> None:
    monkeypatch.setattr(kafka_reports, "PATIENCE_S", 0.05)
    client = Client(reports, answer)
    with pytest.raises(InputError) as raised:
        client.reports.first_answer(client, client.asked)
    assert str(raised.value) == said
    assert client.reports.is_hopeless is (LOGIN in reports)


def test_metadata_are_asked_for_until_something_is_reported() -> None:
    silent = Client([])
    with pytest.raises(InputError, match="b:1: Timed out"):
        silent.reports.listed(silent, 0.0)
    refused = Client([LOGIN, REFUSED])
    with pytest.raises(InputError, match="b:1: Timed out: SASL authentication error"):
        refused.reports.listed(refused, 60.0)
    assert refused.left == [REFUSED]
    assert Client([], "topics").reports.listed(Client([], "topics"), 60.0) == "topics"
