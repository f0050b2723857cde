"""Findings posted to another system as JSON, in the form that it takes, when they begin, grow and end."""

import json
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.cluster.clocks import utc
from coordinator_core.errors import UsageError
from jobs.formatting import plain
from jobs.secret_values import remember_url
from jobs.sources.bounded_warnings import Warn
from jobs.watch.events import FindingEvent

TIMEOUT_S: Final = 5.0
"""How long a receiver may take: the watch waits meanwhile."""
CLOSE_S: Final = 10.0
"""How long a watch that ends waits for a receiver: of one that does not answer each finding would take a time-out."""
ALERTS_PATH: Final = "/api/v2/alerts"
"""The path of Alertmanager's API that takes alerts."""
SLACK: Final = "hooks.slack.com"
"""The host of Slack's incoming webhooks."""
REPEAT_S: Final = 60.0
"""How often what goes on is posted again to Alertmanager, which takes for resolved what it has not heard of for its
``resolve_timeout``, 5 minutes by default."""


class Webhook:
    """Posts findings to a URL, one after the other, beside the watch; what fails is a warning.

    ``cluster`` is its name in what is posted. ``clock`` gives seconds.
    """

    def __init__(self, url: str, warn: Warn, cluster: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Raises UsageError for a URL that is not one of HTTP."""
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError("invalid --webhook: use http://HOST/PATH or https://HOST/PATH")
        remember_url(url)
        self._url, self._warn, self._cluster, self._clock = url, warn, cluster, clock
        self._takes_alerts = url.split("?", 1)[0].endswith(ALERTS_PATH)
        self._is_slack = parts.hostname == SLACK
        self._repeated_s = clock()
        # One thread: an end must not arrive before its begin.
        self._sender = ThreadPoolExecutor(1)
        self._sent: set[Future[None]] = set()

    def post(self, event: FindingEvent) -> None:
        """Send what happened with a finding; return at once."""
        if self._takes_alerts:
            self._send([_alert(event.row, self._cluster, has_ended=event.change == "ended")])
        else:
            text = _text(event, self._cluster)
            finding = {"change": event.change, "cluster": self._cluster, "finding": plain(event.row)}
            self._send({"text": _escaped(text)} if self._is_slack else {"text": text, **finding})

    def repeat(self, findings: Callable[[], Iterable[FindingRow]]) -> None:
        """Send what goes on again, if it is time to, to a receiver that needs it; return at once."""
        if not self._takes_alerts or self._clock() - self._repeated_s < REPEAT_S:
            return
        self._repeated_s = self._clock()
        if alerts := [_alert(row, self._cluster, has_ended=False) for row in findings() if row.is_open]:
            self._send(alerts)

    def close(self) -> None:
        """Wait for what is still to be sent, as long as a receiver that answers needs."""
        _, late = wait(self._sent.copy(), CLOSE_S)
        self._sender.shutdown(cancel_futures=True)
        if late:
            self._warn(f"{len(late)} findings were not posted: the receiver takes too long, and the watch has ended")

    def _send(self, body: object) -> None:
        request = Request(self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST")
        sent = self._sender.submit(_post, request)
        self._sent.add(sent)
        sent.add_done_callback(self._note_failure)

    def _note_failure(self, sent: Future[None]) -> None:
        self._sent.discard(sent)
        error = None if sent.cancelled() else sent.exception()
        if error is not None:
            self._warn(f"a finding was not posted: {error}")


def _post(request: Request) -> None:
    with urlopen(request, timeout=TIMEOUT_S):
        return


def _text(event: FindingEvent, cluster: str) -> str:
    """Return what happened in a line, which is what chats show."""
    row = event.row
    about = "the cluster" if row.group_id is None else row.group_id
    subject = f", {row.subject}" if row.subject else ""
    times = f"since {utc(row.since_ms)}" + ("" if row.is_open else f" until {utc(row.until_ms)}")
    state = {"began": row.level, "grew": f"{row.level}, more", "ended": "over"}[event.change]
    return f"[{state}] {row.kind} in {about}{subject} ({cluster}, {times}): {row.detail}"


def _escaped(text: str) -> str:
    """Return the text as Slack shows it literally: it alone reads ``&``, ``<`` and ``>``."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _alert(row: FindingRow, cluster: str, *, has_ended: bool) -> dict[str, Any]:
    """Return the finding as Alertmanager takes it: what identifies it as labels, its text as an annotation.

    Without an end it is firing, also one that was over when it was found: it resolves by itself.
    """
    labels = {
        "alertname": row.kind,
        "severity": row.level,
        "cluster": cluster,
        "group": row.group_id,
        "subject": row.subject,
    }
    times = {"startsAt": utc(row.since_ms)} | ({"endsAt": utc(row.until_ms)} if has_ended else {})
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {"summary": f"{row.kind} in {row.group_id or 'the cluster'}", "description": row.detail},
        # Alertmanager takes nothing but dates; where there is none, it takes the time at which it hears of the finding.
        **{name: time for name, time in times.items() if time.endswith("Z")},
    }
