"""The command ``trace`` over a short recorded trace, as it is and spoilt."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from jobs.cli.options import FAILED_GATE
from tests.commands import run_command
from tests.shared_data import ROOT

SAMPLE = ROOT / "tests" / "data" / "trace-sample.jsonl.gz"
STEPS = 23


def trace(*args: str) -> Result:
    return run_command("trace", *args)


def lines() -> list[dict[str, Any]]:
    with gzip.open(SAMPLE, "rt") as file:
        return [json.loads(line) for line in file]


def written(path: Path, content: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(line) + "\n" for line in content))
    return str(path)


def test_a_trace_that_the_model_repeats() -> None:
    result = trace(str(SAMPLE), "--json")
    assert result.exit_code == 0
    assert [json.loads(line) for line in result.stdout.splitlines()] == [{"equal": STEPS, "steps": STEPS}]


def test_every_step_is_told() -> None:
    result = trace(str(SAMPLE))
    told = result.stdout.splitlines()
    assert len(told) == STEPS + 1
    assert told[0] == "trace 1, step 0, ConsumerGroupHeartbeat: equal"
    assert told[-1] == f"{STEPS} of {STEPS} steps equal"


@pytest.mark.parametrize(
    ("part", "spoil"),
    [
        ("response", lambda step: step["response"].update(memberEpoch=7)),
        ("records", lambda step: step["records"].pop()),
        ("records", lambda step: step["records"][0]["value"].update(clientId="other")),
        ("records", lambda step: step["records"].reverse()),
        ("after", lambda step: step["after"].update(state="Empty")),
        ("error", lambda step: step.update(error={"code": "UNKNOWN_MEMBER_ID", "code_id": 25, "message": "no"})),
    ],
)
def test_a_step_that_differs_is_named_with_what_differs(tmp_path: Path, part: str, spoil: Any) -> None:
    content = lines()
    step = content[1]
    spoil(step)
    result = trace(written(tmp_path / "spoilt.jsonl", content), "--json")
    assert result.exit_code == FAILED_GATE
    *differing, summary = map(json.loads, result.stdout.splitlines())
    assert [each["step"] for each in differing] == [step["i"]]
    assert part in [each["part"] for each in differing[0]["differences"]]
    assert summary == {"equal": STEPS - 1, "steps": STEPS}


def test_bytes_that_differ_from_the_json_are_seen(tmp_path: Path) -> None:
    content = lines()
    record = content[1]["records"][0]
    record["value_hex"] = record["value_hex"].replace("636c69656e742d61", "636c69656e742d7a")
    assert trace(written(tmp_path / "spoilt.jsonl", content), "--quiet").exit_code == FAILED_GATE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"kind": "step"}\n', "header, step and end lines"),
        ("not json\n", "line 1"),
        ("[]\n", "line 1: not a JSON object"),
        ('{"kind": "header"}\n', "header"),
    ],
)
def test_input_that_is_no_trace_is_one_clear_line(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    result = trace(str(path))
    assert result.exit_code == 1
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1


# --- the profile -----------------------------------------------------------------------------------------------------

JOIN = {
    "groupId": "g",
    "memberId": "m",
    "memberEpoch": 0,
    "rebalanceTimeoutMs": 1000,
    "topology": {"epoch": 0, "subtopologies": [{"subtopologyId": "0", "sourceTopicRegex": ["in.*"]}]},
    "processId": "p",
    "activeTasks": [],
    "standbyTasks": [],
    "warmupTasks": [],
}
REFUSED = {
    "code": "INVALID_REQUEST",
    "code_id": 42,
    "message": "Regular expressions for source topics are not supported yet.",
}


def regex_trace(header: dict[str, Any]) -> list[dict[str, Any]]:
    """A thread joins whose topology has a regular expression: Kafka 4.3.1 refuses it."""
    begin = {"kind": "header", "seed": 1, "group_id": "g", "client_host": "/h", "config": {}, "group_config": {}}
    begin |= {"image_version": 0, "topics": [], "brokers": {"0": None}}
    request = {"api": "StreamsGroupHeartbeat", "version": 0, "client_id": "c", "data": JOIN}
    step = {"kind": "step", "i": 0, "op": "request", "t_ms": 5, "request": request, "records": [], "error": REFUSED}
    return [begin | header, step, {"kind": "end"}]


@pytest.mark.parametrize(
    ("header", "options", "code"),
    [
        ({}, (), 0),
        ({}, ("--profile", "kip-1071"), FAILED_GATE),
        ({"profile": "kip-1071"}, (), FAILED_GATE),
        ({"profile": "kafka-4.3.1"}, ("--profile", "kip-1071"), 0),
    ],
)
def test_the_profile_decides_what_the_model_does(
    tmp_path: Path, header: dict[str, Any], options: tuple[str, ...], code: int
) -> None:
    result = trace(written(tmp_path / "t.jsonl", regex_trace(header)), *options)
    assert result.exit_code == code, result.output


def test_a_profile_that_there_is_not(tmp_path: Path) -> None:
    result = trace(written(tmp_path / "t.jsonl", regex_trace({})), "--profile", "kip-1")
    assert result.exit_code == 2
    assert "no profile 'kip-1'" in result.stderr


@pytest.mark.parametrize("partitions", ["x", None, 1.5, -1, 200_001])
def test_a_topic_has_a_number_of_partitions(tmp_path: Path, partitions: Any) -> None:
    topic = {"name": "orders", "id": "MsNoYA7fTkC10x-UBRMOoA", "partitions": partitions, "racks": [], "replicas": []}
    result = trace(written(tmp_path / "t.jsonl", regex_trace({"topics": [topic]})))
    assert result.exit_code == 1
    assert f"{partitions!r} partitions, " in " ".join(result.stderr.split())
