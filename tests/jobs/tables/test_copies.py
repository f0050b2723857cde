"""Tables that only Spark can open, read by this process from copies of them."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jobs.settings import EngineLimits
from jobs.tables import copies
from jobs.tables.copies import TableCopies, row_bytes
from jobs.tables.delta import Tables
from jobs.tables.history import HISTORY, REPLAYED
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.one_writer import writing
from jobs.tables.spark_reader import SparkReader
from jobs.tables.table import Table, few

AT = datetime(2026, 11, 24, 1, 2, 3, tzinfo=UTC)
STEPS = "SELECT number, started_at, counts FROM $nightly_steps ORDER BY number"
STEPS_IN_SPARK = STEPS.replace("$", "spark_catalog.copied.")


def step(number: int) -> dict[str, Any]:
    row = dict.fromkeys(NIGHTLY_STEPS.schema.names)
    return row | {"night": "n", "number": number, "started_at": AT, "counts": [("records", number)]}


def given_to(monkeypatch: pytest.MonkeyPatch, of: type, method: str) -> list[str]:
    """What a method of one argument is called with from now on."""
    given: list[str] = []
    called = getattr(of, method)

    def noted(self: Any, argument: str) -> Any:
        given.append(argument)
        return called(self, argument)

    monkeypatch.setattr(of, method, noted)
    return given


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The questions that Spark is asked."""
    return given_to(monkeypatch, SparkReader, "_frame")


@pytest.fixture
def catalog(spark: SparkSession, only_spark_opens: None) -> Iterator[str]:
    """A schema of a catalog whose tables only Spark opens."""
    spark.sql("CREATE SCHEMA IF NOT EXISTS copied")
    yield "spark_catalog.copied"
    spark.sql("DROP SCHEMA copied CASCADE")


def test_a_copy_is_what_the_table_was_at_the_last_commit(spark: SparkSession, catalog: str, asked: list[str]) -> None:
    tables = Tables(spark, catalog)
    with tables.copying():
        assert not tables.engine().exists("nightly_steps")
        tables.create(NIGHTLY_STEPS)
        before = tables.engine()
        assert list(before.rows(STEPS)) == []
        for number in (1, 2):
            tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(number)]), str(number))
            assert [row["number"] for row in tables.engine().rows(STEPS)] == [*range(1, number + 1)]
        assert list(before.rows(STEPS)) == []
        here = list(tables.engine().rows(STEPS))
        assert tables.are_copied([NIGHTLY_STEPS])
    assert asked == []
    in_spark = list(tables.engine().rows(STEPS))
    assert asked == [STEPS_IN_SPARK]
    assert [row["started_at"] for row in here] == [AT, AT]
    assert [row["started_at"].astimezone(UTC) for row in in_spark] == [AT, AT]
    assert (
        [dict(row["counts"]) for row in here] == [row["counts"] for row in in_spark] == [{"records": 1}, {"records": 2}]
    )


def test_whoever_has_the_lease_reads_copies(spark: SparkSession, catalog: str, asked: list[str]) -> None:
    tables = Tables(spark, catalog)
    tables.create(NIGHTLY_STEPS)
    with writing(tables, timedelta(minutes=1)):
        for number in (1, 2):
            tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(number)]), str(number))
            assert [row["number"] for row in tables.engine().rows(STEPS)] == [*range(1, number + 1)]
    assert asked == []
    assert [row["number"] for row in tables.engine().rows(STEPS)] == [1, 2]
    assert asked == [STEPS_IN_SPARK]


def test_a_table_that_is_too_large_is_read_by_spark(spark: SparkSession, catalog: str, asked: list[str]) -> None:
    tables = Tables(spark, catalog, EngineLimits(copied_bytes=100))
    with tables.copying():
        tables.create(NIGHTLY_STEPS)
        tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(1)]), "1")
        assert [row["number"] for row in tables.engine().rows(STEPS)] == [1]
        assert not tables.are_copied([NIGHTLY_STEPS])
    assert asked == [STEPS_IN_SPARK]


def test_a_table_with_many_rows_of_few_bytes_is_read_by_spark(
    spark: SparkSession, catalog: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "SURELY_SMALL", 0)
    tables = Tables(spark, catalog)
    tables.create(NIGHTLY_STEPS)
    tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(1), step(2)]), "1")
    for most in (2, 1):
        monkeypatch.setattr(copies, "ARROW_BYTES", most * row_bytes(NIGHTLY_STEPS.schema))
        with tables.copying():
            assert [row["number"] for row in tables.engine().rows(STEPS)] == [1, 2]
    assert asked == [STEPS_IN_SPARK]


@pytest.mark.parametrize("table", [REPLAYED, HISTORY["assignments"]], ids=lambda table: table.name)
def test_rows_of_nulls_take_as_many_bytes_as_their_types_say(table: Table) -> None:
    schema = table.schema
    # As Spark makes them: all fields of a null struct have their bytes.
    rows = pa.Table.from_batches([pa.RecordBatch.from_pylist([dict.fromkeys(schema.names)] * 1000, schema)])
    assert rows.nbytes / 2 <= 1000 * row_bytes(table.schema) <= 5 * rows.nbytes


def test_spark_is_not_asked_twice_for_the_same_few_rows(
    spark: SparkSession, catalog: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobs.tables.spark_reader.KEPT_ROWS", 1)
    tables = Tables(spark, catalog)
    tables.create(NIGHTLY_STEPS)
    tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(1)]), "1")
    before, after = tables.engine(), tables.engine()
    for _ in range(2):
        assert [row["number"] for row in before.rows(STEPS)] == [1]
    assert asked == [STEPS_IN_SPARK]
    tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(2)]), "2")
    for _ in range(2):
        # The rows are more than are kept: they are asked for again, and none is left out.
        assert [row["number"] for row in after.rows(STEPS)] == [1, 2]
    assert asked == [STEPS_IN_SPARK] * 3
    assert [row["number"] for row in before.rows(STEPS)] == [1]


def test_a_question_reads_a_copy_until_another_program_changes_the_table(
    spark: SparkSession, catalog: str, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = given_to(monkeypatch, TableCopies, "_copied")
    tables, other = Tables(spark, catalog), Tables(spark, catalog)
    other.create(NIGHTLY_STEPS)
    assert list(tables.asked().rows(STEPS)) == []
    other.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [step(1)]), "1")
    for _ in range(2):
        assert [row["number"] for row in tables.asked().rows(STEPS)] == [1]
    spark.sql(f"UPDATE {tables.name(NIGHTLY_STEPS)} SET number = 5")
    assert [row["number"] for row in tables.asked().rows(STEPS)] == [5]
    assert copied == ["nightly_steps"] * 3
    assert asked == []
    spark.sql(f"DROP TABLE {tables.name(NIGHTLY_STEPS)}")
    assert not tables.asked().exists("nightly_steps")
