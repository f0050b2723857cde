"""Spark's own standalone mode on one machine: a master and two workers of one core, from the jars of pyspark.

The workers run an interpreter with the packages of this environment and without this project: only ``--py-files``
brings its code.
"""

import json
import os
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark
import yaml

from tests.broker.kafka import free_ports
from tests.shared_data import ROOT

SPARK_HOME = Path(pyspark.__file__).parent
BIN = SPARK_HOME / "bin"
IVY = Path(sys.prefix) / "ivy"
"""Where ``make setup`` has put Delta's jars."""

DELTA = "io.delta:delta-spark_4.1_2.13:4.4.0"
WORKERS = 2
WORKER_MEMORY = "2g"
EXECUTOR_MEMORY = "1g"
START_S = 120
EXECUTOR = "CoarseGrainedExecutorBackend"
SMALL: dict[str, str] = yaml.safe_load((ROOT / "conf" / "small.yaml").read_text())["spark"]["conf"]
QUICK_JVM = SMALL["spark.driver.extraJavaOptions"]
QUICK = {**SMALL, "spark.executor.extraJavaOptions": QUICK_JVM, "spark.ui.enabled": "false"}
"""Settings for small logs: what a JVM compiles better costs more time than it saves."""


def bare_python(place: Path) -> Path:
    """Make an environment with the packages of this one, but without this project; return its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place)], check=True)
    python = place / "bin" / "python"
    where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    packages = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
    # A .pth in a folder that is itself named by one is not looked at, so an editable install stays out.
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    missing = "import deltalake, pyspark\ntry:\n    import jobs.nightly\nexcept ImportError:\n    print('without')"
    found = subprocess.run(
        [str(python), "-c", missing], check=True, capture_output=True, text=True, cwd=place, env=environment(python)
    )
    assert found.stdout == "without\n", "the workers must not have this project"
    return python


def code_zip(place: Path) -> Path:
    """Build the wheel as the README says; return it as a zip file for ``--py-files``."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(place), str(ROOT)]
    subprocess.run(command, check=True)
    (wheel,) = place.glob("*.whl")
    return wheel.rename(place / "coordinator_audit.zip")


def environment(python: Path) -> dict[str, str]:
    """Return the variables of this process without what names this project, with this interpreter for Spark."""
    kept = {name: text for name, text in os.environ.items() if name not in ("PYTHONPATH", "PYSPARK_SUBMIT_ARGS")}
    return kept | {
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JVM,
        "SPARK_NO_DAEMONIZE": "1",
    }


class Standalone:
    """A master and its workers, each a process group of its own, with their output in ``place``."""

    def __init__(self, place: Path, conf: dict[str, str]) -> None:
        self.place = place
        self._conf = {"spark.jars.ivy": str(IVY), "spark.executor.memory": EXECUTOR_MEMORY} | conf
        self.python = bare_python(place / "python")
        self.code = code_zip(place)
        self.environment = environment(self.python)
        self._port, self._page = free_ports(2)
        self.url = f"spark://127.0.0.1:{self._port}"
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._submitted: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the master and all workers."""
        ports = ["--port", str(self._port), "--webui-port", str(self._page)]
        self._master = self._daemon("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", *ports)
        wait_for(self._answers, "the master does not answer", self.place / "master.out")
        for number in range(WORKERS):
            self.start_worker(number)
        self.wait_for_workers()

    def stop(self) -> None:
        """Kill all processes."""
        for process in (*self._submitted, *self._workers.values(), self._master):
            if process is not None and process.poll() is None:
                kill_tree(process.pid)
                process.wait()
        self._workers.clear()

    def start_worker(self, number: int) -> None:
        """Start one worker of one core."""
        limits = ["--cores", "1", "--memory", WORKER_MEMORY, "--work-dir", str(self.place / f"work-{number}")]
        address = ["--host", "127.0.0.1", "--webui-port", "0"]
        worker = "org.apache.spark.deploy.worker.Worker"
        self._workers[number] = self._daemon(f"worker-{number}", worker, *address, *limits, self.url)

    def kill_worker(self, number: int) -> None:
        """Kill one worker and its executors with -9."""
        process = self._workers.pop(number)
        kill_tree(process.pid)
        process.wait()

    def wait_for_workers(self) -> None:
        """Wait until all workers have registered with the master."""
        out = self.place / "master.out"
        wait_for(lambda: self._state()["aliveworkers"] >= WORKERS, "a worker does not register", out)

    def wait_for_end(self) -> None:
        """Wait until no application runs: the executors of a killed driver end by themselves."""
        wait_for(lambda: not self._state()["activeapps"], "an application does not end", self.place / "master.out")

    def executors(self) -> list[psutil.Process]:
        """Return the processes of executors that are running now."""
        found = []
        for worker in self._workers.values():
            for process in children(worker.pid):
                try:
                    if any(EXECUTOR in part for part in process.cmdline()):
                        found.append(process)
                except psutil.Error:
                    continue
        return found

    def submit(self, *arguments: str | Path, out: Path) -> subprocess.Popen[bytes]:
        """Start ``spark-submit jobs/nightly.py ARGUMENTS`` as the README has it, in a process group of its own."""
        flags = [text for name, value in self._conf.items() for text in ("--conf", f"{name}={value}")]
        command = [BIN / "spark-submit", "--master", self.url, "--packages", DELTA, *flags, "--py-files", self.code]
        self._submitted.append(self._start([*command, ROOT / "jobs" / "nightly.py", *arguments], out))
        return self._submitted[-1]

    def connect_server(self, port: int, *flags: str) -> subprocess.Popen[bytes]:
        """Start a Spark Connect server on this cluster."""
        conf = self._conf | {
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        }
        texts = [text for name, value in conf.items() for text in ("--conf", f"{name}={value}")]
        command = [BIN / "spark-submit", "--master", self.url, "--packages", DELTA, *texts, *flags]
        server = "org.apache.spark.sql.connect.service.SparkConnectServer"
        return self._start([*command, "--class", server], self.place / "connect.out", SPARK_DAEMON_MEMORY="1g")

    def _state(self) -> dict[str, Any]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._page}/json/", timeout=5) as page:
                state: dict[str, Any] = json.load(page)
                return state
        except OSError:
            return {"aliveworkers": 0, "activeapps": [None]}

    def _answers(self) -> bool:
        return self._state()["activeapps"] == []

    def _daemon(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        return self._start([BIN / "spark-class", *command], self.place / f"{name}.out")

    def _start(self, command: list[str | Path], out: Path, **variables: str) -> subprocess.Popen[bytes]:
        with out.open("ab") as stream:
            return subprocess.Popen(
                [*map(str, command)],
                cwd=self.place,
                env=self.environment | variables,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )


@contextmanager
def standalone(place: Path, conf: dict[str, str]) -> Iterator[Standalone]:
    """Start a cluster whose applications have these settings; yield it; kill its processes."""
    cluster = Standalone(place, conf)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def wait_for(condition: Callable[[], bool], problem: str, out: Path, seconds: float = START_S) -> None:
    """Wait until a condition holds; fail with the end of an output file if it takes too long."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{problem}: {out.read_text()[-3000:]}")
        time.sleep(0.5)


def children(process: int) -> list[psutil.Process]:
    """Return the processes below one."""
    try:
        return psutil.Process(process).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_tree(process: int) -> None:
    """Kill a process and all below it with -9; executors have process groups of their own."""
    for each in [*children(process), process]:
        number = each.pid if isinstance(each, psutil.Process) else each
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue
