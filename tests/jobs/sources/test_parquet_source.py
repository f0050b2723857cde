"""Parquet as Spark writes the columns of its Kafka source: read without Spark, with the rows that Spark reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.sources.dump import DumpFormat, format_of, open_dump
from jobs.sources.files import find_logs
from jobs.sources.log_reader import log_rows
from tests.jobs.filled_tables import TOPIC, kafka_rows, sample_rows

NO_SPARK = cast("Any", None)
TIMES = {
    "UTC": lambda times: times.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
    "without a zone": lambda times: times.cast(pa.timestamp("ms")).cast(pa.timestamp("us")),
    "a number": lambda times: times,
}


def as_spark_has_it(rows: list[dict[str, Any]], column: str = "UTC") -> pa.Table:
    table = pa.Table.from_pylist(rows)
    for name, values in (
        ("timestamp", TIMES[column](table["timestamp"])),
        ("timestampType", table["timestampType"].cast(pa.int32())),
        ("partition", table["partition"].cast(pa.int32())),
    ):
        table = table.set_column(table.column_names.index(name), name, values)
    return table


def read(place: Path) -> list[dict[str, Any]]:
    """The rows of a dump, in a process that has no Spark."""
    assert format_of(str(place)) is DumpFormat.PARQUET
    (dump,) = open_dump(NO_SPARK, [str(place)])
    assert dump.source is not None
    tasks = dump.source.partitions()
    assert sum(map(dump.source.size, tasks)) > 0
    return [row for task in tasks for batch in dump.source.read(task) for row in batch.to_pylist()]


def records(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    names = ("log_topic", "log_partition", "log_offset", "timestamp_ms", "key", "value")
    return sorted(tuple(row[name] for name in names) for row in rows)


@pytest.mark.parametrize("column", TIMES)
@pytest.mark.parametrize("int96", [False, True])
def test_records_are_those_of_the_segments(tmp_path: Path, column: str, int96: bool) -> None:
    wanted = sample_rows()
    table = as_spark_has_it(kafka_rows(wanted), column)
    for number in range(2):
        pq.write_table(
            table.slice(number * 500, 500 if number == 0 else None),
            tmp_path / f"part-0000{number}-c000.snappy.parquet",
            use_deprecated_int96_timestamps=int96,
        )
    (tmp_path / "_SUCCESS").touch()
    found = read(tmp_path)
    assert records(found) == records(wanted)
    assert found[0]["timestamp_type"] == "CreateTime"
    assert dict(found[0]["extra"]) == {"dumped_by": "me"}


def test_a_folder_for_each_partition_tells_it(tmp_path: Path) -> None:
    wanted = sample_rows()
    table = as_spark_has_it(kafka_rows(wanted))
    for number in set(table["partition"].to_pylist()):
        (tmp_path / f"partition={number}").mkdir()
        of_one = table.filter(pa.compute.equal(table["partition"], number)).drop_columns("partition")
        pq.write_table(of_one, tmp_path / f"partition={number}" / "part-00000-c000.snappy.parquet")
    assert records(read(tmp_path)) == records(wanted)
    logs = find_logs([tmp_path])
    assert all(log.is_placed for log in logs)
    assert sum(sum(1 for _ in log_rows(part)) for log in logs for part in log.parts()) == len(wanted)  # type: ignore[arg-type]


def test_rows_are_those_that_spark_reads(spark: SparkSession, tmp_path: Path) -> None:
    table = as_spark_has_it(kafka_rows(sample_rows())[:50])
    headers: list[list[dict[str, Any]] | None] = [[{"key": "h", "value": b"1"}], *[None] * 49]
    table = table.append_column("headers", pa.array(headers)).append_column("b", pa.array([b"x"] * 50))
    table = table.append_column("list", pa.array([[1, 2]] * 50)).append_column(
        "none", pa.array([None] * 50, pa.int32())
    )
    table = table.set_column(0, "key", table["key"]).set_column(2, "topic", pa.array([None, *[TOPIC] * 49]))
    pq.write_table(table, tmp_path / "0.parquet")
    (dump,) = open_dump(spark, [str(tmp_path)])
    there = [row.asDict(recursive=True) for row in dump.load().collect()]
    here = read(tmp_path)
    for row in here:
        row["extra"] = dict(row["extra"])
        row["source"] = f"file:{row['source']}"
    for row in there:
        row["key"], row["value"] = (None if row[name] is None else bytes(row[name]) for name in ("key", "value"))
        for header in row["headers"] or ():
            header["value"] = bytes(header["value"])
    for one, other in zip(here, there, strict=True):
        assert [(name, value, other[name]) for name, value in one.items() if value != other[name]] == []


def test_what_is_no_such_table_is_refused_without_spark(tmp_path: Path) -> None:
    table = as_spark_has_it(kafka_rows(sample_rows())[:5])
    for name, column in (("missing", None), ("text", pa.array(["a"] * 5))):
        (tmp_path / name).mkdir()
        given = table.drop_columns("value")
        pq.write_table(given if column is None else given.append_column("value", column), tmp_path / name / "0.parquet")
    (tmp_path / "twice").mkdir()
    pq.write_table(table.append_column("value", table["value"]), tmp_path / "twice" / "0.parquet")
    with pytest.raises(InputError, match="the column 'value' is there 2 times"):
        find_logs([tmp_path / "twice"])
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "0.parquet").write_bytes(b"PAR1 and no more")
    for name, said in (
        ("missing", "column 'value' is missing"),
        ("text", "column 'value' must be binary, not string"),
        ("twice", "the column 'value' is there 2 times"),
        ("broken", "cannot be read as parquet"),
    ):
        with pytest.raises(InputError, match=said):
            read(tmp_path / name)
