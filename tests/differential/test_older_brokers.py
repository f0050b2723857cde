"""Recorded logs of brokers of 2.4 and 3.3, and of two of three brokers with racks, against Admin and clients."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.commands import rows_of_command
from tests.shared_data import CORPUS

OLDER = CORPUS / "oldbrokers"

pytestmark = pytest.mark.skipif(not OLDER.exists(), reason="the recorded logs are not here")


def asked(question: str, name: str, *options: str) -> list[dict[str, Any]]:
    return rows_of_command(question, "--log", OLDER / name / "logs.tar.xz", *options)


@pytest.mark.parametrize(("name", "many"), [("r332", 73), ("three", 104)])
def test_no_assignment_is_taken_for_wrong(name: str, many: int) -> None:
    verdicts = Counter(row["verdict"] for row in asked("audit", name) if row["table"] == "target_audits")
    assert verdicts == {"identical": many}


def test_lines_of_the_broker_tell_the_topics_of_a_cluster_with_zookeeper() -> None:
    """Without them none of the 89 assignments can be judged: there is no metadata log."""
    for options, verdicts in (
        ((), {"unknown": 89}),
        (("--broker-log", str(OLDER / "r241/server.log.xz")), {"identical": 89}),
    ):
        rows = [row for row in asked("audit", "r241", *options) if row["table"] == "target_audits"]
        assert Counter(row["verdict"] for row in rows) == verdicts


@pytest.mark.parametrize("name", ["r241", "r332", "three"])
def test_no_rule_is_taken_for_broken(name: str) -> None:
    assert [row for row in asked("audit", name) if row["table"] == "violations"] == []


def test_a_broker_that_goes_or_comes_back_is_the_cause_of_what_its_racks_change() -> None:
    """As the clients said: "cached metadata has changed", at most 3.1 s after the broker was fenced, or was not."""
    rows = asked("rebalances", "three")
    found = [
        (row["group_id"], row["to_epoch"])
        for row in rows
        for cause in row["causes"]
        if cause["kind"] == "rack_changed" and "racks of its replicas" in cause["detail"]
    ]
    right = {
        "g-rr": [7, 9, 10],
        "g-coop": [9, 13, 15],
        "ck-range": [7, 8],
        "ck-static": [5, 6],
        "ck-roundrobin": [7, 8],
        "ck-cooperative-sticky": [8, 9, 10],
    }
    assert sorted(found) == sorted((group, epoch) for group, epochs in right.items() for epoch in epochs)
    unknown = {row["group_id"] for row in rows for cause in row["causes"] if cause["kind"] == "unknown"}
    assert unknown == {"kp-range"}, "a leader of kafka-python joins again, and no record says why"


@pytest.mark.parametrize(("name", "again"), [("r241", 6), ("r332", 1)])
def test_lines_of_the_broker_name_who_joined_again_where_no_record_shows_a_cause(name: str, again: int) -> None:
    rows = asked("rebalances", name, "--broker-log", str(OLDER / name / "server.log.xz"))
    causes = Counter(cause["kind"] for row in rows for cause in row["causes"])
    assert (causes["unknown"], causes["leader_rejoined"]) == (0, again)


@pytest.mark.parametrize("name", ["r241", "r332"])
def test_the_groups_are_those_that_admin_listed(name: str) -> None:
    admin = [json.loads(line) for line in (OLDER / name / "admin.jsonl").read_text().splitlines()]
    states = {each["group"]: each["state"].upper() for each in admin}
    assert {row["group"]: row["state"] for row in asked("groups", name)} == states
