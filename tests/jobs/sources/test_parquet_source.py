"""Parquet as Spark writes the columns of its Kafka source: read without Spark, with the rows that Spark reads."""

import json
from base64 import b64encode
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from coordinator_core.wire.batch_format import Damage
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


def test_a_folder_of_another_topic_is_not_of_this_one(tmp_path: Path) -> None:
    table = as_spark_has_it(kafka_rows(sample_rows())).drop_columns(["topic", "partition"])
    for topic in (TOPIC, "payments"):
        place = tmp_path / f"topic={topic}" / "partition=0"
        place.mkdir(parents=True)
        pq.write_table(table.slice(0, 5), place / "0.parquet")
    assert {(row["log_topic"], row["log_partition"]) for row in read(tmp_path)} == {(TOPIC, 0)}
    assert len(read(tmp_path)) == 5
    assert [log.topic for log in find_logs([tmp_path])] == [TOPIC]


def text(values: pa.ChunkedArray) -> pa.Array:
    return pa.array([None if value is None else b64encode(value).decode() for value in values.to_pylist()])


FORMS: dict[str, Callable[[pa.Table], dict[str, pa.Array]]] = {
    "base64": lambda table: {name: text(table[name]) for name in ("key", "value")},
    "a tombstone as an empty text": lambda table: {"value": pc.fill_null(text(table["value"]), "")},
    "numbers as text": lambda table: {name: table[name].cast(pa.string()) for name in ("partition", "offset")},
    "decimals": lambda table: {"offset": table["offset"].cast(pa.decimal128(38, 9))},
    "fractions": lambda table: {name: table[name].cast(pa.float64()) for name in ("partition", "offset")},
    "names in capitals": lambda table: {},
    "µs": lambda table: {"timestamp": pc.multiply(table["timestamp"], 1000)},
    "ns": lambda table: {"timestamp": pc.add(pc.multiply(table["timestamp"], 1_000_000), 999_999)},
    "ms as text": lambda table: {"timestamp": table["timestamp"].cast(pa.string())},
    "ISO 8601": lambda table: {
        "timestamp": pc.strftime(table["timestamp"].cast(pa.timestamp("ms", "UTC")), "%Y-%m-%dT%H:%M:%SZ")
    },
}
"""The same records as other writers store them: the columns that differ."""


def in_form(form: str, place: Path) -> Path:
    table = pa.Table.from_pylist(kafka_rows(sample_rows())[:60])
    for name, column in FORMS[form](table).items():
        table = table.set_column(table.column_names.index(name), name, column)
    if form == "names in capitals":
        table = table.rename_columns([name.upper() for name in table.column_names])
    place.mkdir()
    pq.write_table(table, place / "0.parquet")
    return place


