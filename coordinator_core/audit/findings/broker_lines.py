"""What brokers' application logs say against the coordinator's log, or beyond it: decisions that were not kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.witness import epochs_not_kept, not_kept, open_beginning
from coordinator_core.broker_log.all_files import SLACK_MS, failed_loads, known_fault
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.clocks import utc
from coordinator_core.durations import duration
from coordinator_core.records import GROUP_LOG, LogPosition


def decisions_not_kept(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for members that went and are still there in the log, one for epochs that it never reached."""
    lines = not_kept(history.memberships, history.events, history.has_lasted)
    if lines:
        members = sorted({line.member_id or "" for line in lines})
        there = {row.member_id: row.joined for row in history.memberships if row.left is None}
        detail = f"{counted(len(members), 'member')} went, says the broker, and still there in the log: "
        yield _not_kept(history, len(members), detail, lines[0], [there[member] for member in members])
    epochs = epochs_not_kept(history.epochs, history.lines, history.has_lasted)
    if epochs:
        line, present = epochs[0]
        count = len({event.epoch for event, _ in epochs})
        detail = f"epoch {line.epoch} began, says the broker, and the log stayed in epoch {present.epoch}: "
        yield _not_kept(history, count, detail, line, [present.opened])


def _not_kept(
    history: GroupHistory, count: int, detail: str, line: BrokerEvent, evidence: list[LogPosition]
) -> FindingRow:
    why = next((failure for failure in history.lines.of_kind[EventKind.WRITE_FAILED] if _is_near(failure, line)), None)
    because = "" if why is None else f"; it could not be written: {why.reason} ({why.place})"
    return history.finding(
        FindingKind.DECISION_NOT_KEPT,
        count,
        f"{detail}{line.quote}{because}",
        evidence,
        until_ms=history.now_ms,
        is_open=True,
    )


def _is_near(line: BrokerEvent, other: BrokerEvent) -> bool:
    if line.timestamp_ms is None or other.timestamp_ms is None:
        return False
    return abs(line.timestamp_ms - other.timestamp_ms) <= SLACK_MS


def without_coordinator(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield that no coordinator could load the log partition of the group by the end of the lines."""
    present = history.present
    there = [row.last for row in history.commits if row.offset is not None] if present is None else [present.opened]
    if not there:
        return
    for partition, (first, last, times) in failed_loads(history.lines.events).items():
        since = "" if first.timestamp_ms is None else f" since {utc(first.timestamp_ms)}"
        fault = known_fault(first)
        known = "" if fault is None else f"; it may be {fault.issue}: {fault.about} (mended: {fault.mended})"
        yield history.finding(
            FindingKind.NO_COORDINATOR,
            times,
            f"{GROUP_LOG}-{partition} has no coordinator{since}: it could not be loaded {counted(times, 'time')}, "
            f"{first.reason or first.text} ({first.place}){known}",
            there,
            subject=f"{GROUP_LOG}-{partition}",
            since_ms=first.timestamp_ms,
            until_ms=last.timestamp_ms,
            is_open=True,
        )


def conversions_refused(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for each reason for which the group was not converted to the other protocol."""
    lines = sorted(history.lines.of_kind[EventKind.CONVERSION_REFUSED], key=lambda line: line.reason or "")
    for reason, same in groupby(lines, key=lambda line: line.reason):
        refused = list(same)
        times = [line.timestamp_ms for line in refused if line.timestamp_ms is not None]
        present = history.present
        yield history.finding(
            FindingKind.CONVERSION_REFUSED,
            len(refused),
            f"not converted {counted(len(refused), 'time')}: {reason} ({refused[0].place})",
            [] if present is None else [present.opened],
            since_ms=min(times, default=None),
            until_ms=max(times, default=None),
        )


def _said_by_client(line: BrokerEvent) -> str:
    """Return why a rebalance began, in the words of the client if it gave some: those of the broker name members."""
    reason = line.reason or "a reason that is not named"
    return reason.rpartition("client reason: ")[2] or reason


def not_completed(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a rebalance of a classic group that began, says a line, and has not completed by the end of the log.

    Where its members join again and again, as with a leader that fails on its input, that is said, with the reason
    that is named most often: one finding for all of them.
    """
    line, present = open_beginning(history.epochs, history.lines), history.present
    if line is None or line.timestamp_ms is None or line.latest_ms is None or present is None:
        return
    since_ms = line.timestamp_ms
    begun = [
        each
        for each in history.lines.of_kind[EventKind.REBALANCE_BEGAN]
        if (each.epoch or 0) >= present.epoch and (each.timestamp_ms or 0) >= since_ms
    ]
    kind, threshold = FindingKind.GENERATIONS_FAILED, limits.failed_generations
    value = max(each.epoch or 0 for each in begun) - present.epoch
    if value >= threshold:
        (reason, times), *_ = Counter(map(_said_by_client, begun)).most_common(1)
        detail = (
            f"generations {present.epoch + 1} to {present.epoch + value} were not completed: the members joined again "
            f"and again without an assignment; {len(begun)} rebalances began, {times} of them as: {reason}"
        )
    else:
        kind, threshold = FindingKind.SLOW_REBALANCE, limits.slow_rebalance_ms
        value = history.now_ms - line.latest_ms
        took = f"{'' if line.resolution_ms == 1 else 'at least '}{duration(value)}"
        detail = f"a rebalance has taken {took} so far, which began after generation {present.epoch}: {line.reason}"
    if value >= threshold:
        yield history.finding(
            kind,
            value,
            f"{detail} ({line.place})",
            [present.opened],
            threshold=threshold,
            since_ms=since_ms,
            until_ms=history.now_ms,
            is_open=True,
            complete=present.history_complete,
        )
