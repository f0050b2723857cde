"""Brokers' application logs in the tables: the same answers as from files, each line once, with its time and record."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator_core.audit.explain import explain
from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.broker_log.events import EventKind
from jobs.api import CoordinatorAudit
from jobs.pipeline import broker_logs
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.brokers import BrokerLogs
from jobs.queries.from_logs.history import group_histories
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.interface import RebalanceFilter
from jobs.sources.files import find_logs
from jobs.tables.delta import Tables
from jobs.tables.spark_reader import SparkReader
from tests.broker_lines import Told, written
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.same_answers import folder_reader

pytestmark = pytest.mark.long


CONTEXT = "[GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
LOGGER = "(org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
NOT_LOADED = (
    "[2030-01-01 00:00:00,000] ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-0 with "
    "epoch 9 due to java.lang.RuntimeException: Replaying record CoordinatorRecord(key=StreamsGroupMetadataKey("
    f"groupId='g')) from __consumer_offsets-0 at offset 7 failed. {LOGGER}\n"
)
LATER = f"[2030-01-01 00:00:01,000] INFO {CONTEXT} [GroupId later] Bumped group epoch to 999. {LOGGER}\n"


class Taken(NamedTuple):
    """The tables with the lines, the file that they are from, and what it says of members that went."""

    made: CoordinatorAudit
    file: Path
    told: list[Told]


@pytest.fixture(scope="module")
def taken(sample: CoordinatorAudit, tmp_path_factory: pytest.TempPathFactory) -> Taken:
    """Two nights: the second reads the file again, with more lines at its end."""
    folder = tmp_path_factory.mktemp("brokers")
    text, told = written(group_histories(find_logs([SAMPLE_LOGS]), pytest.fail), timedelta(hours=-3))
    shutil.copytree(sample.tables.location, folder / "tables")
    made = CoordinatorAudit(sample.tables.spark, str(folder / "tables"), "sample", sample.settings)
    file = folder / "server.log"
    lines = text.splitlines(keepends=True)
    for some in (lines[: len(lines) // 2], lines):
        file.write_text("".join(some))
        broker_logs.take(made.tables, [str(file)], "sample", pytest.fail)
        broker_logs.settle(made.tables, "sample")
    made.audit()
    return Taken(made, file, told)


@pytest.fixture(scope="module")
def logs(taken: Taken) -> LogAnswers:
    brokers = BrokerLogs([taken.file])
    return LogAnswers(find_logs([SAMPLE_LOGS]), pytest.fail, lambda: taken.made.settings, brokers=brokers)


def spark_reader(tables: Tables) -> SparkReader:
    return SparkReader(tables.spark, tables.location)


@pytest.fixture(scope="module", params=[folder_reader, spark_reader], ids=["in-process", "spark"])
def tables(taken: Taken, request: pytest.FixtureRequest) -> StoredAnswers:
    return StoredAnswers(request.param(taken.made.tables), "sample", taken.made.settings.audit, pytest.fail)


def test_rebalances_are_those_of_the_files(logs: LogAnswers, tables: StoredAnswers, taken: Taken) -> None:
    rows = tables.rebalances(RebalanceFilter())
    assert rows == logs.rebalances(RebalanceFilter())
    said = {Told(row.group_id, each.member_id or "", each.kind) for row in rows for each in row.causes}
    assert set(taken.told) <= said
    (name, *_) = sorted(each.group_id for each in taken.told)
    assert tables.rebalances(RebalanceFilter(name)) == logs.rebalances(RebalanceFilter(name))


def test_histories_and_explanations_are_those_of_the_files(
    logs: LogAnswers, tables: StoredAnswers, taken: Taken
) -> None:
    for name in sorted({each.group_id for each in taken.told})[:3]:
        expected, found = logs.history(name), tables.history(name)
        assert expected is not None
        assert found is not None
        assert found.events == expected.events
        assert all(each.timestamp_ms is not None for each in found.events)
        # Files say how far the partition of the group was read, tables how far all of them were.
        assert expected.lost.read.items() <= found.lost.read.items()
        assert replace(found, lost=expected.lost) == replace(
            expected, commits=[], commit_counts=[], transactions=[], sizes=[]
        )
        for row in expected.rebalances:
            assert explain(found, row) == explain(replace(expected, commits=[]), row)


def test_findings_are_those_of_the_files(logs: LogAnswers, tables: StoredAnswers) -> None:
    def key(row: object) -> str:
        return repr(row)

    found = sorted(tables.findings(None), key=key)
    assert found == sorted(logs.findings(None), key=key)
    assert any(row.kind == FindingKind.CONVERSION_REFUSED for row in found)


def test_each_line_is_there_once_with_its_record(taken: Taken) -> None:
    rows = taken.made.table("broker_events").collect()
    assert len({row.digest for row in rows}) == len(rows)
    ends = [row for row in rows if row.kind == EventKind.FILE_ENDS]
    assert [row.line for row in ends] == [len(taken.file.read_text().splitlines())]
    bound = [row for row in rows if row.kind.startswith("member_")]
    assert len(bound) == len(taken.told)
    assert all(row.record is not None for row in bound)


def test_what_is_warned_of_is_what_files_warn_of(taken: Taken, tmp_path: Path) -> None:
    """A partition that did not load, a file of another cluster, and a copy that is older than the file."""
    text, told = written(group_histories(find_logs([SAMPLE_LOGS]), pytest.fail))
    (tmp_path / "failed.log").write_text("".join(text.splitlines(keepends=True)[:40]) + NOT_LOADED + LATER)
    for number, each in enumerate(told):
        text = text.replace(each.member_id, f"other-{number}")
    (tmp_path / "other.log").write_text(text)
    shutil.copytree(taken.made.tables.location, tmp_path / "tables")
    made = CoordinatorAudit(taken.made.tables.spark, str(tmp_path / "tables"), "sample", taken.made.settings)
    files = [tmp_path / "failed.log", tmp_path / "other.log"]
    broker_logs.take(made.tables, list(map(str, files)), "sample", pytest.fail)
    broker_logs.settle(made.tables, "sample")
    made.audit()
    by_files, by_tables = list[str](), list[str]()
    brokers = BrokerLogs([taken.file, *files])
    of_files = LogAnswers(find_logs([SAMPLE_LOGS]), by_files.append, lambda: made.settings, brokers=brokers)
    of_tables = StoredAnswers(folder_reader(made.tables), "sample", made.settings.audit, by_tables.append)
    expected = [row for row in of_files.findings(None) if row.kind == FindingKind.NO_COORDINATOR]
    assert [row.group_id for row in expected] == [None]
    assert [row for row in of_tables.findings(None) if row.kind == FindingKind.NO_COORDINATOR] == expected
    of_tables.warn_once()
    for words in ("__consumer_offsets-0 has no coordinator", "other.log are not used", "older than the broker's log"):
        (said,) = [each for each in by_files if words in each]
        assert [each for each in by_tables if words in each] == [said]
