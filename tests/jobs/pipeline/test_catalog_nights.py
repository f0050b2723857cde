"""Nights of a catalog whose tables only Spark opens: on a copy that is published, or by Spark, and they say which."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from jobs import nightly_run, settings
from jobs.pipeline import decode
from jobs.pipeline.catalog_nights import working_copy as of_night
from jobs.tables import working_copy
from jobs.tables.delta import Tables
from jobs.tables.engine import DATABRICKS, is_beside, works_here
from jobs.tables.kept_copy import kept_copy
from jobs.tables.log import RUNS
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.records import GROUP_RECORDS
from jobs.tables.spark_table import SparkTable
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.null_listener import NullListener

SCHEMA = "spark_catalog.nights"
SEGMENT = next((SAMPLE_LOGS / "__consumer_offsets-0").glob("*.log"))


class Heard(NullListener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def note(self, message: str, **facts: Any) -> None:
        self.said.append(message)


@pytest.fixture
def catalog(spark: SparkSession, only_spark_opens: None) -> Iterator[Tables]:
    """A schema without tables, which only Spark opens."""
    spark.sql("CREATE SCHEMA nights")
    yield Tables(spark, SCHEMA)
    spark.sql("DROP SCHEMA nights CASCADE")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A folder with one log partition."""
    place = tmp_path / "log" / SEGMENT.parent.name
    place.mkdir(parents=True)
    shutil.copy(SEGMENT, place)
    return place.parent


def chosen(log: Path, **flags: Any) -> settings.Settings:
    steps = {"nightly.steps": ["ingest", "decode"]}
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    return settings.load(environment={}, flags={"input.paths": [str(log)], **steps, **dotted})


def counted(tables: Tables, *of: Any) -> list[int]:
    return [tables.read(table).count() if tables.exists(table) else -1 for table in of]


def test_a_night_works_on_a_copy_and_publishes_what_a_folder_has(
    spark: SparkSession, catalog: Tables, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, heard = Tables(None, str(tmp_path / "folder")), Heard()
    kept = {"engine__working_copy": tmp_path / "copy"}
    nightly_run.run(folder, chosen(log), NullListener())
    night = nightly_run.run(catalog, chosen(log, **kept), heard)
    assert [step.step for step in night.steps] == ["ingest", "decode", "publish"]
    assert any(said.startswith("this night works on a copy of the tables") for said in heard.said)
    (records,) = folder.engine().rows("SELECT count(*) AS n FROM $group_records")
    (runs,) = folder.engine().rows("SELECT count(*) AS n FROM $runs")
    assert counted(catalog, GROUP_RECORDS, RUNS, NIGHTLY_STEPS) == [records["n"], runs["n"], 3]

    def fails(tables: Tables) -> None:
        raise OSError("the disk is full")

    # A step that fails: what came before it is published. Nothing has to be copied again.
    with monkeypatch.context() as patched:
        patched.setattr(decode, "run", fails)
        night = nightly_run.run(catalog, chosen(log, **kept), heard)
    assert [(step.step, step.ended) for step in night.steps] == [
        ("ingest", "done"),
        ("decode", "failed"),
        ("publish", "done"),
    ]
    assert counted(catalog, GROUP_RECORDS, RUNS, NIGHTLY_STEPS) == [records["n"], runs["n"], 6]
    assert heard.said[-1].startswith("publish done")
    assert any("of which 0.0 MB were read now" in said for said in heard.said)

    # A publication that fails: no step of the night is named as done.
    with monkeypatch.context() as patched:
        patched.setattr(working_copy.WorkingCopy, "publish", fails)
        night = nightly_run.run(catalog, chosen(log, **kept), heard)
    assert night.steps[-1].error == "the disk is full"
    assert [row.step for row in catalog.read(NIGHTLY_STEPS).where("number = 3 AND ended = 'failed'").collect()] == [
        "publish"
    ]
    assert counted(catalog, NIGHTLY_STEPS) == [7]


@pytest.mark.parametrize(
    ("is_beside", "flags", "why"),
    [
        (True, {"engine__published_mb": 0}, "engine.published_mb is 0"),
        (True, {"checks__project": "ours"}, "checks.project and checks.data_docs name the tables of the catalog"),
        (False, {"input__format": "delta"}, "it reads"),
        (False, {"engine__published_mb": 1}, "the copy and the new dumps are larger than engine.published_mb"),
        (True, {"engine__published_mb": 1}, None),
        (True, {"input__format": "delta"}, None),
    ],
)
def test_a_night_that_spark_makes_on_the_tables_says_why(
    catalog: Tables, log: Path, monkeypatch: pytest.MonkeyPatch, is_beside: bool, flags: dict[str, Any], why: str | None
) -> None:
    monkeypatch.setattr(working_copy, "is_beside", lambda session: is_beside)
    (log / SEGMENT.parent.name / "00000000000000100000.log").write_bytes(b"\0" * (1 << 20))
    said: list[str] = []
    with of_night(catalog, chosen(log, **flags), said.append) as copy:
        assert (copy is None) == (why is not None)
    assert said[0].startswith(f"Spark makes each step of this night on the tables themselves, as {why}") or copy


def test_spark_of_databricks_has_files_of_its_own(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert is_beside(spark)
    monkeypatch.setenv(DATABRICKS, "17.3")
    assert not is_beside(spark)
    assert not works_here(spark, str(tmp_path))


def test_what_would_be_copied_anew_each_night_is_limited(
    catalog: Tables, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create(RUNS)
    monkeypatch.setattr(SparkTable, "size", lambda table: 2 << 20)
    said: list[str] = []
    for flags in ({}, {"engine__working_copy": tmp_path / "copy"}):
        with of_night(catalog, chosen(log, engine__published_mb=1, **flags), said.append) as copy:
            assert (copy is None) == (not flags)
    assert said[0].endswith("and engine.working_copy names no folder that keeps it")


def test_a_night_on_the_tables_themselves_leaves_no_copy_that_would_be_behind(
    catalog: Tables, log: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "copy"
    catalog.create(RUNS)
    with of_night(catalog, chosen(log, engine__working_copy=kept), print) as copy:
        assert copy is not None
        copy.keep()
    assert kept_copy(kept, SCHEMA)
    by_spark = {"engine__working_copy": kept, "engine__published_mb": 0}
    night = nightly_run.run(catalog, chosen(log, nightly__steps=["ingest"], **by_spark), NullListener())
    assert [step.error for step in night.steps] == [None]
    assert not kept_copy(kept, SCHEMA)
