"""Commands that write, killed or stopped at any commit: what runs after them makes the tables of a quiet life."""

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml
from pyspark.sql import SparkSession

from jobs.checks.suites import AGE
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.history import HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import CHECK_RESULTS, FINDINGS, GROUP_OFFSETS, NIGHTS
from jobs.tables.table import Table
from tests.kills.logs import write_logs
from tests.kills.processes import UNDISTURBED, Ended, Fate, forked, run

CLUSTER: Final = "c"
COMPARED: Final = (
    *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE),
    *(*HISTORY.values(), FINDINGS),
)
STEPS: Final = '["ingest", "decode", "replay", "offsets", "findings", "trend"]'
IGNORED: Final = frozenset({"run_id", "revised_by", "extra", "night", "ended_ms", "checked_at"})
"""Columns that say which run said something, and when."""

LOG: Final = ("cluster", "log_topic", "log_partition", "leader_epoch")
"""Columns that say of which log, and of which leader, a range of offsets is."""

AGAIN: Final = 0.5
"""The probability that the run after a kill is killed, too."""


class Life(NamedTuple):
    """A command that is killed, the state of the tables before it, and the arguments that begin it.

    ``FIRST`` and ``BOTH`` stand for logs, ``PROJECT`` for a folder. ``repeated``: the same command repairs what its
    kill has left; otherwise the next night does. ``settings``: the file of settings that it is run with.
    """

    before: str
    arguments: tuple[str, ...]
    repeated: bool = False
    settings: str = "night"


LEASE_S: Final = 6
"""Seconds after which another run takes the lease of one that was stopped."""

SAID: Final = ("in time, and", "is just taking the lease", "has been writing the tables", "later than the lease")
"""What a run says that was stopped for longer than its lease, or while it took it; the last on a machine so busy that
Spark takes longer than the lease to begin a commit."""

QUESTIONS: Final = (
    *(("metrics",), ("describe", "--all"), ("findings",), ("groups",), ("trend",), ("audit",), ("rebalances",)),
    *(("commits", "billing"), ("offsets", "legacy"), ("history", "counts"), ("owners", "orders"), ("tables",)),
)
"""Asked after a kill: none may be silent."""

NIGHT: Final = ("nightly", "BOTH", "--cluster", CLUSTER)

LIVES: Final = {
    "first-night": Life("nothing", ("nightly", "FIRST", "--cluster", CLUSTER)),
    "second-night": Life("night", NIGHT),
    "ingest": Life("night", ("ingest", "BOTH", "--cluster", CLUSTER)),
    "decode": Life("ingested", ("decode",)),
    "replay": Life("decoded", ("replay",)),
    "replay-rebuild": Life("night", ("replay", "--rebuild")),
    "checks": Life("night", ("checks",), repeated=True),
    "expectations": Life("night", ("expectations", "PROJECT"), repeated=True),
    "rebuild-history": Life("night", ("rebuild", "group_epochs")),
    "rebuild-log": Life("night", ("rebuild", "group_records")),
    "rebuild-findings": Life("night", ("rebuild", "findings")),
    "maintenance": Life("night", NIGHT, settings="maintenance"),
}
"""By name. What a killed command leaves is completed by a night with all logs."""


