"""Real commits that meet in Spark: what Delta says of the one that came second, and what becomes of it.

Of tables in a folder and in a catalog; one test runs the others again through Spark Connect.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.tables import conflicts, lease
from jobs.tables.catalog import CATALOG
from jobs.tables.conflicts import CONFLICT, ConflictError
from jobs.tables.delta import Tables
from jobs.tables.lease import WRITER, LeaseLostError, LeaseOwner, held
from jobs.tables.nightly import DUMPED_FILES, LEASES
from jobs.tables.spark_reader import columns_of, spark_types
from jobs.tables.spark_table import SparkTable
from jobs.tables.table import Table, few

pytestmark = pytest.mark.long
HOUR = timedelta(hours=1)
UPDATE = {"size": "s.size"}


SCHEMA = "spark_catalog.conflicts"
REMOTE = "COORDINATOR_AUDIT_SPARK__REMOTE"
"""Variable of the environment: the session is one of Spark Connect."""


@pytest.fixture(params=["folder", "catalog"])
def tables(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    only_spark_opens: None,
) -> Iterator[Tables]:
    """Tables that Spark writes."""
    monkeypatch.setattr(Tables, "is_here", lambda self: False)
    monkeypatch.setattr(conflicts, "PAUSE_S", 0.01)
    is_in_catalog = request.param == "catalog"
    if is_in_catalog:
        spark.sql(f"CREATE SCHEMA {SCHEMA} LOCATION '{(tmp_path / 'schema').as_uri()}'")
    made = Tables(spark, SCHEMA if is_in_catalog else str(tmp_path / "tables"))
    made.create(DUMPED_FILES)
    for name in "ab":
        made.merge(DUMPED_FILES, rows_of(name), UPDATE, insert=True)
    yield made
    if is_in_catalog:
        spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")


def rows_of(name: str, size: int = 1) -> pa.Table:
    return few(DUMPED_FILES, [{"cluster": "c", "path": name, "size": size, "modified_ns": 1}])


def slow(tables: Tables, rows: pa.Table, gate: Path) -> DataFrame:
    """The rows, by a task that says it has begun, and ends once the gate is open."""

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            Path(f"{gate}.begun").touch()
            end = time.monotonic() + 60
            while not gate.exists() and time.monotonic() < end:
                time.sleep(0.05)
            yield batch

    return tables.spark.createDataFrame(rows).mapInArrow(wait, spark_types(DUMPED_FILES.schema))


def while_writing(
    tables: Tables, gate: Path, write: Callable[[DataFrame], None], rows: pa.Table, meet: Callable[[], None]
) -> BaseException | None:
    """Let another commit take place while a write is computed. Return the error of the write."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            write(slow(tables, rows, gate))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        end = time.monotonic() + 60
        while not Path(f"{gate}.begun").exists() and time.monotonic() < end:
            time.sleep(0.05)
        meet()
    finally:
        gate.touch()
        thread.join()
    return errors[0] if errors else None


def paths(tables: Tables) -> list[tuple[str, int]]:
    return sorted((row.path, row.size) for row in tables.read(DUMPED_FILES).collect())


def test_a_merge_that_meets_maintenance_is_repeated_by_spark(tables: Tables, tmp_path: Path) -> None:
    def compact() -> None:
        tables.spark.sql(f"OPTIMIZE {tables.name(DUMPED_FILES)}").collect()

    def write(rows: DataFrame) -> None:
        tables.merge(DUMPED_FILES, rows, UPDATE, insert=True)

    assert while_writing(tables, tmp_path / "gate", write, rows_of("a", 7), compact) is None
    assert paths(tables) == [("a", 7), ("b", 1)]


def test_a_merge_that_meets_rows_of_another_program_is_refused_by_spark(tables: Tables, tmp_path: Path) -> None:
    def add() -> None:
        foreign = tables.spark.createDataFrame(rows_of("a", 5))
        tables.spark.sql(f"INSERT INTO {tables.name(DUMPED_FILES)} SELECT * FROM {{foreign}}", foreign=foreign)

    def write(rows: DataFrame) -> None:
        tables.merge(DUMPED_FILES, rows, UPDATE, insert=True)

    error = while_writing(tables, tmp_path / "gate", write, rows_of("a", 7), add)
    assert isinstance(error, ConflictError), repr(error)
    assert CONFLICT.search(str(error.__cause__) + type(error.__cause__).__name__)
    assert paths(tables) == [("a", 1), ("a", 5), ("b", 1)]


