"""Measures of tables that have not changed since the last checks: they are kept as a note of ``check_results``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from jobs.checks.measures import RATES, Row, measure
from jobs.checks.validation import CheckRun, Result
from jobs.settings import Settings
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, KNOWN_FINDINGS
from jobs.tables.versions import made_from, note_of
from jobs.versions import software_version

INPUTS: Final = (
    *(RUNS, LOG_RECORDS, LOG_RANGES, QUARANTINE, GROUP_RECORDS, DUMPED_FILES, TOPIC_HISTORY),
    *(HISTORY["violations"], HISTORY["target_audits"], FINDINGS, KNOWN_FINDINGS),
)
"""The tables that are measured."""

AGE: Final = "hours_since_last_record"
"""The measure that changes with the time alone."""


MOST: Final = re.compile(r"max_value (\d+(?:\.\d+)?)")
"""The bound of an expectation that a measure is not above a number."""


class Measured(NamedTuple):
    """The measures, what happened, and a note from which ``measured`` takes both while no table changes.
    ``are_judged``: the last checks had the same, but for the age, and the same settings.
    """

    measures: list[Row]
    happened: dict[str, dict[str, str]]
    note: str
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
    known: dict[str, Any] = json.loads((tables.exists(CHECK_RESULTS) and note_of(tables, CHECK_RESULTS)) or "{}")
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
    judged_by = {"settings": of_settings, "software": software_version()}
    note = {"inputs": inputs, "measured_ms": now_ms, "measures": measures, "happened": happened, "judged_by": judged_by}
    are_same = _without_age(known.get("measures", [])) == _without_age(measures)
    return Measured(measures, happened, json.dumps(note), are_same and known.get("judged_by") == judged_by)


def _without_age(measures: Iterable[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != AGE} for row in measures]


def judged_before(checked: CheckRun) -> list[Result]:
    """Return the results of the last checks, whose measures only differ in the age of the newest record; none if this
    cannot tell what is expected of the age.
    """
    assert checked.tables is not None
    last = "SELECT * FROM $check_results WHERE run_id = (SELECT max(run_id) FROM $check_results)"
    ages = {row["cluster"]: row[AGE] for row in checked.measures}
    results = []
    for row in checked.tables.engine().rows(last):
        result = Result(**row)._replace(run_id=checked.run_id, checked_at=checked.now)
        said = checked.happened.get(result.cluster or "", {}).get(result.check)
        if result.check == AGE:
            bound, age = MOST.fullmatch(result.bound), ages.get(result.cluster or "")
            if bound is None:
                return []
            result = result._replace(observed=age, passed=None if age is None else age <= float(bound[1]))
        if result.cluster is not None:
            result = result._replace(happened=None if result.passed else said or result.happened)
        results.append(result)
    return results
