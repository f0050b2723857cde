"""The history of groups, from log files or the tables: ``history`` and ``rebalances``."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Annotated, Final, NamedTuple

import typer

from coordinator_core.audit.folds.client_names import client_at, client_library
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.audit.folds.two_logs import by_log, log_topic, time_order
from coordinator_core.audit.offsets.steps import CommitStep, StepKind
from coordinator_core.broker_log.events import BrokerEvent, EventKind
from coordinator_core.durations import duration
from coordinator_core.errors import UsageError
from coordinator_core.groups.streams.readiness import reason
from coordinator_core.groups.streams.state import StreamsGroupState
from coordinator_core.groups.violations import Violation
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import (
    NO_COMPUTING_WORKER,
    REACHED_NOT_READY,
    AssignmentRow,
    GroupEpochRow,
    MembershipRow,
    RebalanceRow,
    ShareInitializationRow,
    SharePartitionRow,
    ShareWrite,
)
from coordinator_core.history.share_partitions import STATE_DELETED
from coordinator_core.history.topic_inputs import ALL_PARTITIONS, SharePhase
from coordinator_core.records import SHARE_LOG, LogPosition
from jobs.cli.answer_source import AnswerSource, refuse_unknown, warn_of_window
from jobs.cli.options import GroupArgument, GroupOption, SinceOption, with_options
from jobs.cli.output import Line, print_json, print_lines, ranges, utc
from jobs.cli.rebalance_text import cause_kinds, delaying, effects, epochs, idle_text, rebalance_detail, took_text
from jobs.formatting import parse_time, plain
from jobs.queries.group_rows import (
    FORWARD,
    SAID_BY_NO_RECORD,
    TABLE_OF,
    FoldedRow,
    GroupRow,
    folded_rows,
    group_rows,
    group_steps,
    own_lines,
)
from jobs.queries.interface import RebalanceFilter, no_history

WORDS: Final = {
    StepKind.FIRST: "first commits",
    StepKind.RESET: "offsets set",
    StepKind.REWOUND: "offsets rewound",
    StepKind.REMOVED: "offsets removed",
}


class TimelineEntry(NamedTuple):
    """One line of a timeline, with the record that proves it; ``log`` names its log where it is not the group's own."""

    at: LogPosition
    what: str
    detail: str
    log: str = ""


def commit_moments(steps: Iterable[CommitStep]) -> Iterator[TimelineEntry]:
    """Yield an entry for the steps of one kind, cause and owner at one time.

    Offsets that were set back while the group had no members are left out: they are entries of their own.
    """
    together: dict[tuple[int, str, str | None, str | None], list[CommitStep]] = defaultdict(list)
    for step in steps:
        is_back = (step.offset_after or 0) < (step.offset_before or 0)
        if step.kind not in FORWARD and not (step.kind == StepKind.RESET and is_back):
            together[step.since.timestamp_ms, step.kind, step.cause, step.owner].append(step)
    for (_, kind, cause, owner), rows in together.items():
        first = min(rows, key=lambda row: row.since.offset)
        moved = f", {first.topic}-{first.partition} from {first.offset_before} to {first.offset_after}"
        parts = (
            f"{counted(len(rows), 'partition')}: {ranges(f'{row.topic}-{row.partition}' for row in rows)}"
            + (moved if kind in (StepKind.RESET, StepKind.REWOUND) else ""),
            None if owner is None else f"owner {first.client_id or owner}",
            cause and f"cause {cause}",
        )
        yield TimelineEntry(first.since, WORDS[StepKind(kind)], "; ".join(part for part in parts if part))


IN_ITS_REASON: Final = frozenset(
    (EventKind.REBALANCE_BEGAN, EventKind.CONVERSION_REFUSED, EventKind.WRITE_FAILED, EventKind.REQUEST_DENIED)
)
"""Lines whose reason says all that their entry does not."""


def with_lines(entries: Iterable[Line], events: Iterable[BrokerEvent]) -> list[Line]:
    """Return the entries of a timeline, and lines of brokers' application logs in between, by their time."""
    lines = [
        {
            "time": utc(line.timestamp_ms or 0),
            "what": SAID_BY_NO_RECORD[EventKind(line.kind)],
            "detail": line.reason if line.kind in IN_ITS_REASON and line.reason else line.text,
            "log": line.place,
        }
        for line in events
        if line.timestamp_ms is not None
    ]
    # ISO 8601 in UTC with the same digits: texts are in the order of the times.
    return sorted([*lines, *entries], key=lambda entry: str(entry["time"])) if lines else list(entries)


IN_SHARE_LOG = f"{SHARE_LOG} "


