"""The time zone of a broker's application log, from lines whose record is known.

A line and the record that it speaks of are written within milliseconds of each other. So the difference between the two
times, to the nearest quarter of an hour, is the zone; what is left over is the error of the clocks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.times import zone_between

ANCHORS = frozenset((EventKind.EPOCH_BUMPED, EventKind.GENERATION_ASSIGNED, EventKind.GROUP_EMPTIED))
"""Lines that are written together with the record of the group epoch or generation that they name."""

ERROR_MS = 5 * 60_000
"""What is left over of a difference is at most this: else the line is of another record."""
RARE = 20
"""A zone that fewer than one in this many lines show is that of lines about other records."""

Epoch = tuple[str, int]
"""A group id, and an epoch or generation of it."""


def anchor_of(event: BrokerEvent) -> Epoch | None:
    """Return the epoch whose record was written with this line; None: the line does not name one."""
    if event.kind not in ANCHORS or event.group_id is None or event.epoch is None:
        return None
    return event.group_id, event.epoch


def with_zones(events: Iterable[BrokerEvent], written_ms: Mapping[Epoch, Sequence[int]]) -> list[BrokerEvent]:
    """Return the events with their times, as far as the zone is known; times that are known stay.

    ``written_ms`` has the times of the records of each epoch (ms); an epoch with several is not used. Between two lines
    that show different zones, as where summer time ends, the time is not known.
    """
    events = list(events)
    zones = _Zones(events, written_ms)
    return [
        event
        if event.timestamp_ms is not None
        or event.local_ms is None
        or (zone := zones.at(event.broker_id, event.local_ms)) is None
        else event._replace(timestamp_ms=event.local_ms + zone)
        for event in events
    ]


class _Zones:
    """The zone of each broker through time, as its lines show it."""

    def __init__(self, events: Sequence[BrokerEvent], written_ms: Mapping[Epoch, Sequence[int]]) -> None:
        anchors_of: defaultdict[int | None, list[tuple[int, int]]] = defaultdict(list)
        for event in events:
            epoch = anchor_of(event)
            times = written_ms.get(epoch, ()) if epoch is not None and event.local_ms is not None else ()
            if event.local_ms is not None and len(times) == 1:
                zone = zone_between(times[0], event.local_ms, ERROR_MS)
                if zone is not None:
                    anchors_of[event.broker_id].append((event.local_ms, zone))
        self._anchors = {broker: _usual(sorted(anchors)) for broker, anchors in anchors_of.items()}
        zones = {zone for anchors in self._anchors.values() for _, zone in anchors}
        self._only = zones.pop() if len(zones) == 1 else None

    def at(self, broker: int | None, local_ms: int) -> int | None:
        anchors = self._anchors.get(broker)
        if not anchors:
            return self._only
        place = bisect_right(anchors, (local_ms, 1 << 62))
        if place and anchors[place - 1][0] == local_ms:
            return anchors[place - 1][1]
        around = {zone for _, zone in anchors[max(place - 1, 0) : place + 1]}
        return around.pop() if len(around) == 1 else None


def _usual(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    counts = Counter(zone for _, zone in anchors)
    return [anchor for anchor in anchors if counts[anchor[1]] * RARE >= len(anchors)]
