"""``checks``: the data-quality checks of the tables, for people and for CI."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from jobs import quality
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.lake import ConfigOption, RemoteOption, TablesOption, open_tables
from jobs.cli.tables import print_lines
from jobs.quality import Result

FAILED = 3
"""Exit code when a check of severity error failed."""

VERDICTS = {True: "passed", False: "failed", None: "unknown"}


def checks_command(
    context: typer.Context,
    tables: TablesOption = None,
    suites: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Suites of expectations instead of ours.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write Data Docs (HTML) there.")] = None,
    config: ConfigOption = None,
    remote: RemoteOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Check the tables against the suites of expectations; exit code 3 if one of severity error fails."""
    console = Console.of(context)
    flags = {"tables": tables, "spark.remote": remote, "checks.suites": suites, "checks.data_docs": docs}
    with open_tables(console, config, flags) as (at, chosen), console.step("checking"):
        results = quality.run(at, chosen.checks, datetime.now(UTC))
    print_results(console, results)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED)


def print_results(console: Console, results: Iterable[Result]) -> None:
    """A line a check."""
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
    print_lines(lines, as_json=console.json, title="checks")
