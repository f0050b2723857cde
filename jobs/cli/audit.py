"""``audit``: compare recorded assignments with recomputed ones, and check transitions against the protocol rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_core.audit.finding_rows import Level
from coordinator_core.audit.rows import RIGHT, WRONG, TargetAuditRow, Verdict
from coordinator_core.groups.rules import NOTICES
from coordinator_core.groups.violations import Violation
from coordinator_core.records import SHARE_LOG
from jobs.cli.answer_source import AnswerSource, refuse_unknown, refuse_unproven
from jobs.cli.gate_formats import FormatOption, GateFormat, GateLine, print_ci
from jobs.cli.options import FAILED_GATE, GroupOption, SinceOption, read_kinds, with_options
from jobs.cli.output import Line, print_json, print_lines, utc
from jobs.formatting import parse_time, plain

if TYPE_CHECKING:
    from jobs.checks.gates import Gate

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
            help=f"Exit with code {FAILED_GATE} if one of these is found that is new since the last night or still in "
            f"force, and is not accepted by the settings: {', '.join(KINDS)} (of a rule that is more than a notice).",
        ),
    ] = "",
    form: FormatOption = GateFormat.TEXT,
) -> None:
    """Show the verdicts on all assignments, list those neither identical nor sound, and list violations of rules.

    With --json every verdict and every violation is printed; the other forms have what is not identical or broken.
    """
    as_json, for_ci = source.json or form is GateFormat.JSON, form in (GateFormat.JUNIT, GateFormat.GITHUB)
    failing = read_kinds(fail_on, KINDS)
    start = -1 if since is None else parse_time(since)
    asked_ms = None if since is None else start
    known = source.answers()
    counts: Counter[tuple[str, ...]] = Counter()
    gate = source.gate(known) if failing or for_ci else None
    seen: set[str] = set()
    unlike: list[TargetAuditRow] = []
    for row in known.verdicts(group, start):
        counts[str(row.group_type), row.assignor or "", str(row.basis), str(row.verdict)] += 1
        if as_json:
            print_json({"table": "target_audits", **plain(row)})
        elif row.verdict not in RIGHT or row.verdict in failing:
            unlike.append(row)
        if row.verdict in failing and gate is not None and gate.counts_verdict(row):
            seen.add(row.verdict)
    broken = list(known.violations(group, start))
    if VIOLATION in failing and gate is not None and any(_fails(violation, gate) for violation in broken):
        seen.add(VIOLATION)
    if not (counts or broken):
        refuse_unknown(known, group, asked_ms)
    if not counts:
        source.console.warn("no target assignment was found, so none was judged")
    if as_json:
        for violation in broken:
            print_json({"table": "violations", **plain(violation)})
    elif gate is not None and for_ci:
        print_ci(form, "audit", list(_gate_lines(unlike, broken, gate, failing)))
    else:
        print_lines(_tally(counts), as_json=False, title="assignments by verdict")
        print_lines([_line(row) for row in unlike], as_json=False, title="neither identical nor sound")
        print_lines([_violation_line(each) for each in broken], as_json=False, title="rules broken")
    for note in gate.notes() if gate is not None else ():
        source.console.note(note)
    if seen:
        raise typer.Exit(FAILED_GATE)
    if failing:
        negative = "nothing that --fail-on names was found"
        refuse_unproven(known, negative, group, asked_ms, rests_on_shares=VIOLATION in failing)


def _fails(violation: Violation, gate: Gate) -> bool:
    """Return whether a broken rule fails what asks for violations: a notice is listed, and accuses nobody."""
    return violation.rule not in NOTICES and gate.counts_violation(violation)


def _gate_lines(
    unlike: Sequence[TargetAuditRow], broken: Sequence[Violation], gate: Gate, failing: Container[str]
) -> Iterator[GateLine]:
    for row in unlike:
        line = _line(row)
        what = line["differences"] or line["missing"] or f"assignor {row.assignor}"
        level = Level.ALARM if row.verdict in WRONG else Level.NOTICE
        fails = row.verdict in failing and gate.counts_verdict(row)
        yield GateLine(row.verdict, f"group {row.group_id}, epoch {row.epoch} [{line['log']}]", str(what), level, fails)
    for violation in broken:
        about = f"group {violation.group_id} [{violation.at.partition}:{violation.at.offset}]"
        level = Level.NOTICE if violation.rule in NOTICES else Level.ALARM
        fails = VIOLATION in failing and _fails(violation, gate)
        yield GateLine(violation.rule, about, violation.detail or violation.rule.says, level, fails)


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
