"""Topics from tables: those of a metadata log of another cluster are left out, as they are from log files."""

import shutil
from pathlib import Path

import pytest
from deltalake import DeltaTable

from coordinator_core.errors import InputError
from coordinator_core.records import MetadataRecordType
from jobs.queries.from_logs.given import given_topics
from jobs.relations.logs import without_times
from jobs.relations.topics import require_one_cluster, shown_ms, stored_topics, topic_news_ms, topics_given
from jobs.sources.files import METADATA_TOPIC, find_logs
from jobs.sources.log_reader import by_partition
from jobs.sources.topics import known_topics
from jobs.tables.folder_reader import FolderReader
from jobs.tables.log import LOG_RECORDS, QUARANTINE
from jobs.tables.records import CLUSTER_RECORDS
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.relations.engines import write
from tests.jobs.relations.tables_of_logs import CLUSTER, GROUP_LOG, fill
from tests.matrix.removals import metadata_of_another_cluster, of_another_cluster


@pytest.mark.parametrize("is_strange", [False, True])
def test_a_metadata_log_of_another_cluster_is_left_out(tmp_path: Path, is_strange: bool) -> None:
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    if is_strange:
        metadata_of_another_cluster()(logs)
    fill(tmp_path / "tables", logs, topics=(GROUP_LOG, METADATA_TOPIC))
    tables = FolderReader(str(tmp_path / "tables"))
    read, given = stored_topics(tables, CLUSTER), topics_given(tables, CLUSTER)
    from_files = known_topics(by_partition(find_logs([logs])), None, pytest.fail)
    assert read is not None
    assert from_files is not None
    assert (read.strange, given) == (from_files.strange, given_topics(from_files))
    assert (len(read) == 0, given.is_strange) == (is_strange, is_strange)


def test_records_of_groups_without_times_are_taken(tmp_path: Path) -> None:
    """A dump need not have times. Of records without one it is not known which topics there were."""
    fill(tmp_path / "tables", SAMPLE_LOGS, topics=(GROUP_LOG, METADATA_TOPIC))
    DeltaTable(tmp_path / "tables" / "group_records").update(updates={"timestamp_ms": "NULL"})
    tables = FolderReader(str(tmp_path / "tables"))
    read, given = stored_topics(tables, CLUSTER), topics_given(tables, CLUSTER)
    assert read is not None
    assert (read.strange, given.is_strange, len(read) > 0) == (None, False, True)
    assert without_times(tables, CLUSTER) == []
    DeltaTable(tmp_path / "tables" / "log_ranges").update(updates={"first_ms": "NULL", "last_ms": "NULL"})
    assert without_times(FolderReader(tables.location), CLUSTER)[0] == f"{GROUP_LOG}-0"


def test_logs_of_two_clusters_are_refused(tmp_path: Path) -> None:
    """Partition 3 of the groups is of a cluster whose topics have other ids than the metadata log's."""
    logs = tmp_path / "logs"
    shutil.copytree(SAMPLE_LOGS, logs)
    of_another_cluster(logs, 3)
    with pytest.raises(InputError, match="are of two clusters") as files:
        known_topics(by_partition(find_logs([logs])), None, pytest.fail)
    fill(tmp_path / "tables", logs, topics=(GROUP_LOG, METADATA_TOPIC))
    tables = FolderReader(str(tmp_path / "tables"))
    with pytest.raises(InputError, match="are of two clusters") as stored:
        require_one_cluster(tables, CLUSTER, stored_topics(tables, CLUSTER))
    for error in (files, stored):
        assert "none of the topic ids in 1 others" in str(error.value)
        assert "__consumer_offsets-3" in str(error.value)
        assert "(partition 3, offset " in str(error.value)


def test_logs_of_one_cluster_are_taken(tmp_path: Path) -> None:
    fill(tmp_path / "tables", SAMPLE_LOGS, topics=(GROUP_LOG, METADATA_TOPIC))
    tables = FolderReader(str(tmp_path / "tables"))
    require_one_cluster(tables, CLUSTER, stored_topics(tables, CLUSTER))


@pytest.mark.parametrize(
    ("after", "upto", "since_ms", "news_ms"),
    [
        ("1", "2", 70_001, None),  # it goes on, and nothing changes
        ("2", "3", 83_000, 93_000),  # a topic changes soon, perhaps earlier by the clocks of other brokers
        ("3", "4", 30_000, None),  # records that were missing
        ("4", "5", None, None),  # a snapshot alone, which is not whole
        ("5", "6", 85_000, 95_000),  # a no-op in the batch of another record: that one is not read yet
        ("6", "7", None, None),
        ("", "1", 40_000, 50_000),  # no topics were known
        ("1", "5", 30_000, 93_000),
    ],
)
def test_what_runs_have_brought_of_a_metadata_log_that_goes_on(
    tmp_path: Path, after: str, upto: str, since_ms: int | None, news_ms: int | None
) -> None:
    """``since_ms``: a replay of groups before did not know what the topics were then. ``news_ms``: what has changed."""
    no_op, topic = MetadataRecordType.NO_OP, MetadataRecordType.TOPIC
    placed = [
        *(("1", 50_000, topic, 1), ("1", 70_000, no_op, 1), ("2", 70_500, no_op, 1), ("2", 90_000, no_op, 1)),
        *(("3", 90_500, no_op, 1), ("3", 93_000, topic, 1), ("4", 40_000, no_op, 1), ("4", 94_000, no_op, 1)),
        *(("3", 93_500, topic, 1), ("6", 95_000, no_op, 2)),
    ]
    rows = [
        {"run_id": run, "timestamp_ms": time_ms, "record_type": kind.value, "log_offset": offset, "batch_base": 1}
        for run, time_ms, kind, offset in placed
    ]
    rows.append({"run_id": "5", "timestamp_ms": 10_000, "stray": "00000000000000000009-1.checkpoint#0"})
    of_other = {"cluster": "other", "run_id": "2", "timestamp_ms": 5_000, "record_type": topic.value}
    write(
        tmp_path,
        {CLUSTER_RECORDS: [of_other, *({"cluster": CLUSTER, **row} for row in rows)], LOG_RECORDS: [], QUARANTINE: []},
    )
    tables = FolderReader(str(tmp_path))
    assert (shown_ms(tables, CLUSTER, after, upto), topic_news_ms(tables, CLUSTER, after, upto)) == (since_ms, news_ms)
