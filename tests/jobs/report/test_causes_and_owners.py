"""Who caused the rebalances of a group, which one was the worst, and who owned what."""

import json
from collections import Counter
from pathlib import Path

import pytest

from coordinator_core.audit.explain import explain
from coordinator_core.audit.folds.group_history import GroupHistory
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.history.causes import CauseKind
from jobs.report.causes import FAMILY_OF, CauseFamily
from jobs.report.group_page import MOST_UNITS, _natural, detail, owned_units
from jobs.settings import load
from tests.commands import rows_of_command, run_command
from tests.core.audit.histories import assignment, at, rebalance
from tests.core.audit.histories import member as membership
from tests.core.history.logs import GroupLog, alone, current, epoch, gone, member, target, target_epoch
from tests.jobs.report.test_report import SAMPLES

LOGS = ("--log", SAMPLES / "logs")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> dict:
    page = tmp_path_factory.mktemp("report") / "report.html"
    assert run_command("report", *LOGS, "--out", page).exit_code == 0
    return json.loads(Path(page).with_suffix(".json").read_text())


@pytest.fixture(scope="module")
def rebalances() -> list[dict]:
    return rows_of_command("rebalances", *LOGS)


def test_every_kind_of_cause_has_a_family():
    assert FAMILY_OF.keys() == set(CauseKind)
    assert set(FAMILY_OF.values()) == set(CauseFamily) - {CauseFamily.SEVERAL}


def test_the_chart_of_causes_counts_each_rebalance_once(sample, rebalances):
    drawn = Counter()
    for bucket in sample["activity"]:
        drawn.update({each["name"]: each["count"] for each in bucket["causes"]})
    assert drawn.total() == len(rebalances)
    assert drawn == {each["name"]: each["count"] for each in sample["families"]}
    joined = {"member_joined", "static_member_returned", "static_member_replaced"}
    alone = [row for row in rebalances if row["causes"] and {each["kind"] for each in row["causes"]} <= joined]
    assert drawn["members joined"] == len(alone) > 20


def test_why_names_the_member_its_client_and_its_host(sample):
    (group,) = (each for each in sample["groups"] if each["line"]["group_id"] == "B-range-5175")
    (row,) = (each for each in group["rebalances"] if each["to_epoch"] == 6)
    (cause,) = row["caused_by"]
    assert cause["kind"] == "member_left_or_expired"
    assert (cause["member_id"], cause["client_id"], cause["client_host"]) == (
        "gQOHxEgbR-Gc_gLysC66HA",
        "B-range-5175-re1",
        "127.0.0.1",
    )
    assert cause["at"]["offset"] == 93


def test_members_are_ranked_by_what_the_command_says_they_caused(sample, rebalances):
    for group in sample["groups"]:
        rows = [row for row in rebalances if row["group_id"] == group["line"]["group_id"]]
        by_member = [{each["member_id"] for each in row["causes"]} - {None} for row in rows]
        with_member = sum(1 for each in by_member if each)
        ranked = [each["rebalances"] for each in group["initiators"]]
        assert ranked == sorted(ranked, reverse=True)
        assert bool(ranked) == bool(with_member)
        assert group["memberless"] <= len(rows) - with_member
        assert sum(each["delayed"] for each in group["initiators"]) <= sum(1 for row in rows if row["delayed_by"])


def test_a_follow_up_leads_to_the_member_that_began_it(sample):
    (group,) = (each for each in sample["groups"] if each["line"]["group_id"] == "A-coop-a2d7")
    (row,) = (each for each in group["rebalances"] if each["to_epoch"] == 9)
    assert row["causes"] == ["partitions_revoked"]
    assert row["follows"] == 8
    assert [each["instance_id"] for each in row["origin"]] == ["inst-0"]
    own = [each for each in group["rebalances"] if each["follows"] is None]
    assert all(each["origin"] == [] for each in own)


