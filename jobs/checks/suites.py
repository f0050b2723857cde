"""Data-quality checks: Great Expectations suites on a few aggregated measures; the results go to ``check_results``.

Spark aggregates the measures first, and the expectations are validated on that small result, because each expectation
on a large table would cost several Spark jobs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from coordinator_core.errors import InputError
from jobs.checks.measures import MEASURES
from jobs.checks.unchanged import measured
from jobs.pipeline import runs
from jobs.settings import CheckSettings, conf
from jobs.tables.delta import Tables
from jobs.tables.results import CHECK_RESULTS
from jobs.yaml_files import read_mapping

SEVERITIES = ("error", "warning")


class Result(NamedTuple):
    """One row of ``check_results``."""

    run_id: str
    cluster: str
    suite: str
    check: str
    expectation: str
    about: str
    severity: str
    observed: float | None
    bound: str
    passed: bool | None
    checked_at: datetime

    @property
    def failed(self) -> bool:
        """Whether the check failed with severity error, which fails the run."""
        return self.passed is False and self.severity == "error"


def run(tables: Tables, chosen: CheckSettings, now: datetime) -> list[Result]:
    """Compute the measures, check them, append the results to ``check_results`` and return them.

    The list is empty if no run has ingested a record yet.

    Raises:
        InputError: a suite is invalid.
    """
    loaded = load_suites(chosen.suites or conf() / "expectations")
    measures, note = measured(tables, now, chosen)
    if measures.empty:
        return []
    results = evaluate(measures, loaded, runs.new_run_id(), now, chosen.data_docs)
    tables.create(CHECK_RESULTS)
    tables.append(CHECK_RESULTS, tables.spark.createDataFrame(results, CHECK_RESULTS.schema), results[0].run_id, note)
    return results


def load_suites(folder: Traversable) -> list[dict[str, Any]]:
    """Return the suites in a folder, one from each YAML file.

    Raises:
        InputError: the folder has no suite, a suite is invalid, or an expectation names an unknown measure.
    """
    entries = folder.iterdir() if folder.is_dir() else ()
    files = sorted((file for file in entries if file.name.endswith(".yaml")), key=lambda file: file.name)
    if not files:
        raise InputError(f"{folder}: contains no suites of expectations (*.yaml)")
    return [_suite(file) for file in files]


def _suite(file: Traversable) -> dict[str, Any]:
    suite = read_mapping(file, InputError)
    if not isinstance(suite.get("expectations"), list) or "name" not in suite:
        raise InputError(f"{file}: invalid suite: it needs a name and a list of expectations")
    for each in suite["expectations"]:
        name = each.get("kwargs", {}).get("column") if isinstance(each, dict) else None
        if name not in MEASURES:
            raise InputError(f"{file}: unknown measure {name!r}: use one of {', '.join(MEASURES)}")
        severity = each.setdefault("meta", {}).setdefault("severity", "error")
        if severity not in SEVERITIES:
            raise InputError(f"{file}: invalid severity {severity!r} of {name}: use {' or '.join(SEVERITIES)}")
    return suite


def evaluate(
    measures: pd.DataFrame, suites: Iterable[Mapping[str, Any]], run_id: str, now: datetime, docs: Path | None = None
) -> list[Result]:
    """Return the result of each expectation of each suite for each cluster; unknown where the measure is null.

    ``measures`` has one row for each cluster. With ``docs``, Data Docs are written to that folder.
    """
    context = _context(docs)
    batches = context.data_sources.add_pandas("measures").add_dataframe_asset("measures")
    batch = batches.add_batch_definition_whole_dataframe("all")
    results = []
    for cluster, row in measures.groupby("cluster"):
        for suite in suites:
            outcomes = _validate(context, batch, suite, str(cluster), row)
            for expected, passed in zip(suite["expectations"], outcomes, strict=True):
                name = expected["kwargs"]["column"]
                observed = None if pd.isna(row.iloc[0][name]) else float(row.iloc[0][name])
                results.append(
                    Result(
                        run_id=run_id,
                        cluster=str(cluster),
                        suite=suite["name"],
                        check=name,
                        expectation=expected["type"],
                        about=expected["meta"].get("about", ""),
                        severity=expected["meta"]["severity"],
                        observed=observed,
                        bound=_bound(expected["kwargs"]),
                        passed=None if observed is None else passed,
                        checked_at=now,
                    )
                )
    if docs is not None:
        context.build_data_docs()
    return results


def _context(docs: Path | None) -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context: Any = gx.get_context(mode="ephemeral")
    if docs is not None:
        store = {"class_name": "TupleFilesystemStoreBackend", "base_directory": str(docs.resolve())}
        index = {"class_name": "DefaultSiteIndexBuilder"}
        site = {"class_name": "SiteBuilder", "store_backend": store, "site_index_builder": index}
        context.add_data_docs_site("checks", site)
    context.variables.progress_bars = {"globally": False}
    return context


def _validate(context: Any, batch: Any, suite: Mapping[str, Any], cluster: str, row: pd.DataFrame) -> list[bool]:
    import great_expectations as gx

    name = f"{suite['name']} of {cluster}"
    expectations = [dict(each) for each in suite["expectations"]]
    added_suite = context.suites.add(gx.ExpectationSuite(name=name, expectations=expectations))
    definition = context.validation_definitions.add(gx.ValidationDefinition(name=name, data=batch, suite=added_suite))
    checkpoint = gx.Checkpoint(name=name, validation_definitions=[definition])
    outcome = context.checkpoints.add(checkpoint).run(batch_parameters={"dataframe": row})
    (validated,) = outcome.run_results.values()
    return [bool(each.success) for each in validated.results]


def _bound(kwargs: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in kwargs.items() if name != "column")
