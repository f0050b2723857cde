"""The ways into the typed tables: a task reads segments itself, or rows come through Spark; it writes files, or rows go
through ``arrived``.
"""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, MapType, StructType

from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from jobs.pipeline import ingest, typed_tables
from jobs.pipeline.decode_arrow import TYPED
from jobs.pipeline.on_spark import arrived
from jobs.pipeline.row_identity import identified
from jobs.sources.dump import open_dump
from jobs.sources.dump_batches import SCHEMA
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RANGES, LOG_RECORDS
from jobs.tables.spark_reader import spark_types
from jobs.tables.versions import versions
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC, content
from tests.jobs.frames import assert_rows, assert_same
from tests.jobs.logs import write_segment

IDENTIFY = partial(identified, cluster="c", run_id="r")


def dumped(**columns: Any) -> dict[str, Any]:
    place = {"log_topic": TOPIC, "log_partition": 0, "log_offset": 7, "source": "/a/0.log", "place": 61}
    return dict.fromkeys(SCHEMA.names) | {"kind": "record", "key": b"\0\1g"} | place | columns


CASES: list[tuple[dict[str, Any], int | None, str | None]] = [
    # a row, the record type of its key, and what identifies it without a position
    (dumped(), 1, None),
    (dumped(key=None), None, None),
    (dumped(key=b"\1"), None, None),
    (dumped(key=b""), None, None),
    (dumped(key=b"\xff\xfe" + b"key" * 30), -2, None),
    (dumped(kind="control", key=b"\0\0\0\1"), None, None),
    (dumped(kind="damaged", key=None, log_offset=None), None, "/a/0.log#61"),
    (dumped(log_partition=None), 1, "/a/0.log"),
    (dumped(log_offset=None, log_topic="m", source="/x/y/1-2.checkpoint", place=3), 1, "1-2.checkpoint#3"),
    (dumped(log_offset=None, source="2.checkpoint", place=4), 1, "2.checkpoint#4"),
]


@pytest.mark.parametrize("cases", [CASES, CASES[:6], CASES[1:2], []], ids=["all", "placed", "no key", "none"])
def test_what_identifies_rows(cases: list[tuple[dict[str, Any], int | None, str | None]]) -> None:
    batch = pa.RecordBatch.from_pylist([row for row, *_ in cases], schema=SCHEMA)
    found = IDENTIFY(batch)
    assert found.schema.names == LOG_RECORDS.schema.names
    added = [(row["cluster"], row["run_id"], row["record_type"], row["stray"]) for row in found.to_pylist()]
    assert added == [("c", "r", record_type, stray) for _, record_type, stray in cases]
    assert found.select(batch.schema.names).to_pylist() == batch.to_pylist()


def test_keys_have_the_hash_that_spark_gives_them(spark: SparkSession) -> None:
    rows = [row for row, *_ in CASES]
    asked = F.when(F.col("key").isNotNull(), F.xxhash64("key")).alias("hash")
    here = IDENTIFY(pa.RecordBatch.from_pylist(rows, schema=SCHEMA)).column("key_hash").to_pylist()
    assert_rows(frame(spark, rows).select(asked), [(each,) for each in here], in_order=True)


@pytest.fixture
def odd_log(tmp_path: Path) -> Path:
    """Records with headers, and then bytes that are no batch."""
    headers = (("é", b"\0\xff"), ("", b""), ("twice", b"1"), ("twice", b"2"))
    records = [NewRecord(0, 5, b"\0\1k", None, headers), NewRecord(1, 6, b"\0\1k", b"\0", ())]
    write_segment(tmp_path / f"{TOPIC}-7", [encode_batch(records), b"\0" * 100])
    return tmp_path


def all_rows(tables: Tables) -> list[list[tuple[Any, ...]]]:
    return [content(tables, table, "c") for table in TYPED.values()]


