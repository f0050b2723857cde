"""A table of a folder is opened again only once somebody has committed."""

import shutil
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from jobs.tables.opened import Known, opened


def test_a_table_is_opened_again_once_there_is_a_commit(tmp_path: Path) -> None:
    place, rows = str(tmp_path / "t"), pa.table({"n": [1]})
    write_deltalake(place, rows)
    first = opened(place)
    assert opened(place) is first
    assert opened(place, again=True) is not first
    write_deltalake(place, rows, mode="append")
    assert opened(place).version() == 1


def test_a_table_that_was_made_again_is_another_one(tmp_path: Path) -> None:
    place = str(tmp_path / "t")
    write_deltalake(place, pa.table({"n": [1]}))
    assert opened(place).to_pyarrow_table()["n"].to_pylist() == [1]
    shutil.rmtree(place)
    write_deltalake(place, pa.table({"n": [2]}))
    assert opened(place).to_pyarrow_table()["n"].to_pylist() == [2]


def test_a_writer_moves_only_its_own_table(tmp_path: Path) -> None:
    """A commit moves the table that it is made with: another writer's is refused only over the version it opened."""
    place, mine = str(tmp_path / "t"), Known()
    write_deltalake(place, pa.table({"n": [1]}))
    read = opened(place)
    write_deltalake(opened(place, mine), pa.table({"n": [2]}), mode="append")
    assert (read.version(), opened(place).version()) == (0, 1)
