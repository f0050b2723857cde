"""``audit``: compare recorded assignments with recomputed ones, and check transitions against the protocol rules."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.groups.violations import Violation
from coordinator_core.records import SHARE_LOG
from jobs.cli.answer_source import AnswerSource, refuse_unknown, refuse_unproven
from jobs.cli.option_groups import with_options
from jobs.cli.options import FAILED_GATE, GroupOption, SinceOption, read_kinds
from jobs.cli.output import Line, print_json, print_lines, utc
from jobs.formatting import plain
from jobs.times import parse_time

VIOLATION = "violation"
KINDS = (*(verdict.value for verdict in Verdict), VIOLATION)


@with_options(AnswerSource)
def audit_command(
    source: AnswerSource,
    group: GroupOption = None,
    since: SinceOption = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help=f"Exit with code {FAILED_GATE} if one of these is found: {', '.join(KINDS)}.",
        ),
    ] = "",
) -> None:
    """Show the verdicts on all assignments, list those not identical, and list violations of the protocol rules.

    With --json every verdict and every violation is printed.
    """
    failing = read_kinds(fail_on, KINDS)
    start = -1 if since is None else parse_time(since)
    asked_ms = None if since is None else start
    known = source.answers()
    counts: Counter[tuple[str, ...]] = Counter()
    unlike: list[Line] = []
    for row in known.verdicts(group, start):
        counts[str(row.group_type), row.assignor or "", str(row.basis), str(row.verdict)] += 1
        if source.json:
            print_json({"table": "target_audits", **plain(row)})
        elif row.verdict != Verdict.IDENTICAL:
            unlike.append(_line(row))
    broken = list(known.violations(group, start))
    if not (counts or broken):
        refuse_unknown(known, group, asked_ms)
    if not counts:
        source.console.warn("no target assignment was found, so none was judged")
    if source.json:
        for violation in broken:
            print_json({"table": "violations", **plain(violation)})
    else:
        print_lines(_tally(counts), as_json=False, title="assignments by verdict")
        print_lines(unlike, as_json=False, title="not identical")
        print_lines([_violation_line(each) for each in broken], as_json=False, title="rules broken")
    seen = {verdict for *_, verdict in counts} | ({VIOLATION} if broken else set())
    if seen & failing:
        raise typer.Exit(FAILED_GATE)
    if failing:
        refuse_unproven(known, "nothing that --fail-on names was found", group, asked_ms)


def _tally(counts: Counter[tuple[str, ...]]) -> list[Line]:
    totals: Counter[tuple[str, ...]] = Counter()
    for (*kind, _), count in counts.items():
        totals[tuple(kind)] += count
    return [
        {
            "type": kind[0],
            "assignor": kind[1],
            "compared with": kind[2],
            "targets": count,
            **{verdict: counts[*kind, verdict] for verdict in Verdict},
        }
        for kind, count in sorted(totals.items())
    ]


def _line(row: TargetAuditRow) -> Line:
    more = row.more_differences
    return {
        "time": utc(row.at.timestamp_ms),
        "group": row.group_id,
        "epoch": row.epoch,
        "verdict": str(row.verdict),
        "assignor": row.assignor,
        "differences": "; ".join((*row.differences, *([f"{more} more"] if more > 0 else []))) or None,
        "missing": row.missing,
        "log": f"{row.at.partition}:{row.at.offset}",
    }


def _violation_line(violation: Violation) -> Line:
    return {
        "time": utc(violation.at.timestamp_ms),
        "group": violation.group_id,
        "rule": violation.rule,
        "member": violation.member_id,
        "detail": violation.detail,
        "log": f"{SHARE_LOG} " * violation.rule.in_share_state + f"{violation.at.partition}:{violation.at.offset}",
    }