@pytest.mark.long
def test_all_ways_fill_the_tables_alike(
    spark: SparkSession, odd_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for reads_segments, writes_files in ((True, True), (False, True), (True, False)):
        monkeypatch.setattr(written_files, "can_be_committed", lambda *_, can=writes_files: can)
        tables = Tables(spark, str(tmp_path / f"{reads_segments} {writes_files}"))
        dumps = open_dump(spark, [str(odd_log), str(SAMPLE_LOGS)])
        ingest.run(tables, [dump if reads_segments else dump._replace(source=None) for dump in dumps], "c")
        found.append(all_rows(tables))
    assert found[0] == found[1]
    assert found[0] == found[2]
    log = next(rows for rows, table in zip(found[0], TYPED.values(), strict=True) if table is LOG_RECORDS)
    assert len(log) > 3404


@pytest.mark.parametrize("writes_files", [True, False])
def test_rows_of_new_segments_do_not_come_through_spark(
    spark: SparkSession, odd_log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writes_files: bool
) -> None:
    monkeypatch.setattr(written_files, "can_be_committed", lambda *_: writes_files)
    monkeypatch.setattr(arrived, "write", lambda *_: pytest.fail("rows come through Spark"))
    tables = Tables(spark, str(tmp_path / "tables"))
    ingest.run(tables, open_dump(spark, [str(odd_log)]), "c")
    assert len(all_rows(tables)[-1]) == 2


HEADERS = [
    None,
    [],
    [("a", b"\0\xff"), ("a", None), ("", b"")],
    [('é"\\\n', b"x" * 100)],
    [(None, b"1")],
    [None, ("b", b"2")],
]
EXTRA = [None, {}, {'é"': "1", "none": None}, {"a": "", "b": "\n"}, None, {"x": "y"}]


@pytest.mark.parametrize("here", [True, False])
def test_nested_columns_stay_as_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    if not here:
        monkeypatch.setattr(written_files, "can_be_committed", lambda *_: False)
    tables = Tables(spark, str(tmp_path))
    typed_tables.create(tables)
    rows = [
        dumped(log_offset=number, headers=headers, extra=extra)
        for number, (headers, extra) in enumerate(zip(HEADERS, EXTRA, strict=True))
    ]
    arrived.write(tables, frame(spark, rows), "r/0", IDENTIFY)
    found = tables.read(LOG_RECORDS).orderBy("log_offset").select("headers", "extra")
    assert_rows(found, zip(HEADERS, EXTRA, strict=True), in_order=True)


def test_no_nested_column_goes_to_python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark measures such a column again with each row of a batch."""
    sent: list[StructType] = []

    def note(rows: DataFrame, *_: Any) -> list[Any]:
        sent.append(rows.schema)
        return []

    monkeypatch.setattr(written_files, "write_files", note)
    tables = Tables(spark, str(tmp_path))
    typed_tables.create(tables)
    arrived.write(tables, frame(spark, [dumped()]).withColumn("more", F.lit(1)), "r/0", IDENTIFY)
    (schema,) = sent
    assert "headers" in schema.names
    assert not [field.name for field in schema if isinstance(field.dataType, StructType | ArrayType | MapType)]


def frame(spark: SparkSession, rows: list[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame([tuple(row.values()) for row in rows], spark_types(SCHEMA))


def test_rows_of_spark_are_appended_once_by_workers_as_by_spark(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranges = {"cluster": "c", "run_id": "r", "log_topic": TOPIC, "first_offset": 0, "leader_epoch": None}
    rows = spark.createDataFrame(
        [tuple((dict.fromkeys(LOG_RANGES.schema.names) | ranges | {"log_partition": at}).values()) for at in range(5)],
        spark_types(LOG_RANGES.schema),
    )
    found = []
    for way in ("workers", "spark"):
        if way == "spark":
            monkeypatch.setattr(written_files, "can_be_committed", lambda *_: False)
        tables = Tables(spark, str(tmp_path / way))
        tables.create(LOG_RANGES)
        for _ in range(2):
            written_files.append(tables, LOG_RANGES, rows, "r/c")
        found.append(tables.read(LOG_RANGES))
        assert versions(tables, [LOG_RANGES]) == {LOG_RANGES.name: 1}
    assert_same(*found)
    assert found[0].count() == 5
