"""The report from the tables says what the report from the log files says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

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
from jobs.tables.spark_reader import spark_types
from tests.core.audit.histories import all_shown
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.same_answers import folder_reader, spark_reader

pytestmark = pytest.mark.long
"""The whole sample goes through all jobs first."""


@pytest.mark.parametrize("read", [folder_reader, spark_reader], ids=["in-process", "spark"])
def test_tables_and_log_files_give_one_report(sample: CoordinatorAudit, read: Callable[[Tables], TableReader]) -> None:
    chosen = load(environment={}, flags={"cluster": sample.cluster})
    logs = find_logs([SAMPLE_LOGS])
    covered = list(coverage(logs))
    empty = {(file.topic, file.partition) for file in logs} - {(log.topic, log.partition) for log in covered}
    source = ReportHeader(chosen.cluster, software_version(), 0, covered, True, [], empty=sorted(empty))
    of_logs = build(group_histories(logs, pytest.fail, audit=chosen.audit), chosen.findings, source, all_shown)
    of_tables = stored_report(read(sample.tables), chosen)._replace(made_ms=0)
    for name, value in of_logs._asdict().items():
        assert getattr(of_tables, name) == value, name


def test_the_end_offsets_are_those_of_the_last_time(spark, tmp_path):
    tables = Tables(spark, str(tmp_path))
    assert stored_ends(FolderReader(tables.location), "c") == {}
    tables.create(GROUP_OFFSETS)
    names = ("cluster", "group_id", "topic", "partition", "end_offset")
    kept = {
        "run-1": [("c", "g", "t", 0, 5), ("c", "g", "gone", 0, 5), ("d", "g", "t", 0, 99)],
        "run-2": [("c", "g", "t", 0, 7), ("c", "h", "t", 0, 7), ("c", "g", "t", 1, None)],
    }
    for run_id, rows in kept.items():
        told = [dict(zip(names, row, strict=True), run_id=run_id) for row in rows]
        given = [tuple(map(each.get, GROUP_OFFSETS.schema.names)) for each in told]
        tables.append(GROUP_OFFSETS, spark.createDataFrame(given, spark_types(GROUP_OFFSETS.schema)), run_id)
    assert [end.offset for end in stored_ends(FolderReader(tables.location), "c").values()] == [7]


def test_a_cluster_of_which_nothing_is_there_has_an_empty_report(sample: CoordinatorAudit) -> None:
    empty = stored_report(FolderReader(sample.tables.location), load(flags={"cluster": "nobody's"}))
    assert (empty.groups, empty.findings, empty.coverage, empty.first_ms) == ((), (), (), None)
