"""SQL for two engines: names of tables and given values; what a folder without tables, and with newer ones, says."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.tables import folder_reader
from jobs.tables.folder_reader import FolderReader, UnsupportedTableError
from jobs.tables.format import FORMAT, FORMAT_VERSION
from jobs.tables.reader import MissingTableError, TableReader, can_open, found_once
from jobs.tables.spark_reader import sent
from tests.jobs.frames import assert_rows


@pytest.fixture
def reader(tmp_path: Path) -> FolderReader:
    groups = pa.table({"group_id": ["it's", 'a "b"', "c\\", ":cluster", "$runs"], "size": [1, 2, 3, 4, 5]})
    write_deltalake(tmp_path / "groups", groups)
    return FolderReader(str(tmp_path))


@pytest.mark.parametrize("name", ["it's", 'a "b"', "c\\", ":cluster", "$runs"])
def test_any_text_can_be_given(reader: FolderReader, name: str) -> None:
    (row,) = reader.rows("SELECT size FROM $groups WHERE group_id = :name", name=name)
    found = reader.rows("SELECT group_id FROM $groups WHERE size IN :sizes", sizes=[row["size"]])
    assert [each["group_id"] for each in found] == [name]


def test_the_bytes_of_a_binary_column(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "runs", pa.table({"value": pa.array([b"", b"\xff\x00\xfe", None], pa.binary())}))
    found = FolderReader(str(tmp_path)).rows("SELECT bytes_of(value) AS size FROM $runs ORDER BY size")
    assert [row["size"] for row in found] == [0, 3, None]


def test_no_rows_are_a_batch_with_the_types_of_the_columns(reader: FolderReader) -> None:
    (found,) = reader.batches("SELECT size, group_id FROM $groups WHERE size < 0")
    assert (found.num_rows, found.schema.names) == (0, ["size", "group_id"])


def test_a_reader_keeps_what_is_small(tmp_path: Path, reader: FolderReader) -> None:
    asked = "SELECT group_id FROM $groups WHERE size <= :most ORDER BY size"
    small = list(reader.rows(asked, most=1))
    assert next(reader.rows(asked, most=4))["group_id"] == "it's"  # not read to its end
    for file in (tmp_path / "groups").glob("*.parquet"):
        file.unlink()
    assert list(reader.rows(asked, most=1)) == small == [{"group_id": "it's"}]
    for most in (4, 2):
        with pytest.raises(InputError, match="groups is damaged"):
            list(reader.rows(asked, most=most))


def test_what_was_found_out_holds_for_one_reader(tmp_path: Path, reader: FolderReader) -> None:
    asked: list[str] = []

    @found_once
    def size_of(tables: TableReader, group_id: str) -> int:
        asked.append(group_id)
        ((size,),) = tables.tuples("SELECT size FROM $groups WHERE group_id = :group_id", group_id=group_id)
        return int(size)

    assert [size_of(reader, name) for name in ("it's", "$runs", "it's", "$runs")] == [1, 5, 1, 5]
    assert asked == ["it's", "$runs"]
    write_deltalake(tmp_path / "groups", pa.table({"group_id": ["it's"], "size": [7]}), mode="overwrite")
    assert [size_of(tables, "it's") for tables in (reader, FolderReader(str(tmp_path)))] == [1, 7]


def test_an_empty_list_equals_nothing(reader: FolderReader) -> None:
    for wanted in ("size IN :sizes", "size > 0 AND size IN :sizes", "size < 0 OR size IN :sizes"):
        assert not list(reader.rows(f"SELECT * FROM $groups WHERE {wanted}", sizes=[]))
    every = [*reader.tuples("SELECT group_id FROM $groups WHERE size > 0")]
    assert every
    assert [*reader.tuples("SELECT group_id FROM $groups WHERE size > 0 AND NOT size IN :sizes", sizes=[])] == every


def test_more_texts_than_a_list_can_have(tmp_path: Path) -> None:
    """As a list they overflow DataFusion's stack, which ends the process."""
    given = [f"it's \ue000 {number}" for number in range(100_000)]
    write_deltalake(str(tmp_path / "names"), pa.table({"name": [given[0], given[-1], "another", None]}))
    reader = FolderReader(str(tmp_path))
    named = "SELECT name FROM $names WHERE name IN :given ORDER BY name"
    assert [row["name"] for row in reader.rows(named, given=given)] == sorted([given[0], given[-1]])
    either = "SELECT count(*) AS found FROM $names WHERE name = 'another' OR name IN :given"
    assert [*reader.tuples(either, given=given)] == [(3,)]