class Lives:
    """Runs lives in folders of their own, and compares the tables with those of a life without a kill."""

    def __init__(self, spark: SparkSession, home: Path) -> None:
        self._spark = spark
        self._home = home
        first = write_logs(home / "logs")
        self._places = {"FIRST": [*map(str, first)], "BOTH": [str(home / "logs")]}
        self._settings = {
            "night": f"nightly:\n  steps: {STEPS}\n",
            "stopped-night": f"nightly:\n  steps: {STEPS}\n  lease_minutes: {LEASE_S / 60}\n",
            "maintenance": 'nightly:\n  steps: ["maintenance"]\n'
            "maintenance:\n  every_days: 0\n  vacuum_hours: 0\n  keep_values_days: 0\n",
        }
        for name, text in self._settings.items():
            (home / f"{name}.yaml").write_text(text)
        self._begun: dict[str, Path] = {}
        self._quiet: dict[str, tuple[int, Found]] = {}
        self._points_of_a_night = 1
        self._number = 0

    def live(self, name: str, choose: random.Random) -> Counter[str]:
        """Kill a command at one of its points, and perhaps what runs after it. Return the kills by command.

        Raises:
            AssertionError: the tables differ from those of a quiet life, or an answer between was silent.
        """
        points, expected = self.quiet(name)
        home = self._copy(name)
        kills: Counter[str] = Counter()
        try:
            at = choose.randrange(points)
            ended = self._run(home, LIVES[name].arguments, LIVES[name].settings, Fate(at))
            if ended.was_killed:
                kills[name] += 1
                self._assert_warned(home, name, at, choose)
            while choose.random() < AGAIN:
                command, arguments, settings = self._next(name, choose)
                at = choose.randrange(self._points_of_a_night)
                ended = self._run(home, arguments, settings, Fate(at))
                if not ended.was_killed:
                    break
                kills[command] += 1
                self._assert_warned(home, command, at, choose)
            self._complete(home, name)
            difference = expected.difference(self._found(home))
            assert difference is None, f"{difference} ({dict(kills)}, the last at point {at})"
        finally:
            shutil.rmtree(home)
        return kills

    def stand_still(self, name: str, choose: random.Random, *, by_spark: bool = False) -> str:
        """Stop a command at one of its points; another night takes its lease, and it goes on. Return what it said last.

        Raises:
            AssertionError: the tables differ from those of a quiet life, or the command said nothing of its lease.
        """
        points, expected = self.quiet(name)
        home = self._copy(name)

        def meanwhile() -> None:
            time.sleep(LEASE_S + 1)
            self._succeed(home, NIGHT)

        try:
            at = choose.randrange(points if not by_spark else 2 * points)
            ended = self._run(home, LIVES[name].arguments, "stopped-night", Fate(at, meanwhile, by_spark))
            is_told = any(text in ended.err for text in SAID)
            assert ended.code == 0 or is_told, f"stopped at point {at}: {ended.code}, {ended.err}"
            assert "Traceback" not in ended.err, f"stopped at point {at}: {ended.err}"
            self._complete(home, name)
            difference = expected.difference(self._found(home))
            assert difference is None, f"{difference} (stopped at point {at}, then: {ended.err})"
        finally:
            shutil.rmtree(home)
        return (ended.err.strip().splitlines() or ["nothing"])[-1] if ended.code else "nothing"

    def quiet(self, name: str) -> "tuple[int, Found]":
        """Return the number of points of the command of a life, and what a life without a kill ends with."""
        if name not in self._quiet:
            home = self._copy(name)
            points = self._succeed(home, LIVES[name].arguments, LIVES[name].settings).points
            completing = self._complete(home, name)
            self._points_of_a_night = max(self._points_of_a_night, completing.points)
            self._quiet[name] = points, self._found(home)
            shutil.rmtree(home)
        return self._quiet[name]

    def _next(self, name: str, choose: random.Random) -> tuple[str, tuple[str, ...], str]:
        """The next run after a kill: the same command again, or a night."""
        life = LIVES[name]
        if life.repeated or (life.before != "nothing" and choose.random() < 0.5):
            return name, life.arguments, life.settings
        return "completing-night", NIGHT, "night"

    def _copy(self, name: str) -> Path:
        """Return a folder of its own for a life: Spark remembers what it has seen of a table at a place."""
        self._number += 1
        home = self._home / f"life-{self._number}"
        shutil.copytree(self._begin(LIVES[name].before), home / "tables")
        return home

    def _begin(self, state: str) -> Path:
        """Return tables in the state that a life begins with; not to be written to."""
        if state not in self._begun:
            home = self._home / "begun" / state
            shutil.rmtree(home, ignore_errors=True)  # of an attempt that failed
            before = {"ingested": "night", "decoded": "ingested"}.get(state)
            if before is None:
                (home / "tables").mkdir(parents=True)
            else:
                shutil.copytree(self._begin(before), home / "tables")
            commands = {"night": "first-night", "ingested": "ingest", "decoded": "decode"}
            if state in commands:
                self._succeed(home, LIVES[commands[state]].arguments)
            self._begun[state] = home / "tables"
        return self._begun[state]

    def _run(self, home: Path, arguments: tuple[str, ...], settings: str = "night", fate: Fate = UNDISTURBED) -> Ended:
        places = self._places | {"PROJECT": [str(home / "project")]}
        words = (each for word in arguments for each in places.get(word, [word]))
        given = ("--tables", str(home / "tables"), "--config", str(self._home / f"{settings}.yaml"))
        return run(self._spark, home, (*words, *given), fate)

    def _succeed(self, home: Path, arguments: tuple[str, ...], settings: str = "night") -> Ended:
        """Run a command that is not killed; 3: a check has found something."""
        ended = self._run(home, arguments, settings)
        assert ended.code in (0, 3), (arguments, ended.out, ended.err)
        return ended

    def _complete(self, home: Path, name: str) -> Ended:
        """The same command again if that is what repairs, then a night.

        Where a rebuild was cut off, damage is found first, and the rebuild is repeated.
        """
        if LIVES[name].repeated:
            self._succeed(home, LIVES[name].arguments, LIVES[name].settings)
        ended = self._run(home, NIGHT)
        if ended.code == 1 and "is damaged" in ended.err:
            self._succeed(home, ("rebuild",))
            ended = self._run(home, NIGHT)
        assert ended.code == 0, (ended.out, ended.err)
        return ended

    def _assert_warned(self, home: Path, name: str, at: int, choose: random.Random) -> None:
        if name == "expectations":  # it does not write the tables
            return
        for question in choose.sample(QUESTIONS, 3):
            asked = self._run(home, question)
            is_silent = asked.code == 0 and "has not ended" not in asked.err
            assert not is_silent, f"{name}, killed at point {at}: {question} says nothing"
            assert "Traceback" not in asked.err, f"{name}, killed at point {at}: {question} fails with {asked.err}"

    def _found(self, home: Path) -> "Found":
        found = forked(self._spark, lambda: found_in(home))
        assert found is not None
        return found


