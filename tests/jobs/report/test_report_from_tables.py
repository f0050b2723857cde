"""The report from the tables says what the report from the log files says."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.offsets import TopicPartition
from jobs.api import CoordinatorAudit
from jobs.installation import software_version
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.report.coverage import coverage
from jobs.report.stored import stored_ends, stored_report
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.delta import Tables
from jobs.tables.folder_reader import FolderReader
from jobs.tables.reader import TableReader
from jobs.tables.results import GROUP_OFFSETS
from jobs.tables.snapshots import END_OFFSETS
from tests.core.audit.histories import all_shown
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.same_answers import folder_reader, spark_reader
from tests.jobs.relations.engines import through_spark, write

pytestmark = pytest.mark.long
"""The whole sample goes through all jobs first."""


@pytest.mark.parametrize("read", [folder_reader, spark_reader], ids=["in-process", "spark"])
def test_tables_and_log_files_give_one_report(sample: CoordinatorAudit, read: Callable[[Tables], TableReader]) -> None:
    chosen = load(environment={}, flags={"cluster": sample.cluster})
    logs = find_logs([SAMPLE_LOGS])
    covered = list(coverage(logs))
    empty = {(file.topic, file.partition) for file in logs} - {(log.topic, log.partition) for log in covered}
    source = ReportHeader(chosen.cluster, software_version(), 0, covered, True, [], empty=sorted(empty))
    of_logs = build(
        group_histories(logs, pytest.fail, audit=chosen.audit, over_time=True), chosen.findings, source, all_shown
    )
    of_tables = stored_report(read(sample.tables), chosen)._replace(made_ms=0)
    for name, value in of_logs._asdict().items():
        assert getattr(of_tables, name) == value, name


def test_the_end_offsets_are_those_of_the_last_time_with_the_topics_that_snapshots_name(
    spark: SparkSession, tmp_path: Path
) -> None:
    assert stored_ends(FolderReader(str(tmp_path)), "c") == {}
    names = ("cluster", "group_id", "topic", "partition", "end_offset")
    kept = {
        "run-1": [("c", "g", "t", 0, 5), ("c", "g", "gone", 0, 5), ("d", "g", "t", 0, 99)],
        "run-2": [("c", "g", "t", 0, 7), ("c", "h", "t", 0, 7), ("c", "g", "t", 1, None), ("c", "g", "u", 0, 9)],
    }
    rows = [
        dict(zip(names, row, strict=True), run_id=run_id, end_offset_ms=5)
        for run_id, of_run in kept.items()
        for row in of_run
    ]
    write(tmp_path, {GROUP_OFFSETS: rows})
    place, other = TopicPartition("t", 0), TopicPartition("u", 0)
    assert stored_ends(FolderReader(str(tmp_path)), "c") == {place: EndOffset(5, 7), other: EndOffset(5, 9)}
    snapshots = [("c", 4, "earlier"), ("c", 5, "id of t"), ("d", 5, "of another cluster")]
    of_t = {"topic": "t", "partition": 0, "end_offset": 7}
    ends = [{**of_t, "cluster": name, "timestamp_ms": at, "topic_id": of} for name, at, of in snapshots]
    write(tmp_path, {END_OFFSETS: ends})
    for tables in (FolderReader(str(tmp_path)), through_spark(spark, tmp_path)):
        assert stored_ends(tables, "c") == {place: EndOffset(5, 7, "id of t"), other: EndOffset(5, 9)}


def test_a_cluster_of_which_nothing_is_there_has_an_empty_report(sample: CoordinatorAudit) -> None:
    empty = stored_report(FolderReader(sample.tables.location), load(flags={"cluster": "nobody's"}))
    assert (empty.groups, empty.findings, empty.coverage, empty.first_ms) == ((), (), (), None)
