"""Runs the commands on changed inputs, with limits on time and memory, and says what went wrong."""

import io
import resource
import signal
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
import typer
from typer.main import get_command

from jobs.cli import app as cli

MEGABYTE = 1 << 20


class Limits(NamedTuple):
    """What one command may use: processor time in seconds, and bytes more than it had before."""

    seconds: float = 10.0
    memory: int = 768 * MEGABYTE


class Failure(NamedTuple):
    """What went wrong: the command, how (crash, time or memory), and where."""

    command: tuple[str, ...]
    how: str
    where: str


class OutOfTimeError(BaseException):
    """A command used more processor time than it may; no handler of the product catches it."""


@cache
def _program() -> Any:
    return get_command(cli.app)


@contextmanager
def commands_kept() -> Iterator[None]:
    """Make each command's parser once, as they are many; and let a watch end once it has looked."""

    waited = time.sleep

    def interrupted(seconds: float) -> None:
        # Spark's threads sleep, too: the interrupt is for the watch, which runs in the main thread.
        if threading.current_thread() is not threading.main_thread():
            return waited(seconds)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cli, "load", cache(cli.load))
        patched.setattr(time, "sleep", interrupted)
        yield


def run_command(arguments: Sequence[str], limits: Limits) -> tuple[str, Failure | None]:
    """Run one command with all its arguments; return its output, and what went wrong."""
    command = tuple(arguments)
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    try:
        with redirect_stdout(out), redirect_stderr(io.StringIO()), _limited(limits):
            _program().main(list(arguments), "coordinator-audit", standalone_mode=False)
    except (click.exceptions.Exit, click.ClickException, typer.Exit, SystemExit):
        pass
    except OutOfTimeError as error:
        return "", Failure(command, "time", _place(error))
    except MemoryError as error:
        return "", Failure(command, "memory", _place(error))
    except Exception as error:
        return "", Failure(command, "crash", f"{type(error).__name__}: {error} {_place(error)}")
    out.flush()
    return out.buffer.getvalue().decode(), None  # type: ignore[attr-defined]


@contextmanager
def _limited(limits: Limits) -> Iterator[None]:
    def stop(number: int, frame: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGPROF, stop)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_data_bytes() + limits.memory, hard))
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """Return how many bytes of memory this process has that count for the limit."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData"))


def _place(error: BaseException) -> str:
    """The last frames of the product's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "/coordinator_core/" in each.filename or "/jobs/" in each.filename]
    return " < ".join(f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in ours[:-4:-1])
