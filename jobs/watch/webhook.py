"""Findings posted to another system as JSON, in the form that it takes."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final
from urllib.request import Request, urlopen

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.errors import UsageError
from jobs.formatting import plain
from jobs.secret_values import remember_url
from jobs.sources.bounded_warnings import Warn

TIMEOUT_S: Final = 5.0
"""How long a receiver may take: the watch waits meanwhile."""
ALERTS_PATH: Final = "/api/v2/alerts"
"""The path of Alertmanager's API that takes alerts."""


class Webhook:
    """Posts each finding to a URL, one after the other, beside the watch; what fails is a warning."""

    def __init__(self, url: str, warn: Warn) -> None:
        """Raises UsageError for a URL that is not one of HTTP."""
        if not url.startswith(("http://", "https://")):
            raise UsageError("invalid --webhook: use http://HOST/PATH or https://HOST/PATH")
        remember_url(url)
        self._url, self._warn = url, warn
        self._sender = ThreadPoolExecutor(1)

    def post(self, finding: FindingRow) -> None:
        """Send a finding; return at once."""
        body = json.dumps([_alert(finding)] if self._takes_alerts else _message(finding)).encode()
        request = Request(self._url, body, {"Content-Type": "application/json"}, method="POST")
        self._sender.submit(_send, request).add_done_callback(self._note_failure)

    def close(self) -> None:
        """Wait for what is still to be sent."""
        self._sender.shutdown()

    @property
    def _takes_alerts(self) -> bool:
        return self._url.split("?", 1)[0].endswith(ALERTS_PATH)

    def _note_failure(self, sent: Future[None]) -> None:
        error = sent.exception()
        if error is not None:
            self._warn(f"a finding was not posted: {error}")


def _send(request: Request) -> None:
    with urlopen(request, timeout=TIMEOUT_S):
        return


def _message(finding: FindingRow) -> dict[str, Any]:
    """Return the finding with a ``text``, which is what Slack's incoming webhooks show."""
    return {"text": f"{finding.group_id}: {finding.kind}: {finding.detail}", "finding": plain(finding)}


def _alert(finding: FindingRow) -> dict[str, Any]:
    """Return the finding as Alertmanager takes it: what identifies it as labels, its text as an annotation."""
    labels = {"alertname": finding.kind, "group": finding.group_id, "subject": finding.subject or ""}
    began = datetime.fromtimestamp(finding.since_ms / 1_000, UTC)
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {"description": finding.detail},
        "startsAt": began.isoformat(timespec="milliseconds"),
    }
