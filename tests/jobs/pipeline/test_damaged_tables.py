"""Tables damaged on disk: a run refuses them, ``rebuild`` sets them aside, and the next run makes them again."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from click.testing import Result
from pyspark.sql import SparkSession

from jobs.pipeline.rebuild import ASIDE
from jobs.tables.catalog import CATALOG, COMPANIONS
from jobs.tables.damage import find
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, QUARANTINE
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.results import FINDINGS
from jobs.tables.snapshots import END_OFFSETS, LAG_HISTORY, SNAPSHOT_SETTINGS
from tests.commands import run_command, text_of_command
from tests.jobs.conftest import ROOT, SAMPLE_LOGS, SMALL
from tests.jobs.filled_tables import TOPIC, content

pytestmark = pytest.mark.long

LOG = SAMPLE_LOGS / f"{TOPIC}-0"
STEPS = ["ingest", "decode", "replay", "offsets", "findings"]
COMPARED = (
    *(LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS, CLUSTER_RECORDS, QUARANTINE, LOG_RANGES),
    *(*HISTORY.values(), FINDINGS),
)


def nightly(home: Path, *more: Path) -> Result:
    file = home.with_suffix(".yaml")
    file.write_text(yaml.safe_dump({"nightly": {"steps": STEPS}}))
    return run_command("nightly", LOG, *more, "--tables", home, "--cluster", "c", "--config", file)


def assert_same_rows(spark: SparkSession, filled: Path, home: Path) -> None:
    """The tables have the rows that those of an undisturbed night have."""
    expected, found = (Tables(spark, str(place)) for place in (filled, home))
    for table in COMPARED:
        assert content(found, table, "c") == content(expected, table, "c"), table.name


@pytest.fixture(scope="module")
def filled(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables of one night; not to be written to."""
    home = tmp_path_factory.mktemp("filled") / "tables"
    assert nightly(home).exit_code == 0
    return home


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "tables"))


def data_files(home: Path, table: str) -> list[Path]:
    return sorted((home / table).glob("*.parquet"))


def newest_commit(home: Path, table: str) -> Path:
    return max((home / table / "_delta_log").glob("*.json"))


def damage_of_what_can_be_made_from_the_log(home: Path) -> str:
    """Every table but the log and what was decoded of it, the ways of damage in turn. Return what is named first."""
    shutil.rmtree(home / "runs" / "_delta_log")
    shutil.rmtree(home / "commit_summaries" / "_delta_log")
    newest_commit(home, "log_ranges").write_text("")
    data_files(home, "rebalances")[0].write_bytes(b"PAR1")
    shutil.rmtree(home / "group_states")
    data_files(home, "findings")[0].unlink()
    newest_commit(home, "leases").write_text("")
    return f"table {home}/runs is damaged"


def damage_of_decoded_tables(home: Path) -> str:
    newest_commit(home, "group_records").write_text('{"add":{"pa')
    data_files(home, "offset_commits")[0].unlink()
    return f"table {home}/offset_commits is damaged"


def damage_of_the_log(home: Path) -> str:
    for file in data_files(home, "log_records")[::2]:
        file.unlink()
    return f"table {home}/log_records is damaged"


def every_second_table_deleted(home: Path) -> str:
    for table in sorted(CATALOG)[::2]:
        shutil.rmtree(home / table, ignore_errors=True)
    return " is missing, but "


def the_other_tables_deleted(home: Path) -> str:
    for table in sorted(CATALOG)[1::2]:
        shutil.rmtree(home / table, ignore_errors=True)
    return " is missing, but "


@pytest.mark.parametrize(
    ("damage", "needs_dumps"),
    [
        (damage_of_what_can_be_made_from_the_log, False),
        (damage_of_decoded_tables, True),
        (damage_of_the_log, True),
        (every_second_table_deleted, None),
        (the_other_tables_deleted, None),
    ],
)
def test_damaged_tables_are_refused_and_made_again(
    spark: SparkSession, filled: Path, home: Path, damage: Callable[[Path], str], needs_dumps: bool | None
) -> None:
    first = damage(home)
    before = sorted((file, file.stat().st_size) for file in home.rglob("*") if file.is_file())
    refused = nightly(home)
    assert refused.exit_code == 1
    complaint = refused.stderr.splitlines()[-1]
    assert first in complaint
    assert complaint.endswith(f"Run: coordinator-audit rebuild --tables {home}")
    assert sorted((file, file.stat().st_size) for file in home.rglob("*") if file.is_file()) == before
    rebuilt = run_command("rebuild", "--tables", home)
    assert rebuilt.exit_code == 0, rebuilt.stderr
    if needs_dumps is not None:
        assert ("with all dumps" in rebuilt.stderr) is needs_dumps
    # Nothing is deleted.
    kept = sum(file.stat().st_size for file in (home / ASIDE).rglob("*.parquet"))
    assert kept > 0
    again = nightly(home)
    assert again.exit_code == 0, again.stderr
    assert list(find(str(home), CATALOG, COMPANIONS)) == []
    assert_same_rows(spark, filled, home)


