"""Tables that a catalog names and this process writes by their paths."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.tables.delta import Tables
from jobs.tables.engine import DATABRICKS
from jobs.tables.nightly import DUMPED_FILES, LEASES, NIGHTLY_STEPS
from jobs.tables.one_writer import writing
from jobs.tables.registered import RegisteredTables
from jobs.tables.table import few
from tests.jobs.frames import assert_rows

LENGTH = timedelta(minutes=5)
SCHEMA = "spark_catalog.named"
FILE = {"cluster": "c", "path": "a", "size": 1, "modified_ns": 1}


@pytest.fixture
def place(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    """The folder of an empty schema; its name has what a URI writes in other words."""
    place = tmp_path / "my tables, all"
    spark.sql(f'CREATE SCHEMA {SCHEMA} LOCATION "{place}"')
    yield place
    spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def written(spark: SparkSession) -> Tables:
    """The tables, as a run has written them."""
    tables = Tables(spark, SCHEMA)
    with writing(tables, LENGTH):
        tables.create(DUMPED_FILES)
        tables.append(DUMPED_FILES, few(DUMPED_FILES, [FILE]), "n")
    return tables


def named(spark: SparkSession) -> set[str]:
    """The tables of the schema; Spark lists the temporary views of the session, too."""
    return {row.tableName for row in spark.sql(f"SHOW TABLES IN {SCHEMA}").collect() if not row.isTemporary}


def test_what_this_process_writes_is_what_spark_reads_by_the_name(spark: SparkSession, place: Path) -> None:
    tables = written(spark)
    assert (tables.location, tables.schema) == (str(place), SCHEMA)
    assert tables.is_here()
    assert_rows(spark.table(f"{SCHEMA}.dumped_files").select("path"), [("a",)])
    again = Tables(spark, SCHEMA)
    with writing(again, LENGTH):
        again.create(DUMPED_FILES)
        again.append(DUMPED_FILES, few(DUMPED_FILES, [FILE | {"path": "b"}]), "m")
    assert_rows(spark.table(f"{SCHEMA}.dumped_files").select("path"), [("a",), ("b",)])
    commits = [commit["operation"] for commit in DeltaTable(place / DUMPED_FILES.name).history()]
    assert commits == ["WRITE", "WRITE", "CREATE TABLE"], "each table is registered once, and only delta-rs commits"


def test_a_table_that_a_killed_run_did_not_register_is_registered_by_the_next(
    spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(self: RegisteredTables, name: str) -> None:
        raise RuntimeError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(RegisteredTables, "_register", dead)
        with pytest.raises(InputError, match=rf"table leases was written to {place}, but {SCHEMA} does not name it"):
            written(spark)
    assert (place / DUMPED_FILES.name).is_dir()
    spark.range(1).createOrReplaceTempView("leases")
    assert named(spark) == set()
    written(spark)
    assert named(spark) == {"leases", "dumped_files"}
    assert Tables(spark, SCHEMA).location == str(place)
    spark.catalog.dropTempView("leases")


def test_tables_that_do_not_lie_together_are_for_spark(spark: SparkSession, place: Path, tmp_path: Path) -> None:
    written(spark)
    elsewhere = tmp_path / "elsewhere"
    Tables(spark, str(elsewhere)).create(NIGHTLY_STEPS)
    spark.sql(f"CREATE TABLE {SCHEMA}.nightly_steps USING delta LOCATION '{elsewhere / NIGHTLY_STEPS.name}'")
    tables = Tables(spark, SCHEMA)
    assert (tables.location, tables.registered, tables.is_here()) == (SCHEMA, None, False)
    assert tables.exists(NIGHTLY_STEPS)
    assert tables.exists(LEASES)


def test_tables_that_were_registered_by_hand_are_written_where_they_are(
    spark: SparkSession, place: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    Tables(spark, str(elsewhere)).create(LEASES)
    spark.sql(f"CREATE TABLE {SCHEMA}.leases USING delta LOCATION '{elsewhere / LEASES.name}'")
    assert written(spark).location == str(elsewhere)
    assert spark.table(f"{SCHEMA}.dumped_files").count() == 1


@pytest.mark.parametrize("what", ["databricks", "no paths", "read only", "a sign"])
def test_what_only_spark_may_write_is_for_spark(
    what: str, spark: SparkSession, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = spark.sql
    if what == "databricks":
        monkeypatch.setenv(DATABRICKS, "17.3")
    elif what == "read only":
        monkeypatch.setattr("os.access", lambda path, mode: False)
    elif what == "a sign":
        spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")
        spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION '{place}%20'")
    else:

        def without_paths(text: str, *given: Any, **named: Any) -> Any:
            if text.startswith("SHOW TABLE EXTENDED"):
                raise RuntimeError("not supported by this catalog")
            return asked(text, *given, **named)

        monkeypatch.setattr(spark, "sql", without_paths)
    tables = Tables(spark, SCHEMA)
    assert (tables.location, tables.registered) == (SCHEMA, None)


def test_tables_of_a_folder_are_registered_once_and_then_need_no_spark(
    spark: SparkSession, place: Path, tmp_path: Path
) -> None:
    folder = str(tmp_path / "folder")

    def night(session: SparkSession | Any, name: str) -> None:
        tables = Tables(session, folder, registered_in=SCHEMA)
        with writing(tables, LENGTH):
            tables.create(DUMPED_FILES)
            tables.append(DUMPED_FILES, few(DUMPED_FILES, [FILE | {"path": name}]), name)

    def start() -> SparkSession:
        raise AssertionError("Spark was started")

    night(lambda: spark, "a")
    assert_rows(spark.table(f"{SCHEMA}.dumped_files").select("path"), [("a",)])
    night(start, "b")
    assert_rows(spark.table(f"{SCHEMA}.dumped_files").select("path"), [("a",), ("b",)])
    with (
        pytest.raises(InputError, match="does not name it: this needs Spark"),
        writing(tables := Tables(None, folder, registered_in=SCHEMA), LENGTH),
    ):
        tables.create(NIGHTLY_STEPS)
    night(lambda: spark, "c")
    tables = Tables(lambda: spark, folder, registered_in=SCHEMA)
    with writing(tables, LENGTH):
        tables.create(NIGHTLY_STEPS)
    assert spark.table(f"{SCHEMA}.nightly_steps").count() == 0


def test_a_path_is_a_literal_of_sparks_sql_whatever_is_in_it() -> None:
    said: list[str] = []
    spark: Any = SimpleNamespace(sql=said.append)
    tables = RegisteredTables(lambda: spark, "s.t", r"/a\b's", ())
    tables.add("runs")
    assert tables.finish()
    assert said == [r"CREATE TABLE IF NOT EXISTS s.t.runs USING delta LOCATION '/a\\b\'s/runs'"]
