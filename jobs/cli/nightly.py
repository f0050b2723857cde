"""``nightly``: one run of all steps on everything that is new."""

from pathlib import Path
from typing import Annotated, Any

import typer

from jobs import nightly_run
from jobs.cli.arrow_start import start_without_pandas
from jobs.cli.checks import print_results
from jobs.cli.console import LogFormat, LogFormatOption
from jobs.cli.options import (
    FAILED_GATE,
    BrokerLogOption,
    BrokerZoneOption,
    ClusterOption,
    CopiedTopicOption,
    with_options,
)
from jobs.cli.output import Line, print_lines, print_written
from jobs.cli.table_options import TableOptions, name_jvm_output
from jobs.sources.log_settings import note_beside
from jobs.tables import runner


@with_options(TableOptions)
def nightly_command(
    options: TableOptions,
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...", help="Dumps to ingest, as for the command ingest; replaces the setting input.paths."
        ),
    ] = None,
    copied_topic: CopiedTopicOption = None,
    broker_log: BrokerLogOption = None,
    broker_log_zone: BrokerZoneOption = None,
    cluster: ClusterOption = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write the report to this file, and its data as JSON next to it."),
    ] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Ingest, decode, replay, audit, check and report everything new. Exit code 3: a critical check failed."""
    console = options.console
    flags: dict[str, Any] = {
        "cluster": cluster,
        "input.paths": paths or None,
        "input.copied_topic": copied_topic,
        "input.broker_logs": [str(path) for path in broker_log or ()] or None,
        "input.broker_log_zone": broker_log_zone,
        "nightly.report": report,
    }
    # Settings are read twice: the first time tells where the logs are, beside which more of them may be.
    beside = note_beside(options.chosen(**flags).input.paths, console.note)
    nightly_run.check_settings(options.chosen(beside, **flags))
    before = runner.choose(chosen := options.chosen(beside, **flags))
    if before.name == runner.LOCAL and chosen.checks.project is None:
        start_without_pandas()
    tables, chosen = options.open(beside, **flags)
    name, why = runner.found(tables, before)
    console.note(f"engine: {name}, as {why}", engine=name, why=why)
    outcome = nightly_run.run(tables, chosen, console)
    if not console.json:
        print_results(console, outcome.check_results)
    lines = [_for_programs(step) if console.json else _for_people(step) for step in outcome.steps]
    print_lines(lines, as_json=console.json, title=f"nightly run at {tables.location}")
    if failed := next((step for step in outcome.steps if step.error is not None), None):
        name_jvm_output(console)
        console.error(f"{failed.step}: {failed.error}; completed steps are kept, and the next run continues from there")
        raise typer.Exit(1)
    if chosen.nightly.report is not None:
        print_written("report", chosen.nightly.report, as_json=console.json)
    if any(result.failed for result in outcome.check_results):
        raise typer.Exit(FAILED_GATE)


def _for_programs(step: nightly_run.StepRun) -> Line:
    return {**step._asdict(), "started_at": step.started_at.isoformat(timespec="seconds")}


def _for_people(step: nightly_run.StepRun) -> Line:
    """Return the columns that fit a terminal of 80 characters."""
    counts = ", ".join(f"{noun} {count}" for noun, count in step.counts.items())
    return {"step": step.step, "ended": step.ended, "seconds": step.seconds, "counts": counts, "error": step.error}
