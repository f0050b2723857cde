"""Measures of tables that have not changed since the last checks: they are kept as a note of ``check_results``."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, NamedTuple

import pandas as pd

from jobs.checks.measures import MEASURES, measure
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


class Measured(NamedTuple):
    """The measures, a row for each cluster, what happened, and a note from which ``measured`` takes both while no table
    changes.
    """

    measures: pd.DataFrame
    happened: dict[str, dict[str, str]]
    note: str


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
        measures = pd.DataFrame(known["measures"], columns=["cluster", *MEASURES])
        measures[[*MEASURES]] = measures[[*MEASURES]].astype(float)
        measures[AGE] += (now_ms - known["measured_ms"]) / 3_600_000
        happened = known["happened"]
    else:
        measures, happened = measure(tables, now, chosen, since)
    rows = measures.astype(object).where(measures.notna(), None).to_dict("records")
    note = {"inputs": inputs, "measured_ms": now_ms, "measures": rows, "happened": happened}
    return Measured(measures, happened, json.dumps(note))
