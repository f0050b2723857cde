"""Commands that write the tables, killed at any of their commits: the next night makes the tables of a quiet life."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from deltalake import DeltaTable
from typer.testing import CliRunner

from jobs.cli.app import app
from jobs.tables import lease
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.delta import Table
from jobs.tables.history import HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE
from jobs.tables.nights import NIGHTS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import FINDINGS
from tests.jobs.conftest import SAMPLE_LOGS

CLUSTER: Final = "c"
EARLIER: Final = ("__cluster_metadata-0", "__consumer_offsets-0", "__share_group_state-0")
LATER: Final = ("__consumer_offsets-1", "__share_group_state-1")
COMPARED: Final = (
    *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, LOG_RANGES),
    *(*HISTORY.values(), FINDINGS),
)
STEPS: Final = '["ingest", "decode", "replay", "offsets", "findings", "trend"]'


class Killed(BaseException):
    """What no step catches: the end of the process, as far as the tables can tell."""


class Life(NamedTuple):
    """A command that is killed, the state of the tables before it, and the arguments that begin it."""

    before: str
    arguments: tuple[str, ...]


def dumps(*names: str) -> tuple[str, ...]:
    """The paths of log partitions of the samples."""
    return tuple(str(SAMPLE_LOGS / name) for name in names)


ALL: Final = dumps(*EARLIER, *LATER)

QUESTIONS: Final = (("findings",), ("metrics",), ("groups",), ("trend",), ("describe", "--all"), ("audit",))
"""Asked in turn after a kill: none may be silent."""

LIVES: Final = {
    "first-night": Life("nothing", ("nightly", *dumps(*EARLIER), "--cluster", CLUSTER)),
    "second-night": Life("night", ("nightly", *ALL, "--cluster", CLUSTER)),
    "ingest": Life("night", ("ingest", *dumps(*LATER), "--cluster", CLUSTER)),
    "decode": Life("ingested", ("decode",)),
    "replay": Life("decoded", ("replay",)),
    "replay-rebuild": Life("night", ("replay", "--rebuild")),
    "checks": Life("night", ("checks",)),
    "rebuild-history": Life("night", ("rebuild", "group_epochs")),
    "rebuild-log": Life("night", ("rebuild", "group_records")),
    "maintenance": Life("night", ("nightly", *ALL, "--cluster", CLUSTER)),
}
"""By name. What a killed command leaves is completed by a night with all logs."""


class Lives:
    """Runs lives in folders of their own, and compares the tables with those of a life without a kill."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._config = home / "settings.yaml"
        self._config.write_text(f"nightly:\n  steps: {STEPS}\n")
        self._maintenance = home / "maintenance.yaml"
        self._maintenance.write_text(
            'nightly:\n  steps: ["maintenance"]\n'
            "maintenance:\n  every_days: 0\n  vacuum_hours: 0\n  keep_values_days: 0\n"
        )
        self._begun: dict[str, Path] = {}
        self._quiet: dict[str, dict[str, list[str]]] = {}

    def invoke(self, home: Path, *arguments: str, config: Path | None = None) -> Any:
        """Run a command on the tables in a folder."""
        return CliRunner().invoke(app, [*arguments, "--tables", str(home), "--config", str(config or self._config)])

    def succeed(self, home: Path, *arguments: str, config: Path | None = None) -> None:
        """Run a command that is not killed; 3: a check has found something."""
        done = self.invoke(home, *arguments, config=config)
        assert done.exit_code in (0, 3), (arguments, done.output, done.exception)

    def begun(self, state: str) -> Path:
        """Return tables in the state that a life begins with; not to be written to."""
        if state not in self._begun:
            home = self._home / "begun" / state
            if state == "night":
                self.succeed(home, "nightly", *dumps(*EARLIER), "--cluster", CLUSTER)
            elif state == "ingested":
                shutil.copytree(self.begun("night"), home)
                self.succeed(home, "ingest", *dumps(*LATER), "--cluster", CLUSTER)
            elif state == "decoded":
                shutil.copytree(self.begun("ingested"), home)
                self.succeed(home, "decode")
            else:
                home.mkdir(parents=True)
            self._begun[state] = home
        return self._begun[state]

    def live(self, name: str, commits: int) -> bool:
        """Kill a command after a number of commits, and let a night complete its work. Return whether it was killed.

        Raises:
            AssertionError: the tables differ from those of a quiet life, or an answer between was silent.
        """
        home = self._home / "killed"
        shutil.rmtree(home, ignore_errors=True)
        was_killed = self._begin(name, home, commits)
        if was_killed:
            self._assert_warned(home, name, commits)
        self._complete(home)
        expected, found = self._expected(name), self._found(home)
        for table, rows in expected.items():
            assert found[table] == rows, f"{name}, killed after {commits} commits: {table} differs"
        return was_killed

    def _begin(self, name: str, home: Path, commits: int | None) -> bool:
        """Run the command of a life; return whether it was killed after so many commits."""
        life = LIVES[name]
        shutil.copytree(self.begun(life.before), home)
        config = self._maintenance if name == "maintenance" else None
        if commits is None:
            self.succeed(home, *life.arguments, config=config)
            return False
        with killed_after(commits) as is_dead, suppress(Killed):
            self.invoke(home, *life.arguments, config=config)
        return is_dead()

    def _complete(self, home: Path) -> None:
        """The next night; where a rebuild was cut off, damage is found first, and the rebuild is repeated."""
        done = self.invoke(home, "nightly", *ALL, "--cluster", CLUSTER)
        if done.exit_code == 1 and "is damaged" in done.stderr:
            self.succeed(home, "rebuild")
            done = self.invoke(home, "nightly", *ALL, "--cluster", CLUSTER)
        assert done.exit_code == 0, (done.output, done.exception)

    def _assert_warned(self, home: Path, name: str, commits: int) -> None:
        question = QUESTIONS[commits % len(QUESTIONS)]
        asked = CliRunner().invoke(app, [*question, "--tables", str(home)])
        is_silent = asked.exit_code == 0 and "has not ended" not in asked.stderr
        assert not is_silent, f"{name}, killed after {commits} commits: {question} says nothing"

    def _expected(self, name: str) -> dict[str, list[str]]:
        if name not in self._quiet:
            home = self._home / "quiet" / name
            self._begin(name, home, None)
            self._complete(home)
            self._quiet[name] = self._found(home)
        return self._quiet[name]

    def _found(self, home: Path) -> dict[str, list[str]]:
        rows = {table.name: _content(home, table) for table in COMPARED}
        rows["commits"] = _content(home, COMMIT_SUMMARIES, lambda row: row["hour_ms"] is None)
        rows["nights"] = sorted(set(_content(home, NIGHTS)))  # a night that was killed has no row of its own
        return rows


def _content(home: Path, table: Table, wanted: Callable[[dict[str, Any]], bool] = bool) -> list[str]:
    """All that a table says, but for which run said it and when."""
    found = DeltaTable(str(home / table.name)).to_pyarrow_table().to_pylist()
    ignored = ("run_id", "revised_by", "extra", "night", "ended_ms")
    return sorted(repr({name: row[name] for name in row if name not in ignored}) for row in found if wanted(row))


@contextmanager
def killed_after(commits: int) -> Iterator[Callable[[], bool]]:
    """Let runs make a number of commits; the next one, and all after it, never reach the tables.

    Each commit asks for the lease first. The lease of a killed run stays, as nobody gives it back. Yields whether the
    run is dead.
    """
    made, dead = 0, False

    def check(self: lease.Lease) -> None:
        nonlocal made, dead
        made += 1
        dead = dead or made > commits
        if dead:
            raise Killed

    release = lease.Lease.release

    def give_back(self: lease.Lease) -> None:
        if not dead:
            release(self)
        lease._HELD.discard(lease.LeaseOwner.parse(self.owner).token)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(lease.Lease, "check", check)
        patched.setattr(lease.Lease, "release", give_back)
        yield lambda: dead
