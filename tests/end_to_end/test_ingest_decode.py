"""Ingest and decode in processes of their own: killed with -9 at random, or given dumps that overlap in any order."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import settings
from jobs.pipeline import runs
from jobs.tables import session
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from tests.jobs import filled_tables
from tests.jobs.conftest import SAMPLE_LOGS, SMALL

pytestmark = pytest.mark.long

KILLS, STEPS = 8, 10
SEGMENTS = [str(folder) for folder in sorted(SAMPLE_LOGS.glob(f"{filled_tables.TOPIC}-*"))]

RUN = """
import sys
from jobs import settings
from jobs.tables import session
from jobs.tables.delta import Tables
from tests.jobs.conftest import SMALL
from tests.jobs.filled_tables import take

spark = session.get_or_create(settings.load(flags={"spark.master": "local[2]", "spark.conf": SMALL}).spark)
take(Tables(spark, sys.argv[1]), "c", *sys.argv[2:])
"""

Content = list[list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    made = session.get_or_create(settings.load(flags={"spark.master": "local[2]", "spark.conf": SMALL}).spark)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Dumps by a consumer: stretches of the log that overlap, two partitions in each."""
    folder, chance = tmp_path_factory.mktemp("pieces"), random.Random(5)
    rows = filled_tables.kafka_rows(filled_tables.sample_rows())
    found = []
    for number in range(STEPS - 2):
        low = chance.randrange(len(rows) - 200)
        found.append(str(filled_tables.write_json(folder / f"{number}.jsonl.gz", rows[low : low + 300])))
    return found


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Content:
    """What one run over the segments gives."""
    tables = Tables(spark, str(tmp_path_factory.mktemp("whole")))
    filled_tables.take(tables, "c", *SEGMENTS)
    return content(tables)


def content(tables: Tables) -> Content:
    """All that the tables say, but for which run said it."""
    return [
        filled_tables.content(tables, table, "c") for table in (LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, QUARANTINE)
    ]


def test_dumps_that_overlap_in_any_order(
    spark: SparkSession, whole: Content, pieces: list[str], tmp_path: Path
) -> None:
    """The segments come twice among them, and show what the consumers could not see."""
    steps = [[piece] for piece in pieces] + [SEGMENTS] * 2
    random.Random(6).shuffle(steps)
    tables = Tables(spark, str(tmp_path))
    for paths in steps:
        filled_tables.take(tables, "c", *paths)
    assert content(tables) == whole


def test_kills(spark: SparkSession, whole: Content, pieces: list[str], tmp_path: Path) -> None:
    """A dump by a consumer is there already, so that runs die in merges as well as in appends."""
    chance, took = random.Random(7), 90.0
    assert run(tmp_path, None, pieces[0])
    for _ in range(KILLS):
        started = time.monotonic()
        if run(tmp_path, chance.uniform(0.2, 1.1) * took, *SEGMENTS):
            took = time.monotonic() - started
    assert run(tmp_path, None, *SEGMENTS)
    tables = Tables(spark, str(tmp_path))
    assert content(tables) == whole
    assert runs.unaccounted(tables) == runs.undecoded(tables) == []


def run(home: Path, killed_after_s: float | None, *paths: str) -> bool:
    """Ingest and decode; killed with all child processes unless they are through before."""
    process = subprocess.Popen([sys.executable, "-c", RUN, str(home), *paths], start_new_session=True)
    try:
        return process.wait(killed_after_s) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
