"""What the lines of all files tell together: the zones of their times, which of them are copies or of another cluster,
and what they have that the coordinator's log has not.

A line and the record that it speaks of are written within milliseconds of each other. So the difference between the two
times, to the nearest quarter of an hour, is the zone; what is left over is the error of the clocks.

The ids of members are unique. A file that names members of these groups, none of which is in the coordinator's log, is
of another cluster, or of a time that the log does not have: its epochs and generations are other ones.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.broker_log.messages import UUID
from coordinator_core.broker_log.times import zone_between
from coordinator_core.wire.schema import broker_log_faults

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
        # Behind all anchors of this time, whatever their zone.
        place = bisect_right(anchors, (local_ms, 1 << 62))
        if place and anchors[place - 1][0] == local_ms:
            return anchors[place - 1][1]
        around = {zone for _, zone in anchors[max(place - 1, 0) : place + 1]}
        return around.pop() if len(around) == 1 else None


def _usual(anchors: list[tuple[int, int]]) -> list[tuple[int, int]]:
    counts = Counter(zone for _, zone in anchors)
    return [anchor for anchor in anchors if counts[anchor[1]] * RARE >= len(anchors)]


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
            # What it says, without where and in which layout it stands.
            said = event._replace(file="", line=0, level=None, written="", local_ms=None, timestamp_ms=None, text="")
            same[said._replace(record=None, resolution_ms=1)].append(event)
    for equal in same.values():
        kept += equal if len({event.file for event in equal}) == 1 else _of_one_file_each(equal)
    return kept


def _of_one_file_each(equal: list[BrokerEvent]) -> list[BrokerEvent]:
    """Return one event for each moment; an event of a file is the copy of at most one of another file."""
    moments: list[list[BrokerEvent]] = []
    # The most exact first: an inexact time may overlap several moments, which must not become one by it.
    for event in sorted(equal, key=lambda each: (each.resolution_ms, each.timestamp_ms or 0, each.file, each.line)):
        own = next((moment for moment in moments if _is_copy(event, moment)), None)
        if own is None:
            moments.append([event])
        else:
            own.append(event)
    return [min(moment, key=lambda event: (event.timestamp_ms is None, event.resolution_ms)) for moment in moments]


def _is_copy(event: BrokerEvent, moment: list[BrokerEvent]) -> bool:
    return all(other.file != event.file and _overlap(event, other) for other in moment)


def _overlap(event: BrokerEvent, other: BrokerEvent) -> bool:
    for own, its in ((event.timestamp_ms, other.timestamp_ms), (event.local_ms, other.local_ms)):
        if own is not None and its is not None:
            return own < its + other.resolution_ms and its < own + event.resolution_ms
    return True


NAMING: Final = frozenset(
    (
        EventKind.MEMBER_LEFT,
        EventKind.MEMBER_EXPIRED,
        EventKind.MEMBER_TIMED_OUT,
        EventKind.MEMBER_FENCED,
        EventKind.REBALANCE_BEGAN,
        EventKind.GENERATION_ASSIGNED,
    )
)
"""Lines that name members that are in the log, or were: those of clients that never joined are not."""
LEAST: Final = 2
"""So many members a file names before it is judged: one may have come and gone between two generations."""
NAMED: Final = re.compile(UUID)


def marks_of(member: str | None) -> set[str]:
    """Return what tells a member from all others: the UUID in its id, or the id itself if it has none."""
    return set(NAMED.findall(member or "")) or ({member} if member else set())


def of_other_clusters(
    events: Iterable[BrokerEvent], members_of: Mapping[str, Iterable[str]]
) -> Iterator[tuple[str, int]]:
    """Yield the files that are of another cluster, each with the number of members that it names.

    ``members_of`` has the ids of all members that a group has in the coordinator's log; lines about other groups do not
    count.
    """
    known = {group: {mark for member in members for mark in marks_of(member)} for group, members in members_of.items()}
    named: defaultdict[str, set[str]] = defaultdict(set)
    fitting: set[str] = set()
    for event in events:
        if event.kind not in NAMING or not (own := known.get(event.group_id or "")):
            continue
        marks = marks_of(event.member_id) or set(NAMED.findall(event.reason or ""))
        named[event.file] |= marks
        if marks & own:
            fitting.add(event.file)
    for file, marks in named.items():
        if file not in fitting and len(marks) >= LEAST:
            yield file, len(marks)


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


Release = tuple[int, ...]


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


def failed_loads(events: Iterable[BrokerEvent], last_ms: Mapping[int, int]) -> dict[int, FailedLoad]:
    """Return the log partitions that could not be loaded, and were not since, from events in order of time.

    Another broker may have loaded one, whose file is not given: once the broker that failed has given it up, or records
    were written to it later, which only a coordinator does. ``last_ms`` is the time of the last record of each.
    """
    failed: dict[int, FailedLoad] = {}
    for event in events:
        if event.log_partition is None:
            continue
        before = failed.get(event.log_partition)
        is_given_up = (
            event.kind == EventKind.COORDINATOR_UNLOADED and before and before.last.broker_id == event.broker_id
        )
        if event.kind == EventKind.COORDINATOR_LOADED or is_given_up:
            failed.pop(event.log_partition, None)
        # A broker that stops closes its loader: what it was to load then is for others.
        elif event.kind == EventKind.COORDINATOR_FAILED and "loader is closed" not in event.text:
            first, times = (event, 0) if before is None else (before.first, before.times)
            failed[event.log_partition] = FailedLoad(first, event, times + 1)
    ends = {place: each.last.timestamp_ms for place, each in failed.items()}
    later = {place for place, ms in ends.items() if ms is not None and last_ms.get(place, -1) > ms + SLACK_MS}
    return {place: each for place, each in failed.items() if place not in later}


def releases(lines: Iterable[BrokerEvent]) -> dict[str, tuple[Release, BrokerEvent]]:
    """Return the release that the last line about it in each file names, and the line."""
    return {line.file: (tuple(map(int, line.reason.split("."))), line) for line in lines if line.reason}


def has_fault(fault: Mapping[str, Any], release: Release | None) -> bool:
    """Return whether brokers of a release have a known fault, or may (None: the release is not known)."""
    return release is None or "from" not in fault or tuple(fault["from"]) <= release <= tuple(fault["to"])


def known_faults(event: BrokerEvent, release: Release | None) -> list[KnownFault]:
    """Return the faults of Kafka that a line may show with which a load failed: those of the broker's release."""
    return [
        KnownFault(fault["issue"], fault["about"], fault["mended"])
        for fault in broker_log_faults()
        if has_fault(fault, release) and re.search(fault["pattern"], event.text) is not None
    ]
