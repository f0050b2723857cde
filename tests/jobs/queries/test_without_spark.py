"""Answers from log files and from folders of tables need no Spark: the commands do not import it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jobs.api import CoordinatorAudit
from tests.jobs.conftest import SAMPLE_LOGS

ROOT = Path(__file__).resolve().parents[3]

RUN = """
import sys
from jobs.cli.app import app

arguments, forbidden = sys.argv[1].split("\\n"), ("pyspark", "py4j", "delta")
try:
    app(arguments)
except SystemExit as end:
    assert not end.code, end.code
print("\\n", [name for name in forbidden if name in sys.modules])
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


def answered(*arguments: str) -> list[dict[str, object]]:
    """What a command prints in a process of its own, which imports no Spark."""
    script = [sys.executable, "-c", RUN, "\n".join([*arguments, "--json"])]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, imported = done.stdout.splitlines()
    assert imported.strip() == "[]"
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.parametrize("command", [*OF_BOTH, ["report", "--out", "{out}"]], ids=lambda command: command[0])
def test_a_command_on_log_files_imports_no_spark(command: list[str], tmp_path: Path) -> None:
    arguments = [part.format(out=tmp_path / "report.html") for part in command]
    assert answered(*arguments, "--log", str(SAMPLE_LOGS))


@pytest.mark.parametrize("command", OF_BOTH, ids=lambda command: command[0])
def test_a_command_on_a_folder_of_tables_imports_no_spark(command: list[str], sample: CoordinatorAudit) -> None:
    found = answered(*command, "--store", sample.tables.location)
    assert found == answered(*command, "--log", str(SAMPLE_LOGS)) != []


def test_the_report_on_a_folder_of_tables_imports_no_spark(sample: CoordinatorAudit, tmp_path: Path) -> None:
    assert answered("report", "--out", str(tmp_path / "report.html"), "--store", sample.tables.location)
