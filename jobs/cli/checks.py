"""``checks``: the data-quality checks of the tables."""

from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from coordinator_core.audit.finding_rows import Level
from jobs import settings
from jobs.checks import suites as quality
from jobs.checks.measures import OF_HISTORY, missing
from jobs.checks.project import FOLDER, write_project
from jobs.checks.validation import Result
from jobs.cli.console import Console, JsonOption, QuietOption
from jobs.cli.gate_formats import FormatOption, GateFormat, GateLine, print_ci
from jobs.cli.lines import CheckLine, CheckVerdict
from jobs.cli.options import FAILED_GATE, ConfigOption, TablesOption, with_options
from jobs.cli.output import print_lines, print_written
from jobs.cli.table_options import TableOptions
from jobs.tables.reader import absolute
from jobs.tables.runner import SPARK, choose

VERDICTS: Final[dict[bool | None, CheckVerdict]] = {True: "passed", False: "failed", None: "unknown"}


@with_options(TableOptions)
def checks_command(
    options: TableOptions,
    project: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Your Great Expectations project (command expectations).")
    ] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write Data Docs (HTML) to this folder.")] = None,
    form: FormatOption = GateFormat.TEXT,
) -> None:
    """Check the tables with suites of expectations. Exit code 3: an expectation of severity critical failed."""
    console = options.console
    flags: dict[str, Any] = {"checks.project": project, "checks.data_docs": docs}
    with options.writing(**flags) as (tables, chosen), console.step("checking the tables"):
        results = quality.run(tables, chosen, datetime.now(UTC))
        for cluster in sorted({result.cluster for result in results if result.check in OF_HISTORY and result.cluster}):
            lacks = missing(tables.engine(), cluster, chosen.checks.findings.fail_on)
            for reason in dict.fromkeys(chain.from_iterable(lacks.values())):
                console.warn(f"cluster {cluster}: {reason}")
    if not results:
        console.note(f"nothing to check at {tables.location}: no run has ingested a record yet")
    print_results(console, results, form)
    if any(result.failed for result in results):
        raise typer.Exit(FAILED_GATE)


def print_results(console: Console, results: Iterable[Result], form: GateFormat = GateFormat.TEXT) -> None:
    """Print one line for each check. What one looks at is in the JSON output; what is wrong in a note, too."""
    results = list(results)
    if form in (GateFormat.JUNIT, GateFormat.GITHUB):
        print_ci(form, "checks", [_gate_line(result) for result in results])
        return
    as_json = console.json or form is GateFormat.JSON
    lines = [
        CheckLine(
            cluster=result.cluster,
            suite=result.suite,
            check=result.check,
            observed=result.observed,
            expected=result.bound,
            severity=result.severity,
            verdict=VERDICTS[result.passed],
            about=result.about,
            happened=result.happened,
        )
        for result in results
    ]
    left_out = () if as_json else ("suite", "about", "happened")
    shown = [
        {
            name: value if as_json or not isinstance(value, float) else round(value, 4)
            for name, value in line.items()
            if name not in left_out
        }
        for line in lines
    ]
    print_lines(shown, as_json=as_json, title="checks")
    if not as_json:
        for note in dict.fromkeys(_note(result) for result in results if not result.passed):
            console.note(note)


def _note(result: Result) -> str:
    where = "" if result.cluster is None else f" in cluster {result.cluster}"
    return f"{result.check} {VERDICTS[result.passed]}{where}: {result.happened or result.about}"


def _gate_line(result: Result) -> GateLine:
    message = None if result.passed else f"{VERDICTS[result.passed]}: {result.happened or result.about}"
    level = Level.NOTICE if result.passed is None else Level.WARNING
    return GateLine(result.check, result.cluster or "all clusters", message, level, result.failed)


def expectations_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the project; it is written to FOLDER/gx.")],
    tables: TablesOption = None,
    config: ConfigOption = None,
    quiet: QuietOption = False,
    json: JsonOption = False,
) -> None:
    """Write a Great Expectations project for the tables, to which you add your own expectations.

    Suites, validation definitions and checkpoints that are already there are kept.
    """
    chosen = settings.load(config, flags={"tables": tables})
    location = absolute(chosen.tables)
    write_project(folder / FOLDER, location, spark=choose(chosen).name == SPARK)
    print_written("project", folder / FOLDER, as_json=json)
