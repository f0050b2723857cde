"""The end of a partition that is missing: what lasted there is in doubt, by one rule, in files and tables alike."""

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.missing_ends import SHORTEST_MS
from coordinator_core.records import GROUP_LOG, Family
from coordinator_core.state_json import VERSION
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.interface import RebalanceFilter
from jobs.relations import missing_ends
from jobs.relations.log_extent import extents_at, reasons_of_ends
from jobs.relations.logs import ends_missing, lost_records
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import GROUP_TOPICS, METADATA_TOPIC, find_logs
from jobs.tables.commits import COMMIT_SUMMARIES
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.log import LOG_RANGES, LOG_RECORDS, RUNS
from jobs.tables.snapshots import END_OFFSETS
from jobs.tables.table import Table
from tests.core.cluster.test_metadata_log import A, B, partition, remove
from tests.core.history.test_missing_ends import START_MS, behind, converged, metadata, until
from tests.jobs.logs import batch, write_segment
from tests.jobs.relations.engines import through_spark, write

RECORDS = [each._replace(at=each.at._replace(timestamp_ms=START_MS + each.at.offset)) for each in behind()]
LAST = RECORDS[-1].at
ENDED_MS = LAST.timestamp_ms + 70_000
"""A member that is behind has to have written by then, by the clock of the controller."""
NEXT = LAST.offset + 1


def answers(folder: Path, metadata_ms: int) -> LogAnswers:
    """Answers from a log of a group that is about to write, with topics of a metadata log that ends at a time."""
    write_segment(folder / f"{GROUP_LOG}-0", [batch(record) for record in RECORDS])
    return LogAnswers(find_logs([folder]), lambda message: None, lambda: load(environment={}), until(metadata_ms))


def test_files_that_lack_the_end_of_a_partition_say_so(tmp_path: Path) -> None:
    short = answers(tmp_path, ENDED_MS)
    then = short.at(AsOf())
    (group,) = then.groups()
    assert not group.certainty.exists
    (reason,) = then.knowledge().missing_ends.values()
    assert "its end is missing" in reason
    assert reason in short.knowledge().reasons("g")
    (row,) = short.rebalances(RebalanceFilter())
    assert (row.outcome, row.history_complete, row.missing) == ("unknown", False, f"records from offset {NEXT} on")


def test_a_moment_before_the_missing_end_is_known(tmp_path: Path) -> None:
    short = answers(tmp_path, ENDED_MS)
    for moment in (AsOf(offsets={0: NEXT}), AsOf(LAST.timestamp_ms - 1)):
        then = short.at(moment)
        (group,) = then.groups()
        assert group.certainty.exists


def test_a_partition_that_has_time_left_is_not_doubted(tmp_path: Path) -> None:
    whole = answers(tmp_path, ENDED_MS - 1)
    (group,) = whole.at(AsOf()).groups()
    assert group.certainty.exists
    (row,) = whole.rebalances(RebalanceFilter())
    assert (row.outcome, row.history_complete) == ("open", True)
    assert not whole.knowledge().missing_ends


def stored_state(*, is_behind: bool) -> str:
    audit = GroupAudit.begin("g", Family.GROUP, None, Coverage({}), None, from_start=True)
    for record in behind() if is_behind else converged():
        audit.feed(record)
    return audit.state()


def tables_of_two() -> dict[Table, list[Any]]:
    """Tables of a partition with a group that is about to write, and of one whose group has nothing to write."""
    common = {"cluster": "c", "run_id": "run"}
    of_log = {**common, "first_offset": 0, "first_ms": 0, "records": NEXT, "has_start": True, "leader_epoch": 0}
    of_group = {**of_log, "log_topic": GROUP_LOG, "last_offset": LAST.offset, "last_ms": LAST.timestamp_ms}
    of_metadata = {**of_log, "log_topic": METADATA_TOPIC, "log_partition": 0, "last_offset": 9, "last_ms": ENDED_MS}
    states = [
        {**common, "log_topic": GROUP_LOG, "log_partition": number, "version": str(VERSION), "group_id": name}
        | {"state": stored_state(is_behind=name == "g")}
        for number, name in enumerate(("g", "other"))
    ]
    ranges = [{**of_group, "log_partition": number} for number in range(2)]
    rebalance: dict[str, Any] = {**common, "group_id": "g", "is_open": True, "outcome": "open"}
    tables = {LOG_RANGES: [*ranges, of_metadata], GROUP_STATES: states, HISTORY["rebalances"]: [rebalance]}
    names = ("memberships", "group_epochs", "topic_history")
    return tables | {HISTORY[name]: [] for name in names} | {LOG_RECORDS: [], RUNS: []}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    write(tmp_path, tables_of_two())
    return tmp_path


