"""Many changed inputs, each through one command, in processes of their own that may be killed."""

import gc
import json
import mmap
import multiprocessing
import multiprocessing.connection
import os
import resource
import shutil
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.fuzz.inputs import Input, make_input, write_input
from tests.fuzz.limits import Failure, Limits, commands_kept, run_command
from tests.fuzz.stretches import all_groups

WALL_FACTOR: Final = 90
"""A command that does not end after so many times its processor time waits for something that does not come."""

WORK_FACTOR: Final = 3
"""One that has used so many times its processor time runs where no signal stops it."""

INPUTS_AT_ONCE: Final = 250
"""How many inputs a process is given together; those that it has answered for count."""

INPUTS_OF_A_PROCESS: Final = 20_000
"""After so many inputs another process goes on: what is kept in memory by mistake would hide in the sum."""

FASTEST: Final = Path("/dev/shm")
"""A folder in memory: most inputs are written to be read once."""

SEED: Final = struct.Struct("=q")


class Failed(NamedTuple):
    """An input that broke something: its seed and kind, and what went wrong."""

    seed: int
    kind: str
    failure: Failure


class Tried(NamedTuple):
    """What came of inputs: how many by kind and command, how many commands ran, the inputs that failed, and the most
    memory of a process in MiB.
    """

    counts: Counter[tuple[str, str]]
    commands: int
    failures: list[Failed]
    peak_mib: int

    @property
    def inputs(self) -> int:
        """How many inputs went through a command, those that failed included."""
        return sum(self.counts.values())


class Campaign(NamedTuple):
    """``scratch`` is an empty folder; ``keep`` gets the inputs that broke something."""

    scratch: Path
    limits: Limits
    keep: Path
    processes: int = 1


def fuzz(campaign: Campaign, seed: int, seconds: float) -> Tried:
    """Try inputs until the time is over, or until Ctrl-C; return what came of all of them. Each has its own seed."""
    simulated = campaign.scratch / "simulated"
    all_groups(simulated)  # read once, for all processes
    gc.collect()
    gc.freeze()
    until = time.monotonic() + seconds
    counts: Counter[tuple[str, str]] = Counter()
    found: list[Failed] = []
    commands, peak, places = 0, 0, set[tuple[str, str]]()
    with suppress(KeyboardInterrupt):
        for tried in _answers(campaign, simulated, seed, until):
            counts += tried.counts
            commands += tried.commands
            peak = max(peak, tried.peak_mib)
            for failed in tried.failures:
                found.append(failed)
                place = failed.failure.how, failed.failure.where
                if place not in places:
                    places.add(place)
                    keep(campaign.keep, simulated, failed)
    return Tried(counts, commands, found, peak)


def _answers(campaign: Campaign, simulated: Path, seed: int, until: float) -> Iterator[Tried]:
    """Yield what came of each round of inputs, from all processes in turn."""
    workers = [_Worker(campaign, simulated, number) for number in range(campaign.processes)]
    try:
        for worker in workers:
            seed = worker.begin(seed)
        while any(worker.is_busy for worker in workers):
            ready = multiprocessing.connection.wait([each.ours for each in workers if each.is_busy], 1.0)
            for worker in workers:
                if worker.is_busy and (worker.ours in ready or worker.hangs()):
                    yield worker.answer(is_there=worker.ours in ready)
                    if time.monotonic() < until:
                        seed = worker.begin(seed)
    finally:
        for worker in workers:
            worker.end()


def keep(folder: Path, simulated: Path, failed: Failed) -> None:
    """Write an input that broke something, and what it broke, to a folder with its seed as name."""
    given = make_input(simulated, failed.seed)
    place = folder / str(failed.seed)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    write_input(given, place)
    command = [word.encode("utf-8", "backslashreplace").decode() for word in given.command]
    told = {"kind": given.kind, "command": command, **failed.failure._asdict(), "changes": given.done}
    (place / "failure.json").write_text(json.dumps(told, indent=1))
    how, where = failed.failure.how, failed.failure.where
    print(f"seed {failed.seed}: {how} in {' '.join(command)[:200]!r}: {where[:300]}", flush=True)