def test_the_worst_rebalance_had_most_time_without_an_owner(sample, rebalances):
    for group in sample["groups"]:
        rows = [row for row in rebalances if row["group_id"] == group["line"]["group_id"]]
        if not rows:
            assert group["worst"] is None
            continue
        worst = group["rebalances"][group["worst"]]
        assert (worst["idle_ms"] or 0) == max(row["idle_ms"] or 0 for row in rows)
        assert group["worst_because"]
    most = sorted((row["idle_ms"] or 0 for row in rebalances), reverse=True)
    assert sample["worst"][0]["rebalance"]["idle_ms"] == most[0] > 0


def test_commits_over_time_are_the_commit_records_of_the_log(sample):
    kept = [json.loads(line) for line in run_command("dump", SAMPLES / "logs").stdout.splitlines()]
    commits = [each for each in kept if each.get("typeName") == "OFFSET_COMMIT" and each["value"] is not None]
    assert sum(each["records"] for each in sample["commits"]) == len(commits) > 100
    assert sum(each["records"] for group in sample["groups"] for each in group["commits"]) == len(commits)


def owners() -> GroupLog:
    log = alone(GroupLog())
    log.write(member("m2", "t"), epoch(3), target("m1", 0, 1), target("m2", 2, 3), target_epoch(3))
    log.write(current("m1", 3, 0, 1)).write(current("m2", 3, 2, 3), after_ms=400)
    return log.write(*gone("m2"), epoch(4))


def test_owners_of_each_partition_over_time(monkeypatch):
    units, seen = owned_units(owners().assignments())
    assert seen == len(units) == 4
    held = {unit.name.split()[-1]: [(each.member_id, each.until_ms is None) for each in unit.owners] for unit in units}
    assert held["0"] == [("m1", True)]
    assert held["3"] == [("m1", False), ("m2", False)]
    monkeypatch.setattr("jobs.report.group_page.MOST_UNITS", 2)
    few, seen = owned_units(owners().assignments())
    assert seen == 4
    assert [unit.name.split()[-1] for unit in few] == ["2", "3"], "those that changed owner most"
    assert MOST_UNITS > 50


def test_owners_are_those_of_the_command(sample):
    told = rows_of_command("owners", "b-range-w", "--history", *LOGS)
    (group,) = (each for each in sample["groups"] if each["line"]["group_id"] == "B-range-5175")
    drawn = {
        (int(unit["name"].split()[-1]), each["member_id"], f"3:{each['since']['offset']}")
        for unit in group["owned"]
        if unit["name"].startswith("b-range-w ")
        for each in unit["owners"]
    }
    mine = [row for row in told if row["group_id"] == "B-range-5175"]
    assert drawn == {(row["partition"], row["member_id"], row["log"]) for row in mine}
    assert drawn


def test_partitions_are_sorted_by_the_numbers_in_their_names():
    names = ["t10", "t9", "t" + "9" * 5_000, "t", "s2", "t09", "10"]
    assert sorted(names, key=_natural) == ["10", "s2", "t", "t9", "t09", "t10", "t" + "9" * 5_000]


def test_the_story_of_a_rebalance_is_what_the_command_explains() -> None:
    """Member a has t-0 since before, and keeps it, when the rebalance gives it to b as well."""
    broken = Violation(Rule.ASSIGNED_TO_TWO, at(5), "g", "b", "t-0 is also assigned to a")
    rows = [rebalance(2, at(1), finished=at(2)), rebalance(3, at(4), finished=at(6)), rebalance(4, at(8))]
    held = [assignment("a", 0, at(1)), assignment("b", 0, at(5), at(9)), assignment("b", 1, at(5))]
    members = [membership("a", at(1)), membership("b", at(4))]
    history = GroupHistory("g", 10_000, rebalances=rows, assignments=held, memberships=members, violations=[broken])
    shown = detail(history, load(environment={}).findings, {}).rebalances
    assert [row.story for row in shown] == [tuple(explain(history, row)) for row in rows]
    assert "Two owners: it gave" in str(shown[1].story)
