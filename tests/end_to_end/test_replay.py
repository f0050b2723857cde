"""Replay of the recorded logs through Spark: split at random, killed with -9 at random, the tables are the same."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jobs import settings
from jobs.pipeline import decode, ingest, replay
from jobs.settings import EngineLimits
from jobs.sources.dump import open_dump
from jobs.tables import session
from jobs.tables.delta import Tables
from tests.jobs.conftest import SMALL
from tests.jobs.split_nights import by_offset, decoded, in_nights, rows_of
from tests.shared_data import CORPUS

pytestmark = pytest.mark.long
SPLITS = {"scenarios": 20, "misc": 5, "upgrade": 5, "churn/full": 5, "churn/after_compaction": 5}
"""By corpus, into how many nights more than one; each log partition is split at offsets of its own."""
KILLS = 20
"""Over all of them."""

REPLAY = """
import sys
from jobs import settings
from jobs.pipeline import replay
from jobs.tables import session
from jobs.tables.delta import Tables
from tests.jobs.conftest import SMALL

flags = {"spark.master": "local[2]", "spark.conf": SMALL}
print(replay.run(Tables(session.get_or_create(settings.load(flags=flags).spark), sys.argv[1])))
"""


@pytest.fixture(scope="module")
def spark():
    made = session.get_or_create(settings.load(flags={"spark.master": "local[2]", "spark.conf": SMALL}).spark)
    yield made
    made.stop()


@pytest.fixture(scope="module", params=SPLITS)
def corpus(request):
    return request.param


@pytest.fixture(scope="module")
def whole(spark, corpus, tmp_path_factory):
    """A corpus, replayed in one run by Spark."""
    tables = Tables(spark, str(tmp_path_factory.mktemp("whole")))
    ingest.run(tables, open_dump(spark, [str(CORPUS / corpus / "logs")]), "corpus")
    decode.run(tables)
    tables.limits = EngineLimits(replayed_rows=-1)
    replay.run(tables)
    return tables


def test_random_splits(corpus, whole, tmp_path):
    """Every third night is replayed by Spark, the others by this process."""
    nights = [f"night {number:02}" for number in range(SPLITS[corpus] + 1)]
    nightly = in_nights(whole, tmp_path, by_offset(whole, nights, random.Random(11)))
    for number, night in enumerate(nights):
        nightly.limits = EngineLimits(replayed_rows=-1) if number % 3 == 2 else EngineLimits()
        decoded(nightly, night)
        replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)


def test_kills(whole, tmp_path):
    chance = random.Random(12)
    nights = ["night 1", "night 2"]
    nightly = in_nights(whole, tmp_path, by_offset(whole, nights, chance))
    took = 60.0
    for night in nights:
        decoded(nightly, night)
        for _ in range(KILLS // len(SPLITS) // len(nights)):
            started = time.monotonic()
            if _run(tmp_path, chance.uniform(0, took)):
                took = time.monotonic() - started
        assert _run(tmp_path, None)
    assert rows_of(nightly) == rows_of(whole)


def _run(home: Path, killed_after_s: float | None) -> bool:
    """Replay in a process of its own, which is killed with all its children unless it is through before."""
    process = subprocess.Popen([sys.executable, "-c", REPLAY, str(home)], start_new_session=True)
    try:
        return process.wait(killed_after_s) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
