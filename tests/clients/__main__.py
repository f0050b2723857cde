"""``python -m tests.clients [NAME ...]``: a night and questions by each client of the matrix, on a catalog.

Each client gets an environment of its own, and a Spark Connect server whose Python workers are of the same Python: the
jars are those of this environment. The tables are a schema of the server's catalog. What the questions print must be
what they print here about the log files themselves. A Python that this machine does not have is said, and is a failure
only if all of them are missing.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyspark

from jobs import settings
from jobs.tables import session
from tests.broker.kafka import free_ports
from tests.clients.matrix import CLIENTS, Client
from tests.cluster.standalone import QUICK, kill_tree
from tests.commands import text_of_command
from tests.shared_data import ROOT

UV: Final = Path(sys.prefix) / "bin" / "uv"
LOG: Final = ROOT / "data" / "samples" / "logs" / "__consumer_offsets-0"
TABLES: Final = "spark_catalog.audit"
START_S: Final = 180
LIFE_S: Final = 1800

QUESTIONS: Final = (
    ("groups",),
    ("findings",),
    ("rebalances",),
    ("owners", "a-coop-x8"),
    ("explain", "A-coop-a2d7"),
    ("offsets", "A-coop-a2d7"),
)
"""Commands that answer from log files and from tables alike."""


def environment(client: Client, place: Path) -> Path | None:
    """Make the environment of a client; return its interpreter, None if this machine does not have that Python."""
    made = subprocess.run(
        [UV, "venv", "--quiet", "--no-python-downloads", "--python", client.python, place], capture_output=True
    )
    if made.returncode != 0:
        return None
    python = place / "bin" / "python"
    install = [UV, "pip", "install", "--quiet", "--python", python]
    wanted = [client.spark, "pandas>=2.2,<3", "grpcio>=1.67", "grpcio-status>=1.67", "zstandard>=0.23"]
    wanted += ["googleapis-common-protos>=1.65", *client.pins]
    # The project's own dependencies are direct ones this way, of which the lowest are taken.
    subprocess.run([*install, "--resolution", client.resolution, "-r", ROOT / "pyproject.toml", *wanted], check=True)
    subprocess.run([*install, "--no-deps", ROOT], check=True)
    return python


@contextmanager
def server(python: Path, place: Path) -> Iterator[str]:
    """Run a Spark Connect server with a catalog, whose workers have this interpreter; yield its URL."""
    (port,) = free_ports(1)
    conf = {
        # VACUUM plans 10,000 tasks for each table in a server that does not have the settings of this project.
        **settings.load(environment={}).spark.conf,
        **{name: value for name, value in QUICK.items() if not name.startswith("spark.executor")},
        **session.DELTA_CONF,
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        "spark.sql.ansi.enabled": "true",
    }
    jars = ",".join(str(jar) for jar in sorted((Path(sys.prefix) / "ivy" / "jars").glob("io.delta_*.jar")))
    home = Path(pyspark.__file__).parent
    texts = [text for name, value in conf.items() for text in ("--conf", f"{name}={value}")]
    command = [home / "bin" / "spark-submit", "--master", "local[2]", "--jars", jars, *texts]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    given = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    given |= {"PYSPARK_PYTHON": str(python), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (place / "server.out").open("ab") as out:
        process = subprocess.Popen(command, cwd=place, env=given, stdout=out, stderr=out)
    try:
        end = time.monotonic() + START_S
        while not _listens(port):
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server does not listen: {(place / 'server.out').read_text()[-3000:]}")
            time.sleep(0.5)
        yield f"sc://127.0.0.1:{port}"
    finally:
        kill_tree(process.pid)
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        tried.settimeout(1)
        return tried.connect_ex(("127.0.0.1", port)) == 0


def expected() -> list[str]:
    """Return what each question prints about the log files, by this environment."""
    return [text_of_command(*question, "--log", LOG, "--json") for question in QUESTIONS]


def problem_of(client: Client, place: Path, wanted: list[str]) -> str | None:
    """Return what is wrong with a client's answers; None: nothing. Raise LookupError if its Python is not here."""
    python = environment(client, place / "environment")
    if python is None:
        raise LookupError(f"Python {client.python} is not on this machine")
    if client.refused:
        done = live(python, place, "sc://127.0.0.1:1")
        return None if client.refused in done.stderr else f"it is not refused: {done.stderr[-2000:]}"
    with server(python, place) as remote:
        try:
            done = live(python, place, remote)
        except subprocess.TimeoutExpired as cut:
            return f"no end after {LIFE_S} s:\n{(cut.stderr or b'').decode()[-4000:]}"
    if done.returncode != 0:
        return (done.stderr or done.stdout)[-4000:]
    versions, *printed = done.stdout.split("\0")
    print(f"{client.name}: {versions.strip()}", flush=True)
    for question, one, other in zip(QUESTIONS, wanted, printed, strict=True):
        if sorted(one.splitlines()) != sorted(other.splitlines()):
            return f"{' '.join(question)} differs:\n{other[:2000]}\ninstead of\n{one[:2000]}"
    return None


def live(python: Path, place: Path, remote: str) -> subprocess.CompletedProcess[str]:
    """Let a client live its life."""
    given = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "SPARK_HOME")}
    given["LIFE_S"] = str(LIFE_S)
    questions = [",".join(question) for question in QUESTIONS]
    return subprocess.run(
        [python, ROOT / "tests" / "clients" / "life.py", remote, TABLES, LOG, *questions],
        cwd=place,
        env=given,
        capture_output=True,
        text=True,
        timeout=LIFE_S,
        check=False,
    )


def main(names: list[str]) -> int:
    """Run the clients, or those that are named. Return the exit code."""
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        print(f"no client {', '.join(sorted(unknown))}: {', '.join(client.name for client in CLIENTS)}")
        return 2
    wanted, ran, failed = expected(), 0, 0
    for client in CLIENTS:
        if names and client.name not in names:
            continue
        with tempfile.TemporaryDirectory(prefix="client-") as place:
            try:
                problem = problem_of(client, Path(place), wanted)
            except LookupError as missing:
                print(f"{client.name}: not run: {missing}", flush=True)
                continue
        ran += 1
        failed += problem is not None
        print(f"{client.name}: {'ok' if problem is None else problem}", flush=True)
    print(f"{ran - failed} passed, {failed} failed")
    return int(failed > 0 or ran == 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
