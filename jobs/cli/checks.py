"""``checks``: the data-quality checks of the tables, for people and for CI."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from jobs.checks import suites as quality
from jobs.checks.suites import Result
from jobs.cli.console import Console
from jobs.cli.option_groups import with_options
from jobs.cli.output import print_lines
from jobs.cli.table_options import TableOptions

FAILED = 3
"""Exit code when a check of severity error failed."""

VERDICTS = {True: "passed", False: "failed", None: "unknown"}


@with_options(TableOptions)
def checks_command(
    lake: TableOptions,
    suites: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Suites of expectations instead of ours.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write Data Docs (HTML) there.")] = None,
) -> None:
    """Check the tables against the suites of expectations; exit code 3 if one of severity error fails."""
    console = lake.console
    flags = {"checks.suites": suites, "checks.data_docs": docs}
    at, chosen = lake.open(**flags)
    with console.step("checking"):
        results = quality.run(at, chosen.checks, datetime.now(UTC))
    if not results:
        console.note(f"nothing to check at {at.location}: no run has taken in a record yet")
    print_results(console, results)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED)


def print_results(console: Console, results: Iterable[Result]) -> None:
    """A line a check; what each is about is in ``conf/expectations`` and, for programs, in the JSON."""
    lines = [
        {
            "cluster": result.cluster,
            "suite": result.suite,
            "check": result.check,
            "observed": result.observed,
            "expected": result.bound,
            "severity": result.severity,
            "verdict": VERDICTS[result.passed],
            "about": result.about,
        }
        for result in results
    ]
    if not console.json:
        lines = [{name: value for name, value in line.items() if name not in ("suite", "about")} for line in lines]
    print_lines(lines, as_json=console.json, title="checks")
