"""What commands print with --json fits the schema that ``schema`` prints for them."""

import json
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree

import pytest
from jsonschema import Draft202012Validator

from coordinator_core.audit.offsets.burrow import LagPoint
from coordinator_core.errors import InputError
from coordinator_core.records import LogPosition
from jobs.checks.validation import Result
from jobs.cli import watch_lines
from jobs.cli.app import COMMANDS
from jobs.cli.checks import print_results
from jobs.cli.console import Console
from jobs.cli.schema import SHAPES, output_schema
from jobs.watch.events import FindingEvent, LagChanged, LagStatusRow, WatchEvent
from jobs.watch.growing_logs import GrowingLogs
from tests.commands import check_lines, rows_of_command, run_command, text_of_command
from tests.jobs.watch.samples import followed, growing
from tests.shared_data import ROOT

SAMPLES = str(ROOT / "data" / "samples" / "logs")
CASES = str(ROOT / "data" / "samples" / "assignor_cases.jsonl")
AT = datetime(2026, 11, 1, tzinfo=UTC)
NOT_LINES = {"metrics", "schema", "serve"}
"""Commands that print another format."""

RUNS = [
    "findings --log LOGS",
    "groups --log LOGS",
    "groups --log LOGS --at-offset 3:90",
    "describe --all --log LOGS",
    "describe --all --log LOGS --at-offset 1:400",
    "rebalances --log LOGS",
    "explain B-range-5175@6 --log LOGS",
    "history B-range-5175 --log LOGS",
    "history A-coop-a2d7 --log LOGS",
    "commits A-coop-a2d7 --log LOGS",
    "owners a-coop-x8 --log LOGS",
    "owners a-coop-x8 --history --log LOGS",
    "offsets A-coop-a2d7 --log LOGS",
    "audit --log LOGS",
    "whatif A-coop-a2d7 --log LOGS --assignor range",
    "config",
    "assign CASES",
    "compare CASES",
    "trace tests/data/trace-sample.jsonl.gz",
    "simulate data/scenarios/shop.yaml --out OUT",
    "report --log LOGS --out OUT/report.html",
    *(f"dump LOGS/{log}" for log in ("__consumer_offsets-0", "__cluster_metadata-0", "__share_group_state-0")),
]


def lines_of(run: str, tmp_path) -> list[dict]:
    arguments = [
        each.replace("LOGS", SAMPLES).replace("CASES", CASES).replace("OUT", str(tmp_path / "out"))
        for each in run.split()
    ]
    (tmp_path / "out").mkdir()
    result = run_command(*arguments, "--json")
    assert result.exit_code in (0, 3), result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("run", RUNS)
def test_lines_fit_the_schema_of_their_command(run, tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    validator = Draft202012Validator(output_schema(run.split()[0]))
    printed = lines_of(run, tmp_path)
    assert printed
    for line in printed:
        validator.validate(line)


def test_a_share_group_prints_share_partitions(tmp_path):
    groups = [each["group"] for each in lines_of("groups --type SHARE --log LOGS", tmp_path)]
    validator = Draft202012Validator(output_schema("offsets"))
    checked = 0
    for number, group in enumerate(groups):
        (folder := tmp_path / str(number)).mkdir()
        for line in lines_of(f"offsets {group} --log LOGS", folder):
            validator.validate(line)
            checked += "deliveryCompleteCount" in line
    assert checked


def test_records_of_copies_name_their_folder(tmp_path):
    for copy in ("b1", "b2"):
        copytree(f"{SAMPLES}/__consumer_offsets-0", tmp_path / copy / "__consumer_offsets-0")
    lines = rows_of_command("dump", tmp_path)
    assert {Path(line["folder"]).parent.name for line in lines} == {"b1"}


@pytest.mark.parametrize("passed", [True, False, None])
def test_results_of_checks(passed, capsys):
    of_cluster = Result("run", "c", "s", "check", "e", "about", "5 of them", "critical", 5.0, "max_value 0", passed, AT)
    print_results(Console(json=True), [of_cluster, of_cluster._replace(cluster=None, happened=None, observed=None)])
    printed = capsys.readouterr().out
    assert len(printed.splitlines()) == 2
    check_lines("checks", printed)


def test_figures_of_checks_are_rounded_for_people_only(capsys):
    result = Result("run", "c", "s", "check", "e", "about", None, "warning", 234.49685555, "max_value 36", False, AT)
    print_results(Console(), [result])
    assert "\t234.4969\t" in capsys.readouterr().out
    print_results(Console(json=True), [result])
    assert "234.49685555" in capsys.readouterr().out


def test_what_a_watch_tells(tmp_path):
    groups, source = followed(), GrowingLogs([tmp_path], pytest.fail)
    events: list[WatchEvent] = []
    for number, _ in enumerate(growing(tmp_path)):
        for new in source.poll():
            groups.feed(new)
        if number == 0:
            groups.begin()
        events += groups.events(is_settled=True)
    finding = next(event for event in events if isinstance(event, FindingEvent))
    events += [finding._replace(change=change) for change in ("began", "grew", "ended")]
    point = LagPoint("g", "t", 0, 9, 300, 10, LogPosition(0, 1, 8), 290, None, 5, "STOP", 10, None)
    status = LagStatusRow("g", "ERR", None, 9, 290, 1, (point,))
    events += [LagChanged(finding.key, row) for row in (status, status._replace(before="OK", worst=()))]
    for is_repeated in (False, True):
        told = [
            line
            for event in events
            for line in watch_lines.lines(event, groups, as_json=True, explained=True, is_repeated=is_repeated)
        ]
        assert {json.loads(line)["event"] for line in told} == {"rebalance_began", "rebalance_ended", "finding", "lag"}
        check_lines("watch", "\n".join(told))


def test_the_lines_of_every_test_are_checked(monkeypatch):
    """What a command of any test prints fits its schema: it is checked where tests run commands."""
    monkeypatch.setattr("tests.commands._CHECKED", set())
    monkeypatch.setattr("tests.commands._validator", lambda command: Draft202012Validator({"required": ["nothing"]}))
    with pytest.raises(AssertionError, match="'nothing' is a required property"):
        run_command("config", "--json")


@pytest.mark.parametrize("command", SHAPES)
def test_schemas_are_schemas(command):
    Draft202012Validator.check_schema(output_schema(command))


def test_every_command_has_a_schema_or_another_format():
    assert SHAPES.keys() | NOT_LINES == COMMANDS.keys()
    with pytest.raises(InputError, match="metrics"):
        output_schema("metrics")


def test_a_line_with_another_field_does_not_fit():
    (line, *_) = [{"equal": 1, "steps": 1}]
    validator = Draft202012Validator(output_schema("trace"))
    assert validator.is_valid(line)
    assert not validator.is_valid({**line, "more": 1})
    assert not validator.is_valid({"equal": "1", "steps": 1})


def test_the_command_prints_the_schema():
    assert json.loads(text_of_command("schema", "audit")) == output_schema("audit")
