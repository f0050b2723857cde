"""Topic history from the tables: of a metadata log whose beginning is gone, the same as from the files."""

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.records import Family
from jobs.relations.topics import stored_topics, topic_news_ms
from jobs.sources.files import METADATA_TOPIC, find_logs
from jobs.sources.log_reader import by_partition
from jobs.sources.topics import topic_history
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.records import CLUSTER_RECORDS
from jobs.tables.spark_reader import SparkReader
from tests.jobs.filled_tables import content, take
from tests.jobs.logs import batch, write_segment
from tests.jobs.sources.test_topics import FOLDER, topic, write_snapshot

pytestmark = pytest.mark.long
"""Each dump is a run of two jobs."""


def test_a_snapshot_takes_the_place_of_a_beginning_that_is_gone(spark: SparkSession, tmp_path: Path) -> None:
    tables, dump = Tables(spark, str(tmp_path / "tables")), tmp_path / "dump"
    records = [topic(100, "new", 400), topic(105, "new", 600)]
    write_segment(dump / FOLDER, [batch(record, family=Family.METADATA) for record in records], 100)
    take(tables, "c", dump, topics=(METADATA_TOPIC,))
    assert names_at(tables, 700) == {"new"}
    write_snapshot(dump / FOLDER, 99, name="new")
    write_snapshot(dump / FOLDER, 101, name="new", is_whole=False)
    write_snapshot(dump / FOLDER, 102, name="old")
    write_snapshot(dump / FOLDER, 104, name="new")
    take(tables, "c", dump, topics=(METADATA_TOPIC,))
    history = stored_topics(FolderReader(tables.location), "c")
    files = topic_history(by_partition(find_logs([dump], snapshots=True))[Family.METADATA][0], lambda _: None)
    assert history is not None
    assert list(history.intervals()) == list(files.intervals())
    assert [names_at(tables, time_ms) for time_ms in (499, 500, 700)] == [None, {"old"}, {"old", "new"}]
    (first, second) = sorted({row.run_id for row in tables.read(CLUSTER_RECORDS).select("run_id").collect()})
    assert topic_news_ms(SparkReader(tables.spark, tables.location), "c", first, second) == 500
    before = content(tables, CLUSTER_RECORDS, "c")
    shutil.copytree(dump, tmp_path / "again")
    take(tables, "c", tmp_path / "again", topics=(METADATA_TOPIC,))
    assert content(tables, CLUSTER_RECORDS, "c") == before


def test_a_snapshot_alone_is_a_moment_of_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    tables, folder = Tables(spark, str(tmp_path / "tables")), tmp_path / FOLDER
    folder.mkdir()
    write_snapshot(folder, 50, name="old")
    write_snapshot(folder, 60, name="new")
    take(tables, "c", folder, topics=(METADATA_TOPIC,))
    assert names_at(tables, 500) == {"new"}


def names_at(tables: Tables, time_ms: int) -> set[str] | None:
    history = stored_topics(FolderReader(tables.location), "c")
    version = None if history is None else history.at(time_ms)
    return None if version is None else set(version.image.by_name)
