"""Tables in an object store hold what those of a folder do, whatever happens to the run that writes them."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from jobs.tables.delta import Tables
from jobs.tables.lease import WRITER, BusyError, held
from jobs.tables.nightly import LEASES
from tests.commands import run_command
from tests.digests import fill, of_tables
from tests.shared_data import ROOT
from tests.stores.conftest import SECRET

LOGS = ROOT / "data" / "samples" / "incident"
KILLED = """
import os, sys
from jobs.cli.app import main
from jobs.tables.delta import Tables
left, commit = [int(sys.argv.pop(1))], Tables.commit
def killed(self, table, write, **options):
    left[0] -= 1
    if left[0] == 0:
        write()
        os._exit(9)
    return commit(self, table, write, **options)
Tables.commit = killed
main()
"""
"""A command that ends at once behind one of its commits."""


@pytest.fixture(scope="module")
def of_folder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    home = tmp_path_factory.mktemp("folder")
    tables = Tables(None, str(home / "tables"))
    fill(tables, LOGS, home / "dumps")
    return of_tables(tables.location, home / "dumps")


def test_three_nights_are_those_of_a_folder(place: str, of_folder: dict[str, str], tmp_path: Path) -> None:
    fill(Tables(None, place), LOGS, tmp_path / "dumps")
    assert of_tables(place, tmp_path / "dumps") == of_folder


@pytest.mark.parametrize("commit", [2, 9, 15, 19])
def test_a_night_that_is_killed_is_completed(place: str, commit: int, tmp_path: Path) -> None:
    words = ["nightly", str(LOGS), "--tables", place, "--cluster", "c"]
    environment = os.environ | {"COORDINATOR_AUDIT_NIGHTLY__STEPS": "[ingest, decode, replay, offsets, findings]"}
    run = [sys.executable, "-c", KILLED, str(commit), *words]
    assert subprocess.run(run, env=environment, cwd=ROOT, check=False, capture_output=True).returncode == 9
    for home in (place, str(tmp_path)):
        result = run_command(*words[:3], home, *words[4:], env=environment)
        assert result.exit_code == 0, result.output
    assert of_tables(place, LOGS) == of_tables(str(tmp_path), LOGS)


def test_one_run_writes_at_a_time(place: str) -> None:
    mine, other = Tables(None, place), Tables(None, place)
    with held(mine, WRITER, timedelta(minutes=5)), pytest.raises(BusyError), held(other, WRITER, timedelta(minutes=5)):
        pass


def test_of_two_writers_of_one_version_one_commits(place: str) -> None:
    tables = Tables(None, place)
    tables.create(LEASES)
    one, other = tables.local(LEASES), tables.local(LEASES)
    assert one is not None
    assert other is not None
    rows = one.rows()
    assert one.replace_if_unchanged(rows)
    assert not other.replace_if_unchanged(rows)


def test_questions_answer_and_settings_open_the_store(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = {name: os.environ[name] for name in ("AWS_ENDPOINT_URL", "AWS_SECRET_ACCESS_KEY")}
    for name in options:
        monkeypatch.delenv(name)
    environment = {f"COORDINATOR_AUDIT_STORAGE_OPTIONS__{name}": value for name, value in options.items()}
    for step in (["ingest", str(LOGS)], ["decode"], ["replay"], ["explain", "B-range-5175@6"]):
        result = run_command(*step, "--tables", place, env=environment)
        assert result.exit_code == 0, result.output
        assert SECRET not in result.output
        if step[0] == "explain":
            from_files = run_command(*step, "--log", LOGS)
            assert result.stdout == from_files.stdout
