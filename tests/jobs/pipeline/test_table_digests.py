"""Each table holds the rows that ``tests/data/table_digests.json`` has the digest of: of the samples after one run, of
them and of other logs after three nights, and then whichever engine fills the tables.

Where a change of rows is meant, ``--rewrite`` writes what this process finds: say in the commit which tables changed,
and why.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from jobs.api import CoordinatorAudit
from jobs.tables.delta import Tables
from tests.commands import run_command
from tests.digests import Digests, of_nights, of_tables
from tests.shared_data import CORPUS, ROOT

STORED = ROOT / "tests" / "data" / "table_digests.json"
SAMPLES = ROOT / "data" / "samples"
SCENARIOS = ("shop-evening", "kip-1071", "everything")
RECORDED = (
    "scenarios",
    "scenarios/compacted_keep",
    "scenarios/compacted_drop",
    "churn/full",
    "misc",
    "upgrade",
    "wild",
)

MakeLogs = Callable[[Path], Path]
"""Takes a folder for its own use, and returns the folder of logs."""


def kept(name: str) -> MakeLogs:
    return lambda _: SAMPLES / name


def simulated(scenario: str) -> MakeLogs:
    def make(folder: Path) -> Path:
        words = ["simulate", str(ROOT / "data" / "scenarios" / f"{scenario}.yaml"), "--seed", "5", "--out", str(folder)]
        result = run_command(*words)
        assert result.exit_code == 0, result.output
        return folder

    return make


def unpacked(name: str) -> MakeLogs:
    def make(folder: Path) -> Path:
        with tarfile.open(ROOT / "tests" / "data" / f"{name}.tar.xz") as archive:
            archive.extractall(folder, filter="data")
        return next(path.parent for path in sorted(folder.rglob("__consumer_offsets-*")) if path.is_dir())

    return make


def recorded(name: str) -> MakeLogs:
    return lambda _: CORPUS / name / "logs"


LOGS: dict[str, MakeLogs] = {
    "incident": kept("incident"),
    "logs": kept("logs"),
    "shop": kept("shop"),
    "share_delivery": kept("share_delivery/logs"),
    **{name: unpacked(name) for name in ("upgrade", "life", "wild")},
    **{f"scenario {name}": simulated(name) for name in SCENARIOS},
    **({f"corpus {name}": recorded(name) for name in RECORDED} if CORPUS.is_dir() else {}),
}
OF_CHECKS = "table check_results"
"""Tests of checks write to this table of the samples."""


def compared(name: str, found: Digests, *, rewrite: bool) -> None:
    """Compare the digests with those that are kept of the log, or keep them."""
    stored: dict[str, Digests] = json.loads(STORED.read_text()) if STORED.exists() else {}
    if rewrite:
        STORED.write_text(json.dumps(stored | {name: found}, indent=2, sort_keys=True) + "\n")
    elif name not in stored:
        pytest.skip("its digest is not kept: --rewrite keeps it")
    else:
        assert found == stored[name]


@pytest.mark.long
def test_one_run_of_the_samples(sample: CoordinatorAudit, pytestconfig: pytest.Config) -> None:
    found = of_tables(sample.tables.location, SAMPLES / "logs")
    kept_rows = {table: digest for table, digest in found.items() if table != OF_CHECKS}
    compared("the samples in one run", kept_rows, rewrite=pytestconfig.getoption("rewrite"))


@pytest.mark.long
@pytest.mark.parametrize("name", LOGS)
def test_three_nights_of_a_log_in_this_process(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    found = of_nights(None, tmp_path, LOGS[name](tmp_path / "logs"))
    compared(name, found, rewrite=pytestconfig.getoption("rewrite"))


@pytest.mark.long
@pytest.mark.parametrize("name", LOGS)
def test_three_nights_of_a_log_with_spark_beside_this_process(name: str, spark: SparkSession, tmp_path: Path) -> None:
    compared(name, of_nights(spark, tmp_path, LOGS[name](tmp_path / "logs")), rewrite=False)


@pytest.mark.long
@pytest.mark.parametrize("name", LOGS)
def test_three_nights_of_a_log_in_spark(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tables, "is_here", lambda tables: False)
    compared(name, of_nights(spark, tmp_path, LOGS[name](tmp_path / "logs")), rewrite=False)


@pytest.mark.long
@pytest.mark.parametrize("name", LOGS)
def test_three_nights_of_a_log_through_spark_connect(name: str, tmp_path: Path) -> None:
    logs = LOGS[name](tmp_path / "logs")
    done = subprocess.run(
        [sys.executable, "-m", "tests.digests", tmp_path, logs, "--engine", "connect", "--only-tables"],
        cwd=ROOT,
        env=os.environ | {"SPARK_TESTING": "1"},  # the server takes any free port
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    compared(name, {line["of"]: line["digest"] for line in lines}, rewrite=False)