class _Worker:
    """A process that tries inputs; a new one takes its place when it must be killed, or has tried many."""

    def __init__(self, campaign: Campaign, simulated: Path, number: int) -> None:
        self._campaign = campaign
        self._simulated = simulated
        self._folder = FASTEST if FASTEST.is_dir() else campaign.scratch
        self._folder /= f"coordinator-audit-fuzz-{os.getpid()}-{number}"
        self._now = mmap.mmap(-1, SEED.size)  # the seed of the input that is tried now: the process may die of it
        self._process: Any = None
        self.is_busy = False
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("fork")
        self.ours, theirs = context.Pipe()
        given = (theirs, self._campaign.limits, self._simulated, self._folder, self._now)
        self._process = context.Process(target=_serve, args=given, daemon=True)
        self._process.start()
        theirs.close()
        self._tried = 0

    def begin(self, seed: int) -> int:
        """Send a round of inputs; return the seed after it."""
        if self._tried >= INPUTS_OF_A_PROCESS:
            self.end()
            self._start()
        self._tried += INPUTS_AT_ONCE
        self._first = seed
        self._seen, self._since, self._used = -1, time.monotonic(), 0.0
        self.is_busy = True
        self.ours.send((seed, seed + INPUTS_AT_ONCE))
        return seed + INPUTS_AT_ONCE

    def hangs(self) -> bool:
        """Whether the process has tried the same input for too long."""
        if (seed := self._seed()) != self._seen:
            self._seen, self._since, self._used = seed, time.monotonic(), self._work_s()
        limit = self._campaign.limits.seconds
        waits = time.monotonic() - self._since > limit * WALL_FACTOR
        return waits or self._work_s() - self._used > limit * WORK_FACTOR

    def _work_s(self) -> float:
        """Return the processor time of the process; on a busy machine its clock says nothing."""
        try:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _seed(self) -> int:
        return int(SEED.unpack(self._now[: SEED.size])[0])

    def answer(self, *, is_there: bool) -> Tried:
        """Return what came of the round; if the process died or hangs, another one takes its place."""
        self.is_busy = False
        try:
            if is_there:
                tried: Tried = self.ours.recv()
                return tried
            how, where = "time", "did not end"
        except EOFError:
            how, where = "crash", "the process died"
        seed = self._seed()
        self._process.kill()
        self._process.join()
        self._start()
        given = make_input(self._simulated, seed)
        failure = Failure(given.command, how, f"{where}: {given.command[:1]}")
        # Of the inputs before it in this round nothing is known any more: they do not count.
        return Tried(Counter({(given.kind, given.command[0]): 1}), 1, [Failed(seed, given.kind, failure)], 0)

    def end(self) -> None:
        """End the process."""
        self.ours.close()
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
        shutil.rmtree(self._folder, ignore_errors=True)


def _serve(connection: Connection, limits: Limits, simulated: Path, folder: Path, now: mmap.mmap) -> None:
    with commands_kept():
        while True:
            try:
                first, end = connection.recv()
            except EOFError:
                return
            counts: Counter[tuple[str, str]] = Counter()
            failures = []
            for seed in range(first, end):
                now[: SEED.size] = SEED.pack(seed)
                given = make_input(simulated, seed)
                failure = try_input(given, folder, limits)
                counts[given.kind, given.command[0]] += given.number
                if failure is not None:
                    failures.append(Failed(seed, given.kind, failure))
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
            connection.send(Tried(counts, end - first, failures, peak))


def try_input(given: Input, folder: Path, limits: Limits) -> Failure | None:
    """Run the command of an input; return what went wrong. The folder is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return run_command(write_input(given, folder), limits)[1]
