"""What brokers' application logs say against the coordinator's log, or beyond it: decisions that were not kept."""

from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.witness import OF_MEMBER, BrokerLines, is_between
from coordinator_core.broker_log.all_files import SLACK_MS, failed_loads, known_faults, releases
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.cluster.clocks import utc
from coordinator_core.durations import duration
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import GroupEpochRow
from coordinator_core.records import GROUP_LOG, LogPosition

ENDS: Final = (EventKind.GENERATION_ASSIGNED, EventKind.GROUP_EMPTIED)
"""Lines that say that a rebalance of a classic group has an end: it is written then."""
LATEST_MS: Final = 10 * 60_000
"""How long a decision may wait for its record: one that could not be written is taken again, mostly at once."""


def decisions_not_kept(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding for members that went and are still there in the log, one for epochs that it never reached."""
    present = history.present
    if present is None:
        return
    told = list[tuple[int, str, BrokerEvent, list[LogPosition]]]()
    known = [row for row in history.memberships if row.is_open and history.lost.as_known(row) is row]
    there = {row.member_id: row.joined for row in known if row.group_type != GroupType.CONNECT}
    of_members = ((line, there.get(line.member_id or "")) for line in history.events if line.kind in OF_MEMBER)
    lines = [line for line, at in of_members if at is not None and _should_be_written(history, line, present, at)]
    if lines:
        members = sorted({line.member_id or "" for line in lines})
        detail = f"the broker says that {counted(len(members), 'member')} left; the log still has them: "
        told.append((len(members), detail, lines[0], [there[member] for member in members]))
    bumps = [
        line
        for kind in (EventKind.EPOCH_BUMPED, *ENDS)
        for line in history.lines.of_kind[kind]
        if (line.epoch or 0) > present.epoch and _should_be_written(history, line, present, present.opened)
    ]
    if bumps and present.group_type != GroupType.CONNECT and present.history_complete:
        what = "generation" if present.group_type == GroupType.CLASSIC else "epoch"
        detail = f"the broker says that {what} {bumps[0].epoch} began; the log still has {what} {present.epoch}: "
        told.append((len({line.epoch for line in bumps}), detail, bumps[0], [present.opened]))
    failures = history.lines.of_kind[EventKind.WRITE_FAILED]
    for count, detail, line, evidence in told:
        around = (line.timestamp_ms or 0) - SLACK_MS, (line.timestamp_ms or 0) + SLACK_MS
        why = next((each for each in failures if is_between(each, *around)), None)
        detail += line.quote + ("" if why is None else f"; it could not be written: {why.reason} ({why.place})")
        kind, until_ms = FindingKind.DECISION_NOT_KEPT, history.now_ms
        yield history.finding(kind, count, detail, evidence, until_ms=until_ms, is_open=True)


def _should_be_written(history: GroupHistory, line: BrokerEvent, present: GroupEpochRow, since: LogPosition) -> bool:
    """Whether the log should show by its end what a broker decided after a record. Where another one took over, it
    began with what the log had: what the one before decided meanwhile was void. One that is killed writes no line about
    it, so that its file has to go on. A classic group is written with its next generation only, which its members may
    not complete.
    """
    at_ms = line.timestamp_ms
    return (
        at_ms is not None
        and line.record is None
        and since.timestamp_ms + SLACK_MS < at_ms
        and (present.group_type != GroupType.CLASSIC or _is_over(present.epoch, line, history.lines))
        and not any(at_ms - SLACK_MS <= moved_ms <= at_ms + LATEST_MS for moved_ms in _moved_ms(history.lines))
        and _wrote_on(line, at_ms + LATEST_MS, history.lines)
        and history.has_lasted(at_ms, LATEST_MS + 1)
    )


def _wrote_on(line: BrokerEvent, until_ms: int, lines: BrokerLines) -> bool:
    """Whether the broker of a line wrote lines up to a time, and did not start again before."""
    own = [each for each in lines.events if line.file == each.file or line.broker_id == each.broker_id is not None]
    later = [each for each in own if (each.timestamp_ms or -1) >= (line.timestamp_ms or 0)]
    starts = [each.timestamp_ms or 0 for each in later if each.kind == EventKind.BROKER_RELEASE]
    return min(starts, default=until_ms + 1) > until_ms <= max(each.timestamp_ms or 0 for each in later)


def _moved_ms(lines: BrokerLines) -> list[int]:
    """Return when brokers began, or ceased, to coordinate the group."""
    kinds = (EventKind.COORDINATOR_LOADED, EventKind.COORDINATOR_UNLOADED)
    return [line.timestamp_ms for kind in kinds for line in lines.of_kind[kind] if line.timestamp_ms is not None]


def _is_over(generation: int, begun: BrokerEvent, lines: BrokerLines) -> bool:
    """Whether a later line says that the rebalance from a generation has an end, whose record the log may lack."""
    return any(
        (line.epoch or 0) > generation and (line.timestamp_ms or -1) >= (begun.timestamp_ms or 0)
        for kind in ENDS
        for line in lines.of_kind[kind]
    )


def without_coordinator(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield that no coordinator could load the log partition of the group by the end of the lines."""
    present = history.present
    there = [row.last for row in history.commits if row.offset is not None] if present is None else [present.opened]
    # First whether any failed at all: what has been asked for the ends of the logs is made again each night.
    if not (there and history.lines.of_kind[EventKind.COORDINATOR_FAILED]):
        return
    last_ms = {at.partition: history.now_ms for at in there}
    of_files = releases(history.lines.of_kind[EventKind.BROKER_RELEASE])
    for partition, (first, last, times) in failed_loads(history.lines.events, last_ms).items():
        since = "" if first.timestamp_ms is None else f" since {utc(first.timestamp_ms)}"
        release, _ = of_files.get(first.file, (None, first))
        faults = [f"{each.issue}: {each.about} (mended: {each.mended})" for each in known_faults(first, release)]
        known = f"; it may be {', or '.join(faults)}" if faults else ""
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


def _open_beginning(present: GroupEpochRow, lines: BrokerLines) -> BrokerEvent | None:
    """Return the line with which a rebalance of a classic group began that has not completed by the end of the log.

    None: there is none. Its record would be that of the next generation. A coordinator that loads the group knows
    nothing of a rebalance that another one began.
    """
    since_ms = max(present.opened.timestamp_ms, *_moved_ms(lines), -1)
    began = lines.of_epoch.get((EventKind.REBALANCE_BEGAN, present.epoch), [])
    begun = next((line for line in began if line.timestamp_ms is not None and line.timestamp_ms > since_ms), None)
    return None if begun is None or _is_over(present.epoch, begun, lines) else begun


def not_completed(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a rebalance of a classic group that began, says a line, and has not completed by the end of the log.

    Where its members join again and again, as with a leader that fails on its input, that is said, with the reason
    that is named most often: one finding for all of them.
    """
    present = history.present
    if present is None or present.group_type != GroupType.CLASSIC or history.lost.as_known(present) is not present:
        return  # or the record that completes it may be among those that are lost
    line = _open_beginning(present, history.lines)
    if line is None or line.timestamp_ms is None or line.latest_ms is None:
        return
    since_ms = line.timestamp_ms
    begun = [
        each
        for each in history.lines.of_kind[EventKind.REBALANCE_BEGAN]
        if (each.epoch or 0) >= present.epoch and (each.timestamp_ms or 0) >= since_ms
    ]
    kind, threshold = FindingKind.GENERATIONS_FAILED, limits.failed_generations
    value = max(each.epoch or 0 for each in begun) - present.epoch
    if value >= threshold and history.has_lasted(since_ms, limits.slow_rebalance_ms):
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