@with_options(AnswerSource)
def history_command(source: AnswerSource, group: GroupArgument, since: SinceOption = None) -> None:
    """Show the history of a group in order of time. With --json: every row of its history, with its table."""
    answers = source.answers()
    known = answers.history(group)
    if known is None:
        raise no_history(answers, group)
    warn_of_window(source.console, answers, since)
    start = -1 if since is None else parse_time(since)
    if source.json:
        _print_rows(group, group_rows(answers, known), start)
        return
    parts = by_log(known)
    moments: list[tuple[tuple[int, int, int], TimelineEntry]] = []
    for part in parts:
        log = "" if len(parts) == 1 else f"{log_topic(part)} "
        for moment in sorted([*_moments(folded_rows(part), part.members()), *_clients(part)]):
            moments.append((time_order(part, moment.at), moment._replace(log=moment.log or log)))
    steps = group_steps(answers, known)
    own = [TimelineEntry(reset.at, "offsets reset", reset.detail) for reset in answers.resets(known)]
    own += commit_moments([step for step in steps.rows if step.kind not in FORWARD])
    own += [TimelineEntry(at, "group ended", "no record before says what it was") for at in steps.unseen_ends]
    # Offsets of two logs do not compare: at one time the group's own records come first.
    for rank, entries in enumerate((own, _share_moments(known))):
        moments += [((moment.at.timestamp_ms, rank, moment.at.offset), moment) for moment in entries]
    if not moments:
        source.console.warn(
            f"these logs have nothing of group {group!r} but tombstones, or records that cannot be decoded: what it "
            "was is not known"
        )
    moments.sort(key=lambda each: each[0])
    lines: list[Line] = [
        {"time": utc(at.timestamp_ms), "what": what, "detail": detail, "log": f"{log}{at.partition}:{at.offset}"}
        for _, (at, what, detail, log) in moments
        if at.timestamp_ms >= start
    ]
    lines = with_lines(lines, (line for line in own_lines(known) if (line.timestamp_ms or -1) >= max(start, 0)))
    lines += _not_ready_at_the_end(known, start)
    print_lines(lines, as_json=False, title=f"history of {group}")


def _print_rows(group_id: str, rows: Iterable[GroupRow], start_ms: int) -> None:
    """Print each row of a history from a time on (ms), with its table."""
    for row in rows:
        if _last_ms(row, start_ms) >= start_ms:
            print_json({"table": TABLE_OF[type(row)], "group_id": group_id, **plain(row)})


def _not_ready_at_the_end(known: GroupHistory, start_ms: int) -> Iterator[dict[str, str | None]]:
    """Yield a line for the end of what is known, if the group cannot run then: it goes on after the last record.

    The record named is the one that opens the first epoch in which the group was not ready.
    """
    present = known.present
    if present is None or present.state != StreamsGroupState.NOT_READY or known.now_ms < start_ms:
        return
    newest_first = sorted(known.epochs, key=lambda row: row.opened.offset, reverse=True)
    not_ready = [row.opened for row in takewhile(lambda row: row.state == StreamsGroupState.NOT_READY, newest_first)]
    # Where records are lost or cannot be decoded, no epoch may tell since when.
    first = not_ready[-1] if not_ready else None
    lasts = "since a time that is not known" if first is None else f"for {duration(known.now_ms - first.timestamp_ms)}"
    yield {
        "time": utc(known.now_ms),
        "what": f"{REACHED_NOT_READY} at {present.epoch}",
        "detail": f"{lasts} at the end of what is known; {reason(present.topology)}",
        "log": None if first is None else f"{first.partition}:{first.offset}",
    }


@with_options(AnswerSource)
def rebalances_command(
    source: AnswerSource,
    group: GroupOption = None,
    since: SinceOption = None,
    slowest: Annotated[
        int | None, typer.Option("--slowest", metavar="N", min=1, help="List only the N slowest.")
    ] = None,
    cause: Annotated[
        str | None, typer.Option("--cause", metavar="CAUSE", help="Limit to rebalances with this cause.")
    ] = None,
) -> None:
    """List rebalances in order of time, or the slowest first: causes, duration, moved partitions, delaying member."""
    if cause is not None and cause not in set(CauseKind):
        raise UsageError(f"unknown cause {cause!r}: use one of {', '.join(sorted(CauseKind))}")
    wanted = RebalanceFilter(group, -1 if since is None else parse_time(since), cause, slowest)
    answers = source.answers()
    rows = answers.rebalances(wanted)
    if not rows:
        refuse_unknown(answers, group, None if since is None else wanted.since_ms)
    if source.json:
        lines = [plain(row) for row in rows]
    else:
        names = answers.members({row.group_id for row in rows})
        lines = [_rebalance_line(row, names) for row in rows]
    print_lines(lines, as_json=source.json, title="rebalances")


def _last_ms(row: GroupRow, otherwise: int) -> int:
    """Return the last time that a row is about (ms); ``otherwise`` if a line of a log has none."""
    if isinstance(row, BrokerEvent):
        return row.timestamp_ms or otherwise
    if isinstance(row, CommitStep):
        return row.until.timestamp_ms
    if isinstance(row, GroupEpochRow):
        return (row.ended or row.opened).timestamp_ms
    if isinstance(row, MembershipRow):
        return (row.left or row.joined).timestamp_ms
    if isinstance(row, AssignmentRow | ShareInitializationRow | SharePartitionRow):
        return (row.until or row.since).timestamp_ms
    return row.at.timestamp_ms


