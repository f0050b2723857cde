"""The first page from tables is that of the report from the same tables, and each answer fits its JSON Schema."""

import json
import shutil
import time
from pathlib import Path
from typing import Any, cast

import pytest
from deltalake import DeltaTable
from jsonschema import Draft202012Validator

from coordinator_core.audit.folds.commit_times import HOUR_MS
from coordinator_core.errors import InputError
from jobs.cli.answer_source import AnswerSource
from jobs.cli.schema import output_schema
from jobs.cli.serve import SaidBefore, place_of
from jobs.formatting import parse_time
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.report.stored import stored_report
from jobs.serve import from_tables, group_types
from jobs.serve.from_logs import LogsRead, ServedLogs
from jobs.serve.from_tables import ServedTables
from jobs.serve.group_times import GroupTimes
from jobs.serve.newer import NOTHING_NEWER
from jobs.serve.site import ANSWERS, GroupsAsked, Site
from jobs.settings import Settings, load
from jobs.sources.cluster_snapshot import ROW
from jobs.sources.files import find_logs
from jobs.tables.folder_reader import FolderReader
from tests.commands import run_command
from tests.core.audit.histories import all_shown
from tests.jobs.relations.tables_of_logs import append
from tests.shared_data import ROOT

LOGS = ROOT / "data" / "samples" / "incident"
OF_TIMES = ("made_ms", "first_ms", "last_ms", "commits")
"""The report knows each event of a group; here are the times of the log, and commits by the hour."""


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """End offsets at two moments of the group's life."""
    file = tmp_path_factory.mktemp("ends") / "ends.jsonl"
    rows = [
        dict.fromkeys(ROW)
        | {"topic": "b-range-x1", "partition": partition, "timestamp_ms": parse_time(then), "end_offset": end}
        for then, end in (("2026-11-23T19:24:58Z", 30), ("2026-11-23T19:25:06Z", 90))
        for partition in range(3)
    ]
    file.write_text("\n".join(map(json.dumps, rows)))
    return file


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, ends: Path) -> tuple[str, Settings]:
    place = str(tmp_path_factory.mktemp("served") / "tables")
    given = {"ingest": [str(LOGS), str(ends)], "decode": [], "replay": []}
    for step, more in given.items():
        words = [step, *more, "--tables", place]
        result = run_command(*words, env={"COORDINATOR_AUDIT_ENGINE__RUNNER": "local"})
        assert result.exit_code == 0, result.output
    return place, load(environment={}, flags={"tables": place})


def test_the_first_page_is_that_of_the_report(stored: tuple[str, Settings], monkeypatch: pytest.MonkeyPatch) -> None:
    place, settings = stored
    made = ServedTables(lambda: FolderReader(place), settings).overview()
    whole = stored_report(FolderReader(place), settings)
    differing = {name for name in made._fields if getattr(made, name) != getattr(whole._replace(groups=()), name)}
    assert differing <= set(OF_TIMES)
    assert {name for name, _ in made.families} >= {"members joined", "members left or expired"}
    assert made.worst
    monkeypatch.setattr(from_tables, "WORST_A_PASS", 1)
    assert ServedTables(lambda: FolderReader(place), settings).overview().worst == made.worst


def test_groups_at_a_moment_are_those_of_the_logs(stored: tuple[str, Settings], ends: Path) -> None:
    place, settings = stored
    of_tables = ServedTables(lambda: FolderReader(place), settings)
    of_logs = place_of(AnswerSource(context=cast("Any", SaidBefore()), log=[LOGS]), ends, NOTHING_NEWER)
    seen = []
    for second in range(48, 88, 2):
        then = f"2026-11-23T19:2{4 + second // 60}:{second % 60:02}Z"
        asked = GroupsAsked(at_ms=parse_time(then))
        (one,), (other,) = (each.groups(asked).groups for each in (of_logs, of_tables))
        assert one == other, then
        seen.append(one)
    assert {row.state for row in seen} >= {None, "STABLE", "REBALANCING"}
    assert {row.owned for row in seen} >= {0, 6}
    assert {row.owners[0].client_id for row in seen if row.owners} >= {"B-range-5175-m0"}
    assert seen[0].lag is None
    assert len({row.lag for row in seen}) == 3


def test_groups_without_an_open_epoch_have_the_type_of_their_last_one(
    stored: tuple[str, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, settings = stored
    tables = FolderReader(place)
    expected = sorted(tables.tuples(group_types.LAST_TYPES, cluster=settings.cluster))
    assert expected
    for is_open, most in (("is_open", 5), ("FALSE", 5), ("FALSE", 0)):
        for name in ("OPEN", "WITHOUT_OPEN", "OF_OTHERS"):
            monkeypatch.setattr(group_types, name, getattr(group_types, name).replace("is_open", is_open))
        monkeypatch.setattr(group_types, "MOST_LISTED", most)
        found = group_types.group_types(tables, settings.cluster)
        assert sorted(tables.tuples(found.text, cluster=settings.cluster, **found.values)) == expected


def test_after_a_night_the_first_page_is_made_again_beside_the_questions(
    stored: tuple[str, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, settings = stored
    served = ServedTables(lambda: FolderReader(place), settings)
    before, asked = served.overview(), GroupsAsked(most=1)
    assert served.groups(asked) is served.groups(asked)
    known = served.groups(asked)
    monkeypatch.setattr(from_tables, "newest_run_in", lambda *_: "a later run")
    served.forget()
    assert served.overview() is before
    assert served.renew() == "a later run"
    assert served.groups(asked) is not known
    deadline = time.monotonic() + 30
    while served.overview() is before and time.monotonic() < deadline:
        time.sleep(0.02)
    made = served.overview()
    assert made is not before
    assert served.overview() is made


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
    report = build(histories, settings.findings, ReportHeader("c", "1", 0, (), True, []), all_shown)
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


def test_a_page_of_no_groups_says_how_many_there_are(stored: tuple[str, Settings]) -> None:
    place, settings = stored
    served = ServedTables(lambda: FolderReader(place), settings)
    pages = [served.groups(GroupsAsked(first=first, most=most)) for first, most in ((0, 1), (0, 0), (2, 0), (9_999, 5))]
    assert len({page.seen for page in pages}) == 1
    assert [len(page.groups) for page in pages] == [1, 0, 0, 0]


def test_a_question_waits_only_so_long_for_the_one_before(
    stored: tuple[str, Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, settings = stored
    monkeypatch.setattr(from_tables, "WAIT_S", 0.05)
    served = ServedTables(lambda: FolderReader(place), settings)
    with served._reader(), pytest.raises(InputError, match="busy with another question"):
        served.search("b")
    assert served.search("b-range")


def test_commits_are_counted_in_few_intervals_whichever_file_has_the_later_ones(
    stored: tuple[str, Settings], tmp_path: Path
) -> None:
    place, settings = shutil.copytree(stored[0], tmp_path / "tables"), stored[1]
    rows = DeltaTable(place / "commit_summaries").to_pyarrow_table().to_pylist()
    row = next(row for row in rows if row["hour_ms"] is not None)
    later = [row | {"hour_ms": row["hour_ms"] + hours * HOUR_MS} for hours in range(1, 721)]
    for half in (later[360:], later[:360]):
        append(place, "commit_summaries", half)
    made = ServedTables(lambda: FolderReader(str(place)), settings).overview()
    assert {count.length_ms for count in made.commits} == {12 * HOUR_MS}
