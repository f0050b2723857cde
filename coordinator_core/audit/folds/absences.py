"""When no broker served the groups of a log partition, as the brokers' lines about it say."""

from collections.abc import Iterable
from typing import NamedTuple

from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import RebalanceRow


class Absence(NamedTuple):
    """A time in which no broker served the groups of a log partition; None: no line says when it began."""

    since: BrokerEvent | None
    until: BrokerEvent


def absences(lines: Iterable[BrokerEvent]) -> list[Absence]:
    """Return the times in which no broker served a log partition, from the lines about it whose time is known."""
    absent: list[Absence] = []
    gone: BrokerEvent | None = None
    serving: int | None = None
    for line in lines:
        if line.timestamp_ms is None:
            continue
        if gone is None and _ends_service(line, serving):
            gone = line
        elif line.kind == EventKind.COORDINATOR_LOADED:
            absent.append(Absence(gone, line))
            gone, serving = None, line.broker_id
    return absent


def _ends_service(line: BrokerEvent, serving: int | None) -> bool:
    """Whether a line says that the broker ``serving`` (None: not known which) serves the log partition no longer.

    That a broker stops says so only of the partitions that it served.
    """
    if line.kind == EventKind.COORDINATOR_STOPPED:
        return line.broker_id == serving
    return line.kind == EventKind.COORDINATOR_UNLOADED and serving in (None, line.broker_id)


def absences_within(row: RebalanceRow, away: Iterable[Absence]) -> list[Absence]:
    """Return the absences that a rebalance lasted through, in part or as a whole."""
    began = row.at.timestamp_ms if row.began_after_ms is None else min(row.began_after_ms, row.at.timestamp_ms)
    if row.group_type != GroupType.CLASSIC:
        began = row.at.timestamp_ms
    ended = None if row.finished is None else row.finished.timestamp_ms
    return [
        absence
        for absence in away
        if (absence.until.timestamp_ms or 0) >= began
        and (ended is None or ((absence.since or absence.until).timestamp_ms or 0) <= ended)
    ]
