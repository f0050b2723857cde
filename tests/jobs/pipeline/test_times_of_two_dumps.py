"""Records that two dumps have, of which one does not show their times: ingest with Spark takes them once."""

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from jobs.pipeline.on_spark.ingest import _best_of_each, _without
from jobs.tables.log import LOG_RECORDS
from tests.jobs.frames import assert_rows

CLUSTER = {"cluster": "c", "log_topic": "__consumer_offsets", "log_partition": 0, "log_offset": 7}
OTHERS = {"stray": None, "leader_epoch": -1, "key_hash": "k", "place": 0}


def dump(spark: SparkSession, *rows: tuple[str, int]) -> DataFrame:
    """One record as each source has it, with its time."""
    row = CLUSTER | OTHERS
    names = {
        **dict.fromkeys(("log_partition", "leader_epoch", "place"), "INT"),
        **dict.fromkeys(("log_offset", "timestamp_ms", "batch_base"), "BIGINT"),
    }
    values = [row | {"source": source, "timestamp_ms": ms, "batch_base": None} for source, ms in rows]
    columns = sorted({*values[0], *LOG_RECORDS.key})
    schema = ", ".join(f"{name} {names.get(name, 'STRING')}" for name in columns)
    return spark.createDataFrame([tuple(each.get(name) for name in columns) for each in values], schema)


def test_a_dump_without_times_has_the_record_that_another_has_with_its_time(spark: SparkSession) -> None:
    assert_rows(_best_of_each(dump(spark, ("a", 5), ("b", -1))).select("source", "timestamp_ms"), [("a", 5)])
    taken = dump(spark, ("a", 5))
    assert _without(dump(spark, ("b", -1)), taken).isEmpty()
    assert _without(taken, dump(spark, ("b", -1))).isEmpty()


def test_two_times_are_two_records(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match="different record"):
        _best_of_each(dump(spark, ("a", 5), ("b", 6))).collect()
    with pytest.raises(PySparkException, match="different record"):
        _without(dump(spark, ("b", 6)), dump(spark, ("a", 5))).collect()
