"""Nights over recorded logs that grow, killed with -9 at random moments: the tables are those of quiet nights."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F  # noqa: N812

from jobs import settings
from jobs.tables import session
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import FINDINGS, GROUP_OFFSETS
from tests.jobs.conftest import SAMPLE_LOGS, SMALL
from tests.jobs.filled_tables import content
from tests.shared_data import CORPUS

pytestmark = pytest.mark.long

NIGHTS = 3
CORPORA = {name: CORPUS / name / "logs" for name in ("scenarios", "misc", "upgrade")}
LOGS = {"samples": SAMPLE_LOGS, **{name: logs for name, logs in CORPORA.items() if logs.is_dir()}}
KILLS = 30
"""Over all of them, in each night of each at least one."""
COMPARED = (*(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE), *(*HISTORY.values(), FINDINGS))

NIGHT = """
import sys
from jobs import nightly_run, settings
from jobs.tables import session
from jobs.tables.delta import Tables
from tests.jobs.conftest import SMALL
from tests.jobs.null_listener import NullListener

home, dump = sys.argv[1:]
chosen = settings.load(environment={}, flags={
    "input.paths": [dump], "cluster": "c", "spark.master": "local[2]", "spark.conf": SMALL,
    "nightly.steps": ["ingest", "decode", "replay", "offsets", "findings"],
})
tables = Tables(session.get_or_create(chosen.spark), home)
print("ready", flush=True)
steps = nightly_run.run(tables, chosen, NullListener()).steps
assert all(step.error is None for step in steps), steps
"""


def run(home: Path, dump: Path, killed_after_s: float | None = None) -> float | None:
    """One run in a process group of its own; how long it took, or None if it was killed before it was through."""
    command = [sys.executable, "-c", NIGHT, str(home), str(dump)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    started = time.monotonic()
    try:
        assert process.wait(killed_after_s) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None
    return time.monotonic() - started


def grow(dump: Path, logs: Path, night: int) -> None:
    """What a night brings: of each log partition its next segments."""
    for folder in logs.iterdir():
        segments = sorted(folder.glob("*.log"))
        (dump / folder.name).mkdir(parents=True, exist_ok=True)
        for segment in segments[len(segments) * night // NIGHTS : len(segments) * (night + 1) // NIGHTS]:
            shutil.copy2(segment, dump / folder.name)


def newest_offsets(tables: Tables) -> list[tuple[Any, ...]]:
    """Of the last run: one that was killed may have had its own."""
    (last,) = tables.read(GROUP_OFFSETS).agg(F.max("run_id")).collect()
    return content(tables, GROUP_OFFSETS, "c", f"run_id = '{last[0]}'")


@pytest.mark.parametrize("logs", LOGS.values(), ids=LOGS)
def test_nights_that_are_killed(logs: Path, tmp_path: Path) -> None:
    chance, kills = random.Random(7), -(-KILLS // (NIGHTS * len(LOGS)))
    quiet, killed, dump = tmp_path / "quiet", tmp_path / "killed", tmp_path / "dump"
    cut = 0
    for night in range(NIGHTS):
        grow(dump, logs, night)
        took = run(quiet, dump)
        assert took is not None
        for _ in range(kills):
            cut += run(killed, dump, chance.uniform(0, took)) is None
        run(killed, dump)
    print(f"{cut} of {kills * NIGHTS} runs were killed before they were through")
    spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]", "spark.conf": SMALL}).spark)
    expected, found = Tables(spark, str(quiet)), Tables(spark, str(killed))
    for table in COMPARED:
        assert content(found, table, "c") == content(expected, table, "c"), table.name
    assert newest_offsets(found) == newest_offsets(expected)
    assert found.read(NIGHTLY_STEPS).where("ended = 'failed'").isEmpty()
    spark.stop()
