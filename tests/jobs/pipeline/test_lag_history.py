"""Snapshots of a cluster in the tables: the lag that nights compute is the lag that the log files give."""

import json
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.errors import InputError
from coordinator_core.groups.offsets import TopicPartition
from jobs.api import CoordinatorAudit
from jobs.pipeline import lag_history, snapshots
from jobs.pipeline import nights as night_counts
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.settings import read_settings
from jobs.report.stored import stored_report
from jobs.settings import load
from jobs.sources.end_offsets import all_ends
from jobs.sources.files import find_logs
from jobs.sources.snapshot_files import is_snapshot, read_topics
from jobs.tables.folder_reader import FolderReader
from jobs.tables.night_rows import stored_nights
from jobs.tables.nightly import NIGHTLY_STEPS
from jobs.tables.table import few
from tests.core.builders import GroupLog
from tests.jobs.frames import assert_rows
from tests.jobs.logs import batch, write_segment

CLUSTER = "lag"
SETTINGS = [
    ("GROUP", "g", {"consumer.session.timeout.ms": "45000"}, None),
    ("SUPPORTED_FEATURES", "1", {"metadata.version": "30"}, None),
    ("SUPPORTED_FEATURES", "2", None, "closed"),
    ("SUPPORTED_FEATURES", "3", {"group.version": "1"}, "no level"),
    ("FINALIZED_FEATURES", "", {"metadata.version": "29"}, None),
]
"""What each snapshot shows: type of resource, resource, settings, and what is missing."""


def records(log: GroupLog, *offsets: int):
    """A commit a second for two partitions in turn; the offset goes back once."""
    return [log.commit("orders", number % 2, offset) for number, offset in enumerate(offsets)]


def snapshot(file: Path, times_and_ends) -> Path:
    with file.open("a", encoding="utf-8") as out:
        for time_ms, end in times_and_ends:
            for partition in (0, 1, 2):
                row = {"topic": "orders", "topic_id": None, "partition": partition, "replica_racks": [None]}
                out.write(json.dumps({**row, "timestamp_ms": time_ms, "end_offset": end, "cluster_id": "C"}) + "\n")
            for kind, resource, configs, missing in SETTINGS:
                row = {"resource_type": kind, "resource": resource, "configs": configs, "missing": missing}
                out.write(json.dumps({**row, "timestamp_ms": time_ms, "cluster_id": "C"}) + "\n")
    return file


@pytest.fixture(scope="module")
def nights(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory):
    """Two nights: the second brings later records, and a snapshot from before them."""
    place, log = tmp_path_factory.mktemp("lag"), GroupLog()
    audit = CoordinatorAudit(spark, str(place / "tables"), CLUSTER)
    ends, folder = place / "ends.jsonl", place / "__consumer_offsets-0"
    first = batch(*records(log, *range(10, 40)))
    write_segment(folder, [first])
    audit.ingest(str(folder))
    audit.decode()
    audit.replay()
    counts = [snapshots.take(audit.tables, [str(snapshot(ends, [(5_000, 30), (20_000, 50), (31_500, 60)]))], CLUSTER)]
    written = [lag_history.run(audit.tables), lag_history.run(audit.tables)]
    assert night_counts.count(audit.tables, "night 1") == 1
    audit.tables.create(NIGHTLY_STEPS)  # a night is over once its steps are written
    audit.tables.append(NIGHTLY_STEPS, few(NIGHTLY_STEPS, [{"night": "night 1", "number": 1}]), "night 1")
    write_segment(folder, [first, batch(*records(log, 20, 21, 50, 51, 52, 53))])
    audit.ingest(str(folder))
    audit.decode()
    audit.replay()
    counts.append(snapshots.take(audit.tables, [str(snapshot(ends, [(33_000, 61), (34_000, 61)]))], CLUSTER))
    written.append(lag_history.run(audit.tables))
    assert night_counts.count(audit.tables, "night 2") == 1
    return audit, place, counts, written


