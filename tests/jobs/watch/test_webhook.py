"""Findings that a watch posts: to Alertmanager as alerts, elsewhere with a text; what fails is a warning."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, make_finding
from coordinator_core.errors import UsageError
from coordinator_core.records import LogPosition
from jobs.watch import webhook
from jobs.watch.events import CLUSTER, FindingEvent
from jobs.watch.webhook import REPEAT_S, Webhook

KEY = CLUSTER


@contextmanager
def receiver(status: int = 200) -> Iterator[tuple[str, list[Any]]]:
    received: list[Any] = []

    class Receive(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Receive)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", received
    finally:
        server.shutdown()


@pytest.fixture
def finding() -> FindingRow:
    at = LogPosition(0, 2, 1_795_256_855_670)
    return make_finding(
        FindingKind.REBALANCE_STORM,
        15,
        10,
        "15 rebalances",
        [at],
        group_id="orders",
        since_ms=at[2],
        until_ms=at[2] + 9,
        complete=True,
    )


def post(url: str, *events: FindingEvent) -> list[str]:
    warnings: list[str] = []
    hook = Webhook(url, warnings.append, "east")
    for event in events:
        hook.post(event)
    hook.close()
    return warnings


def test_a_text_for_chats_and_an_alert_for_alertmanager(finding: FindingRow) -> None:
    goes_on = finding._replace(is_open=True)
    events = (
        FindingEvent(KEY, goes_on, "began"),
        FindingEvent(KEY, goes_on, "grew"),
        FindingEvent(KEY, finding._replace(is_open=False), "ended"),
    )
    with receiver() as (address, received):
        assert post(f"{address}/services/some", *events) == []
        messages = received[:]
        received.clear()
        assert post(f"{address}/api/v2/alerts", *events) == []
    assert [message["change"] for message in messages] == ["began", "grew", "ended"]
    assert [message["text"].split("]")[0] for message in messages] == ["[warning", "[warning, more", "[over"]
    assert " until " not in messages[0]["text"]
    assert " until " in messages[2]["text"]
    assert messages[0]["finding"]["evidence"][0]["offset"] == finding.evidence[0].offset
    alerts = [alert for (alert,) in received]
    of_one = {"alertname": "rebalance_storm", "severity": "warning", "cluster": "east", "group": finding.group_id}
    assert [alert["labels"] for alert in alerts] == [of_one] * 3, "the same labels: the end resolves the beginning"
    assert all(alert["startsAt"].endswith("Z") for alert in alerts)
    assert ["endsAt" in alert for alert in alerts] == [False, False, True]


@pytest.mark.parametrize("time_ms", [-1, 1 << 60])
def test_a_time_that_no_calendar_has_is_no_time_of_an_alert(finding: FindingRow, time_ms: int) -> None:
    """A record may have any."""
    ended = FindingEvent(KEY, finding._replace(since_ms=time_ms, until_ms=time_ms), "ended")
    with receiver() as (address, received):
        assert post(f"{address}/api/v2/alerts", ended) == []
        assert post(address, ended) == []
    assert not {"startsAt", "endsAt"} & received[0][0].keys()
    since = "unknown" if time_ms == -1 else f"{time_ms} ms"
    assert f"since {since} until {since}" in received[1]["text"]


def test_alertmanager_is_told_again_of_what_goes_on(finding: FindingRow) -> None:
    """It resolves what it does not hear of."""
    now = [0.0]
    rows = [finding._replace(is_open=True), finding._replace(is_open=False)]
    with receiver() as (address, received):
        for path in ("/api/v2/alerts", "/services/some"):
            hook = Webhook(address + path, pytest.fail, "east", lambda: now[0])
            for seconds in (1, REPEAT_S, REPEAT_S + 1):
                now[0] += seconds
                hook.repeat(lambda: rows)
            hook.close()
    assert [len(alerts) for alerts in received] == [1, 1]


def test_slack_gets_a_text_alone_and_it_alone_gets_escapes(
    finding: FindingRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr("jobs.watch.webhook._post", lambda request: sent.append(json.loads(request.data)))
    event = FindingEvent(KEY, finding._replace(detail="<!channel> a & b"), "began")
    for url in ("https://hooks.slack.com/services/T/B/x", "https://chat.example.com/hooks/x"):
        post(url, event)
    of_slack, of_other = sent
    assert [*of_slack] == ["text"]
    assert of_slack["text"].endswith(": &lt;!channel&gt; a &amp; b")
    assert of_other["text"].endswith(": <!channel> a & b")


def test_what_is_not_taken_is_a_warning(finding: FindingRow) -> None:
    with receiver(500) as (address, _):
        (warning,) = post(address, FindingEvent(KEY, finding, "began"))
    assert warning.startswith("a finding was not posted: HTTP Error 500")


def test_a_watch_that_ends_does_not_wait_for_a_receiver_that_never_answers(
    finding: FindingRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = Event()
    monkeypatch.setattr(webhook, "_post", lambda request: answers.wait(0.5))
    monkeypatch.setattr(webhook, "CLOSE_S", 0.0)
    assert post("http://127.0.0.1/never", *[FindingEvent(KEY, finding, "began")] * 50) == [
        "50 findings were not posted: the receiver takes too long, and the watch has ended"
    ]


@pytest.mark.parametrize("url", ["file:///etc/passwd", "http://[", "http://", "https:///path"])
def test_a_webhook_is_a_url_of_http(url: str) -> None:
    with pytest.raises(UsageError, match="invalid --webhook: use http"):
        Webhook(url, pytest.fail, "east")
