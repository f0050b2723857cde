"""Commands in forked processes, which share the JVM of this one and may end by SIGKILL.

This process never opens a table: the threads of delta-rs and DataFusion do not outlive a fork.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import great_expectations  # noqa: F401  # imported once, not by each process
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from jobs.cli.app import app
from jobs.tables import lease

T = TypeVar("T")

LONGEST_S: Final = 1_200
"""Seconds after which a process is taken for one that hangs."""

CHANGES: Final = frozenset({"os.rename", "os.mkdir", "os.remove", "os.rmdir"})
"""Events of Python's audit hooks that change files; also ``open`` with a mode that writes."""


class HangingError(Exception):
    """A process did not end in time."""


class Ended(NamedTuple):
    """How a command ended. ``code``: None if it was killed. ``points``: the moments at which it might have been."""

    code: int | None
    out: str
    err: str
    points: int

    @property
    def was_killed(self) -> bool:
        return self.code is None


def forked(spark: SparkSession, function: Callable[[], T]) -> T | None:
    """Return what a function returns in a forked process; None: the process was killed.

    Raises:
        HangingError: the process did not end in time.
        RuntimeError: the function failed; the message is its traceback.
    """
    reader, writer = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(reader)
        _serve(spark, function, writer)
    os.close(writer)
    try:
        said = _read(reader, process)
    finally:
        os.close(reader)
        _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    value, problem = pickle.loads(said) if said else (None, f"a process ended with status {status}")
    if problem is not None:
        raise RuntimeError(problem)
    return value  # type: ignore[no-any-return]


def _read(reader: int, process: int) -> bytes:
    parts = []
    while True:
        if not select.select([reader], [], [], LONGEST_S)[0]:
            os.kill(process, signal.SIGKILL)
            raise HangingError(f"no end after {LONGEST_S} s")
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)


def _serve(spark: SparkSession, function: Callable[[], Any], writer: int) -> None:
    """The life of the forked process: it leaves without what a process does at its end, which the parent will do."""
    answer: tuple[Any, str | None]
    gc.disable()  # what the parent holds of the JVM must not be given back
    try:
        own_connection(spark)
        answer = function(), None
    except BaseException:
        answer = None, traceback.format_exc()
    with os.fdopen(writer, "wb") as pipe:
        pickle.dump(answer, pipe)
    os._exit(0)


_KEPT: Final[list[Any]] = []


def own_connection(spark: SparkSession) -> None:
    """Let this forked process talk to the JVM by connections of its own, not by those of its parent."""
    client = spark._sc._gateway._gateway_client  # type: ignore[attr-defined]  # in Python only
    _KEPT.extend((client.deque, client.thread_connection))  # or else the parent's connections would be closed
    client.deque = type(client.deque)()
    client.thread_connection = threading.local()
    spark._jvm.SparkSession.setActiveSession(spark._jsparkSession)  # type: ignore[union-attr]


def run(spark: SparkSession, home: Path, arguments: tuple[str, ...], kill_at: int | None = None) -> Ended:
    """Run a command in a process of its own, which kills itself at one of its points: the first one has number 0.

    A point is the moment before a commit, before a lease is given back, and before Python changes a file below
    ``home``.
    """

    def invoke() -> Ended:
        points = _Points(home, kill_at)
        points.watch()
        done = CliRunner().invoke(app, list(arguments))
        err = done.stderr
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            err += "".join(traceback.format_exception(done.exception))
        return Ended(done.exit_code, done.stdout, err, points.passed)

    return forked(spark, invoke) or Ended(None, "", "", 0)


class _Points:
    """Counts the points of a command, and kills the process at one of them."""

    def __init__(self, home: Path, kill_at: int | None) -> None:
        self._home = f"{home}{os.sep}"
        self._kill_at = kill_at
        self.passed = 0

    def _passes(self) -> None:
        if self.passed == self._kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.passed += 1

    def watch(self) -> None:
        """Begin to count, for the rest of the life of this process."""
        check, release = lease.Lease.check, lease.Lease.release

        def checked(held: lease.Lease, *, ask: bool = False) -> None:
            self._passes()
            check(held, ask=ask)

        def released(held: lease.Lease) -> None:
            self._passes()
            release(held)

        lease.Lease.check = checked  # type: ignore[method-assign]
        lease.Lease.release = released  # type: ignore[method-assign]
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in CHANGES or (event == "open" and _writes(arguments)):
            place = arguments[0]
            if isinstance(place, str | os.PathLike) and str(place).startswith(self._home):
                self._passes()


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1]
    return isinstance(mode, str) and any(letter in mode for letter in "wax+")