def test_each_snapshot_is_taken_in_once_and_rows_that_stay_are_kept(nights):
    _, _, counts, written = nights
    # Two of the six settings do not tell the release: of their rows only the first and the last are kept.
    assert [tuple(each) for each in counts] == [(3, 9, 3 * 4 + 2 * 2), (2, 6, 2 * 4 + 2)]
    assert written == [6, 0, 6]  # again: the snapshot after which the log had no record in the first night


def test_the_tables_have_the_lag_of_the_log_files(nights):
    audit, place, _, _ = nights
    ends = all_ends(place / "ends.jsonl")
    assert len(ends[TopicPartition("orders", 0)]) == 5
    files = LogAnswers(find_logs([place / "__consumer_offsets-0"]), pytest.fail, lambda: audit.settings)
    tables = StoredAnswers(FolderReader(audit.tables.location), CLUSTER, audit.settings.audit, pytest.fail)
    expected = files.lag("g", ends)
    assert tables.lag("g", None) == expected
    assert tables.lag("g", ends) == expected
    known = {(each.partition, each.timestamp_ms): (each.lag, each.consumed, each.status) for each in expected}
    assert known[0, 33_000] == (61 - 50, 30, "OK")
    assert known[1, 31_500] == (60 - 21, -8, "REWIND")


def test_the_tables_show_the_settings_of_the_snapshots(nights):
    audit, place, _, _ = nights
    stored = read_settings(FolderReader(audit.tables.location), CLUSTER)
    told = read_topics(place / "ends.jsonl").snapshots
    assert stored.levels == told.levels == [((29, None), 5_000, 34_000)]
    for known in (stored, told):
        values = [known.value("GROUP", "g", "consumer.session.timeout.ms", time_ms) for time_ms in (4_999, 20_001)]
        assert values == [None, "45000"]


def test_settings_that_stay_take_two_rows_however_many_snapshots_show_them(nights):
    audit = nights[0]
    rows = audit.table("snapshot_settings").where("resource_type = 'GROUP' OR name = 'group.version'")
    expected = product(("consumer.session.timeout.ms", "group.version"), (5_000, 34_000))
    assert_rows(rows.select("name", "timestamp_ms"), expected)


def test_what_a_night_did_not_count_is_unknown_and_not_zero(nights):
    tables = FolderReader(nights[0].tables.location)
    first, second = stored_nights(tables, CLUSTER)
    assert (first.night, first.rebalances, first.findings, first.total_lag, first.new_rebalances) == (
        *("night 1", 0, None, 22 + 21, None),
    )
    assert (second.new_rebalances, second.total_lag, second.max_lag, second.lagging) == (0, 9 + 10, 10, 0)


def test_the_report_has_lag_and_nights(nights):
    audit = nights[0]
    settings = audit.settings.model_copy(update={"cluster": CLUSTER})
    report = stored_report(FolderReader(audit.tables.location), settings)
    (group,) = report.groups
    assert [line[:2] for line in group.lag] == [("orders", 0), ("orders", 1)]
    assert group.lag[0].lags[-2:] == (11, 9)
    assert [night.night for night in report.nights] == ["night 1", "night 2"]


def test_without_snapshots_the_answer_names_the_command(tmp_path):
    tables = StoredAnswers(FolderReader(str(tmp_path)), CLUSTER, load().audit)
    with pytest.raises(InputError, match="coordinator-audit snapshot kafka://"):
        tables.lag("g", None)


def test_a_snapshot_is_told_from_a_dump(tmp_path):
    assert is_snapshot(str(snapshot(tmp_path / "cluster.jsonl", [(1, 2)])))
    dump = tmp_path / "dump.jsonl"
    dump.write_text(json.dumps({"topic": "t", "partition": 0, "offset": 1, "key": "a", "value": None}) + "\n")
    assert not is_snapshot(str(dump))
    assert not is_snapshot(str(tmp_path))
