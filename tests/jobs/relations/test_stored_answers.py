"""What answers read of the tables of history: of a few rows, each is left out for one reason."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.folds.two_logs import GROUP_DELETED
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.rules import Rule
from coordinator_core.history.knowledge import GivenLogs, Knowledge
from coordinator_core.records import CONNECT_LOG, GROUP_LOG, SHARE_LOG
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.queries.interface import CURRENT, OwnedBy, RebalanceFilter
from jobs.tables.folder_reader import FolderReader
from jobs.tables.history import GROUP_STATES, HISTORY
from jobs.tables.results import FINDINGS
from jobs.tables.table import Table
from tests.jobs.relations.engines import write

Row = dict[str, Any]
OTHER = {"cluster": "other"}
KNOWN = Knowledge(GivenLogs({GROUP_LOG: frozenset({0})}))


def at(partition: int, offset: int, timestamp_ms: int = 0) -> Row:
    return {"partition": partition, "offset": offset, "timestamp_ms": timestamp_ms}


def answers(home: Path, tables: dict[Table, list[Row]]) -> StoredAnswers:
    """Answers from tables whose rows are of one cluster, unless they say of which."""
    write(home, {table: [{"cluster": "c", **row} for row in rows] for table, rows in tables.items()})
    return StoredAnswers(FolderReader(str(home)), "c", AuditSettings(), None, KNOWN)


def test_intervals_are_of_a_topic_or_connector_or_of_tasks_that_read_the_topic(tmp_path: Path) -> None:
    named: list[Row] = [{name: "t"} for name in ("topic", "topic_id", "connector", "resource")]
    tasks: list[Row] = [{"group_id": group, "subtopology": number} for group in ("reads", "not") for number in "01"]
    others: list[Row] = [{}, {"topic": "u"}, {"topic": "t", "kind": "target"}, {"topic": "t", **OTHER}]
    of_all = {"group_id": "g", "group_type": "CONSUMER", "kind": CURRENT, "since": at(0, 0), "is_open": True}
    rows = [{**of_all, **row, "member_id": f"m{number}"} for number, row in enumerate((*named, *tasks, *others))]
    found = answers(tmp_path, {HISTORY["assignments"]: rows})
    owned = {row.member_id for row in found.owned(OwnedBy("t", {"reads": frozenset("1")}))}
    assert owned == {"m0", "m1", "m2", "m3", "m5"}
    assert {row.member_id for row in found.owned(OwnedBy("u", {}))} == {"m9"}


def test_members_are_those_of_the_groups_asked_for(tmp_path: Path) -> None:
    rows = [
        {"group_id": group, "member_id": f"of {group}", "client_id": "c", "joined": at(0, 0)} for group in ("", "g")
    ]
    found = answers(tmp_path, {HISTORY["memberships"]: rows})
    asked: tuple[set[str], ...] = ({"g"}, {""}, set())
    assert [[*found.members(groups)] for groups in asked] == [["of g"], ["of "], []]


def test_a_rebalance_is_found_by_the_place_of_its_record(tmp_path: Path) -> None:
    rows = [
        {"group_id": f"{partition}-{offset}", "at": at(partition, offset)} for partition in (0, 1) for offset in (0, 1)
    ]
    others = [{"group_id": "of another cluster", "at": at(*place), **OTHER} for place in ((0, 0), (1, 0), (2, 2))]
    found = answers(tmp_path, {HISTORY["rebalances"]: [*others, *rows, *others]})
    assert [found.group_of(*place) for place in ((0, 0), (0, 1), (1, 0), (2, 2))] == ["0-0", "0-1", "1-0", None]


def test_connect_groups_may_be_converted_that_are_in_both_logs_or_were_deleted_or_began_with_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def states(group_id: str, *topics: str) -> list[Row]:
        return [{"group_id": group_id, "log_topic": topic, "log_partition": n} for n, topic in enumerate(topics)]

    def rebalance(group_id: str, group_type: GroupType, outcome: str) -> Row:
        return {"group_id": group_id, "group_type": group_type.value, "outcome": outcome, "at": at(0, 0)}

    connect = rebalance("was deleted", GroupType.CONNECT, GROUP_DELETED)
    of_states = [
        *states("in both logs", GROUP_LOG, CONNECT_LOG),
        *states("in one log", GROUP_LOG, GROUP_LOG),
        *states("with state of shares", GROUP_LOG, SHARE_LOG),
        *states("of two clusters", GROUP_LOG),
        *({**row, **OTHER} for row in states("of two clusters", CONNECT_LOG, GROUP_LOG)),
    ]
    of_rebalances = [
        *(connect, {**connect, "group_id": "of another cluster", **OTHER}),
        rebalance("of clients", GroupType.CONSUMER, GROUP_DELETED),
        {**rebalance("goes on", GroupType.CONNECT, "converged"), "target": at(0, 2)},
        {**rebalance("began with a target", GroupType.CONNECT, "converged"), "target": at(0, 1)},
        {**rebalance("of tasks", GroupType.STREAMS, "converged"), "target": at(0, 1)},
    ]
    found = answers(tmp_path, {GROUP_STATES: of_states, HISTORY["rebalances"]: of_rebalances})
    asked: list[str] = []
    monkeypatch.setattr(StoredAnswers, "history", lambda _, group_id: asked.append(group_id))
    assert {row.group_id for row in found.rebalances(RebalanceFilter())} == {"of clients", "goes on", "of tasks"}
    assert asked == ["began with a target", "in both logs", "was deleted"]


TIMES = [(name, time_ms) for name, times in {"g": (4, 5, 6), "h": (-1, 5, 7)}.items() for time_ms in times]
"""The time is -1 of a record without one."""


@pytest.fixture(scope="module")
def in_time(tmp_path_factory: pytest.TempPathFactory) -> StoredAnswers:
    """Rows of two groups at some times, in each table of history that has such rows; the same of another cluster."""
    of_all = {
        "group_type": "CONSUMER",
        "outcome": "converged",
        "rule": next(iter(Rule)).value,
        "kind": "churn",
        "level": "notice",
    }
    rows = [
        {**of_all, "group_id": name, "at": at(0, time_ms, time_ms), "score": 1.0, "since_ms": time_ms, **cluster}
        for name, time_ms in TIMES
        for cluster in ({}, OTHER)
    ]
    tables = [FINDINGS, *(HISTORY[name] for name in ("rebalances", "target_audits", "violations"))]
    made: dict[Table, list[Row]] = {
        table: [{name: row[name] for name in row if name in {*table.schema.names, "cluster"}} for row in rows]
        for table in tables
    }
    return answers(tmp_path_factory.mktemp("in_time"), {**made, GROUP_STATES: []})


@pytest.mark.parametrize("group_id", [None, "g", "none"])
@pytest.mark.parametrize("since_ms", [-1, 0, 5, 6])
def test_rows_of_a_group_since_a_time(in_time: StoredAnswers, group_id: str | None, since_ms: int) -> None:
    of_group = sorted((time_ms, name) for name, time_ms in TIMES if group_id in (None, name))
    expected = [row for row in of_group if row[0] >= since_ms]
    found = (
        in_time.verdicts(group_id, since_ms),
        in_time.violations(group_id, since_ms),
        in_time.rebalances(RebalanceFilter(group_id, since_ms=since_ms)),
    )
    for rows in found:
        assert sorted((row.at.timestamp_ms, row.group_id) for row in rows) == expected
    assert sorted((row.since_ms, row.group_id) for row in in_time.findings(group_id)) == of_group


def test_histories_have_the_rows_of_records_without_a_time(in_time: StoredAnswers) -> None:
    found = in_time.histories()
    in_order = sorted((time_ms, name) for name, time_ms in TIMES)
    for rows in (found.rebalances, found.verdicts, found.violations):
        assert sorted((row.at.timestamp_ms, row.group_id) for row in rows) == in_order