def test_rebuild_of_tables_without_damage(home: Path) -> None:
    """Nothing is set aside unless it is damaged or named."""
    done = run_command("rebuild", "--tables", home)
    assert (done.exit_code, "no table at" in done.stderr) == (0, True)
    assert not (home / ASIDE).exists()
    unknown = run_command("rebuild", "no_such_table", "--tables", home)
    assert (unknown.exit_code, "unknown table no_such_table: use log_records, " in unknown.stderr) == (2, True)


def test_a_lost_checkpoint_is_repaired_from_the_commits(spark: SparkSession, filled: Path, home: Path) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(home / "log_records")).create_checkpoint()
    (checkpoint,) = (home / "log_records" / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.unlink()
    assert "_last_checkpoint names it" in nightly(home).stderr
    done = run_command("rebuild", "--tables", home)
    assert "log_records has all its rows again: only a checkpoint was damaged" in done.stderr
    expected, found = (content(Tables(spark, str(place)), LOG_RECORDS, "c") for place in (filled, home))
    assert found == expected


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that cannot be written, also not by root: a read-only mount; for others, permissions do."""
    if os.geteuid() != 0:
        places = [place for place in [folder, *folder.rglob("*")] if place.is_dir()]
        for place in places:
            place.chmod(0o555)
        try:
            yield
        finally:
            for place in places:
                place.chmod(0o755)
        return
    if os.system(f"mount --bind {folder} {folder} 2>/dev/null") != 0:
        pytest.skip("root may write everywhere, and may not mount here")
    try:
        assert os.system(f"mount -o remount,bind,ro {folder}") == 0
        yield
    finally:
        os.system(f"umount {folder}")


def test_a_read_only_folder_is_named_and_the_next_run_goes_on(spark: SparkSession, home: Path) -> None:
    with read_only(home):
        refused = nightly(home)
        assert refused.exit_code == 1
        complaint = refused.stderr.splitlines()[-1]
        assert "Read-only file system" in complaint or "ermission denied" in complaint
        assert str(home) in complaint
    nights = Tables(spark, str(home)).read(NIGHTLY_STEPS).select("night").distinct().count()
    assert nightly(home).exit_code == 0
    assert Tables(spark, str(home)).read(NIGHTLY_STEPS).select("night").distinct().count() == nights + 1


def test_a_full_disk_is_named_and_the_next_run_goes_on(spark: SparkSession, filled: Path, tmp_path: Path) -> None:
    """On a small file system in memory, where root may mount one; ``test_bad_input`` limits the size of files."""
    home = tmp_path / "tables"
    home.mkdir()
    size = sum(file.stat().st_size + 8192 for file in filled.rglob("*"))
    if os.system(f"mount -t tmpfs -o size={size} tmpfs {home} 2>/dev/null") != 0:
        pytest.skip("this user may not mount a file system")
    try:
        shutil.copytree(filled, home, dirs_exist_ok=True)
        (home / "ballast").write_bytes(bytes(shutil.disk_usage(home).free))
        refused = nightly(home)
        assert refused.exit_code == 1
        assert re.search(
            rf"table .*{home}/\w+` cannot be written: No space left on device", refused.stderr.splitlines()[-1]
        )
        (home / "ballast").unlink()
        assert nightly(home).exit_code == 0
        assert_same_rows(spark, filled, home)
    finally:
        os.system(f"umount {home}")


def test_a_disk_that_fills_up_at_any_time_of_a_first_night(spark: SparkSession, filled: Path, tmp_path: Path) -> None:
    """Each run has more room than the last one, and gets further; none loses or repeats a record."""
    home = tmp_path / "tables"
    home.mkdir()
    size = sum(file.stat().st_size + 4096 for file in filled.rglob("*"))
    if os.system(f"mount -t tmpfs -o size=64k tmpfs {home} 2>/dev/null") != 0:
        pytest.skip("this user may not mount a file system")
    try:
        failed = set()
        for percent in range(10, 100, 15):
            assert os.system(f"mount -o remount,size={size * percent // 100} {home}") == 0
            done = nightly(home)
            if done.exit_code == 0:
                break
            complaint = done.stderr.splitlines()[-1]
            assert (done.exit_code, done.exception.__class__) == (1, SystemExit), done.output
            assert "No space left on device" in complaint, complaint
            assert str(home) in complaint, complaint
            failed.add(complaint.partition("cannot be")[0])
        assert len(failed) > 1
        assert os.system(f"mount -o remount,size={size * 4} {home}") == 0
        assert nightly(home).exit_code == 0
        assert_same_rows(spark, filled, home)
    finally:
        os.system(f"umount {home}")


def test_two_nights_at_once(spark: SparkSession, filled: Path, tmp_path: Path) -> None:
    """One of them writes, the other names it and changes nothing; the next run goes on."""
    home = tmp_path / "tables"
    file = home.with_suffix(".yaml")
    file.write_text(yaml.safe_dump({"nightly": {"steps": STEPS}, "spark": {"conf": SMALL}}))
    command = [sys.executable, "-m", "jobs", "nightly", LOG, "--tables", home, "--cluster", "c", "--config", file]
    texts = list(map(str, command))
    both = [subprocess.Popen(texts, cwd=ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=600)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1], said
    writer, refused = sorted(range(2), key=lambda number: both[number].returncode)
    assert f"/{both[writer].pid}/" in said[refused].splitlines()[-1], said
    assert "another run, " in said[refused].splitlines()[-1]
    nights = Tables(spark, str(home)).read(NIGHTLY_STEPS).select("night").distinct().count()
    assert nights == 1
    assert nightly(home).exit_code == 0
    assert_same_rows(spark, filled, home)


def test_snapshots_are_read_again_from_their_files(spark: SparkSession, home: Path, tmp_path: Path) -> None:
    """Their files are known, so the table of known files goes with them."""
    file, started_ms = tmp_path / "cluster.jsonl", 1_795_256_781_267
    partition = {"topic": "warmup", "topic_id": None, "partition": 0, "replica_racks": [None], "end_offset": 5}
    settings = {"resource_type": "GROUP", "resource": "warmup", "configs": {"a": "1"}, "missing": None}
    rows = [{**each, "timestamp_ms": started_ms + 60_000, "cluster_id": "C"} for each in (partition, settings)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert nightly(home, file).exit_code == 0
    of_snapshots = (END_OFFSETS, SNAPSHOT_SETTINGS, LAG_HISTORY)
    before = {table.name: content(Tables(spark, str(home)), table, "c") for table in (*of_snapshots, *COMPARED)}
    assert all(before[table.name] for table in of_snapshots)
    newest_commit(home, "end_offsets").write_text("")
    assert f"table {home}/end_offsets is damaged" in nightly(home, file).stderr
    rebuilt = run_command("rebuild", "--tables", home)
    assert "run nightly with all snapshots" in rebuilt.stderr
    assert "it makes these tables again" not in rebuilt.stderr
    assert nightly(home, file).exit_code == 0
    after = {table.name: content(Tables(spark, str(home)), table, "c") for table in (*of_snapshots, *COMPARED)}
    assert after == before


def test_the_commands_in_the_documentation(spark: SparkSession, filled: Path, home: Path) -> None:
    """With the names of each row of the table, but those of the log, which set everything aside."""
    text = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
    (rows,) = re.findall(r"^\| damaged \| names .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    named = [row.split(" | ")[1].strip("`").split() for row in rows.splitlines()]
    assert {"log_records", "runs", "group_states", "leases"} <= {name for names in named for name in names}
    for names in named:
        if "log_records" not in names:
            there = [name for name in names if (home / name).exists()]
            done = text_of_command("rebuild", *names, "--tables", home)
            assert all(f"{name}\t" in done for name in there), done
    assert nightly(home).exit_code == 0
    assert_same_rows(spark, filled, home)
