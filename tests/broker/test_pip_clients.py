"""Clients that pip offers, in real groups: each is told, has what it said, and no verdict accuses it."""

from pathlib import Path

import pytest

from coordinator_core.audit.rows import WRONG
from jobs.queries.from_logs.history import group_histories
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.broker.pip_clients import ASSIGNORS, record

pytestmark = pytest.mark.long


def test_clients_of_pip_are_told_and_judged_right(tmp_path: Path) -> None:
    said = record(tmp_path)
    logs, settings = find_logs([tmp_path / "data"]), load(environment={}).audit
    histories = {each.group_id: each for each in group_histories(logs, pytest.fail, None, settings, None)}
    assert histories.keys() == {f"{client}-{assignor}" for client, own in ASSIGNORS.items() for assignor in own}
    for group_id, history in histories.items():
        client = group_id.partition("-range")[0].partition("-roundrobin")[0].partition("-sticky")[0]
        client = client.removesuffix("-cooperative")
        assert {row.client for row in history.memberships} == {client}, group_id
        assert {row.client for row in history.targets} == {client}, group_id
        assert [row for row in history.targets if row.verdict in (*WRONG, "unknown")] == [], group_id
        had = {(row.member_id, f"{row.topic}-{row.partition}") for row in history.assignments if row.kind == "current"}
        for line in said:
            if line["group"] == group_id and line["member"]:
                assert {(line["member"], name) for name in line["assigned"]} <= had, line