def _rebalance_line(row: RebalanceRow, names: Mapping[str, str]) -> Line:
    return {
        "time": utc(row.at.timestamp_ms),
        "group": row.group_id,
        "type": row.group_type,
        "epochs": epochs(row),
        "causes": cause_kinds(row.causes),
        "outcome": row.outcome,
        "took": took_text(row),
        "members": row.members_after,
        "moved": row.units_moved,
        "lost": row.units_lost,
        "idle": idle_text(row),
        "delayed by": delaying(row, names),
        "log": f"{row.at.partition}:{row.at.offset}",
        "missing": row.missing,
    }


def _moments(rows: Iterable[FoldedRow], names: Mapping[str, str]) -> Iterator[TimelineEntry]:
    """Yield the entries of a timeline. Assignments are left out: the rebalances that change them are entries."""
    for row in rows:
        if isinstance(row, RebalanceRow):
            yield TimelineEntry(row.at, f"rebalance {epochs(row)}", rebalance_detail(row, names))
            if row.finished is not None and row.finished != row.at:
                yield TimelineEntry(row.finished, f"{row.outcome} at {row.to_epoch}", effects(row, names))
        elif isinstance(row, MembershipRow):
            library = client_library(row)
            who = f"{row.member_id} ({client_at(row.client_id, row.client_host)}{f', {library}' if library else ''})"
            yield TimelineEntry(row.joined, f"member came: {row.came_by}", who)
            if row.away_since is not None:
                yield TimelineEntry(row.away_since, "static member away", who)
            if row.left is not None:
                yield TimelineEntry(row.left, f"member gone: {row.went_by}", f"{who} {row.hint or ''}".strip())
        elif isinstance(row, GroupEpochRow):
            if row.assignment_error and row.target is not None:
                detail = f"error {row.assignment_error} at epoch {row.epoch}: the workers keep what they run"
                yield TimelineEntry(row.target, "assignor failed", detail)
            elif row.assignment_error == NO_COMPUTING_WORKER:
                detail = f"no worker supports the versions of all others at epoch {row.epoch}: no target is made"
                yield TimelineEntry(row.opened, "assignor failed", detail)
            if row.ended is not None and row.ended_by != "next epoch":
                yield TimelineEntry(row.ended, row.ended_by or "ended", f"{row.group_type} group at epoch {row.epoch}")
        elif isinstance(row, ShareInitializationRow):
            yield from _phase_moments(row)
        elif isinstance(row, Violation):
            log = IN_SHARE_LOG if row.rule.in_share_state else ""
            yield TimelineEntry(row.at, f"violation: {row.rule}", row.detail, log)


def _clients(part: GroupHistory) -> Iterator[TimelineEntry]:
    """Yield the epochs in which another leader, or another mixture of clients, is new."""
    before = None
    for row in sorted(part.epochs, key=lambda row: row.opened.offset):
        clients = part.clients_of(row)
        if clients is not None and clients != before:
            yield TimelineEntry(row.opened, "clients", clients)
        before = clients


def _phase_moments(row: ShareInitializationRow) -> Iterator[TimelineEntry]:
    """When share state was asked for, and how that ended; what is initialized at once is told by the end alone."""
    named = row.topic if row.partition == ALL_PARTITIONS else f"{row.topic}-{row.partition}"
    if row.phase != SharePhase.INITIALIZED:
        yield TimelineEntry(row.since, f"share state {row.phase}", named)
    if row.until is not None and row.phase != SharePhase.DELETING:
        asked = f", asked for {row.asked} times" if row.asked > 1 else ""
        yield TimelineEntry(row.until, f"share state: {row.outcome}", f"{named}{asked}")


def _share_moments(known: GroupHistory) -> Iterator[TimelineEntry]:
    """What the share state log tells of share partitions; deliveries only where records were given up.

    The group's own log tells when share state begins; where it has nothing of that, the share state log does.
    """
    for row in known.share_partitions:
        named = f"{row.topic or row.topic_id}-{row.partition}"
        if row.write in (ShareWrite.INITIALIZED, ShareWrite.FIRST_SEEN) and not known.initializations:
            yield TimelineEntry(row.since, f"share: state {row.write}", named, IN_SHARE_LOG)
        for happened, spans in (("archived", row.archived_now), ("sent to the dead-letter queue", row.archiving_now)):
            if spans:
                ranges = ", ".join(f"{span.first} to {span.last} (delivered {span.delivery_count})" for span in spans)
                yield TimelineEntry(row.since, f"share: {happened}", f"{named} {ranges}", IN_SHARE_LOG)
        if row.write == ShareWrite.ALTERED:
            yield TimelineEntry(
                row.since, "share: start offset altered", f"{named} to {row.start_offset}", IN_SHARE_LOG
            )
        if row.write == ShareWrite.LEADER_CHANGED:
            yield TimelineEntry(row.since, "share: leader changed", f"{named} epoch {row.leader_epoch}", IN_SHARE_LOG)
        if row.ended_by == STATE_DELETED and row.until is not None:
            yield TimelineEntry(row.until, "share: state deleted", named, IN_SHARE_LOG)
