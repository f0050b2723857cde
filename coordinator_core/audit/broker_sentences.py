"""What brokers' application logs say of one rebalance, in plain sentences that name file and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from coordinator_core.audit.folds.witness import BrokerLines, absences_within, beginning, computed_target, unfinished
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.causes import DEPARTED
from coordinator_core.history.rows import RebalanceRow


def about_beginning(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield when and why a rebalance of a classic group began, and which generations in between did not complete."""
    began = beginning(row, lines)
    if began is not None:
        when = "" if began.timestamp_ms is None else f" {row.duration_min_ms} ms before it completed"
        yield f"It began{when}: {began.reason} ({began.place})."
    for generation, line in unfinished(row, lines):
        yield f"All members joined generation {generation}, which never completed ({line.place})."


def about_assignor(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield how long the assignor took."""
    line = None if row.group_type == GroupType.CLASSIC else computed_target(row.to_epoch, row.at, lines)
    if line is not None:
        yield f"The assignor {line.reason} took {line.duration_ms} ms ({line.place})."


def about_coordinator(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield the times in which the coordinator was away."""
    for away in absences_within(row, lines.away):
        since = "" if away.since is None else f"from {_time(away.since)} "
        places = ", ".join(each.place for each in (away.since, away.until) if each is not None)
        until = _time(away.until)
        yield f"The coordinator of the group was away {since}until {until}: no member delayed it then ({places})."


def about_silence(row: RebalanceRow, lines: BrokerLines) -> Iterator[str]:
    """Yield why it is still open how a member went, although broker logs are given."""
    if not lines.events or all(cause.kind not in DEPARTED for cause in row.causes):
        return
    spans = list(_spans(lines.events))
    if any(first <= row.at.timestamp_ms <= last for _, first, last in spans):
        yield "The broker logs of that time have no line, or no one line, about how the member went."
    elif spans:
        given = ", ".join(f"{file} {_utc(first)} to {_utc(last)}" for file, first, last in spans[:3])
        yield f"No broker log of that time is given, which would say how the member went; given: {given}."


def _spans(lines: Sequence[BrokerEvent]) -> Iterator[tuple[str, int, int]]:
    first = {each.file: each.timestamp_ms for each in lines if each.kind == EventKind.FILE_BEGINS}
    for each in lines:
        begin = first.get(each.file)
        if each.kind == EventKind.FILE_ENDS and begin is not None and each.timestamp_ms is not None:
            yield each.file, begin, each.timestamp_ms


def _time(line: BrokerEvent) -> str:
    return line.written if line.timestamp_ms is None else _utc(line.timestamp_ms)


def _utc(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
