"""The tables of history: the rows of the fold without Spark, whenever and however often the job runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from jobs import decode, ingest, replay
from jobs.cli.history import TABLE_OF, plain
from jobs.history_schema import FOLDED, GROUP_STATES, HISTORY
from jobs.local_history import history
from jobs.log_schema import LOG_RECORDS, RUNS
from jobs.record_schema import CLUSTER_RECORDS, GROUP_RECORDS, OFFSET_COMMITS
from jobs.sources.dump import open_dump
from jobs.sources.files import find_logs
from jobs.tables import Tables
from tests.jobs.conftest import SAMPLE_LOGS

CLUSTER = "sample"
NIGHTS = ("night 1", "night 2", "night 3")
Rows = dict[str, list[str]]


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The samples, replayed in one run."""
    tables = Tables(spark, str(tmp_path_factory.mktemp("whole")))
    ingest.run(tables, open_dump(spark, [str(SAMPLE_LOGS)]), CLUSTER)
    decode.run(tables)
    replay.run(tables)
    return tables


def rows_of(tables: Tables) -> Rows:
    """All rows of history and all states as text, in one order."""
    found = {
        name: sorted(row.j for row in tables.read(table).select(F.to_json(F.struct("*")).alias("j")).collect())
        for name, table in HISTORY.items()
    }
    states = tables.read(GROUP_STATES).drop("run_id")
    return found | {"states": sorted(row.j for row in states.select(F.to_json(F.struct("*")).alias("j")).collect())}


def in_nights(whole: Tables, home: Path, night: Column) -> Tables:
    """The decoded log of ``whole`` as if each record had come in the run that ``night`` names; none is replayed."""
    tables = Tables(whole.spark, str(home))
    for table in (LOG_RECORDS, GROUP_RECORDS, OFFSET_COMMITS, CLUSTER_RECORDS):
        tables.create(table)
        tables.append(table, whole.read(table).withColumn("run_id", night), "copy")
    tables.create(RUNS)
    return tables


def decoded(tables: Tables, night: str) -> None:
    """The records of this night are there."""
    runs = tables.spark.createDataFrame([(CLUSTER, night, "decode")], "cluster string, run_id string, job string")
    missing = {name: F.lit(None) for name in RUNS.schema.names if name not in runs.columns}
    tables.append(RUNS, runs.withColumns(missing), night)


def by_offset(chance: random.Random) -> Column:
    """Two splits of every log partition, each at an offset of its own."""
    night = F.lit(NIGHTS[0])
    for partition in range(4):
        first, second = sorted(chance.sample(range(450), 2))
        offset = F.col("log_offset")
        of_offset = F.when(offset < first, NIGHTS[0]).when(offset < second, NIGHTS[1]).otherwise(NIGHTS[2])
        mine = (F.col("log_topic") == "__consumer_offsets") & (F.col("log_partition") == partition)
        night = F.when(mine, of_offset).otherwise(night)
    return night


def test_rows_are_those_of_the_fold_without_spark(whole):
    expected: Rows = {name: [] for name in FOLDED.values()}
    for row in history(find_logs([SAMPLE_LOGS]), pytest.fail):
        expected[TABLE_OF[type(row)]].append(repr(plain(row)))
    for name in FOLDED.values():
        found = whole.read(HISTORY[name]).drop("cluster").collect()
        assert sorted(repr(row.asDict(recursive=True)) for row in found) == sorted(expected[name])


def test_nights_give_the_tables_of_one_pass(whole, tmp_path):
    nightly = in_nights(whole, tmp_path, by_offset(random.Random(5)))
    for night in NIGHTS:
        decoded(nightly, night)
        replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)


def test_records_that_come_late_make_their_groups_begin_anew(whole, tmp_path):
    shuffled = F.concat(F.lit("night "), (F.hash("log_partition", "log_offset") % 2 + 2).cast("string"))
    late = in_nights(whole, tmp_path, shuffled)
    decoded(late, "night 2")
    replay.run(late)
    decoded(late, "night 3")
    (again,) = replay.run(late)
    assert again.rebuilt > 0
    assert rows_of(late) == rows_of(whole)


class KilledError(Exception):
    """Stands for the end of a process."""


class Mortal(Tables):
    """Tables that die before their nth write."""

    def __init__(self, spark: SparkSession, home: str, dies_at: int) -> None:
        super().__init__(spark, home)
        self._left = dies_at

    def merge(self, *arguments: object, **options: object) -> None:
        self._left -= 1
        if self._left == 0:
            raise KilledError
        super().merge(*arguments, **options)


def test_a_run_that_died_is_run_again(whole, tmp_path):
    nightly = in_nights(whole, tmp_path, by_offset(random.Random(9)))
    for night, dies_at in zip(NIGHTS, (2, 4, 6), strict=True):
        decoded(nightly, night)
        with pytest.raises(KilledError):
            replay.run(Mortal(nightly.spark, nightly.home, dies_at))
    replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)
