"""Measures of tables that have not changed since the last checks: they are kept as a note of ``check_results``."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final, NamedTuple

import pandas as pd

from jobs.checks.measures import MEASURES, measure
from jobs.settings import CheckSettings
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY, TOPIC_HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.nightly import DUMPED_FILES
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.results import CHECK_RESULTS, FINDINGS
from jobs.tables.versions import made_from, note_of
from jobs.versions import software_version

INPUTS: Final = (
    *(RUNS, LOG_RECORDS, LOG_RANGES, QUARANTINE, GROUP_RECORDS, DUMPED_FILES, TOPIC_HISTORY),
    *(HISTORY["violations"], HISTORY["target_audits"], FINDINGS),
)
"""The tables that are measured."""

AGE: Final = "hours_since_last_record"
"""The measure that changes with the time alone."""


class Measured(NamedTuple):
    """The measures, a row for each cluster, and a note from which ``measured`` takes them while no table changes."""

    measures: pd.DataFrame
    note: str


def measured(tables: Tables, now: datetime, chosen: CheckSettings) -> Measured:
    """Return the measures as of now; the tables are read only if one has changed since the last checks, or a setting.

    Raises:
        MissingTableError: nothing was ingested yet.
    """
    inputs = made_from(tables, INPUTS, settings=chosen.model_dump(mode="json"), software=software_version())
    known: dict[str, Any] = json.loads((tables.exists(CHECK_RESULTS) and note_of(tables, CHECK_RESULTS)) or "{}")
    now_ms = round(now.timestamp() * 1000)
    if known.get("inputs") == inputs:
        measures = pd.DataFrame(known["measures"], columns=["cluster", *MEASURES])
        measures[[*MEASURES]] = measures[[*MEASURES]].astype(float)
        measures[AGE] += (now_ms - known["measured_ms"]) / 3_600_000
    else:
        measures = measure(tables, now, chosen)
    rows = measures.astype(object).where(measures.notna(), None).to_dict("records")
    return Measured(measures, json.dumps({"inputs": inputs, "measured_ms": now_ms, "measures": rows}))
