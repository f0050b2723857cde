"""Findings that a watch posts: to Alertmanager as alerts, elsewhere with a text; what fails is a warning."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest

from coordinator_core.errors import UsageError
from jobs.queries.from_logs.history import group_histories
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.watch.webhook import Webhook
from tests.shared_data import ROOT


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


@pytest.fixture(scope="module")
def finding():
    from coordinator_core.audit.findings.all_findings import findings

    limits = load(environment={}).findings
    histories = group_histories(find_logs([ROOT / "data" / "samples" / "logs"]), pytest.fail)
    return next(row for history in histories for row in findings(history, limits) if row.kind == "rebalance_storm")


def post(url: str, finding: Any) -> list[str]:
    warnings: list[str] = []
    hook = Webhook(url, warnings.append)
    hook.post(finding)
    hook.close()
    return warnings


def test_a_text_for_chats_and_an_alert_for_alertmanager(finding) -> None:
    with receiver() as (address, received):
        assert post(f"{address}/services/some", finding) == []
        assert post(f"{address}/api/v2/alerts", finding) == []
    message, (alert,) = received
    assert message["text"].startswith(f"{finding.group_id}: rebalance_storm: ")
    assert message["finding"]["evidence"][0]["offset"] == finding.evidence[0].offset
    assert alert["labels"] == {"alertname": "rebalance_storm", "group": finding.group_id}
    assert alert["annotations"] == {"description": finding.detail}
    assert alert["startsAt"].endswith("+00:00")


def test_what_is_not_taken_is_a_warning(finding) -> None:
    with receiver(500) as (address, _):
        (warning,) = post(address, finding)
    assert warning.startswith("a finding was not posted: HTTP Error 500")


def test_a_webhook_is_a_url_of_http() -> None:
    with pytest.raises(UsageError, match="invalid --webhook: use http"):
        Webhook("file:///etc/passwd", pytest.fail)