class Found(NamedTuple):
    """The rows of tables as texts, without which run wrote them, and the files of a project of the checks."""

    rows: dict[str, list[str]]

    def difference(self, other: "Found") -> str | None:
        """Return in words the first difference of what another life has found; None: there is none."""
        for name, rows in self.rows.items():
            if (others := other.rows[name]) != rows:
                counts = Counter(rows), Counter(others)
                lacking, spare = (list((one - two).elements()) for one, two in (counts, counts[::-1]))
                told = f"lacks {len(lacking)} rows {_short(lacking)}, has {len(spare)} others {_short(spare)}"
                return f"{name} differs: {told}"
        return None


def _short(rows: list[str]) -> str:
    return ", ".join(rows[:2])[:1000]


def found_in(home: Path) -> Found:
    """Return what the tables below a folder say, in a process that may open tables.

    Raises:
        AssertionError: the nights that are counted are not those that have ended.
    """
    tables = home / "tables"
    rows = {table.name: content(tables, table) for table in COMPARED}
    rows[LOG_RANGES.name] = joined_ranges(tables)
    rows["commits"] = content(tables, COMMIT_SUMMARIES, lambda row: row["hour_ms"] is None)
    rows["checks"] = newest(tables, CHECK_RESULTS)
    rows["offsets"] = newest(tables, GROUP_OFFSETS)
    rows["project"] = [f"{file.relative_to(home)}: {_text(file, home)}" for file in sorted(_files(home / "project"))]
    counted = [row["night"] for row in _rows(tables, NIGHTS)]
    ended = {row["night"] for row in _rows(tables, NIGHTLY_STEPS) if row["step"] == "trend"}
    assert sorted(counted) == sorted(ended), f"nights are {counted}, those that have ended {sorted(ended)}"
    return Found(rows)


def _files(folder: Path) -> Iterator[Path]:
    return (file for file in folder.rglob("*") if file.is_file() and not file.name.endswith(".unfinished"))


def _text(file: Path, home: Path) -> str:
    """What a file of a project says in any folder, whatever the order of its parts."""
    text = file.read_text().replace(str(home), "HOME")
    if file.suffix != ".yml":
        return text
    said = yaml.safe_load(text)
    return json.dumps(said | {"data_context_id": None}, sort_keys=True)


def content(tables: Path, table: Table, wanted: Callable[[dict[str, Any]], bool] = bool) -> list[str]:
    """Return all that a table says, but for which run said it and when."""
    rows = (row for row in _rows(tables, table) if wanted(row))
    return sorted(repr({name: row[name] for name in row if name not in IGNORED}) for row in rows)


def joined_ranges(tables: Path) -> list[str]:
    """Return which offsets of each log the tables have, in however many nights they came.

    A night writes a row of its own for what it brings: killed before that, the next night brings both parts as one.
    """
    joined: list[dict[str, Any]] = []
    for row in sorted(_rows(tables, LOG_RANGES), key=lambda row: [*map(row.get, LOG), row["first_offset"]]):
        last = joined[-1] if joined else {}
        is_of_one_log = all(last.get(name) == row[name] for name in LOG)
        if is_of_one_log and last["last_offset"] + 1 == row["first_offset"]:
            last |= {name: row[name] for name in ("last_offset", "last_ms")}
            last["records"] += row["records"]
        else:
            joined.append({name: row[name] for name in row if name not in IGNORED})
    return sorted(map(repr, joined))


def newest(tables: Path, table: Table) -> list[str]:
    """Return the rows of the newest run that a table has."""
    last = max((row["run_id"] for row in _rows(tables, table)), default="")
    # The age of the log is another one at each run.
    return content(tables, table, lambda row: row["run_id"] == last and row.get("check") != AGE)


def _rows(tables: Path, table: Table) -> list[dict[str, Any]]:
    from deltalake import DeltaTable

    place = tables / table.name
    return DeltaTable(str(place)).to_pyarrow_table().to_pylist() if place.is_dir() else []
