"""A whole life in a schema of Hive's metastore, which Spark has built in: rows and answers are those of a folder."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable

from jobs.tables.nightly import NIGHTLY_STEPS
from tests.jobs.catalog_life import hive
from tests.jobs.conftest import SMALL
from tests.kills.lives import CLUSTER, found_in
from tests.kills.logs import write_logs
from tests.shared_data import ROOT

pytestmark = pytest.mark.long
"""Five JVMs, of which two are killed."""

SCHEMA = "spark_catalog.audit"
NIGHT = """
nightly: {steps: [ingest, decode, replay, offsets, findings, checks, trend]}
"""
MAINTENANCE = """
nightly: {steps: [maintenance]}
maintenance: {every_days: 0, vacuum_hours: 0, keep_values_days: 0}
"""
QUESTIONS = (("describe", "--all"), ("findings",), ("commits", "billing"), ("offsets", "legacy"), ("owners", "orders"))
MADE_AGAIN = {"made_ms", "nights", "checks"}
"""Fields of a report that name the time, or runs by their ids."""


class Home(NamedTuple):
    """A life: its folder, the location of its tables, and how they are reached."""

    place: Path
    location: str
    conf: dict[str, str]
    schema: str | None
    is_closed: bool = False
    published_mb: int = 0

    @classmethod
    def in_folder(cls, place: Path) -> "Home":
        """Return a life whose tables are in a folder."""
        return cls(place, str(place / "tables"), SMALL, None)

    @classmethod
    def in_catalog(cls, place: Path, *, is_closed: bool, published_mb: int) -> "Home":
        """Return a life whose tables are in a catalog, with their files where a folder has them.

        ``is_closed``: the catalog does not tell where that is, so that only Spark opens the tables. ``published_mb``:
        the setting.
        """
        schema = f"CREATE SCHEMA IF NOT EXISTS {SCHEMA} LOCATION '{(place / 'tables').as_uri()}'"
        return cls(place, SCHEMA, hive(place), schema, is_closed, published_mb)

    def by_spark(self) -> "Home":
        """Return the same life in nights of which Spark makes each step."""
        return self._replace(published_mb=0)

    def run(self, *commands: tuple[str, ...], killed_before: str | None = None) -> list[dict[str, Any]]:
        """Run commands in one process. Return what they printed, and their codes.

        ``killed_before``: the last of them is killed when it is about to commit to this table.
        """
        given = (self.conf, self.schema, self.is_closed, killed_before, [[*command] for command in commands])
        engine = json.dumps({"published_mb": self.published_mb, "working_copy": str(self.place / "copy")})
        (self.place / "night.yaml").write_text(f"{NIGHT}engine: {engine}\n")
        (self.place / "maintenance.yaml").write_text(MAINTENANCE)
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
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"printed"')]

    def night(self, *logs: Path, settings: str = "night") -> tuple[str, ...]:
        """Return the command of a night over logs."""
        chosen = ("--cluster", CLUSTER, "--tables", self.location, "--config", str(self.place / f"{settings}.yaml"))
        return ("nightly", *map(str, logs), *chosen)

    def answers(self) -> Iterator[tuple[str, ...]]:
        """Yield the commands that ask."""
        stored = ("--tables", self.location, "--cluster", CLUSTER)
        for question in QUESTIONS:
            yield (*question, *stored, "--json")

    def report_command(self) -> tuple[str, ...]:
        """Return the command that writes the report."""
        return ("report", "--tables", self.location, "--cluster", CLUSTER, "--out", str(self.place / "report.html"))

    def steps(self) -> set[str]:
        """Return the names of the steps that nights have done."""
        rows = DeltaTable(self.place / "tables" / NIGHTLY_STEPS.name).to_pyarrow_table().to_pylist()
        return {row["step"] for row in rows if row["ended"] == "done"}

    def report(self) -> dict[str, Any]:
        """Return the data of the report, but for what names the time and runs."""
        data = json.loads((self.place / "report.json").read_text())
        return {name: value for name, value in data.items() if name not in MADE_AGAIN}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], Path]:
    """The first segments of a log, and the folder of all of it."""
    place = tmp_path_factory.mktemp("log") / "logs"
    return write_logs(place), place


@pytest.mark.parametrize(
    ("is_closed", "published_mb"), [(False, 0), (True, 0), (True, 256)], ids=["paths", "closed", "published"]
)
def test_a_life_in_a_catalog_is_that_of_a_folder(
    logs: tuple[list[Path], Path], tmp_path: Path, *, is_closed: bool, published_mb: int
) -> None:
    folder = Home.in_folder(tmp_path / "folder")
    catalog = Home.in_catalog(tmp_path / "catalog", is_closed=is_closed, published_mb=published_mb)
    for home in (folder, catalog):
        home.place.mkdir()
    quiet = folder.run(folder.night(*logs[0]), folder.night(logs[1]), *folder.answers(), folder.report_command())[2:-1]
    expected = found_in(folder.place)
    first, both = catalog.night(*logs[0]), catalog.night(logs[1])
    # Other tables have the rows of the first night then; the second night has replayed all that it has to.
    catalog.by_spark().run(first, killed_before="log_records")
    if published_mb:
        for name in ("group_states", f"{SCHEMA}.offset_commits", f"{SCHEMA}.runs"):
            catalog.run(first, killed_before=name)
    catalog.run(first, both, killed_before=f"{SCHEMA}.group_states" if published_mb else "group_states")
    maintenance = catalog.night(logs[1], settings="maintenance")
    questions = [*catalog.answers()]
    of_copy = [(*question, "--config", str(catalog.place / "night.yaml")) for question in questions if published_mb]
    answers = catalog.run(both, *of_copy, *questions, catalog.report_command(), maintenance)[1:-2]
    for one, other in zip(answers, [*quiet[: len(of_copy)], *quiet], strict=True):
        assert one["code"] == other["code"]
        assert sorted(one["printed"].splitlines()) == sorted(other["printed"].splitlines())
    assert catalog.report() == folder.report()
    assert catalog.report()["groups"]
    assert found_in(catalog.place).difference(expected) is None
    assert "maintenance" in catalog.steps()
    assert expected.rows["target_audits"]
    place = ("--tables", catalog.location, "--config", str(catalog.place / "night.yaml"))
    catalog.run(("rebuild", "group_epochs", *place), both, ("rebuild", "group_records", *place), both)
    assert found_in(catalog.place).difference(expected) is None
