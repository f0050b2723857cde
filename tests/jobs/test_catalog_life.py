"""Killed nights in a schema of Hive's metastore, which Spark has built in: the rows are those of a folder."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.jobs.catalog_life import hive
from tests.jobs.conftest import SMALL
from tests.kills.lives import CLUSTER, found_in
from tests.kills.logs import write_logs
from tests.shared_data import ROOT

pytestmark = pytest.mark.long
"""Four JVMs, of which two are killed."""

SCHEMA = "spark_catalog.audit"
NIGHT = """
nightly: {steps: [ingest, decode, replay, offsets, findings, checks, trend]}
"""


class Home(NamedTuple):
    """A life: its folder, the location of its tables, and how they are reached."""

    place: Path
    location: str
    conf: dict[str, str]
    schema: str | None

    @classmethod
    def in_folder(cls, place: Path) -> Home:
        """Return a life whose tables are in a folder."""
        return cls(place, str(place / "tables"), SMALL, None)

    @classmethod
    def in_catalog(cls, place: Path) -> Home:
        """Return a life whose tables are in a catalog, with their files where a folder has them."""
        schema = f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} LOCATION '{(place / 'tables').as_uri()}'"
        return cls(place, SCHEMA, hive(place), schema)

    def run(self, *commands: tuple[str, ...], killed_before: str | None = None) -> None:
        """Run commands in one process; the last is killed when it is about to commit to the table ``killed_before``."""
        given = (self.conf, self.schema, killed_before, [[*command] for command in commands])
        (self.place / "night.yaml").write_text(NIGHT)
        done = subprocess.run(
            [sys.executable, "-m", "tests.jobs.catalog_life", *map(json.dumps, given)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
        )
        wanted = 0 if killed_before is None else -signal.SIGKILL
        assert done.returncode == wanted, done.stdout[-2000:] + done.stderr[-5000:]

    def night(self, *logs: Path) -> tuple[str, ...]:
        """Return the command of a night over logs."""
        chosen = ("--cluster", CLUSTER, "--tables", self.location, "--config", str(self.place / "night.yaml"))
        return ("nightly", *map(str, logs), *chosen)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path]:
    """The first segments of a log, and the folder of all of it."""
    place = tmp_path_factory.mktemp("log") / "logs"
    return write_logs(place), place


def test_nights_in_a_catalog_are_those_of_a_folder(logs: tuple[list[Path], Path], tmp_path: Path) -> None:
    folder, catalog = Home.in_folder(tmp_path / "folder"), Home.in_catalog(tmp_path / "catalog")
    for home in (folder, catalog):
        home.place.mkdir()
    folder.run(folder.night(*logs[0]), folder.night(logs[1]))
    expected = found_in(folder.place)
    first, both = catalog.night(*logs[0]), catalog.night(logs[1])
    # Other tables have the rows of the first night then; the second night has replayed all that it has to.
    catalog.run(first, killed_before="log_records")
    catalog.run(first, both, killed_before="group_states")
    catalog.run(both)
    assert found_in(catalog.place).difference(expected) is None
    assert expected.rows["target_audits"]
