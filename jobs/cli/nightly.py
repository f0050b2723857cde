"""``nightly``: one run of everything, from where the last one ended."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jobs import nightly_run
from jobs.cli.checks import FAILED, print_results
from jobs.cli.console import LogFormat, LogFormatOption
from jobs.cli.option_groups import with_options
from jobs.cli.options import ClusterOption
from jobs.cli.output import Line, print_lines, print_written
from jobs.cli.table_options import TableOptions


@with_options(TableOptions)
def nightly_command(
    lake: TableOptions,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH]...", help="Dumps as for ingest, instead of input.paths.")
    ] = None,
    cluster: ClusterOption = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write the report there, its data as JSON beside it.")
    ] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Take in, decode, replay, judge, check and report what is new; exit code 3 if a check of severity error fails."""
    console = lake.console
    flags = {"cluster": cluster, "input.paths": paths or None, "nightly.report": report}
    at, chosen = lake.open(**flags)
    done = nightly_run.run(at, chosen, console)
    if not console.json:
        print_results(console, done.check_results)
    lines = [_for_programs(step) if console.json else _for_people(step) for step in done.steps]
    print_lines(lines, as_json=console.json, title=f"nightly run at {at.location}")
    if failed := next((step for step in done.steps if step.error is not None), None):
        console.error(f"{failed.step}: {failed.error}; what is done is kept, and the next run goes on there")
        raise typer.Exit(1)
    if chosen.nightly.report is not None:
        print_written("report", chosen.nightly.report, as_json=console.json)
    if any(result.failed for result in done.check_results):
        raise typer.Exit(FAILED)


def _for_programs(step: nightly_run.StepRun) -> Line:
    return {**step._asdict(), "started_at": step.started_at.isoformat(timespec="seconds")}


def _for_people(step: nightly_run.StepRun) -> Line:
    """What fits a terminal of 80 columns."""
    counts = ", ".join(f"{what} {count}" for what, count in step.counts.items())
    return {"step": step.step, "ended": step.ended, "seconds": step.seconds, "counts": counts, "error": step.error}
