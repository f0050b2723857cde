"""Lines about what a copy of the coordinator's log does not have any more: the copy is older than the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator_core.broker_log.events import BrokerEvent, EventKind

OF_EPOCH: Final = frozenset(
    (EventKind.EPOCH_BUMPED, EventKind.TARGET_COMPUTED, EventKind.GENERATION_ASSIGNED, EventKind.GROUP_EMPTIED)
)
"""Lines that are written together with the record of the epoch or generation that they name."""
SLACK_MS: Final = 5_000
"""A line and its record may be this far apart: clocks of brokers differ, and a record waits for its batch."""


def later_lines(
    events: Iterable[BrokerEvent], last_ms: Mapping[int, int], epochs: Mapping[str, int]
) -> dict[int, BrokerEvent]:
    """Return the last line behind the end of each log partition that names an epoch which its group does not have.

    ``last_ms`` is the time of the last record of each log partition (ms), ``epochs`` the last epoch or generation of
    each group. Lines whose time or log partition is not known are passed over.
    """
    later: dict[int, BrokerEvent] = {}
    for event in events:
        place, at_ms, epoch = event.log_partition, event.timestamp_ms, event.epoch
        if event.kind not in OF_EPOCH or place is None or at_ms is None or epoch is None or place not in last_ms:
            continue
        is_new = epoch > epochs.get(event.group_id or "", -1)
        if is_new and at_ms > last_ms[place] + SLACK_MS and at_ms >= (later.get(place, event).timestamp_ms or 0):
            later[place] = event
    return later
