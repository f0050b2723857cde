"""Commands in forked processes, which share the JVM of this one and may end by SIGKILL, or stand still for a while.

This process never opens a table: the threads of delta-rs and DataFusion do not outlive a fork.
"""

import gc
import os
import pickle
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from pyspark.sql import SparkSession

from jobs.tables import lease
from jobs.tables.delta import Tables
from tests.commands import run_command

T = TypeVar("T")

LONGEST_S: Final = 1_200
"""Seconds after which a process is taken for one that hangs."""

POLL_S: Final = 0.2
"""How often it is looked whether a process has stopped itself."""

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


class Fate(NamedTuple):
    """What becomes of a process at one of its points, of which the first has number 0.

    ``meanwhile``: it is stopped there, and goes on after this function has returned; None: it is killed. ``by_spark``:
    only Spark opens the tables, as it is in a catalog.
    """

    at: int | None = None
    meanwhile: Callable[[], None] | None = None
    by_spark: bool = False


UNDISTURBED: Final = Fate()


def _nothing() -> None:
    """Do nothing."""


def forked(spark: SparkSession, function: Callable[[], T], stopped: Callable[[], None] = _nothing) -> T | None:
    """Return what a function returns in a forked process; None: the process was killed.

    ``stopped`` is called when the process stops itself, which goes on after it.

    Raises:
        HangingError: the process did not end in time.
        RuntimeError: the function failed; the message is its traceback.
    """
    import great_expectations  # noqa: F401  # here once, not by each process; not where tests are only collected

    reader, writer = os.pipe()
    sys.stdout.flush()
    process = os.fork()
    if process == 0:
        os.close(reader)
        _serve(spark, function, writer)
    os.close(writer)
    try:
        said = _read(reader, process, stopped)
    finally:
        os.close(reader)
        _, status = os.waitpid(process, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    value, problem = pickle.loads(said) if said else (None, f"a process ended with status {status}")
    if problem is not None:
        raise RuntimeError(problem)
    return value  # type: ignore[no-any-return]


def _read(reader: int, process: int, stopped: Callable[[], None]) -> bytes:
    parts = []
    end = time.monotonic() + LONGEST_S
    while True:
        if os.waitid(os.P_PID, process, os.WSTOPPED | os.WNOHANG) is not None:
            try:
                stopped()
            finally:
                os.kill(process, signal.SIGCONT)
            end = time.monotonic() + LONGEST_S
        if not select.select([reader], [], [], POLL_S)[0]:
            if time.monotonic() < end:
                continue
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


def run(spark: SparkSession, home: Path, arguments: tuple[str, ...], fate: Fate = UNDISTURBED) -> Ended:
    """Run a command in a process of its own, which kills or stops itself at one of its points.

    A point is the moment before a commit, before a lease is given back, and before Python changes a file below
    ``home``.
    """

    def invoke() -> Ended:
        points = _Points(home, fate)
        points.watch()
        if fate.by_spark:
            Tables.is_here = lambda self: False  # type: ignore[method-assign]
        done = run_command(*arguments)
        err = done.stderr
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            err += "".join(traceback.format_exception(done.exception))
        return Ended(done.exit_code, done.stdout, err, points.passed)

    return forked(spark, invoke, fate.meanwhile or _nothing) or Ended(None, "", "", 0)


class _Points:
    """Counts the points of a command, and kills or stops the process at one of them."""

    def __init__(self, home: Path, fate: Fate) -> None:
        self._home = f"{home}{os.sep}"
        self._fate = fate
        self.passed = 0

    def _passes(self) -> None:
        number = self.passed
        self.passed += 1
        if number == self._fate.at:
            os.kill(os.getpid(), signal.SIGKILL if self._fate.meanwhile is None else signal.SIGSTOP)

    def watch(self) -> None:
        """Begin to count, for the rest of the life of this process."""
        check, release = lease.Lease.check, lease.Lease.release

        def checked(held: lease.Lease, *, ask: bool = False) -> datetime:
            self._passes()
            safe_until = check(held, ask=ask)
            self._passes()  # a run that stands still here has seen its lease
            return safe_until

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
