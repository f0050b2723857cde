"""``audit``: every recorded assignment against the recomputed one, every transition against the protocol's rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

import typer

from coordinator_core.audit.rows import TargetAuditRow, Verdict
from coordinator_core.errors import InputError
from coordinator_core.groups.violations import Violation
from jobs.cli.console import Console, JsonOption
from jobs.cli.explain import ConfigOption
from jobs.cli.history import SinceOption
from jobs.cli.options import LogOption, parse_time
from jobs.cli.tables import Line, print_json, print_lines, utc
from jobs.local_audit import group_histories
from jobs.local_targets import audit_targets
from jobs.plain import plain
from jobs.settings import load
from jobs.sources.files import LogFile, find_logs

MATCHED = 3
"""Exit code when something is of a kind that ``--fail-on`` names."""
VIOLATION = "violation"
KINDS = (*(verdict.value for verdict in Verdict), VIOLATION)


def audit_command(
    context: typer.Context,
    log: LogOption,
    group: Annotated[str | None, typer.Option("--group", metavar="GROUP", help="Of one group only.")] = None,
    since: SinceOption = None,
    fail_on: Annotated[
        str,
        typer.Option("--fail-on", metavar="KINDS", help=f"Exit code {MATCHED} for any of these: {', '.join(KINDS)}."),
    ] = "",
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Verdicts on all assignments, with what is not identical and what broke a rule; with --json every row."""
    failing = _kinds(fail_on)
    settings = load(config).audit
    start = 0 if since is None else parse_time(since)
    logs = find_logs(log)
    warn = Console.of(context).warn
    rows = [row for row in audit_targets(logs, warn, settings, group) if row.at.timestamp_ms >= start]
    violations = _violations(logs, group, start)
    if as_json:
        for row in rows:
            print_json({"table": "target_audits", **plain(row)})
        for violation in violations:
            print_json({"table": "violations", **plain(violation)})
    else:
        print_lines(_tally(rows), as_json=False, title="assignments by verdict")
        print_lines(
            [_line(row) for row in rows if row.verdict != Verdict.IDENTICAL], as_json=False, title="not identical"
        )
        print_lines([_violation_line(each) for each in violations], as_json=False, title="rules broken")
    seen = {str(row.verdict) for row in rows} | ({VIOLATION} if violations else set())
    if seen & failing:
        raise typer.Exit(MATCHED)


def _kinds(text: str) -> set[str]:
    kinds = {each.strip() for each in text.split(",") if each.strip()}
    for unknown in sorted(kinds.difference(KINDS)):
        raise InputError(f"--fail-on knows no {unknown!r}: there are {', '.join(KINDS)}")
    return kinds


def _violations(logs: list[LogFile], group: str | None, start: int) -> list[Violation]:
    """Broken rules; what cannot be read was told before."""
    return [
        violation
        for history in group_histories(logs, lambda message: None, group)
        for violation in history.violations
        if violation.at.timestamp_ms >= start
    ]


def _tally(rows: Sequence[TargetAuditRow]) -> list[Line]:
    counts = Counter((str(row.group_type), row.assignor or "", str(row.basis)) for row in rows)
    verdicts = Counter((str(row.group_type), row.assignor or "", str(row.basis), str(row.verdict)) for row in rows)
    return [
        {
            "type": group_type,
            "assignor": assignor,
            "compared with": basis,
            "targets": count,
            **{verdict: verdicts[group_type, assignor, basis, verdict] for verdict in Verdict},
        }
        for (group_type, assignor, basis), count in sorted(counts.items())
    ]


def _line(row: TargetAuditRow) -> Line:
    more = row.difference_count - len(row.differences)
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


def _violation_line(each: Violation) -> Line:
    return {
        "time": utc(each.at.timestamp_ms),
        "group": each.group_id,
        "rule": each.rule,
        "member": each.member_id,
        "detail": each.detail,
        "log": f"{each.at.partition}:{each.at.offset}",
    }