def test_few_rows_are_not_divided_among_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_deltalake(tmp_path / "few", pa.table({"name": ["a", "b"]}))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def is_divided() -> bool:
        plan = FolderReader(str(tmp_path)).tuples("EXPLAIN SELECT name, count(*) FROM $few GROUP BY name")
        return "RepartitionExec" in str(list(plan))

    assert not is_divided()
    monkeypatch.setattr(folder_reader, "FEW_BYTES", 0)
    assert is_divided()


def test_a_table_that_is_not_there(reader: FolderReader) -> None:
    assert reader.exists("groups")
    assert not reader.exists("runs")
    with pytest.raises(MissingTableError, match="runs does not exist"):
        list(reader.rows("SELECT * FROM $runs"))


@pytest.mark.parametrize(("more", "release"), [(1, "a newer release"), (-1, "an older release")])
def test_tables_of_another_release_are_refused(tmp_path: Path, more: int, release: str) -> None:
    write_deltalake(tmp_path / "runs", pa.table({"cluster": ["c"]}))
    other = {FORMAT: str(FORMAT_VERSION + more)}
    DeltaTable(tmp_path / "runs").alter.set_table_properties(other, raise_if_not_exists=False)
    with pytest.raises(InputError, match=f"have format {FORMAT_VERSION + more}, written by {release}"):
        list(FolderReader(str(tmp_path)).rows("SELECT * FROM $runs"))


@pytest.mark.parametrize("feature", ["typeWidening", "aFeatureOfTomorrow"])
def test_a_table_with_a_feature_that_only_spark_knows(tmp_path: Path, feature: str) -> None:
    write_deltalake(tmp_path / "runs", pa.table({"cluster": ["c"]}))
    (log,) = (tmp_path / "runs" / "_delta_log").glob("*0.json")
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for action in actions:
        if "protocol" in action:
            features = {"readerFeatures": [feature], "writerFeatures": [feature]}
            action["protocol"] = {"minReaderVersion": 3, "minWriterVersion": 7, **features}
    log.write_text("\n".join(map(json.dumps, actions)))
    with pytest.raises(UnsupportedTableError, match=feature):
        FolderReader(str(tmp_path)).exists("runs")


@pytest.mark.parametrize(
    ("location", "is_here"),
    [
        ("tables", True),
        ("/lake/tables", True),
        ("s3://lake/tables", True),
        ("abfss://lake@account.dfs.core.windows.net/tables", True),
        ("main.audit", False),
        ("audit.tables", False),
        ("dbfs:/tables", False),
        ("hdfs://name/tables", False),
    ],
)
def test_what_only_spark_can_open(location: str, is_here: bool) -> None:
    assert can_open(location) == is_here


def test_rows_behind_an_empty_batch_reach_spark(spark: SparkSession) -> None:
    """A step that makes nothing of its first rows has such a batch; Spark itself leaves out what is behind it."""
    rows = pa.table({"number": pa.array([1, 2, 3], pa.int64())})
    in_pieces = pa.concat_tables([rows.slice(0, 0), rows.slice(0, 1), rows.slice(0, 0), rows.slice(1)])
    assert_rows(sent(spark, in_pieces), [(1,), (2,), (3,)])
    assert_rows(sent(spark, rows.slice(0, 0)), [])
