"""Answers from log files and from folders of tables need no Spark: the commands do not import it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.api import CoordinatorAudit
from tests.jobs.conftest import SAMPLE_LOGS

ROOT = Path(__file__).resolve().parents[3]

RUN = """
import json, sys
from typer.testing import CliRunner
from jobs.cli.app import app

for arguments in json.loads(sys.argv[1]):
    done = CliRunner().invoke(app, arguments)
    imported = [name for name in ("pyspark", "py4j", "delta") if name in sys.modules]
    print(json.dumps([done.exit_code, done.stdout, done.stderr, imported]))
"""


OF_BOTH = [
    ["groups"],
    ["describe", "--all"],
    ["offsets", "A-coop-a2d7"],
    ["owners", "a-coop-x8"],
    ["owners", "a-coop-x8", "--history"],
    ["history", "A-coop-a2d7"],
    ["rebalances", "--slowest", "1"],
    ["audit"],
    ["findings"],
    ["explain", "A-coop-a2d7"],
    ["whatif", "A-coop-a2d7", "--assignor", "range"],
]


REPORT = ["report", "--out", "OUT"]

Answers = dict[str, list[dict[str, object]]]


def answers(*where: str, out: Path) -> Answers:
    """What each command prints, all in one process of their own, into which none of them imports Spark."""
    commands = [*OF_BOTH, REPORT]
    asked = [[str(out) if word == "OUT" else word for word in command] + ["--json", *where] for command in commands]
    script = [sys.executable, "-c", RUN, json.dumps(asked)]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {}
    for command, line in zip(commands, done.stdout.splitlines(), strict=True):
        exit_code, printed, errors, imported = json.loads(line)
        assert (exit_code, imported) == (0, []), (command, errors)
        found[" ".join(command)] = [json.loads(row) for row in printed.splitlines() if row.strip()]
    return found


@pytest.fixture(scope="module")
def of_files(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return answers("--log", str(SAMPLE_LOGS), out=tmp_path_factory.mktemp("files") / "report.html")


def test_commands_on_log_files_import_no_spark(of_files: Answers) -> None:
    assert all(of_files.values())


def test_commands_on_a_folder_of_tables_import_no_spark_and_answer_the_same(
    of_files: Answers, sample: CoordinatorAudit, tmp_path: Path
) -> None:
    of_tables = answers("--tables", sample.tables.location, out=tmp_path / "report.html")
    assert of_tables.pop(" ".join(REPORT))
    assert of_tables == {command: rows for command, rows in of_files.items() if command != " ".join(REPORT)}
