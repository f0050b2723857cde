"""The first page from tables is that of the report from the same tables, and each answer fits its JSON Schema."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from jobs.cli.app import app
from jobs.cli.output_shapes import output_schema
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.report.stored import stored_report
from jobs.serve import from_tables
from jobs.serve.from_logs import LogsRead, ServedLogs
from jobs.serve.from_tables import ServedTables
from jobs.serve.group_times import GroupTimes
from jobs.serve.site import ANSWERS, Site
from jobs.settings import Settings, load
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.shared_data import ROOT

LOGS = ROOT / "data" / "samples" / "incident"
OF_TIMES = ("made_ms", "first_ms", "last_ms", "commits")
"""The report knows each event of a group; here are the times of the log, and commits by the hour."""


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Settings]:
    place = str(tmp_path_factory.mktemp("served") / "tables")
    for step in ("ingest", "decode", "replay"):
        words = [step, *([str(LOGS)] if step == "ingest" else []), "--tables", place]
        result = CliRunner().invoke(app, words, env={"COORDINATOR_AUDIT_ENGINE__RUNNER": "local"})
        assert result.exit_code == 0, result.output
    return place, load(environment={}, flags={"tables": place})


def test_the_first_page_is_that_of_the_report(stored: tuple[str, Settings]) -> None:
    place, settings = stored
    made = ServedTables(lambda: FolderReader(place), settings).overview()
    whole = stored_report(FolderReader(place), settings)
    differing = {name for name in made._fields if getattr(made, name) != getattr(whole._replace(groups=()), name)}
    assert differing <= set(OF_TIMES)
    assert {name for name, _ in made.families} >= {"members joined", "members left or expired"}
    assert made.worst


def test_of_very_many_rebalances_only_outcomes_are_counted(
    stored: tuple[str, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, settings = stored
    monkeypatch.setattr(from_tables, "MOST_TOLD", 5)
    made = ServedTables(lambda: FolderReader(place), settings).overview()
    assert made.outcomes
    assert not made.families
    assert not any(bucket.causes for bucket in made.activity)


def test_answers_fit_their_schemas(stored: tuple[str, Settings]) -> None:
    place, settings = stored
    logs = find_logs([LOGS])
    histories = list(group_histories(logs, pytest.fail, audit=settings.audit))
    report = build(histories, settings.findings, ReportHeader("c", "1", 0, (), True, []))
    times = {history.group_id: GroupTimes.of(history) for history in histories}
    of_logs = ServedLogs(
        LogsRead(report, times, LogAnswers(logs, pytest.fail, lambda: settings)), settings.findings, {}
    )
    group_id, at_ms = report.groups[0].line.group_id, report.groups[0].rebalances[-1].at.timestamp_ms
    for served in (of_logs, ServedTables(lambda: FolderReader(place), settings)):
        for path in ANSWERS:
            answer = Site(served).answer(path, {"group": group_id, "find": group_id[:3], "at": str(at_ms)})
            assert answer.status == 200, answer.body
            assert len(answer.body) > 2, path
            Draft202012Validator(output_schema(path)).validate(json.loads(answer.body))
