"""Dumps of every shape through ingest and decode: each record once, whatever comes twice or in another order."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial, partialmethod
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from coordinator_core.groups.log_partition import log_partition_of
from jobs.pipeline import decode, ingest
from jobs.pipeline import runs as ledger
from jobs.sources.dump import open_dump
from jobs.sources.printed.logs import OF_LINES
from jobs.tables import written_files
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS, QUARANTINE, RUNS
from jobs.tables.records import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from tests.jobs import filled_tables
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.filled_tables import TOPIC, content, decoded, expected, kafka_rows, sample_rows, take
from tests.jobs.frames import assert_rows

SEGMENTS = [SAMPLE_LOGS / f"{TOPIC}-0", SAMPLE_LOGS / f"{TOPIC}-1"]
OTHER_LOGS = ("__cluster_metadata", "__share_group_state")
DECODED = (LOG_RECORDS, OFFSET_COMMITS, GROUP_RECORDS)


@pytest.fixture(scope="module")
def rows() -> filled_tables.Rows:
    return [row for row in sample_rows() if row["log_partition"] in (0, 1)]


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Tables that hold the sample as the cluster ``segments``; tests add clusters of their own."""
    made = Tables(spark, str(tmp_path_factory.mktemp("lake")))
    others = [path for topic in OTHER_LOGS for path in SAMPLE_LOGS.glob(f"{topic}-*")]
    take(made, "segments", *SEGMENTS, *others, topics=(TOPIC, *OTHER_LOGS))
    return made


def contents(tables: Tables, cluster: str) -> list[list[tuple[Any, ...]]]:
    """Of the logs of groups."""
    return [content(tables, table, cluster, f"log_topic = '{TOPIC}'") for table in DECODED]


def test_segments_fill_the_tables_and_the_counts_add_up(tables: Tables, rows: filled_tables.Rows) -> None:
    assert decoded(tables, "segments") == sorted(expected(rows), key=lambda row: tuple(str(part) for part in row))
    of_groups = tables.read(RUNS).where(f"cluster = 'segments' AND log_topic = '{TOPIC}'")
    runs = of_groups.where("records > 0")
    assert_rows(
        runs.select("job", "log_partition", "records", "control", "decoded", "quarantined"),
        [
            ("decode", 0, 313, 12, 301, 0),
            ("decode", 1, 412, 1, 411, 0),
            ("ingest", 0, 313, 12, None, None),
            ("ingest", 1, 412, 1, None, None),
        ],
    )
    assert runs.where("missing_offsets > 0 OR size(gaps) > 0").isEmpty()


def test_metadata_and_share_state_have_tables_too(tables: Tables) -> None:
    kinds = tables.read(CLUSTER_RECORDS).groupBy("record_name").count().collect()
    by_name = {row.record_name: row["count"] for row in kinds}
    assert by_name["TOPIC_RECORD"] > 0
    assert sum(by_name.values()) == 2186
    assert not tables.read(GROUP_RECORDS).where("share_snapshot IS NOT NULL").isEmpty()


def test_a_dump_again_with_a_part_of_it_elsewhere_changes_nothing(tables: Tables, tmp_path: Path) -> None:
    before = contents(tables, "segments")
    shutil.copytree(SEGMENTS[1], tmp_path / SEGMENTS[1].name)
    take(tables, "segments", *SEGMENTS, tmp_path)
    assert contents(tables, "segments") == before


def test_segments_that_come_late_add_what_a_consumer_could_not_see(
    tables: Tables, rows: filled_tables.Rows, tmp_path: Path
) -> None:
    """The order of the dumps leaves no trace in the decoded tables, nor that one had some records twice."""
    dumped = kafka_rows(rows)
    take(tables, "late", filled_tables.write_parquet(tmp_path / "dump", [*dumped, *dumped[:5]]))
    assert_as_dumped(tables, "late", rows, extra={"dumped_by": "me"})
    take(tables, "late", *SEGMENTS)
    late, segments = contents(tables, "late"), contents(tables, "segments")
    assert late[:2] == segments[:2]
    assert decoded(tables, "late") == decoded(tables, "segments")


def assert_as_dumped(tables: Tables, cluster: str, rows: filled_tables.Rows, extra: dict[str, str] | None) -> None:
    """The decoded rows are those of the segments, and what a consumer cannot see is unknown."""
    assert decoded(tables, cluster) == decoded(tables, "segments")
    log = tables.read(LOG_RECORDS).where(f"cluster = '{cluster}'")
    assert_rows(log.select("outcome").distinct(), [("unknown",)])
    first = log.orderBy("log_partition", "log_offset").first()
    assert first is not None
    assert (first.timestamp_ms, first.timestamp_type) == (rows[0]["timestamp_ms"], "CreateTime")
    assert first.extra == extra


@pytest.mark.long
@pytest.mark.parametrize("shape", ["delta", "json"])
def test_every_shape_gives_the_same_rows(
    tables: Tables, rows: filled_tables.Rows, shape: str, tmp_path: Path, spark: SparkSession
) -> None:
    dumped = kafka_rows(rows)
    if shape == "delta":
        path = filled_tables.write_delta(spark, tmp_path / "dump", dumped)
    else:
        path = filled_tables.write_json(tmp_path / "dump.jsonl.gz", dumped)
    take(tables, shape, path)
    assert_as_dumped(tables, shape, rows, extra=None if shape == "delta" else {"dumped_by": "me"})


