"""Whatever commands ask, the tables answer as the log files do, at any moment, in this process and through Spark."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from coordinator_core.audit.explain import explain, find_rebalance
from coordinator_core.errors import InputError
from jobs.api import CoordinatorAudit
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.group_rows import group_steps
from jobs.queries.interface import Answers, RebalanceFilter
from jobs.relations.moment import AsOf
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.queries.same_answers import descriptions, folder_reader, spark_reader

pytestmark = pytest.mark.long
"""The whole sample goes through all jobs first."""


@pytest.fixture(scope="module")
def logs(sample: CoordinatorAudit) -> LogAnswers:
    return LogAnswers(find_logs([SAMPLE_LOGS]), pytest.fail, lambda: sample.settings)


@pytest.fixture(scope="module", params=[folder_reader, spark_reader], ids=["in-process", "spark"])
def tables(sample: CoordinatorAudit, request: pytest.FixtureRequest) -> StoredAnswers:
    return StoredAnswers(request.param(sample.tables), sample.cluster, sample.settings.audit, pytest.fail)


def moments() -> list[AsOf]:
    """Now, a time and end offsets of two partitions in the middle of the log, and a time after its end."""
    chance, rows = random.Random(3), {}
    for file in find_logs([SAMPLE_LOGS], topics=["__consumer_offsets"]):
        rows[file.partition] = list(LogReader([file], pytest.fail).rows())
    times = sorted(row.timestamp for of_partition in rows.values() for row in of_partition)
    ends = {number: chance.choice(of_partition).offset for number, of_partition in rows.items() if of_partition}
    return [AsOf(), AsOf(time_ms=times[len(times) // 3]), AsOf(offsets=ends), AsOf(time_ms=times[-1] + 1)]


def test_groups_at_any_moment(logs, tables):
    for moment in moments():
        assert descriptions(tables.at(moment)) == descriptions(logs.at(moment)), moment


def test_one_group(logs, tables):
    (name, *_) = busiest(logs)
    found = [each for each in logs.at(AsOf()).groups() if each.group.group_id == name]
    assert list(tables.at(AsOf(), name).groups()) == found


def busiest(logs: LogAnswers) -> list[str]:
    """Groups with rebalances, those with most of them first."""
    names = [row.group_id for row in logs.rebalances(RebalanceFilter())]
    return sorted(set(names), key=lambda name: (-names.count(name), name))


def test_what_groups_went_through(logs, tables):
    for name in busiest(logs)[:2]:
        expected = logs.history(name)
        assert expected is not None
        assert tables.history(name) == replace(expected, commits=[], commit_counts=[], transactions=[], sizes=[])
    assert tables.history("nobody") is None


def test_offsets_that_an_administrator_set_back(logs, tables):
    expected, history = logs.history("A-admin-879"), tables.history("A-admin-879")
    (reset,) = logs.resets(expected)
    assert tables.resets(history) == [reset]


def test_steps_of_committed_offsets(logs, tables):
    for name in ("A-admin-879", "A-del-725", "A-coop-a2d7", "C-classic", "C-consumer", "B-range-5175", "A-expire-393"):
        expected = group_steps(logs, logs.history(name))
        assert len(expected.rows) > 3
        assert group_steps(tables, tables.history(name)) == expected


def test_a_notebook_tells_the_story_of_a_rebalance(logs, sample):
    name, *_ = busiest(logs)
    history = logs.history(name)
    row = history.rebalances[-1]
    assert sample.explain(name, row.to_epoch) == explain(history, find_rebalance(history, row.to_epoch))
    with pytest.raises(InputError, match="'nobody'"):
        sample.explain("nobody")


def named_members(source: Answers) -> dict[str, str]:
    """The members that caused or delayed rebalances, by the names of their clients."""
    rows = list(source.rebalances(RebalanceFilter()))
    names = source.members({row.group_id for row in rows})
    told = {cause.member_id for row in rows for cause in row.causes} | {row.delayed_by for row in rows}
    return {member_id: names[member_id] for member_id in sorted(told & names.keys())}


@pytest.mark.parametrize(
    "ask",
    [
        lambda source: list(source.rebalances(RebalanceFilter())),
        named_members,
        lambda source: list(source.rebalances(RebalanceFilter(cause="member_joined", slowest=3))),
        lambda source: list(source.verdicts(None, 0)),
        lambda source: list(source.violations(None, 0)),
        lambda source: list(source.findings(None)),
        lambda source: source.rounds(source.rebalances(RebalanceFilter())[0].group_id),
        lambda source: source.group_of(*source.rebalances(RebalanceFilter())[0].at[:2]),
    ],
    ids=["rebalances", "members", "slowest", "verdicts", "violations", "findings", "rounds", "position"],
)
def test_the_rest(logs, tables, ask: Callable[[Answers], object]):
    assert ask(tables) == ask(logs)
