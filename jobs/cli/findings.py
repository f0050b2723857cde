"""``findings``: what an operator should look at."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, rests_on_share_state
from coordinator_core.durations import duration
from coordinator_core.errors import UsageError
from coordinator_core.records import GROUP_LOG
from jobs.cli.answer_source import AnswerSource, refuse_unknown, refuse_unproven, warn_of_window
from jobs.cli.gate_formats import FormatOption, GateFormat, GateLine, print_ci
from jobs.cli.options import (
    FAILED_GATE,
    EndsOption,
    GroupOption,
    SinceOption,
    UntilOption,
    finite_number,
    read_kinds,
    with_options,
)
from jobs.cli.output import Line, print_lines, utc
from jobs.formatting import parse_time, plain
from jobs.sources.end_offsets import newest_ends

ANY = "any"
FINDING_KINDS = tuple(kind.value for kind in FindingKind)
GOES_ON = "goes on"


@with_options(AnswerSource)
def findings_command(
    source: AnswerSource,
    dumps: Annotated[
        list[Path] | None, typer.Argument(metavar="[DUMP]...", help="Logs to read, as with --log.", show_default=False)
    ] = None,
    group: GroupOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    new: Annotated[
        bool, typer.Option("--new", help="Only what the last night of the tables had and those before it had not.")
    ] = False,
    new_since: Annotated[
        str | None,
        typer.Option("--new-since", metavar="NIGHT", help="The same since a night: its id, or a time (ISO 8601)."),
    ] = None,
    min_level: Annotated[
        Level | None,
        typer.Option(
            "--min-level",
            help="Leave out findings of a lower level. With --fail-on any it is the lowest level that fails.",
        ),
    ] = None,
    min_score: Annotated[
        float,
        typer.Option(
            "--min-score", metavar="SCORE", help="Leave out findings with a lower score.", callback=finite_number
        ),
    ] = 0.0,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help=f"Exit with code {FAILED_GATE} if a finding of one of these kinds is listed that is new since the "
            f"last night or goes on, and is not accepted by the settings: {ANY} (alarms and warnings), or kinds "
            "separated by commas (docs/findings.md lists them).",
        ),
    ] = "",
    ends: EndsOption = None,
    form: FormatOption = GateFormat.TEXT,
) -> None:
    """List what an operator should look at, the most urgent first. Thresholds: section findings of the settings."""
    if dumps:
        source = source.with_logs(dumps)
    source = source.checked()
    named = read_kinds(fail_on, (*FINDING_KINDS, ANY))
    answers = source.answers()
    if ends is not None and source.tables is not None:
        raise UsageError("--end-offsets goes with --log: findings in tables know the end offsets there")
    findings = answers.findings(group, {} if ends is None else newest_ends(ends))
    if not findings:
        refuse_unknown(answers, group)
    if since is not None or until is not None:
        warn_of_window(source.console, answers, since, until)
    gate = source.gate(answers, new_since)
    if (new or new_since is not None) and source.tables is None:
        raise UsageError("--new goes with --tables: log files do not say what was known before")
    rows = [
        row
        for row in findings
        if row.score >= min_score
        and (min_level is None or Level(row.level).rank <= min_level.rank)
        and (since is None or row.until_ms >= parse_time(since))
        and (until is None or row.since_ms <= parse_time(until))
        and (not (new or new_since) or gate.news.is_first_seen(row))
    ]
    least = (min_level or gate.settings.min_level) if ANY in named else None
    failing = [row for row in rows if (least or row.kind in named) and gate.counts(row, [*named], least=least)]
    if form in (GateFormat.JUNIT, GateFormat.GITHUB):
        print_ci(form, "findings", [_gate_line(row, fails=row in failing) for row in rows])
    else:
        as_json = source.json or form is GateFormat.JSON
        print_lines([plain(row) if as_json else _line(row) for row in rows], as_json=as_json, title="findings")
        if rows and not as_json:
            print_lines(_texts(rows), as_json=False, title="what they mean")
    for note in gate.notes():
        source.console.note(note)
    if failing:
        raise typer.Exit(FAILED_GATE)
    # What was found fails in any case; only that nothing was found has to be proven.
    if named:
        rests_on_shares = any(map(rests_on_share_state, named))
        refuse_unproven(answers, "no finding that --fail-on names", group, rests_on_shares=rests_on_shares)


def _gate_line(row: FindingRow, *, fails: bool) -> GateLine:
    about = f"group {row.group_id}" if row.group_id is not None else "the cluster"
    subject = f", {row.subject}" if row.subject is not None else ""
    return GateLine(row.kind, f"{about}{subject}", row.detail, Level(row.level), fails)


def _line(row: FindingRow) -> Line:
    is_time = FindingKind[row.kind.upper()].counts_milliseconds
    detail = row.detail if row.subject is None or row.subject in row.detail else f"{row.subject}: {row.detail}"
    return {
        "level": row.level,
        "finding": row.kind,
        "group": row.group_id,
        "from": utc(row.since_ms),
        "until": GOES_ON if row.is_open else utc(row.until_ms),
        "value": duration(row.value) if is_time else row.value,
        "threshold": duration(row.threshold) if is_time else row.threshold,
        "detail": detail,
        "log": _evidence(row),
        "history": None if row.history_complete else "incomplete",
    }


def _texts(rows: Sequence[FindingRow]) -> list[Line]:
    """Return what the kinds of these findings mean, each once."""
    kinds = {
        row.kind: {"finding": row.kind, "for the records": row.meaning, "to do": row.advice, "how sure": row.certainty}
        for row in rows
    }
    return [*kinds.values()]


def _evidence(row: FindingRow) -> str:
    """Where the first records that prove a finding lie; the log is named where it is not that of groups."""
    log = "" if row.log_topic == GROUP_LOG else f"{row.log_topic} "
    return log + " ".join(f"{at.partition}:{at.offset}" for at in row.evidence[:2])
