"""The commands ``assign`` and ``compare``."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import run_command, text_of_command
from tests.shared_data import ROOT

VECTORS = ROOT / "tests" / "data" / "vectors"


def lines_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def expected_of(case: dict) -> dict:
    steps = [{key: value for key, value in step.items() if key != "presented"} for step in case["expected"]["steps"]]
    return {"id": case["id"], "expected": {"steps": steps}}


def test_assign_prints_one_result_a_line():
    file = VECTORS / "range.jsonl"
    assert [json.loads(line) for line in text_of_command("assign", file).splitlines()] == [
        expected_of(case) for case in lines_of(file)
    ]


def test_assign_reads_standard_input_and_shows_what_was_presented():
    file = VECTORS / "streams-sticky.jsonl"
    result = run_command("assign", "--presented", input=file.read_text(encoding="utf-8"))
    assert [json.loads(line) for line in result.stdout.splitlines()] == [
        {"id": case["id"], "expected": case["expected"]} for case in lines_of(file)
    ]


def test_assign_reads_gzip(tmp_path):
    packed = tmp_path / "cases.jsonl.gz"
    packed.write_bytes(gzip.compress((VECTORS / "range.jsonl").read_bytes()))
    assert len(run_command("assign", packed).stdout.splitlines()) == len(lines_of(VECTORS / "range.jsonl"))


def test_the_java_version_changes_orders():
    case = {
        "id": "x",
        "assignor": "hash-order",
        "input": {"table": "hashset_copy", "key": "int", "copy_of": [16, *range(11)], "ops": []},
    }
    orders = []
    for jdk in ("17", "21"):
        result = run_command("assign", "--jdk", jdk, input=json.dumps(case))
        orders.append(json.loads(result.stdout)["expected"]["orders"][0])
    assert orders[0] == [*range(11), 16]
    assert orders[1] == [16, *range(11)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"id": 1, "assignor": "unheard-of", "input": {}}, "no assignor 'unheard-of' to run a case"),
        ({"id": 2, "assignor": "uniform", "input": {}}, "case 2 is no uniform case: KeyError 'steps'"),
        ({"id": 3, "assignor": "range", "input": {"steps": [{"op": "dance"}]}}, "no step 'dance'"),
    ],
)
def test_a_bad_case_is_reported_and_the_others_run(line, said):
    good = (VECTORS / "range.jsonl").read_text(encoding="utf-8").splitlines()[0]
    result = run_command("assign", input=f"{json.dumps(line)}\n{good}\n")
    assert result.exit_code == 1
    assert said in result.stderr
    assert len(result.stdout.splitlines()) == 1


def test_a_line_that_is_no_json_is_named():
    result = run_command("assign", input="\n{")
    assert result.exit_code == 1
    assert "standard input, line 2" in result.stderr


def test_an_unknown_profile_is_an_error():
    result = run_command("assign", "--profile", "kafka-1.0", input="")
    assert result.exit_code == 2
    assert "no profile 'kafka-1.0'" in result.stderr


def test_compare_prints_figures_side_by_side():
    result = run_command("compare", "--quiet", VECTORS / "uniform.jsonl")
    lines = result.stdout.splitlines()
    assert result.exit_code == 0
    assert lines[1].split()[:3] == ["assignor", "round", "members"]
    assert [line.split()[:2] for line in lines[2:4]] == [["uniform", "all"], ["range", "all"]]


def test_compare_as_json_with_one_assignor():
    result = run_command("compare", "--json", "-a", "range", VECTORS / "uniform.jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["assignor"] for row in rows} == {"range"}
    assert {"imbalance", "moved", "rack_misses"} <= rows[0].keys()


def test_neither_needs_spark():
    script = "import sys; sys.modules['pyspark'] = None; import jobs.cli.assign"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
