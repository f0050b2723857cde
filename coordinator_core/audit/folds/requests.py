"""Who changed a group from outside: the requests that the authorizer of a broker allowed (``kafka-authorizer.log``).

The coordinator's log has no principal and no host of a request. The authorizer writes both, at level DEBUG for what it
allows, before the request is handled: line and record have nearly the same time.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator_core.audit.folds.witness import BrokerLines, is_between
from coordinator_core.broker_log.all_files import SLACK_MS
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.records import LogPosition


def done_by(lines: BrokerLines, requests: Sequence[str], at: LogPosition) -> BrokerEvent | None:
    """Return the line of the request, one of these kinds, with which a record was written; None: no line tells, or
    several principals asked for it at that time.
    """
    ends = tuple(f": {request}" for request in requests)
    near = [
        line
        for line in lines.of_kind[EventKind.REQUEST_ALLOWED]
        if (line.reason or "").endswith(ends) and is_between(line, at.timestamp_ms - SLACK_MS, at.timestamp_ms)
    ]
    return near[-1] if len({line.reason for line in near}) == 1 else None