def to_second(rows: Sequence[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return [(*row[:3], int(str(row[3])) // 1000, *row[4:]) for row in rows]


@pytest.mark.parametrize("form", FORMS)
def test_records_are_read_in_each_form(tmp_path: Path, form: str) -> None:
    place = in_form(form, tmp_path / "dump")
    wanted = records(sample_rows()[:60])
    as_given = to_second if form == "ISO 8601" else list
    assert as_given(records(read(place))) == as_given(wanted)
    parts = ((log, part) for log in find_logs([place]) for part in log.parts())
    found = ((log, row) for log, part in parts for row in log_rows(cast("pa.RecordBatch", part)))
    rows = [(TOPIC, log.partition, row.offset, row.timestamp, row.key, row.value) for log, row in found]
    assert as_given(rows) == as_given(wanted)


def test_spark_reads_each_form_alike(spark: SparkSession, tmp_path: Path) -> None:
    for form in FORMS:
        place = in_form(form, tmp_path / form)
        (dump,) = open_dump(spark, [str(place)])
        there = [row.asDict() for row in dump.load().collect()]
        for row in there:
            row["key"], row["value"] = (None if row[name] is None else bytes(row[name]) for name in ("key", "value"))
        assert records(there) == records(read(place)), form
    other = pa.table({"key": [b"k"], "value": [b"v"], "partition": [0], "offset": [0], "topic": ["payments"]})
    (tmp_path / "other").mkdir()
    pq.write_table(other, tmp_path / "other" / "0.parquet")
    with pytest.raises(InputError, match="its records are of payments, and none of __consumer_offsets"):
        open_dump(spark, [str(tmp_path / "other")])
    table = pa.table({"key": ["00ff"], "value": ["AAE="], "partition": [0], "offset": [0]})
    (tmp_path / "hex").mkdir()
    pq.write_table(table, tmp_path / "hex" / "0.parquet")
    with pytest.raises(Exception, match="hexadecimal digits"):
        open_dump(spark, [str(tmp_path / "hex")])[0].load().collect()


def test_a_number_that_is_no_offset_or_partition_is_refused(tmp_path: Path) -> None:
    table = as_spark_has_it(kafka_rows(sample_rows())[:5])
    for name, numbers in (
        ("offset", [0.5] * 5),
        ("offset", [-5] * 5),
        ("partition", [1 << 40] * 5),
        ("offset", ["x"] * 5),
    ):
        given = table.set_column(table.column_names.index(name), name, pa.array(numbers))
        pq.write_table(given, tmp_path / "0.parquet")
        with pytest.raises(InputError, match=f"0.parquet: column '{name}'"):
            read(tmp_path)
        with pytest.raises(InputError, match=f"0.parquet: column '{name}'"):
            find_logs([tmp_path])


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
    for name, column in (("missing", None), ("text", pa.array(["a"] * 5)), ("hex", pa.array(["0001"] * 5))):
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
        ("text", "column 'value': invalid base64"),
        ("hex", "column 'value': hexadecimal digits"),
        ("twice", "the column 'value' is there 2 times"),
        ("broken", "cannot be read as parquet"),
    ):
        with pytest.raises(InputError, match=said):
            read(tmp_path / name)


def test_a_delta_table_has_the_files_of_its_last_version(tmp_path: Path) -> None:
    place, wanted = tmp_path / "dé lta", sample_rows()
    table = as_spark_has_it(kafka_rows(wanted))
    write_deltalake(place, table.slice(0, 10))
    write_deltalake(place, table, mode="overwrite", partition_by=["partition"], schema_mode="overwrite")
    assert len([*place.rglob("*.parquet")]) == 1 + len(set(table["partition"].to_pylist()))
    (dump,) = open_dump(NO_SPARK, [str(place)])
    assert dump.source is not None
    tasks = dump.source.partitions()
    assert records([row for task in tasks for batch in dump.source.read(task) for row in batch.to_pylist()]) == records(
        wanted
    )
    logs = find_logs([place])
    assert all(file.endswith(".parquet") for log in logs for file in log.paths)
    assert not any(isinstance(part, Damage) for log in logs for part in log.parts())
    next(place.rglob("partition=0/*.parquet")).unlink()
    for opened in (find_logs, lambda paths: open_dump(NO_SPARK, [str(path) for path in paths])):
        with pytest.raises(InputError, match=r"1 of [0-9]+ files of the Delta table are not there"):
            opened([place])


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "with a file beside it"])
def test_a_delta_table_below_a_folder_has_the_files_of_its_last_version(tmp_path: Path, *, beside: bool) -> None:
    wanted = sample_rows()
    table = as_spark_has_it(kafka_rows(wanted))
    for rows in (table.slice(0, 10), table.slice(20)):
        write_deltalake(tmp_path / "dumps" / "of groups", rows, mode="overwrite")
    if beside:
        pq.write_table(table.slice(0, 20), tmp_path / "0.parquet")
    kept = wanted if beside else wanted[20:]
    assert records(read(tmp_path)) == records(kept)
    logs = find_logs([tmp_path])
    assert sum(sum(1 for _ in log_rows(part)) for log in logs for part in log.parts()) == len(kept)  # type: ignore[arg-type]


def test_a_part_of_a_delta_table_is_refused_with_the_name_of_the_table(tmp_path: Path) -> None:
    place = tmp_path / "table"
    write_deltalake(place, as_spark_has_it(kafka_rows(sample_rows())), partition_by=["partition"])
    for opened in (find_logs, lambda paths: open_dump(NO_SPARK, [str(path) for path in paths])):
        with pytest.raises(InputError, match=f"part of a Delta table: name the table, {place}"):
            opened([place / "partition=0"])


def test_spark_reads_no_loose_files_of_a_delta_table(tmp_path: Path, spark: SparkSession) -> None:
    write_deltalake(tmp_path / "table", as_spark_has_it(kafka_rows(sample_rows())))
    with pytest.raises(InputError, match=f"{tmp_path}/table: a Delta table in the folder {tmp_path}: name the table"):
        open_dump(spark, [str(tmp_path)])


def test_a_delta_table_with_rows_marked_as_deleted_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, as_spark_has_it(kafka_rows(sample_rows())))
    (log,) = (tmp_path / "_delta_log").glob("*.json")
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    newer = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    log.write_text("".join(json.dumps(newer if "protocol" in line else line) + "\n" for line in lines))
    with pytest.raises(InputError, match="a Delta table with deletion vectors: write it as Parquet"):
        find_logs([tmp_path])


@pytest.mark.parametrize("column", ["partition", "offset"])
def test_an_offset_without_its_partition_is_no_position(tmp_path: Path, column: str) -> None:
    table = as_spark_has_it(kafka_rows(sample_rows())[:5])
    none = pa.nulls(5, table[column].type)
    pq.write_table(table.set_column(table.column_names.index(column), column, none), tmp_path / "0.parquet")
    assert {(row["log_partition"], row["log_offset"]) for row in read(tmp_path)} == {(None, None)}
    logs = find_logs([tmp_path])
    assert not any(log.is_placed for log in logs)
    assert sum(part.num_rows for log in logs for part in log.parts() if not isinstance(part, Damage)) == 5
