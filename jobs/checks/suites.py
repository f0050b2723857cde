"""Data-quality checks: measures and small tables, by a Great Expectations project; results go to ``check_results``.

The measures are counted once, and the shipped bounds on them are comparisons, which are made here. What the shipped
suites say of tables of results, and all that a user adds, Great Expectations judges, in a process of its own.
Measures of tables that have not changed since the last checks are kept as a note of ``check_results``.
"""

import json
import shutil
import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_core.errors import InputError
from jobs.checks import frames, project
from jobs.checks.measures import RATES, measure
from jobs.checks.validation import CheckRun, Result, load_without_spark, validate, write_measures
from jobs.installation import software_version
from jobs.pipeline import runs
from jobs.relations.news import last_end
from jobs.settings import CheckSettings, Settings
from jobs.tables.catalog import CATALOG
from jobs.tables.delta import Tables
from jobs.tables.engine import runs_steps
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.reader import Row
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS, KNOWN_FINDINGS
from jobs.tables.table import few
from jobs.tables.tasks import processes
from jobs.tables.versions import made_from, note_of

INPUTS: Final = (
    *(RUNS, LOG_RECORDS, LOG_RANGES, QUARANTINE, GROUP_RECORDS, DUMPED_FILES, TOPIC_HISTORY),
    *(HISTORY["violations"], HISTORY["target_audits"], FINDINGS, KNOWN_FINDINGS),
)
"""The tables that are measured."""

JUDGED: Final = (
    *(RUNS, LOG_RECORDS, GROUP_RECORDS, GROUP_OFFSETS),
    *(HISTORY[name] for name in ("group_epochs", "rebalances", "memberships", "assignments", "target_audits")),
)
"""The tables that the shipped suites look at; not ``nights``: one that brings nothing is not compared again."""

AGE: Final = "hours_since_last_record"
"""The measure that changes with the time alone."""


class Measured(NamedTuple):
    """The measures, what happened, and a note from which ``measured`` takes both while no table changes.
    ``judged``: the tables that are judged, as they are now; ``are_judged``: the last checks judged them so.
    """

    measures: list[Row]
    happened: dict[str, dict[str, str]]
    note: dict[str, object]
    judged: str
    are_judged: bool


def measured(tables: Tables, now: datetime, chosen: Settings, since: str) -> Measured:
    """Return the measures as of now, of what is new since a time (the id of a run). The tables are read only if one has
    changed since the last checks, or a setting.

    Raises:
        MissingTableError: nothing was ingested yet.
    """
    asked = {"since": since, "today": now.date(), "software": software_version()}
    of_settings = {name: getattr(chosen, name).model_dump(mode="json") for name in ("checks", "gates")}
    inputs = made_from(tables, INPUTS, settings=of_settings, **asked)
    known: Row = json.loads((tables.exists(CHECK_RESULTS) and note_of(tables, CHECK_RESULTS)) or "{}")
    now_ms = round(now.timestamp() * 1000)
    if known.get("inputs") == inputs:
        older = (now_ms - known["measured_ms"]) / 3_600_000
        measures: list[Row] = [
            {**row, AGE: None if row[AGE] is None else row[AGE] + older} for row in known["measures"]
        ]
        happened = known["happened"]
        for row in measures:
            if row[AGE]:
                happened.setdefault(row["cluster"], {})[AGE] = RATES[AGE].format(row[AGE])
    else:
        measures, happened = measure(tables, now, chosen, since)
    note = {"inputs": inputs, "measured_ms": now_ms, "measures": measures, "happened": happened}
    judged = made_from(tables, JUDGED, software=software_version())
    return Measured(measures, happened, note, judged, known.get("judged") == judged)


def judged_before(checked: CheckRun, suites: Collection[str]) -> list[Result]:
    """Return the results that the last checks had of these suites, as those of this run."""
    assert checked.tables is not None
    last = "SELECT * FROM $check_results WHERE run_id = (SELECT max(run_id) FROM $check_results) AND suite IN :suites"
    rows = checked.tables.engine().rows(last, suites=sorted(suites))
    return [Result(**row)._replace(run_id=checked.run_id, checked_at=checked.now) for row in rows]


FAILING: Final = "failing_findings"
"""The measure that is unknown unless the setting names kinds: then nothing is said of it."""


@cache
def _judge() -> ProcessPoolExecutor:
    """Return a process that imports Great Expectations, which takes some seconds, while this one does other work."""
    return processes(1, load_without_spark)