@pytest.mark.parametrize("kind", ["append", "merge", "replace"])
def test_a_run_that_stood_still_while_spark_wrote_commits_nothing(
    tables: Tables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Another run of the same host takes the lease while the rows of the first are computed."""
    writes: dict[str, Callable[[DataFrame], None]] = {
        "append": lambda rows: tables.append(DUMPED_FILES, rows, "late"),
        "merge": lambda rows: tables.merge(DUMPED_FILES, rows, UPDATE, insert=True),
        "replace": lambda rows: tables.replace(DUMPED_FILES, rows),
    }
    other = Tables(tables.spark, tables.location)
    with held(tables, WRITER, HOUR):
        mine = tables.read(LEASES).first()
        assert mine is not None

        def take() -> None:
            # As it is once the time of the lease has passed.
            over = {
                **mine.asDict(),
                "expires_at": datetime.now(UTC) - HOUR,
                "acquired_at": datetime.now(UTC) - 2 * HOUR,
            }
            other.replace(LEASES, few(LEASES, [over]))
            with held(other, WRITER, HOUR, [DUMPED_FILES]) as (taken, before):
                assert before == mine.owner
                assert LeaseOwner.parse(taken.owner).host == LeaseOwner.parse(before).host
                other.merge(DUMPED_FILES, rows_of("c"), UPDATE, insert=True)

        error = while_writing(tables, tmp_path / "gate", writes[kind], rows_of("a", 7), take)
    assert isinstance(error, LeaseLostError), repr(error)
    assert paths(tables) == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("foreign", ["DELETE FROM {}", "UPDATE {} SET size = 3", "OPTIMIZE {}"])
def test_an_append_by_spark_passes_whatever_another_program_does(tables: Tables, tmp_path: Path, foreign: str) -> None:
    def meet() -> None:
        tables.spark.sql(foreign.format(tables.name(DUMPED_FILES))).collect()

    def write(rows: DataFrame) -> None:
        tables.append(DUMPED_FILES, rows, "once")

    assert while_writing(tables, tmp_path / "gate", write, rows_of("c", 7), meet) is None
    tables.append(DUMPED_FILES, rows_of("c", 7), "once")
    assert paths(tables).count(("c", 7)) == 1


SHORT = timedelta(seconds=6)


class NoThread:
    """A renewal in the background that stands still."""

    def __init__(self, **given: Any) -> None:
        """Take what a thread takes."""

    def start(self) -> None:
        """Do nothing."""

    join = start


WRITES: dict[str, Callable[[Tables], None]] = {
    "append": lambda tables: tables.append(DUMPED_FILES, rows_of("late"), "late"),
    "merge": lambda tables: tables.merge(DUMPED_FILES, rows_of("a", 7), UPDATE, insert=True),
    "replace": lambda tables: tables.replace(DUMPED_FILES, rows_of("late")),
    "replace by nothing": lambda tables: tables.replace(DUMPED_FILES, few(DUMPED_FILES, [])),
    "replace a part": lambda tables: tables.replace_where(DUMPED_FILES, rows_of("a", 7), "path = 'a'"),
    "delete": lambda tables: tables.delete(DUMPED_FILES, rows_of("a").select(["path"])),
    "clear": lambda tables: tables.clear(DUMPED_FILES),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_run_that_stood_still_before_spark_began_commits_nothing(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, write: Callable[[Tables], None]
) -> None:
    """Another run takes the lease between the check of it and the moment at which Spark opens the table."""
    threads = SimpleNamespace(Event=threading.Event, Lock=threading.Lock, Thread=NoThread)
    monkeypatch.setattr(lease, "threading", threads)
    in_time = SparkTable._in_time
    stops = iter([SHORT.total_seconds() + 0.5])

    def late(self: SparkTable) -> str:
        condition = in_time(self)
        if (stop := next(stops, None)) is not None:
            time.sleep(stop)
            other = Tables(tables.spark, tables.location)
            with held(other, WRITER, HOUR, [DUMPED_FILES]) as (_, before):
                assert before is not None
                other.merge(DUMPED_FILES, rows_of("c"), UPDATE, insert=True)
        return condition

    monkeypatch.setattr(SparkTable, "_in_time", late)
    with held(tables, WRITER, SHORT), pytest.raises(LeaseLostError):
        write(tables)
    assert next(stops, None) is None
    assert paths(tables) == [("a", 1), ("b", 1), ("c", 1)]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_commit_that_begins_late_is_made_once_the_lease_was_asked_for(
    tables: Tables, monkeypatch: pytest.MonkeyPatch, write: Callable[[Tables], None]
) -> None:
    write(tables)
    expected = paths(tables)
    tables.replace(DUMPED_FILES, pa.concat_tables(map(rows_of, "ab")))
    asked = list[bool]()

    def check(*, ask: bool = False) -> datetime:
        asked.append(ask)
        return datetime.now(UTC) + (HOUR if ask else -HOUR)

    tables.check_lease = check
    if write is WRITES["append"]:
        tables.append(DUMPED_FILES, rows_of("late"), "later")
    else:
        write(tables)
    assert asked == [False, True, False]
    assert paths(tables) == expected


@pytest.mark.parametrize("table", CATALOG.values(), ids=lambda table: table.name)
def test_what_asks_for_the_time_fits_the_columns_of_each_table(
    spark: SparkSession, tmp_path: Path, table: Table
) -> None:
    tables = Tables(spark, str(tmp_path))
    tables.check_lease = lambda *, ask=False: datetime.now(UTC) + HOUR
    found = tables.commit(table, lambda: tables.there(table)._in_spark(few(table, [])), adds=True)
    assert columns_of(found) == table.schema


@pytest.mark.skipif(REMOTE in os.environ, reason="this is the session of Spark Connect")
def test_the_same_through_spark_connect() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", "long", __file__]
    connected = os.environ | {REMOTE: "local[2]", "SPARK_TESTING": "1"}  # the server takes any free port
    done = subprocess.run(command, env=connected, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:]
    assert "1 skipped" in done.stdout
