"""Measures of tables that have not changed: taken from the note of the last checks, only older."""

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jobs import settings
from jobs.checks import suites
from jobs.checks.measures import MEASURES, Measures
from jobs.tables.delta import Tables

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_only_the_age_changes_while_the_tables_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    read: list[datetime] = []
    inputs = ["version 1"]
    found = dict.fromkeys(MEASURES, 0.0) | {"cluster": "c", "hours_since_last_record": 2.0, "absent_partitions": None}

    def measure(tables: Tables, now: datetime, chosen: settings.Settings, since: str) -> Any:
        read.append(now)
        return Measures([found], {"c": {"notices": "2 notices in g"}})

    monkeypatch.setattr(suites, "measure", measure)
    monkeypatch.setattr(suites, "made_from", lambda *_, **__: inputs[0])
    monkeypatch.setattr(suites, "note_of", lambda *_: notes[-1] if notes else None)
    tables, chosen = cast(Tables, SimpleNamespace(exists=lambda table: True)), settings.load(environment={})
    ages = []
    for hours, version in ((0, "version 1"), (3, "version 1"), (4, "version 1"), (5, "version 2")):
        inputs[0] = version
        measures, happened, note, judged, are_judged = suites.measured(tables, NOW + timedelta(hours=hours), chosen, "")
        assert happened["c"]["notices"] == "2 notices in g"
        assert are_judged == (bool(notes) and version == "version 1")
        notes.append(json.dumps(note | {"judged": judged}))
        row = measures[0]
        ages.append(row["hours_since_last_record"])
        assert row["absent_partitions"] is None
        assert row["violations"] == 0
    assert ages == [2, 5, 6, 2]
    assert read == [NOW, NOW + timedelta(hours=5)]