@pytest.mark.long
def test_a_run_that_is_killed_after_any_commit_is_made_good_by_the_next(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt gets some commits further than the one before."""
    of_rows, of_files = Tables.append, written_files.commit
    for step in range(10):
        left = iter(range(step))

        def dying(whole: Callable[..., None], *arguments: Any, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            whole(*arguments)

        with monkeypatch.context() as patched, suppress(KeyboardInterrupt):
            patched.setattr(Tables, "append", partialmethod(partial(dying, of_rows)))
            patched.setattr(written_files, "commit", partial(dying, of_files))
            take(tables, "killed", *SEGMENTS)
    take(tables, "killed", *SEGMENTS)
    assert contents(tables, "killed") == contents(tables, "segments")
    assert ledger.unaccounted(tables) == ledger.undecoded(tables) == []


@pytest.mark.long
def test_faulty_and_printed_records_in_tables_of_a_catalog(
    spark: SparkSession, rows: filled_tables.Rows, only_spark_opens: None, tmp_path: Path
) -> None:
    spark.sql("CREATE SCHEMA IF NOT EXISTS audit")
    tables = Tables(spark, "spark_catalog.audit")
    faulty = kafka_rows(rows[:4])
    faulty[1]["key"] = b"\x00"
    faulty[2]["value"] = b"\x00\x63"
    printed = json.dumps({"key": {"type": 2, "data": {"group": "g"}}, "value": None})
    of_group_g = log_partition_of("g", 50)
    filled_tables.write_json(tmp_path / "dump.jsonl.gz", faulty)
    (tmp_path / "more.jsonl").write_text("\n".join([json.dumps({"key": "not base64!"}), printed, printed]))
    take(tables, "faulty", tmp_path)
    # A record without a position is of the partition that follows from its group, the first line of it has number 1.
    numbered = [(of_group_g, number, 2, "g", None, None) for number in (1, 2)]
    assert [row for row in decoded(tables, "faulty") if row[3] == "g"] == numbered
    assert [row[1] for row in decoded(tables, "faulty") if row[3] != "g"] == [
        rows[0]["log_offset"], rows[3]["log_offset"],
    ]  # fmt: skip
    found = tables.read(QUARANTINE).where("cluster = 'faulty'").orderBy("log_offset").collect()
    assert [(row.log_offset, row.part) for row in found] == [
        (None, "damaged"), (rows[1]["log_offset"], "key"), (rows[2]["log_offset"], "value"),
    ]  # fmt: skip
    named = f"{tmp_path / 'more.jsonl'}:{TOPIC}-{of_group_g}/{OF_LINES}"
    assert (found[0].source, found[0].place) == (named, 1)
    assert "invalid base64" in found[0].reason
    assert spark.table("audit.log_records").count() == 7
    comments = {row.col_name: row.comment for row in spark.sql("DESCRIBE audit.offset_commits").collect()}
    assert comments["group_id"] == "Group id."


@pytest.mark.long
def test_printed_records_that_come_again_change_nothing(tables: Tables, tmp_path: Path) -> None:
    printed = json.dumps({"key": {"type": 2, "data": {"group": "g"}}, "value": None})
    (tmp_path / "printed.jsonl").write_text(f"{printed}\n{printed}\n")
    for _ in range(2):
        take(tables, "printed", tmp_path)
    of_group_g = log_partition_of("g", 50)
    assert decoded(tables, "printed") == [(of_group_g, number, 2, "g", None, None) for number in (1, 2)]


def test_a_place_that_cannot_be_written_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot be created") as caught:
        ingest.run(Tables(spark, str(tmp_path / "file")), [], "c")
    assert "\n" not in str(caught.value)


def test_tables_that_are_not_there_are_named(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there are no tables at .*nowhere"):
        decode.run(Tables(spark, str(tmp_path / "nowhere")))


def test_a_parquet_file_without_key_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).selectExpr("encode('v', 'UTF-8') AS value").write.parquet(str(tmp_path / "dump"))
    with pytest.raises(InputError, match=r"column 'key' is missing \(columns: value\)"):
        open_dump(spark, [str(tmp_path / "dump")])
    columns = ["1 AS key", "encode('v', 'UTF-8') AS value", "1 AS partition", "id AS offset"]
    spark.range(3).selectExpr(*columns).write.parquet(str(tmp_path / "numbers"))
    with pytest.raises(InputError, match="column 'key' must be binary or base64, not integer"):
        open_dump(spark, [str(tmp_path / "numbers")])


@pytest.mark.parametrize(
    ("timestamp", "expected"), [("TIMESTAMP_NTZ'2026-07-02 00:00:00.007'", 1_782_950_400_007), ("5L", 5)]
)
def test_timestamps_of_every_kind(spark: SparkSession, tmp_path: Path, timestamp: str, expected: int) -> None:
    """pandas writes them without a time zone; its users name the timestamp type."""
    columns = ["encode('k', 'UTF-8') AS key", "encode('v', 'UTF-8') AS value", f"{timestamp} AS timestamp"]
    columns += ["0 AS partition", "id AS offset"]
    frame = spark.range(1).selectExpr(*columns, "'LogAppendTime' AS timestampType")
    frame.write.parquet(str(tmp_path / "dump"))
    (dump,) = open_dump(spark, [str(tmp_path / "dump")])
    row = dump.load().first()
    assert row is not None
    assert (row.timestamp_ms, row.timestamp_type) == (expected, "LogAppendTime")
