"""What groups went through, from log folders or the tables: ``history`` and ``rebalances``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, NamedTuple

import typer

from coordinator_core.errors import InputError, UsageError
from coordinator_core.groups.violations import Violation
from coordinator_core.history.causes import CauseKind
from coordinator_core.history.rows import (
    TABLES,
    AssignmentRow,
    Cause,
    GroupEpochRow,
    HistoryRow,
    MembershipRow,
    RebalanceRow,
)
from coordinator_core.records import LogPosition
from jobs.cli.answer_source import AnswerSource, refuse_unknown
from jobs.cli.option_groups import with_options
from jobs.cli.options import GroupOption, SinceOption, parse_time
from jobs.cli.output import Line, print_json, print_lines, utc
from jobs.formatting import plain
from jobs.queries.interface import RebalanceFilter

TABLE_OF = {table.row: table.name for table in TABLES}


TimelineRow = HistoryRow | Violation
"""A row that becomes an entry of a timeline, or two."""


class TimelineEntry(NamedTuple):
    """One line of a timeline, with the record that proves it."""

    at: LogPosition
    what: str
    detail: str


@with_options(AnswerSource)
def history_command(
    source: AnswerSource,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="Group id.")],
    since: SinceOption = None,
) -> None:
    """What a group went through, in order of time; with --json every row of its history, with the table it is of."""
    known = source.answers().history(group)
    if known is None:
        raise InputError(f"no history of a group {group!r} in these logs")
    rows: list[TimelineRow] = [
        *known.epochs,
        *known.rebalances,
        *known.memberships,
        *known.assignments,
        *known.violations,
    ]
    start = 0 if since is None else parse_time(since)
    if source.json:
        for row in rows:
            if _last_ms(row) >= start:
                print_json({"table": TABLE_OF[type(row)], **plain(row)})
        return
    moments = sorted(moment for moment in _moments(rows) if moment.at.timestamp_ms >= start)
    lines = [
        {"time": utc(at.timestamp_ms), "what": what, "detail": detail, "log": f"{at.partition}:{at.offset}"}
        for at, what, detail in moments
    ]
    print_lines(lines, as_json=False, title=f"history of {group}")


@with_options(AnswerSource)
def rebalances_command(
    source: AnswerSource,
    group: GroupOption = None,
    since: SinceOption = None,
    slowest: Annotated[int | None, typer.Option("--slowest", metavar="N", min=1, help="The N slowest only.")] = None,
    cause: Annotated[str | None, typer.Option("--cause", metavar="CAUSE", help="With this cause only.")] = None,
) -> None:
    """Rebalances in order of time, or the slowest first: why, how long, what moved and who held it up."""
    if cause is not None and cause not in set(CauseKind):
        raise UsageError(f"no cause {cause!r}: there are {', '.join(sorted(CauseKind))}")
    wanted = RebalanceFilter(group, 0 if since is None else parse_time(since), cause, slowest)
    answers = source.answers()
    rows = answers.rebalances(wanted)
    if not rows:
        refuse_unknown(answers, group)
    lines = [plain(row) for row in rows] if source.json else [_rebalance_line(row) for row in rows]
    print_lines(lines, as_json=source.json, title="rebalances")


def _last_ms(row: TimelineRow) -> int:
    """The last time at which a row has something to say."""
    if isinstance(row, GroupEpochRow):
        return (row.ended or row.opened).timestamp_ms
    if isinstance(row, MembershipRow):
        return (row.left or row.joined).timestamp_ms
    if isinstance(row, AssignmentRow):
        return (row.until or row.since).timestamp_ms
    return row.at.timestamp_ms


def _rebalance_line(row: RebalanceRow) -> Line:
    return {
        "time": utc(row.at.timestamp_ms),
        "group": row.group_id,
        "type": row.group_type,
        "epochs": _epochs(row),
        "causes": _causes(row.causes),
        "outcome": row.outcome,
        "took": _took(row),
        "members": row.members_after,
        "moved": row.units_moved,
        "lost": row.units_lost,
        "idle ms": row.idle_ms,
        "held up by": row.held_up_by or ", ".join(row.behind) or None,
        "log": f"{row.at.partition}:{row.at.offset}",
        "missing": row.missing,
    }


def _epochs(row: RebalanceRow) -> str:
    return f"{'?' if row.from_epoch is None else row.from_epoch} to {row.to_epoch}"


def _took(row: RebalanceRow) -> str | None:
    """How long it lasted, exactly or as bounds."""
    least, most = row.duration_min_ms, row.duration_max_ms
    if least is None:
        return None
    if least == most:
        return f"{least} ms"
    return f"{least} ms or more" if most is None else f"{least} to {most} ms"


def _causes(causes: Iterable[Cause]) -> str:
    """Kinds with what they are about; members are counted."""
    members = Counter(cause.kind for cause in causes if cause.member_id is not None and not cause.topics)
    found = [kind if count == 1 else f"{kind} ({count})" for kind, count in members.items()]
    for cause in causes:
        if cause.member_id is None or cause.topics:
            about = " ".join(cause.topics) or cause.detail or ""
            found.append(f"{cause.kind} {about}".strip())
    return ", ".join(found)


def _moments(rows: Iterable[TimelineRow]) -> Iterator[TimelineEntry]:
    """Rows as moments; intervals of assignments are told by the rebalances that end them."""
    for row in rows:
        if isinstance(row, RebalanceRow):
            yield TimelineEntry(row.at, f"rebalance {_epochs(row)}", _rebalance_detail(row))
            if row.finished is not None and row.finished != row.at:
                yield TimelineEntry(row.finished, f"{row.outcome} at {row.to_epoch}", _effects(row))
        elif isinstance(row, MembershipRow):
            who = f"{row.member_id} ({row.client_id} at {row.client_host})"
            yield TimelineEntry(row.joined, f"member came: {row.came_by}", who)
            if row.away_since is not None:
                yield TimelineEntry(row.away_since, "static member away", who)
            if row.left is not None:
                yield TimelineEntry(row.left, f"member gone: {row.went_by}", f"{who} {row.hint or ''}".strip())
        elif isinstance(row, GroupEpochRow):
            if row.ended is not None and row.ended_by != "next epoch":
                yield TimelineEntry(row.ended, row.ended_by or "ended", f"{row.group_type} group at epoch {row.epoch}")
        elif not isinstance(row, AssignmentRow):
            yield TimelineEntry(row.at, f"violation: {row.rule}", row.detail)


def _rebalance_detail(row: RebalanceRow) -> str:
    causes = "; ".join(
        " ".join(part for part in (each.kind, each.member_id, *each.topics, each.detail, each.hint) if part)
        for each in row.causes
    )
    effects = _effects(row) if row.finished == row.at else ""
    return "; ".join(part for part in (causes, effects, row.missing) if part)


def _effects(row: RebalanceRow) -> str:
    took = _took(row)
    parts = (
        took and f"took {took}",
        row.units_moved and f"{row.units_moved} moved",
        row.units_lost and f"{row.units_lost} lost",
        row.idle_ms and f"idle {row.idle_ms} ms",
        row.held_up_by and f"held up by {row.held_up_by}",
    )
    return ", ".join(part for part in parts if part)
