"""Many changed logs, each through several commands, in a process of its own that may be killed."""

from __future__ import annotations

import json
import multiprocessing
import random
import resource
import shutil
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.files import changed_file, write_file
from tests.fuzz.limits import Failure, Limits, run, run_whole, whole
from tests.fuzz.mutations import mutate
from tests.fuzz.samples import Logs, chosen_logs, clusters

WALL_FACTOR = 12
"""A command that does not end after so many times its processor time is killed with its process."""

STABLE_COMMANDS = (("describe", "--all"), ("audit", "--json"), ("findings",), ("rebalances",))

QUESTIONS_OF_A_LOG = (
    *(("describe", "--all", "--json"), ("groups",), ("groups", "--json"), ("audit",), ("findings", "--json")),
    *(("metrics",), ("metrics", "--format", "openmetrics", "--names", "burrow"), ("report", "--out", "OUT")),
    *(("rebalances", "--json"), ("dump",), ("owners", "orders"), ("owners", "jdbc"), ("owners", "clicks", "--json")),
)

QUESTIONS_OF_A_GROUP = (
    *(("history", "G"), ("history", "G", "--json"), ("describe", "G"), ("offsets", "G"), ("explain", "G")),
    *(("whatif", "G", "--assignor", name) for name in ("uniform", "range", "simple", "sticky", "cooperative-sticky")),
    *(("whatif", "G", "--static", "60000"), ("whatif", "G", "--standbys", "1"), ("whatif", "G", "--delay", "0")),
    *(("commits", "G"), ("commits", "G", "--json"), ("rebalances", "--group", "G", "--slowest", "3")),
    *(("audit", "--group", "G"), ("findings", "--group", "G", "--json"), ("explain", "G", "--json")),
)


FILES = 0.4
"""The share of inputs that are files of other kinds than logs."""


class Tried(NamedTuple):
    """What came of one input, or of all: failures, the number of commands, and the most memory of a process in MiB."""

    failures: list[Failure]
    commands: int
    peak_mib: int
    inputs: int = 1


class Campaign(NamedTuple):
    """``scratch`` is an empty folder; ``keep`` gets the logs that broke something."""

    scratch: Path
    limits: Limits
    keep: Path


def fuzz(campaign: Campaign, seed: int, seconds: float) -> Tried:
    """Try inputs until the time is over; return what came of all of them."""
    simulated = campaign.scratch / "simulated"
    clusters(simulated)
    until = time.monotonic() + seconds
    tried, commands, peak, found = 0, 0, 0, list[Failure]()
    places: set[tuple[str, str]] = set()
    worker = _Worker(simulated)
    while time.monotonic() < until:
        one = worker.ask(seed + tried, campaign)
        commands, peak = commands + one.commands, max(peak, one.peak_mib)
        for failure in one.failures:
            found.append(failure)
            place = failure.how, failure.where
            if place not in places:
                places.add(place)
                _keep(campaign, simulated, seed + tried, failure)
        tried += 1
    worker.end()
    return Tried(found, commands, peak, tried)


def _keep(campaign: Campaign, simulated: Path, seed: int, failure: Failure) -> None:
    logs, done = changed_logs(simulated, seed)
    folder = campaign.keep / str(seed)
    write_logs(logs, folder)
    (folder / "failure.json").write_text(json.dumps({**failure._asdict(), "seed": seed, "changes": done}))
    print(f"seed {seed}: {failure.how} in {' '.join(failure.command)}: {failure.where} [{done}]", flush=True)


def changed_logs(simulated: Path, seed: int) -> tuple[Logs, str]:
    """Return the logs of a seed, and what was changed in them."""
    choose = random.Random(seed)
    return mutate(chosen_logs(simulated, choose), choose)


def write_logs(logs: Logs, folder: Path) -> None:
    """Write segment files below a folder, which is emptied before."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, data in logs.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


class _Worker:
    """A process that tries inputs; a new one takes its place when it must be killed."""

    def __init__(self, simulated: Path) -> None:
        self._simulated = simulated
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._simulated), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, seed: int, campaign: Campaign) -> Tried:
        self._ours.send((seed, campaign))
        command: tuple[str, ...] = ()
        while True:
            try:
                if not self._ours.poll(campaign.limits.seconds * WALL_FACTOR):
                    return self._replaced(command, "time", "did not end")
                said = self._ours.recv()
            except EOFError:
                return self._replaced(command, "crash", "the process died")
            if isinstance(said, Tried):
                return said
            command = said

    def _replaced(self, command: tuple[str, ...], how: str, where: str) -> Tried:
        self._process.kill()
        self._process.join()
        self._begin()
        return Tried([Failure(command, how, f"{where}: {command[:1]}")], 1, 0)

    def end(self) -> None:
        self._ours.close()
        self._process.join(5)


def _serve(connection: Connection, simulated: Path) -> None:
    while True:
        try:
            seed, campaign = connection.recv()
        except EOFError:
            return
        logs, _ = changed_logs(simulated, seed)
        folder = campaign.scratch / "input"
        write_logs(logs, folder)
        failures, count = [], 0
        for command in commands(folder, logs, random.Random(seed), campaign.limits):
            connection.send(command)
            _, failure = run_whole(command, campaign.limits)
            count += 1
            if failure is not None:
                failures.append(failure)
        connection.send(Tried(failures, count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10))


def commands(folder: Path, logs: Logs, choose: random.Random, limits: Limits) -> Iterator[tuple[str, ...]]:
    """Yield the commands for one input: of its logs, or of a changed file of another kind."""
    group = a_group(folder, choose, limits)
    if choose.random() < FILES:
        yield from write_file(changed_file(logs, group or "g", choose), folder)
        return
    for question in questions(group, choose):
        places = {"OUT": str(folder.parent / "out" / "page.html")}
        yield whole(tuple(places.get(word, word) for word in question), folder)


def questions(group: str | None, choose: random.Random) -> Iterator[tuple[str, ...]]:
    """Yield the questions for a log: some always, one of the log, and two of one of its groups."""
    yield from STABLE_COMMANDS
    yield choose.choice(QUESTIONS_OF_A_LOG)
    if group is not None:
        for question in choose.sample(QUESTIONS_OF_A_GROUP, 2):
            yield tuple(group if word == "G" else word for word in question)


def a_group(folder: Path, choose: random.Random, limits: Limits) -> str | None:
    """Return the name of one group of the logs; None if there is none, or its name cannot be an argument."""
    listed, _ = run(("groups", "--json"), folder, limits)
    names = [json.loads(line)["group"] for line in listed.splitlines() if line.startswith("{")]
    names = [name for name in names if name and not name.startswith("-") and "\x00" not in name]
    return choose.choice(names) if names else None
