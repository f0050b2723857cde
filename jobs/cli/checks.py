"""``checks``: the data-quality checks of the tables."""

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
"""Exit code if a check of severity error failed."""

VERDICTS = {True: "passed", False: "failed", None: "unknown"}


@with_options(TableOptions)
def checks_command(
    options: TableOptions,
    suites: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder with your own suites of expectations.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write Data Docs (HTML) to this folder.")] = None,
) -> None:
    """Check the tables with the suites of expectations. Exit code 3: a check of severity error failed."""
    console = options.console
    flags = {"checks.suites": suites, "checks.data_docs": docs}
    tables, chosen = options.open(**flags)
    with console.step("checking the tables"):
        results = quality.run(tables, chosen.checks, datetime.now(UTC))
    if not results:
        console.note(f"nothing to check at {tables.location}: no run has ingested a record yet")
    print_results(console, results)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED)


def print_results(console: Console, results: Iterable[Result]) -> None:
    """Print one line for each check; its description is in ``conf/expectations`` and in the JSON output."""
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
