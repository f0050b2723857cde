"""Dumps of two clusters taken for one: where they have different records at one position, it is said, and not mixed."""

import re
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from jobs.api import CoordinatorAudit
from jobs.pipeline import ingest
from jobs.sources.dump import open_dump
from jobs.tables.delta import Tables
from jobs.tables.log import LOG_RECORDS
from jobs.tables.spark_errors import one_line
from tests.jobs.filled_tables import kafka_rows, sample_rows, write_json

pytestmark = pytest.mark.long
RECORDS = 20
SAYS = r"__consumer_offsets-\d+ offset \d+: .*different record.*--cluster"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The same positions in two files, with other times."""
    folder, rows = tmp_path_factory.mktemp("dumps"), sample_rows()[:RECORDS]
    later = [row | {"timestamp_ms": row["timestamp_ms"] + 1} for row in rows]
    files = {"one.jsonl.gz": rows, "other.jsonl.gz": later}
    return [str(write_json(folder / name, kafka_rows(of))) for name, of in files.items()]


def take(tables: Tables, *paths: str) -> None:
    ingest.run(tables, open_dump(tables.spark, list(paths)), "c")


def test_a_dump_of_another_log_is_refused(spark: SparkSession, tmp_path: Path, dumps: list[str]) -> None:
    tables = Tables(spark, str(tmp_path))
    take(tables, dumps[0])
    with pytest.raises((PySparkException, Py4JError)) as refused:
        take(tables, dumps[1])
    assert re.match(SAYS, one_line(refused.value))
    assert tables.read(LOG_RECORDS).count() == RECORDS


def test_the_python_api_refuses_it_with_an_error_of_its_own(
    spark: SparkSession, tmp_path: Path, dumps: list[str]
) -> None:
    audit = CoordinatorAudit(spark, str(tmp_path), cluster="c")
    with pytest.raises(InputError, match=SAYS) as refused:
        audit.ingest(*dumps)
    assert isinstance(refused.value.__cause__, (PySparkException, Py4JError))


def test_two_logs_in_one_run_are_refused(spark: SparkSession, tmp_path: Path, dumps: list[str]) -> None:
    tables = Tables(spark, str(tmp_path))
    with pytest.raises((PySparkException, Py4JError)) as refused:
        take(tables, *dumps)
    assert re.match(SAYS, one_line(refused.value))
    assert tables.read(LOG_RECORDS).isEmpty()
