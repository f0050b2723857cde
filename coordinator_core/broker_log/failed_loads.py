"""Log partitions that their coordinator could not load, as its lines say, and the known faults of Kafka that do so."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.wire.schema import broker_log_faults


class FailedLoad(NamedTuple):
    """A log partition that no coordinator has loaded since: the first and the last line that says so, and how many."""

    first: BrokerEvent
    last: BrokerEvent
    times: int


class KnownFault(NamedTuple):
    """A fault of Kafka with which a log partition does not load: its issue, what it is, and where it is mended."""

    issue: str
    about: str
    mended: str


def failed_loads(events: Iterable[BrokerEvent]) -> dict[int, FailedLoad]:
    """Return the log partitions that could not be loaded, and were not since, from events in order of time."""
    failed: dict[int, FailedLoad] = {}
    for event in events:
        if event.log_partition is None:
            continue
        if event.kind == EventKind.COORDINATOR_LOADED:
            failed.pop(event.log_partition, None)
        elif event.kind == EventKind.COORDINATOR_FAILED:
            before = failed.get(event.log_partition)
            first, times = (event, 0) if before is None else (before.first, before.times)
            failed[event.log_partition] = FailedLoad(first, event, times + 1)
    return failed


def known_fault(event: BrokerEvent) -> KnownFault | None:
    """Return the fault of Kafka that a line shows with which a load failed; None: it is not a known one."""
    for fault in broker_log_faults():
        if re.search(fault["pattern"], event.text) is not None:
            return KnownFault(fault["issue"], fault["about"], fault["mended"])
    return None
