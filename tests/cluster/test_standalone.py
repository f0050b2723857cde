"""The README's ``spark-submit`` line on a cluster that loses executors, the driver and a worker."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from tests.cluster.conftest import DONE, NIGHT_S, Quiet
from tests.cluster.standalone import WORKERS, Standalone
from tests.cluster.table_rows import differing

CHANCE = random.Random(19)
STARTED = 0.15
"""Share of a night that passes before Spark has started."""


class Night:
    """A night on the cluster, with its output."""

    def __init__(self, cluster: Standalone, arguments: list[str], place: Path) -> None:
        self.tables, self.out = place / "tables", place / "night.out"
        self._arguments = (*arguments, "--tables", self.tables)
        self._cluster = cluster

    def start(self) -> subprocess.Popen[bytes]:
        return self._cluster.submit(*self._arguments, out=self.out)

    def finish(self, process: subprocess.Popen[bytes]) -> None:
        assert process.wait(NIGHT_S) in DONE, self.out.read_text()[-5000:]


@pytest.fixture
def night(cluster: Standalone, arguments: list[str], tmp_path: Path) -> Night:
    return Night(cluster, arguments, tmp_path)


def moments(count: int, seconds: float) -> list[float]:
    """Return random times within a night, after the start of Spark, in order."""
    return sorted(CHANCE.uniform(STARTED, 0.95) * seconds for _ in range(count))


def test_executors_killed_at_random(cluster: Standalone, quiet: Quiet, night: Night) -> None:
    began, killed, process = time.monotonic(), 0, night.start()
    for moment in moments(3, quiet.seconds):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        running = cluster.executors()
        if running and process.poll() is None:
            try:
                CHANCE.choice(running).kill()
            except psutil.NoSuchProcess:
                continue
            killed += 1
    night.finish(process)
    assert killed > 0
    assert differing(quiet.tables, night.tables) == {}


def test_the_driver_killed(cluster: Standalone, quiet: Quiet, night: Night) -> None:
    killed = 0
    for moment in moments(2, quiet.seconds):
        process = night.start()
        try:
            process.wait(moment)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            killed += 1
        cluster.wait_for_end()
    night.finish(night.start())
    assert killed > 0
    assert differing(quiet.tables, night.tables) == {}


def test_a_worker_lost_and_back(cluster: Standalone, quiet: Quiet, night: Night) -> None:
    began, lost, process = time.monotonic(), 0, night.start()
    for number, moment in enumerate(moments(WORKERS, quiet.seconds)):
        time.sleep(max(0.0, began + moment - time.monotonic()))
        lost += process.poll() is None
        cluster.kill_worker(number)
        time.sleep(CHANCE.uniform(0, 10))
        cluster.start_worker(number)
        cluster.wait_for_workers()
    night.finish(process)
    assert lost > 0
    assert differing(quiet.tables, night.tables) == {}
