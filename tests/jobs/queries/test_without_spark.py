"""Answers from log files need no Spark: it is not imported, and the commands run where it is not installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    "command",
    [
        ["groups"],
        ["describe", "--all"],
        ["history", "A-coop-a2d7"],
        ["rebalances", "--slowest", "1"],
        ["audit"],
        ["findings"],
        ["explain", "A-coop-a2d7"],
        ["report", "--out", "{out}"],
    ],
    ids=lambda command: command[0],
)
def test_a_command_on_log_files_imports_no_spark(command: list[str], tmp_path: Path) -> None:
    arguments = [part.format(out=tmp_path / "report.html") for part in command]
    script = [sys.executable, "-c", RUN, "\n".join([*arguments, "--json", "--log", str(SAMPLE_LOGS)])]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *lines, imported = done.stdout.splitlines()
    assert imported.strip() == "[]"
    answers = [json.loads(line) for line in lines if line.strip()]
    assert answers
