"""Ctrl-C ends a command with one line and exit code 130, with Spark at work or without."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.shared_data import ROOT


def interrupted(command: list[str], at: str) -> tuple[int, list[str]]:
    """Run a command, interrupt it and its children as a terminal does once it says ``at``; return code and messages."""
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs", *command],
        cwd=ROOT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    said: list[str] = []
    for line in process.stderr:
        said.append(line.strip())
        if at in line:
            os.killpg(process.pid, signal.SIGINT)
            break
    rest = process.communicate(timeout=120)[1]
    return process.returncode, [*said, *rest.splitlines()]


def test_a_night_ends_with_one_line_and_the_next_one_goes_on(tmp_path: Path) -> None:
    night = ["nightly", "data/samples/logs", "--config", "conf/small.yaml", "--tables", str(tmp_path / "tables")]
    code, said = interrupted(night, "note: completing the decoded records")
    assert code == 130
    assert said[-1] == "error: interrupted"
    assert all(line.startswith("note: ") for line in said[:-1])
    done = subprocess.run(
        [sys.executable, "-m", "jobs", *night, "--json"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert '"step": "decode", "ended": "done"' in done.stdout


def test_a_question_to_files_ends_with_one_line(tmp_path: Path) -> None:
    question = ["report", "--log", "data/samples/logs", "--out", str(tmp_path / "report.html")]
    code, said = interrupted(question, "note: reading")
    assert (code, said[-1]) == (130, "error: interrupted")
    assert len(said) == 2
    assert not (tmp_path / "report.html").exists()
