"""The served page says the same from log files and from the tables that a night made of them."""

from collections.abc import Callable

import pytest

from jobs.api import CoordinatorAudit
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_logs.history import group_histories
from jobs.report.build import ReportHeader, build
from jobs.serve.from_logs import LogsRead, ServedLogs
from jobs.serve.from_tables import ServedTables
from jobs.serve.group_times import GroupTimes
from jobs.serve.site import GroupsAsked, Packed, ServedPlace, Site
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.tables.delta import Tables
from jobs.tables.reader import TableReader
from tests.core.audit.histories import all_shown
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.same_answers import folder_reader, spark_reader

pytestmark = pytest.mark.long
"""The whole sample goes through all jobs first."""

MOMENTS = (None, 1_795_256_900_000, 1_795_257_040_000, 1_795_257_300_000, 1)


@pytest.fixture(scope="module")
def of_logs() -> ServedLogs:
    chosen = load(environment={})
    logs = find_logs([SAMPLE_LOGS])
    histories = list(group_histories(logs, pytest.fail, audit=chosen.audit, over_time=True))
    report = build(histories, chosen.findings, ReportHeader("c", "1", 0, (), True, []), all_shown)
    times = {history.group_id: GroupTimes.of(history) for history in histories}
    return ServedLogs(LogsRead(report, times, LogAnswers(logs, pytest.fail, lambda: chosen)), chosen.findings, {})


def of_tables(sample: CoordinatorAudit, read: Callable[[Tables], TableReader]) -> ServedTables:
    return ServedTables(lambda: read(sample.tables), load(environment={}, flags={"cluster": sample.cluster}))


@pytest.mark.parametrize("read", [folder_reader, spark_reader], ids=["in-process", "spark"])
def test_groups_at_moments(
    sample: CoordinatorAudit, of_logs: ServedLogs, read: Callable[[Tables], TableReader]
) -> None:
    stored = of_tables(sample, read)
    asked = [GroupsAsked(at_ms=moment, most=200) for moment in MOMENTS]
    asked += [
        GroupsAsked(find="COOP"),
        GroupsAsked(group_type="SHARE", most=200),
        GroupsAsked(only_found=True, most=200),
        GroupsAsked(first=100_000),
        GroupsAsked(most=0),
        GroupsAsked(first=3, most=0, group_type="SHARE"),
        GroupsAsked(at_ms=MOMENTS[1], than_ms=MOMENTS[2], only_changed=True, most=200),
    ]
    for each in asked:
        one, other = of_logs.groups(each), stored.groups(each)
        assert one.seen == other.seen, each
        assert other.groups == one.groups, each
        assert other.than == one.than, each
    first = stored.groups(GroupsAsked(most=5)).groups
    then = stored.groups(GroupsAsked(most=5, first=5)).groups
    assert len({row.group_id for row in (*first, *then)}) == 10


@pytest.mark.parametrize("read", [folder_reader, spark_reader], ids=["in-process", "spark"])
def test_groups_offsets_and_names(
    sample: CoordinatorAudit, of_logs: ServedLogs, read: Callable[[Tables], TableReader]
) -> None:
    stored = of_tables(sample, read)
    packed = of_logs.group("A-coop-a2d7", None, None)
    assert isinstance(packed, Packed)
    sites: list[ServedPlace] = [of_logs, stored]
    questions = (
        ("/api/group", {"group": "A-coop-a2d7"}),
        ("/api/offsets", {"group": "N-cls-7", "at": "1795257500000"}),
        ("/api/settings", {"group": "D-share-38"}),
        ("/api/settings", {"group": "D-share-38", "at": "1"}),
        ("/api/search", {"find": "a-coop"}),
        ("/api/search", {"find": "127.0.0.1"}),
    )
    for path, asked in questions:
        one, other = (Site(place).answer(path, asked) for place in sites)
        assert one.status == 200, one.body
        if path == "/api/search":
            assert len(one.body) > 2
            assert one.status == other.status
        else:
            assert one == other, (path, asked)
    report = stored.overview()
    assert sum(count for _, count in report.outcomes) == 185
    assert report.findings
    assert report.bands
