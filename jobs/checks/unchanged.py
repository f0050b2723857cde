"""Measures of tables that have not changed since the last checks: they are kept as a note of ``check_results``."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple

from jobs.checks.measures import RATES, measure
from jobs.checks.validation import CheckRun, Result
from jobs.installation import software_version
from jobs.settings import Settings
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.reader import Row
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS, KNOWN_FINDINGS
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
