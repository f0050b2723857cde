"""What a real broker wrote to its own log, in the tables: the same answers as from the files."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from coordinator_core.audit.explain import explain
from jobs import settings
from jobs.api import CoordinatorAudit
from jobs.pipeline import broker_logs
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.group_rows import group_steps
from jobs.queries.interface import RebalanceFilter
from jobs.sources.files import find_logs
from jobs.tables.spark_reader import SparkReader
from tests.broker.witness.kept import unpack
from tests.jobs.queries.same_answers import folder_reader

pytestmark = pytest.mark.long

RELEASE = "4.0.0"
GROUPS = ("billing", "ledger", "payments")


class Both(NamedTuple):
    """The answers from the files and from the tables."""

    logs: LogAnswers
    tables: StoredAnswers


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("witness")
    unpack(folder)
    return folder / RELEASE


@pytest.fixture(scope="module")
def taken(spark: SparkSession, recording: Path, tmp_path_factory: pytest.TempPathFactory) -> CoordinatorAudit:
    made = CoordinatorAudit(spark, str(tmp_path_factory.mktemp("tables")), "recorded")
    made.ingest(str(recording))
    made.decode()
    made.replay()
    made.keep_offsets()
    broker_logs.take(made.tables, [str(recording / "server.log")], "recorded", pytest.fail)
    broker_logs.settle(made.tables, "recorded")
    made.audit()
    return made


@pytest.fixture(scope="module", params=["in-process", "spark"])
def both(taken: CoordinatorAudit, recording: Path, request: pytest.FixtureRequest) -> Both:
    own = taken.settings or settings.load(environment={})
    brokers = BrokerLogs([recording / "server.log"])
    logs = LogAnswers(find_logs([recording]), pytest.fail, lambda: own, brokers=brokers)
    in_process = request.param == "in-process"
    reader = folder_reader(taken.tables) if in_process else SparkReader(taken.tables.spark, taken.tables.location)
    return Both(logs, StoredAnswers(reader, "recorded", own.audit, pytest.fail))


def test_rebalances_and_findings_are_those_of_the_files(both: Both) -> None:
    rows = both.tables.rebalances(RebalanceFilter())
    assert rows == both.logs.rebalances(RebalanceFilter())
    kinds = {cause.kind for row in rows for cause in row.causes}
    assert {"member_left", "member_expired", "member_timed_out"} <= kinds
    assert "member_left_or_expired" not in kinds
    found = sorted(both.tables.findings(None), key=repr)
    assert found == sorted(both.logs.findings(None), key=repr)
    # The owner of an instance id that another client asked for expired soon after: it may have come back as the other.
    assert {"conversion_refused", "static_member_expired", "offsets_expired"} <= {row.kind for row in found}
    assert not [row.detail for row in found if row.kind == "offsets_expired" and "deleted" in row.detail]


@pytest.mark.parametrize("group", GROUPS)
def test_histories_explanations_and_commits_are_those_of_the_files(both: Both, group: str) -> None:
    expected, found = both.logs.history(group), both.tables.history(group)
    assert expected is not None
    assert found is not None
    assert found.events == expected.events
    assert found == replace(expected, commits=[], commit_counts=[], transactions=[], sizes=[])
    for row in expected.rebalances:
        assert explain(found, row) == explain(replace(expected, commits=[]), row)
    steps = group_steps(both.logs, expected).rows
    assert group_steps(both.tables, found).rows == steps
    removed = [each for each in steps if each.kind == "removed"]
    assert removed or group != "payments"
    assert {each.cause for each in removed} <= {"expired", "group expired"}
    assert all("server.log:" in (each.detail or "") for each in removed)
