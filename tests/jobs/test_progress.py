"""What a night shows while it runs: on a terminal, in a structured log, and nothing on a pipe."""

import io
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from jobs.cli import console as console_module
from jobs.cli.console import Console, LogFormat
from jobs.cli.step_line import clock, description, times_text
from jobs.pipeline.nights import StepTimes, last_night
from jobs.tables.delta import Tables
from jobs.tables.log import RUNS
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.table import few

KNOWN = {"step": "decode", "number": 2, "steps": 9, "records": 501_430, "seconds_left": 75.0}


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


def test_the_line_of_a_terminal() -> None:
    assert description("decoding", KNOWN) == "step 2 of 9: decoding, 501,430 records"
    assert description("starting Spark", {}) == "starting Spark"
    assert times_text(3.2, None) == "0:03"
    assert times_text(15, 75.0) == "0:15, about 1:00 left"
    assert times_text(80, 75.0) == "1:20, longer than the last night"
    assert clock(3_671) == "1:01:11"


def test_a_terminal_shows_the_step_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    with Console().step("decoding", **KNOWN):
        time.sleep(0.3)
    assert "step 2 of 9: decoding, 501,430 records" in shown.getvalue()
    assert "about 1:1" in shown.getvalue()


def test_a_pipe_has_one_line_for_a_step(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_module, "EVERY_S", 0.01)
    assert not Console().shows_progress
    with Console().step("decoding", **KNOWN):
        time.sleep(0.05)
    with Console(quiet=True, log_format=LogFormat.JSON).step("decoding", **KNOWN):
        time.sleep(0.05)
    assert capsys.readouterr().err == "note: decoding\n"


def test_a_structured_log_has_the_progress(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_module, "EVERY_S", 0.05)
    with Console(log_format=LogFormat.JSON).step("decoding", **KNOWN):
        time.sleep(0.2)
    first, *others = map(json.loads, capsys.readouterr().err.splitlines())
    assert {name: first[name] for name in KNOWN} == KNOWN
    assert others
    assert all(line["message"] == "still decoding" and line["step"] == "decode" for line in others)
    assert 0 < others[-1]["seconds"] < 60
    assert others[-1]["seconds_left"] == pytest.approx(75 - others[-1]["seconds"], abs=0.01)


def test_the_time_that_is_left() -> None:
    times = StepTimes({"ingest": 10.0, "decode": 20.0, "checks": 0.5}, records=100)
    assert times.left(["ingest", "decode"]) == 30.0
    assert times.left(["decode"], records=300) == 60.0
    assert times.left(["decode"], records=1) == 20.0
    assert times.left(["decode", "report"]) is None
    assert StepTimes().left(["ingest"]) is None


def test_the_last_night_that_took_records_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tables, "is_here", lambda self: True)
    tables = Tables(cast(SparkSession, None), str(tmp_path))
    assert last_night(tables.engine()) == StepTimes()
    for table in (NIGHTLY_STEPS, RUNS):
        tables.create(table)
    assert last_night(tables.engine()) == StepTimes()
    steps = [
        ("1", 1, "ingest", "done", 50.0),
        ("2", 1, "ingest", "done", 4.0),
        ("2", 2, "decode", "done", 6.0),
        ("2", 3, "checks", "skipped", 0.1),
        ("2", 4, "report", "failed", 9.0),
        ("3", 1, "ingest", "failed", 1.0),
    ]
    names = ("night", "number", "step", "ended", "seconds")
    now = datetime.now(UTC)
    rows = [dict(zip(names, row, strict=True)) | {"started_at": now, "counts": []} for row in steps]
    tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, rows), "1")
    ledger = [("1", "ingest", 500), ("2", "ingest", 40), ("2", "ingest", 2), ("2", "decode", 42)]
    tables.append(RUNS, few(RUNS, [dict(zip(("run_id", "job", "records"), row, strict=True)) for row in ledger]), "1")
    assert last_night(tables.engine()) == StepTimes({"ingest": 4.0, "decode": 6.0, "checks": 0.1}, 42)
