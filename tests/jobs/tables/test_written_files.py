"""Files that tasks write for Delta tables: in order, in small row groups, with statistics, and committed once."""

import json
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from pyspark.sql import Row, SparkSession

from jobs.tables import written_files
from jobs.tables.delta import INDEXED_COLUMNS, Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.records import GROUP_RECORDS, OFFSET_COMMITS
from jobs.tables.table import Table
from jobs.tables.written_files import WRITTEN, TableFile


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Tables in a folder, for which nothing asks Spark."""
    for table in (OFFSET_COMMITS, GROUP_RECORDS, LOG_RECORDS):
        DeltaTable.create(str(tmp_path / table.name), Schema.from_arrow(table.schema))
    return Tables(cast(SparkSession, None), str(tmp_path))


def batch(table: Table, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(rows, schema=table.schema)


def written(tables: Tables, table: Table, *batches: pa.RecordBatch) -> Row:
    file = TableFile(Path(tables.location), table)
    for rows in batches:
        file.add(rows)
    return Row(**dict(zip(WRITTEN.names, file.close(), strict=True)))


def commits(groups: list[str | None]) -> list[dict[str, Any]]:
    return [
        {"cluster": "c", "group_id": group, "log_topic": "t", "log_partition": 0, "log_offset": offset}
        for offset, group in enumerate(groups)
    ]


def test_rows_of_a_group_lie_together_and_statistics_say_what_is_in_the_file(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(written_files, "ROWS_A_GROUP", 2)
    rows = commits(["b", "a", "ä", "a", "b"])
    file = written(tables, OFFSET_COMMITS, batch(OFFSET_COMMITS, rows[:3]), batch(OFFSET_COMMITS, rows[3:]))
    path = Path(tables.location, OFFSET_COMMITS.name, file.path)
    found = pq.read_table(path).to_pylist()
    assert [(row["group_id"], row["log_offset"]) for row in found] == [("a", 1), ("a", 3), ("b", 0), ("b", 4), ("ä", 2)]
    assert pq.read_metadata(path).num_row_groups == 3
    assert file.size == path.stat().st_size
    stats = json.loads(file.stats)
    assert stats["numRecords"] == 5
    assert (stats["minValues"]["group_id"], stats["maxValues"]["group_id"]) == ("a", "ä")
    assert (stats["minValues"]["log_offset"], stats["maxValues"]["log_offset"]) == (0, 4)
    assert (stats["nullCount"]["cluster"], stats["nullCount"]["run_id"]) == (0, 5)
    assert "run_id" not in stats["minValues"]
    assert stats["nullCount"].keys() <= set(OFFSET_COMMITS.schema.names[:INDEXED_COLUMNS])


def test_many_rows_are_written_before_the_end(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written_files, "ROWS_TOGETHER", 4)
    file = TableFile(Path(tables.location), OFFSET_COMMITS)
    for _ in range(3):
        file.add(batch(OFFSET_COMMITS, commits(["b", "a"])))
    assert list(Path(tables.location, OFFSET_COMMITS.name).glob("*.parquet"))
    table, path, _, _ = file.close()
    found = pq.read_table(Path(tables.location, table, path)).column("group_id").to_pylist()
    assert found == ["a", "a", "b", "b", "a", "b"]


def test_a_transaction_is_committed_once(tables: Tables) -> None:
    for transaction in ("run/0", "run/0", "run/1"):
        for table in (OFFSET_COMMITS, GROUP_RECORDS):
            file = written(tables, table, batch(table, commits(["a", None])))
            written_files.commit(tables, table, [file], transaction)
    for table in (OFFSET_COMMITS, GROUP_RECORDS):
        found = DeltaTable(f"{tables.location}/{table.name}")
        assert found.version() == 2
        groups = found.to_pyarrow_table(columns=["group_id"]).column("group_id").to_pylist()
        assert sorted(groups, key=str) == [None, None, "a", "a"]
    written_files.commit(tables, LOG_RECORDS, [], "run/0")
    assert DeltaTable(f"{tables.location}/{LOG_RECORDS.name}").version() == 0


@pytest.mark.parametrize(
    ("writer_version", "features", "plain"),
    [(1, None, True), (2, None, True), (4, None, False), (7, ["appendOnly"], True), (7, ["columnMapping"], False)],
)
def test_only_plain_tables_are_written_by_tasks(writer_version: int, features: list[str] | None, plain: bool) -> None:
    protocol = Row(min_writer_version=writer_version, writer_features=features)
    assert written_files._is_plain(cast(Any, protocol)) is plain