def test_tables_tell_it_by_the_same_rule(home: Path, spark: SparkSession) -> None:
    for reader in (FolderReader(str(home)), through_spark(spark, home)):
        with patch.object(missing_ends, "stored_topics", lambda *_: until(ENDED_MS)):
            (place,) = found = ends_missing(reader, "c")
            assert place == (GROUP_LOG, 0)
            assert found[place].last == LAST.offset
            assert "member a has not reached epoch 3" in found[place].reason
            assert lost_records(reader, "c").ranges == {place: [(NEXT, NEXT)]}
        reader.found.clear()
        with patch.object(missing_ends, "stored_topics", lambda *_: None):
            assert ends_missing(reader, "c") == {}


def test_an_extent_in_the_tables_lacks_what_is_behind_its_last_record(home: Path) -> None:
    with patch.object(missing_ends, "stored_topics", lambda *_: until(ENDED_MS)):
        extents = extents_at(FolderReader(str(home)), "c", AsOf(), GROUP_TOPICS)
    assert extents[GROUP_LOG, 0].gaps == LogGaps(NEXT, NEXT)
    assert not extents[GROUP_LOG, 0].transactions_are_known
    assert extents[GROUP_LOG, 1].gaps == LogGaps()
    assert len(reasons_of_ends(extents)) == 1


def test_tables_know_the_offsets_of_topics_that_were_deleted_later(tmp_path: Path, spark: SparkSession) -> None:
    deleted = metadata().batch(partition(A, 1, 1)).lasts(LAST.timestamp_ms + 20_000).batch(remove(B))
    topics = until(ENDED_MS, deleted)
    of = {"cluster": "c", "run_id": "run", "log_topic": GROUP_LOG, "log_partition": 1, "partition": 0}
    commits = [
        {**of, "group_id": "g1", "topic": "orders", "committed": {"log_offset": 4}},
        {**of, "group_id": "g2", "topic": "orders", "committed": None},
        {**of, "group_id": "g3", "topic": "other", "committed": {"log_offset": 5}},
    ]
    (until_at,) = (interval.until for interval in topics.intervals(["orders"]))
    gone = {"cluster": "c", "topic": "orders", "until": until_at, "ended_by": "deleted"}
    write(tmp_path, tables_of_two() | {COMMIT_SUMMARIES: commits, HISTORY["topic_history"]: [gone]})
    for reader in (FolderReader(str(tmp_path)), through_spark(spark, tmp_path)):
        with patch.object(missing_ends, "stored_topics", lambda *_: topics):
            found = ends_missing(reader, "c")
            assert found.keys() == {(GROUP_LOG, 0), (GROUP_LOG, 1)}
            assert "topic orders was deleted, of which it has offsets, so that group 'g1'" in found[GROUP_LOG, 1].reason


@pytest.mark.parametrize(("leader_epoch", "is_told"), [(0, True), (None, False)])
def test_tables_know_the_end_offsets_of_snapshots(
    tmp_path: Path, spark: SparkSession, leader_epoch: int | None, *, is_told: bool
) -> None:
    """A dump without leader epochs lacks control records: the last ones may be those."""
    tables, read_ms = tables_of_two(), LAST.timestamp_ms + SHORTEST_MS
    *of_groups, of_metadata = tables[LOG_RANGES]
    of_metadata["last_ms"] = read_ms + SHORTEST_MS
    for row in of_groups:
        row["leader_epoch"] = leader_epoch
    shown = {"cluster": "c", "run_id": "run", "topic": GROUP_LOG, "timestamp_ms": read_ms}
    ends = [{**shown, "partition": 0, "end_offset": NEXT}, {**shown, "partition": 1, "end_offset": NEXT + 1}]
    write(tmp_path, tables | {END_OFFSETS: ends})
    for reader in (FolderReader(str(tmp_path)), through_spark(spark, tmp_path)):
        with patch.object(missing_ends, "stored_topics", lambda *_: None):
            assert {*ends_missing(reader, "c")} == ({(GROUP_LOG, 1)} if is_told else set())