def prepare(tables: Tables) -> None:
    """Let the import of Great Expectations begin, for a run that will need it; once it has begun, nothing happens."""
    if can_run() and not runs_steps(tables.session):
        # The call does not matter: a process starts with its first one, and begins with the import.
        _judge().submit(can_run)


def can_run() -> bool:
    """Return whether Great Expectations, which judges the tables, is installed."""
    return find_spec("great_expectations") is not None


def run(tables: Tables, settings: Settings, now: datetime, night: str | None = None) -> list[Result]:
    """Compute the measures, validate the project, append the results to ``check_results`` and return them.

    ``night`` is the id of the night that runs now (None: the newest that has ended): what is new since the night before
    counts. The list is empty if no run has ingested a record yet.

    Raises:
        InputError: the project is invalid, or is not for these tables.
    """
    chosen = settings.checks
    found = measured(tables, now, settings, last_end(tables.engine(), night))
    if not found.measures:
        return []
    note = found.note
    checked = CheckRun(tables, found.measures, runs.new_run_id(), now, found.happened)
    # The project of a user may look at any table, and Data Docs are written by each run.
    if chosen.project is not None or chosen.data_docs is not None:
        results = evaluate(checked, tables.location, chosen)
    else:
        results = list(of_measures(checked))
        if found.are_judged:
            results += judged_before(checked, project.of_tables())
        elif can_run():
            results += evaluate(checked, tables.location, chosen, measures=False)
        if can_run():
            # Only where they can be judged: else the next run would take them for judged.
            note["judged"] = found.judged
    results = [result for result in results if result.check != FAILING or chosen.findings.fail_on]
    tables.create(CHECK_RESULTS)
    rows = few(CHECK_RESULTS, (result._asdict() for result in results))
    tables.append(CHECK_RESULTS, rows, checked.run_id, json.dumps(note))
    return results


def of_measures(checked: CheckRun) -> Iterator[Result]:
    """Yield what the shipped suites say of the measures, as Great Expectations says it: each is a greatest value."""
    for name in sorted(project.shipped()):
        suite = project.shipped()[name]
        for expected in suite["expectations"] if name not in project.of_tables() else ():
            column, most = expected["kwargs"]["column"], expected["kwargs"]["max_value"]
            for row in checked.measures:
                cluster, value = str(row["cluster"]), row[column]
                passed = None if value is None else value <= most
                yield Result(
                    run_id=checked.run_id,
                    cluster=cluster,
                    suite=name,
                    check=column,
                    expectation=expected["type"],
                    about=expected["notes"],
                    happened=None if passed else checked.happened.get(cluster, {}).get(column),
                    severity=expected["severity"],
                    observed=value,
                    bound=f"max_value {most}",
                    passed=passed,
                    checked_at=checked.now,
                )


def evaluate(checked: CheckRun, location: str, chosen: CheckSettings, *, measures: bool = True) -> list[Result]:
    """Return the results of the project that the settings name, or of the shipped one, on these measures and tables.

    Without ``measures``: only of the suites on tables.

    Raises:
        InputError: the project is invalid, is not for the tables at this location, or has nothing to validate.
    """
    with _project(chosen.project, location) as folder:
        write_measures(folder, checked.measures)
        if not measures:
            project.leave(folder, project.of_tables())
        if checked.tables is not None:
            frames.write(folder, checked.tables)
        # Tables cannot be sent to another process, which reads the files that were just written.
        work = partial(validate, folder, checked._replace(tables=None), docs=chosen.data_docs is not None)
        if checked.tables is not None and project.is_by_pandas(folder) and not runs_steps(checked.tables.session):
            results = _judge().submit(work).result()
        else:
            results = validate(folder, checked, docs=chosen.data_docs is not None)
        if not results:
            raise InputError(f"{folder}: contains no expectation")
        if chosen.data_docs is not None:
            shutil.copytree(folder / project.SITE, chosen.data_docs, dirs_exist_ok=True)
    return results


@contextmanager
def _project(given: Path | None, location: str) -> Iterator[Path]:
    """Return the folder of the project: the given one, or the shipped one in a temporary folder."""
    if given is not None:
        folder = project.folder_of(given)
        project.check_location(folder, location)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="coordinator-audit-") as made:
        folder = Path(made) / project.FOLDER
        project.write_project(folder, location, tables=project.of_tables() & CATALOG.keys())
        yield folder
