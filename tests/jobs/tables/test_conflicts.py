"""Real commits that meet in Spark: what Delta says of the one that came second, and what becomes of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from jobs.tables import conflicts
from jobs.tables.conflicts import CONFLICT, ConflictError
from jobs.tables.delta import Tables, few
from jobs.tables.lease import LEASES, WRITER, LeaseLostError, LeaseOwner, held
from jobs.tables.nightly import DUMPED_FILES

pytestmark = pytest.mark.long
HOUR = timedelta(hours=1)
UPDATE = {"size": "s.size"}


@pytest.fixture
def tables(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """Tables that Spark writes, as those of a catalog are."""
    monkeypatch.setattr(Tables, "is_here", lambda self: False)
    monkeypatch.setattr(conflicts, "PAUSE_S", 0.01)
    made = Tables(spark, str(tmp_path / "tables"))
    made.create(DUMPED_FILES)
    for name in "ab":
        made.merge(DUMPED_FILES, rows_of(name), UPDATE, insert=True)
    return made


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

    return tables.spark.createDataFrame(rows).mapInArrow(wait, DUMPED_FILES.schema)


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
        tables.spark.createDataFrame(rows_of("a", 5)).write.format("delta").mode("append").save(
            f"{tables.location}/{DUMPED_FILES.name}"
        )

    def write(rows: DataFrame) -> None:
        tables.merge(DUMPED_FILES, rows, UPDATE, insert=True)

    error = while_writing(tables, tmp_path / "gate", write, rows_of("a", 7), add)
    assert isinstance(error, ConflictError)
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
