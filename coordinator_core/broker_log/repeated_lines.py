"""The same lines in several files, as a rotated file, a collector's copy, or an export in another layout have them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from coordinator_core.broker_log.events import BrokerEvent, EventKind

BOUNDS = (EventKind.FILE_BEGINS, EventKind.FILE_ENDS)


def without_copies(events: Iterable[BrokerEvent]) -> list[BrokerEvent]:
    """Return the events without those that another file has, too: what they say is the same, and their times may be.

    Of several, the one whose time is the most exact stays. Equal lines of one file are several events.
    """
    kept: list[BrokerEvent] = []
    same: defaultdict[BrokerEvent, list[BrokerEvent]] = defaultdict(list)
    for event in events:
        if event.kind in BOUNDS:
            kept.append(event)
        else:
            same[_what(event)].append(event)
    for equal in same.values():
        kept += equal if len({event.file for event in equal}) == 1 else _of_one_file_each(equal)
    return kept


def _what(event: BrokerEvent) -> BrokerEvent:
    """What an event says, without where and in which layout it stands."""
    return event._replace(
        file="", line=0, level=None, written="", local_ms=None, timestamp_ms=None, text="", record=None, resolution_ms=1
    )


def _of_one_file_each(equal: list[BrokerEvent]) -> list[BrokerEvent]:
    """Return one event for each moment; an event of a file is the copy of at most one of another file."""
    moments: list[list[BrokerEvent]] = []
    for event in sorted(equal, key=_order):
        own = next((moment for moment in moments if _is_copy(event, moment)), None)
        if own is None:
            moments.append([event])
        else:
            own.append(event)
    return [min(moment, key=lambda event: (event.timestamp_ms is None, event.resolution_ms)) for moment in moments]


def _order(event: BrokerEvent) -> tuple[int, int, str, int]:
    return event.resolution_ms, event.timestamp_ms or 0, event.file, event.line


def _is_copy(event: BrokerEvent, moment: list[BrokerEvent]) -> bool:
    return all(other.file != event.file and _overlap(event, other) for other in moment)


def _overlap(event: BrokerEvent, other: BrokerEvent) -> bool:
    for own, its in ((event.timestamp_ms, other.timestamp_ms), (event.local_ms, other.local_ms)):
        if own is not None and its is not None:
            return own < its + other.resolution_ms and its < own + event.resolution_ms
    return True
