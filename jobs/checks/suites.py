"""Data-quality checks: a Great Expectations project on measures and on the tables; results go to ``check_results``.

Spark counts the measures once. The shipped expectations are validated on that small result, because each expectation on
a table costs Spark jobs of its own; a user adds those that are worth it.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from coordinator_core.errors import InputError
from jobs.checks import project
from jobs.checks.unchanged import judged_before, measured
from jobs.checks.validation import CheckRun, Result, load, validate, write_measures
from jobs.pipeline import runs
from jobs.relations.news import last_end
from jobs.settings import CheckSettings, Settings
from jobs.tables.delta import Tables
from jobs.tables.engine import runs_steps
from jobs.tables.results import CHECK_RESULTS
from jobs.tables.table import few
from jobs.tables.tasks import processes

FAILING: Final = "failing_findings"
"""The measure that is unknown unless the setting names kinds: then nothing is said of it."""


@cache
def _judge() -> ProcessPoolExecutor:
    """Return a process that imports Great Expectations, which takes some seconds, while this one does other work."""
    return processes(1, load)


def prepare(tables: Tables, chosen: CheckSettings) -> None:
    """Let the import of Great Expectations begin, for a run that will need it."""
    if can_run() and _is_apart(tables, chosen):
        _judge().submit(can_run)


def _is_apart(tables: Tables, chosen: CheckSettings) -> bool:
    """Return whether another process can judge the measures: the project of a user may look at tables through Spark."""
    return chosen.project is None and not runs_steps(tables.session)


def can_run() -> bool:
    """Return whether Great Expectations, which judges the measures, is installed."""
    return find_spec("great_expectations") is not None


def run(tables: Tables, settings: Settings, now: datetime, night: str | None = None) -> list[Result]:
    """Compute the measures, validate the project, append the results to ``check_results`` and return them.

    ``night`` is the id of the night that runs now (None: the newest that has ended): what is new since the night before
    counts. The list is empty if no run has ingested a record yet.

    Raises:
        InputError: the project is invalid, or is not for these tables.
    """
    chosen = settings.checks
    measures, happened, note, are_judged = measured(tables, now, settings, last_end(tables.engine(), night))
    if not measures:
        return []
    checked = CheckRun(tables, measures, runs.new_run_id(), now, happened)
    # The project of a user may look at any table, and Data Docs are written by each run.
    is_shipped = chosen.project is None and chosen.data_docs is None
    results = (are_judged and is_shipped and judged_before(checked)) or evaluate(checked, tables.location, chosen)
    results = [result for result in results if result.check != FAILING or chosen.findings.fail_on]
    tables.create(CHECK_RESULTS)
    tables.append(CHECK_RESULTS, few(CHECK_RESULTS, (result._asdict() for result in results)), results[0].run_id, note)
    return results


def evaluate(checked: CheckRun, location: str, chosen: CheckSettings) -> list[Result]:
    """Return the results of the project that the settings name, or of the shipped one, on these measures and tables.

    Raises:
        InputError: the project is invalid, is not for the tables at this location, or has nothing to validate.
    """
    with _project(chosen.project, location) as folder:
        write_measures(folder, checked.measures)
        work = partial(validate, folder, checked._replace(tables=None), docs=chosen.data_docs is not None)
        if checked.tables is not None and _is_apart(checked.tables, chosen):
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
        project.write_project(folder, location, tables=False)
        yield folder
