"""Nights through a Spark Connect server on the cluster: the server and its workers have no code of this project."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.broker.kafka import free_ports
from tests.cluster.conftest import DONE, NIGHT_S, Quiet
from tests.cluster.standalone import Standalone, kill_tree, wait_for
from tests.cluster.table_rows import differing
from tests.shared_data import ROOT

CHANCE = random.Random(19)
DETACHED_S = 20
"""Seconds for which the server goes on with the work of a client that is gone."""


@pytest.fixture(scope="module")
def server(cluster: Standalone) -> Iterator[str]:
    """The URL of a Spark Connect server."""
    cluster.wait_for_end()
    (port,) = free_ports(1)
    timeout = f"spark.connect.execute.manager.detachedTimeout={DETACHED_S}s"
    process = cluster.connect_server(port, "--conf", timeout)
    try:
        wait_for(lambda: _listens(port), "the Spark Connect server does not listen", cluster.place / "connect.out")
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill_tree(process.pid)
        process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def start(server: str, arguments: list[str], place: Path, lease_minutes: float = 15) -> subprocess.Popen[bytes]:
    """Start the night of a client."""
    command = [sys.executable, "-m", "jobs", "nightly", *arguments, "--tables", str(place / "tables")]
    lease = {"COORDINATOR_AUDIT_NIGHTLY__LEASE_MINUTES": str(lease_minutes)}
    with (place / "night.out").open("ab") as out:
        return subprocess.Popen(
            [*command, "--remote", server],
            cwd=ROOT,
            env=os.environ | lease,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )


def finish(process: subprocess.Popen[bytes], place: Path) -> None:
    assert process.wait(NIGHT_S) in DONE, (place / "night.out").read_text()[-5000:]


def test_executors_killed_during_a_night_through_connect(
    cluster: Standalone, server: str, quiet: Quiet, arguments: list[str], tmp_path: Path
) -> None:
    process, killed = start(server, arguments, tmp_path), 0
    for _ in range(2):
        time.sleep(CHANCE.uniform(0.1, 0.4) * quiet.seconds)
        running = cluster.executors()
        if running and process.poll() is None:
            try:
                CHANCE.choice(running).kill()
            except psutil.NoSuchProcess:
                continue
            killed += 1
    finish(process, tmp_path)
    assert killed > 0
    assert differing(quiet.tables, tmp_path / "tables") == {}


def test_a_client_killed(server: str, quiet: Quiet, arguments: list[str], tmp_path: Path) -> None:
    """The server may still write for it, so the next run waits until the lease has ended."""
    minutes = max(1.0, quiet.seconds / 120)
    process = start(server, arguments, tmp_path, minutes)
    log = tmp_path / "tables" / "log_records" / "_delta_log"
    wait_for(log.is_dir, "the night does not begin", tmp_path / "night.out", NIGHT_S)
    time.sleep(CHANCE.uniform(0, 0.3) * quiet.seconds)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    refused = start(server, arguments, tmp_path, minutes)
    assert refused.wait(NIGHT_S) == 1
    assert "its lease lasts until" in (tmp_path / "night.out").read_text()
    time.sleep(minutes * 60)
    finish(start(server, arguments, tmp_path, minutes), tmp_path)
    assert differing(quiet.tables, tmp_path / "tables") == {}
