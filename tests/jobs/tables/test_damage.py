"""Damage to tables in a folder: found before a run writes, and named with the file and the cause."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.pipeline import rebuild
from jobs.tables.catalog import CATALOG, DECODED
from jobs.tables.damage import Companions, DamagedTableError, TableDamage, check, check_log, find, spare_checkpoints
from jobs.tables.folder_reader import FolderReader
from jobs.tables.spark_errors import one_line
from tests.shared_data import ROOT

COMMITS = 5
"""Version 0 to 4, with a checkpoint at version 2."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    for number in range(COMMITS):
        write_deltalake(str(folder), pa.table({"number": [number]}), mode="append")
        if number == 2:
            DeltaTable(str(folder)).create_checkpoint()
    return tmp_path


def the_file(home: Path, pattern: str) -> Path:
    (found,) = (home / "runs").glob(pattern)
    return found


def commit(home: Path, version: int) -> Path:
    return home / "runs" / "_delta_log" / f"{version:020d}.json"


def cut(file: Path) -> Path:
    file.write_bytes(file.read_bytes()[:-20])
    return file


def gone(file: Path) -> Path:
    shutil.rmtree(file) if file.is_dir() else file.unlink()
    return file


def emptied(file: Path) -> Path:
    file.write_bytes(b"")
    return file


def a_data_file(home: Path) -> Path:
    return min((home / "runs").glob("*.parquet"))


def last_checkpoint(home: Path) -> Path:
    return the_file(home, "_delta_log/*2.checkpoint.parquet")


def lost_commit(home: Path) -> Path:
    """Spark writes a checksum of each commit; without its commit it tells that one is lost."""
    commit(home, 4).with_suffix(".crc").write_text("{}")
    return gone(commit(home, 4))


def lost_early_commit(home: Path) -> Path:
    """Not needed as long as the checkpoint is there."""
    gone(commit(home, 1))
    return gone(last_checkpoint(home))


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda home: cut(commit(home, 4)), "is cut or broken: line 2 is not JSON"),
        (lambda home: emptied(commit(home, 4)), "is cut or broken: line 1 is not JSON"),
        (lambda home: gone(commit(home, 3)), "is missing, but the table has version 4"),
        (lost_commit, "is missing, but the table has version 4"),
        (lambda home: gone(last_checkpoint(home)), "is missing, but _last_checkpoint names it"),
        (lost_early_commit, "is missing, but _last_checkpoint names it"),
        (lambda home: cut(last_checkpoint(home)).parent, "cannot be read: .*"),
        (lambda home: gone(home / "runs" / "_delta_log"), "is missing or has no commits, .*"),
        (lambda home: gone(a_data_file(home)), "is missing, but the log of the table names it"),
        (lambda home: cut(a_data_file(home)), r"has \d+ bytes, but the log of the table says \d+"),
    ],
)
def test_a_damaged_table_is_named_with_the_file_and_the_cause(
    home: Path, damage: Callable[[Path], Path], cause: str
) -> None:
    assert list(find(str(home), ["runs"], {})) == []
    file = damage(home)
    with pytest.raises(DamagedTableError, match=rf"^table {home}/runs is damaged: {file} {cause}\. Run: .* rebuild"):
        check(str(home), ["runs"], {})


def test_a_commit_before_the_checkpoint_is_not_needed(home: Path) -> None:
    gone(commit(home, 1))
    assert list(find(str(home), ["runs"], {})) == []
    assert spare_checkpoints(home / "runs") == []


def test_checkpoints_that_the_commits_make_unnecessary(home: Path) -> None:
    cut(last_checkpoint(home))
    for file in spare_checkpoints(home / "runs"):
        file.unlink()
    assert list(find(str(home), ["runs"], {})) == []
    assert DeltaTable(str(home / "runs")).to_pyarrow_table().num_rows == COMMITS


def test_a_table_that_others_need_is_missed_once_they_have_rows(home: Path) -> None:
    assert list(find(str(home), ["leases"], {})) == []
    assert list(find(str(home), ["leases"], {"runs": Companions(COMMITS, ("leases",))})) == []
    found = list(find(str(home), ["leases"], {"runs": Companions(COMMITS - 1, ("leases",))}))
    assert found == [TableDamage("leases", home / "leases", "is missing, but runs is there")]


@pytest.mark.parametrize("left", ["", "_commit_1.json.tmp"], ids=["nothing", "a part of a commit"])
def test_a_table_that_was_not_yet_created_is_not_damaged(tmp_path: Path, left: str) -> None:
    """The disk was full, or the run was killed."""
    log = tmp_path / "runs" / "_delta_log"
    log.mkdir(parents=True)
    if left:
        (log / left).write_text('{"protocol')
    check(str(tmp_path), ["runs"], {})
    check_log(str(tmp_path), "runs")
    (log / f"{0:020d}.json").write_text('{"protocol')
    with pytest.raises(DamagedTableError, match="line 1 is not JSON"):
        check(str(tmp_path), ["runs"], {})


def test_answers_from_a_damaged_table_are_refused(home: Path) -> None:
    """Without its last commit, the table can be read, but lacks a row."""
    check_log(str(home), "runs")
    check_log(str(home), "no_such_table")
    emptied(commit(home, 4))
    with pytest.raises(DamagedTableError, match="line 1 is not JSON"):
        list(FolderReader(str(home)).rows("SELECT count(*) FROM $runs"))


def test_the_documentation_names_each_table() -> None:
    text = (ROOT / "docs" / "nightly.md").read_text(encoding="utf-8")
    (rows,) = re.findall(r"^\| damaged \| names .*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    named = [row.split(" | ")[1].strip("`").split() for row in rows.splitlines()]
    made_again = [{table.name for table in rebuild.companions({*names})} for names in named]
    assert set(CATALOG) == set().union(*made_again)
    # Not only with the log, from which nearly everything is made.
    assert set(CATALOG) - set().union(*made_again[1:]) == {"log_records", *(table.name for table in DECODED)}


def test_what_is_made_from_snapshots_is_not_lost_with_them() -> None:
    found = {table.name for table in rebuild.companions({"end_offsets"})}
    assert found == {"end_offsets", "snapshot_settings", "dumped_files"}


def test_the_cause_of_an_error_of_delta_rs_is_in_its_line() -> None:
    text = "Generic LocalFileSystem error\n          \x1b[31m↳\x1b[0m Unable to copy data to file\n           "
    error = OSError(text + "\x1b[31m↳\x1b[0m No space left on device (os error 28)\n")
    said = "Generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)"
    assert one_line(error) == said
