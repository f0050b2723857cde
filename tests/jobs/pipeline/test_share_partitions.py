"""Share delivery in the tables: the rows of the recorded log, however it is cut into nights, as from its files."""

import random
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from coordinator_core.audit.findings.all_findings import findings, findings_of_cluster
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.audit.settings import AuditSettings
from jobs.api import CoordinatorAudit
from jobs.formatting import plain
from jobs.pipeline import replay
from jobs.queries.from_logs.history import group_histories
from jobs.relations.groups import report_histories
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import HISTORY
from tests.commands import run_command
from tests.core.audit.histories import all_shown
from tests.core.groups.share_delivery import RECORDING
from tests.jobs.frames import assert_rows
from tests.jobs.logs import batch, write_segment
from tests.jobs.pipeline.spark_histories import histories
from tests.jobs.split_nights import by_offset, decoded, in_nights, rows_of

pytestmark = pytest.mark.long
"""Each test runs whole jobs over the recording: too long for the quick tier."""

CLUSTER = "share"


@pytest.fixture(scope="module")
def recorded(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> CoordinatorAudit:
    """The recording, through all jobs in one run."""
    made = CoordinatorAudit(spark, str(tmp_path_factory.mktemp("share")), CLUSTER)
    made.ingest(str(RECORDING / "logs"))
    made.decode()
    made.replay()
    made.audit()
    return made


def from_logs() -> dict[str, GroupHistory]:
    logs = group_histories(find_logs([RECORDING / "logs"]), lambda _: None, audit=AuditSettings())
    return {each.group_id: each for each in logs}


def test_share_partitions_are_those_of_the_logs(recorded):
    expected = from_logs()
    assert sum(len(each.share_partitions) for each in expected.values()) == 226
    found = report_histories(FolderReader(recorded.tables.location), CLUSTER)
    assert {each.group_id: each.share_partitions for each in found} == {
        group_id: each.share_partitions for group_id, each in expected.items()
    }


def test_sums_of_deliveries_and_findings_are_those_of_the_logs(recorded):
    expected, limits = from_logs(), recorded.settings.findings
    found = {each.group_id: each for each in histories(recorded.tables, CLUSTER)}
    assert found == {
        group_id: replace(each, share_partitions=[], commit_counts=[]) for group_id, each in expected.items()
    }
    rows = map(plain, findings_of_cluster(expected.values(), limits, all_shown))
    assert_rows(recorded.table("findings").drop("cluster"), rows)


def test_nights_give_the_rows_of_one_pass(recorded, tmp_path):
    whole, nights = recorded.tables, ["night 1", "night 2", "night 3"]
    nightly = in_nights(whole, tmp_path, by_offset(whole, nights, random.Random(3)))
    for night in nights:
        decoded(nightly, night)
        replay.run(nightly)
    assert rows_of(nightly) == rows_of(whole)


def test_late_records_make_the_groups_begin_anew(recorded, tmp_path):
    """Some of the first records of the state log come last, so that what was made of the others is of no use."""
    whole = recorded.tables
    is_late = (F.col("log_topic") == "__share_group_state") & F.col("log_offset").between(5, 20)
    late = in_nights(whole, tmp_path, F.when(is_late, "night 2").otherwise("night 1"))
    decoded(late, "night 1")
    replay.run(late)
    gaps = late.read(HISTORY["share_partitions"]).where("NOT history_complete AND missing LIKE 'records of%'")
    assert gaps.count() > 0
    decoded(late, "night 2")
    (again,) = replay.run(late)
    assert again.rebuilt > 0
    assert rows_of(late) == rows_of(whole)


SCENARIO = """
lasts: 2m
cluster: {partitions: 1, share_partitions: 1}
topics: {orders: {partitions: 2, rate: 20}}
groups:
  known: {type: share, topics: [orders], commits: {every: 2s}}
  forgotten: {type: share, topics: [orders], commits: {every: 2s}}
"""


@pytest.fixture
def forgotten(tmp_path: Path) -> Path:
    """Logs of two share groups; the log of groups does not have one of them."""
    scenario, logs = tmp_path / "scenario.yaml", tmp_path / "logs"
    scenario.write_text(SCENARIO)
    assert run_command("simulate", scenario, "--out", logs).exit_code == 0
    log_of_groups = logs / "__consumer_offsets-0"
    records = list(LogReader(find_logs([log_of_groups]), pytest.fail).records())
    kept = [record for record in records if record.group_id == "known"]
    placed = [each._replace(at=each.at._replace(offset=number)) for number, each in enumerate(kept)]
    batches = [batch(*together) for _, together in groupby(placed, key=lambda each: each.batch)]
    write_segment(log_of_groups, batches)
    return logs


def test_state_of_a_group_that_no_log_has_is_found_in_tables_as_in_logs(forgotten, spark, tmp_path):
    made = CoordinatorAudit(spark, str(tmp_path / "tables"), CLUSTER)
    made.ingest(str(forgotten))
    made.decode()
    made.replay()
    made.audit()
    logs = group_histories(find_logs([forgotten]), pytest.fail, audit=AuditSettings())
    expected = {each.group_id: replace(each, share_partitions=[], commit_counts=[]) for each in logs}
    assert expected["forgotten"].share_logs.groups_ms.keys() == {0}
    assert {each.group_id: each for each in histories(made.tables, CLUSTER)} == expected
    found = made.table("findings").where("group_id = 'forgotten'")
    assert_rows(found.select("kind", "value"), [("share_state_orphaned", 2)])
    for_report = {each.group_id: each for each in report_histories(FolderReader(made.tables.location), CLUSTER)}
    told = findings(for_report["forgotten"], made.settings.findings)
    assert [(row.kind, row.value) for row in told] == [("share_state_orphaned", 2)]
