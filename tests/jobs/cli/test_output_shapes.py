"""What commands print with --json fits the schema that ``schema`` prints for them."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from coordinator_core.errors import InputError
from jobs.cli.app import COMMANDS
from jobs.cli.schema import SHAPES, output_schema
from tests.commands import run_command, text_of_command
from tests.shared_data import ROOT

SAMPLES = str(ROOT / "data" / "samples" / "logs")
CASES = str(ROOT / "data" / "samples" / "assignor_cases.jsonl")
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
