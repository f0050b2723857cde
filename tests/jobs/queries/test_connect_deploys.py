"""What a rolling restart of Connect workers says of the rebalance delay: the log decides whether it applied."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from coordinator_core.audit.findings.connect import advice
from coordinator_core.audit.folds.group_history import GroupHistory
from tests.commands import rows_of_command, text_of_command
from tests.core.audit.histories import at, cause, epoch, member, rebalance

GROUPS = {
    "led": {"type": "connect", "assignor": "sessioned"},
    "kip-848": {"type": "connect-kip-848", "assignor": "sessioned"},
    "eager": {"type": "connect", "assignor": "default"},
    "eager-kip-848": {"type": "connect-kip-848", "assignor": "default"},
}
RESTARTED = {
    "members": 4,
    "connectors": {"jdbc": 4, "s3": 3},
    "events": [{"at": "5m", "deploy": {"away": "10s", "step": "40s"}}],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("deploys")
    groups = {name: group | RESTARTED for name, group in GROUPS.items()}
    scenario = {"lasts": "9m", "cluster": {"brokers": 1, "partitions": 1}, "groups": groups}
    (place / "scenario.yaml").write_text(yaml.safe_dump(scenario))
    text_of_command("simulate", place / "scenario.yaml", "--out", place / "logs")
    return place / "logs"


@pytest.fixture(scope="module")
def said(folder: Path) -> dict[str, str]:
    rows = rows_of_command("findings", "--log", folder)
    return {row["group_id"]: row["detail"] for row in rows if row.get("kind") == "rolling_deploy"}


def test_where_the_leader_had_gone_the_delay_did_not_apply(folder: Path, said: dict[str, str]) -> None:
    """The leader of a classic generation computes, and the log names it."""
    rows = rows_of_command("history", "led", "--log", folder)
    leaders = {row["epoch"]: row["leader"] for row in rows if row["table"] == "group_epochs"}
    left = [
        row["to_epoch"]
        for row in rows
        if row["table"] == "rebalances"
        and {each["member_id"] for each in row["causes"] if each["kind"] == "member_left_or_expired"}
        & {leaders.get(row["from_epoch"])}
    ]
    assert len(left) >= 2
    assert f"unless it is the one that computes: at {', '.join(map(str, left))} that one left (led-" in said["led"]
    assert said["led"].endswith("computed without its memory, and the delay did not apply")


def test_on_kip_848_a_target_without_memory_shows_that_the_computing_worker_had_gone(said: dict[str, str]) -> None:
    """Its workers keep their ids when they are restarted, and the log does not name the one that computes."""
    ending = "another worker, which the log does not name, computed without its memory, and the delay did not apply"
    assert said["kip-848"].endswith(ending)


def test_the_eager_assignor_has_no_delay(said: dict[str, str]) -> None:
    for name in ("eager", "eager-kip-848"):
        assert "the eager assignor (default) hands out all work in each rebalance" in said[name]


@pytest.mark.parametrize("leader", ["stays", "goes"])
def test_the_delay_is_advice_where_the_leader_stays(leader: str) -> None:
    gone = member("goes", at(1), at(5), group_type="CLASSIC")
    classic = {"group_type": "CLASSIC", "protocol_type": "connect", "assignor": "sessioned"}
    epochs = [epoch(1, at(1), ended=at(5), leader=leader, **classic), epoch(2, at(5), leader="stays", **classic)]
    # The group was deleted and created again: its numbers come once more.
    epochs += [epoch(1, at(90), ended=at(95), leader="other", **classic), epoch(2, at(95), leader="other", **classic)]
    left = rebalance(2, at(5), causes=(cause("member_left_or_expired", "goes", at(5)),))
    history = GroupHistory("g", 10_000, epochs=epochs, rebalances=[left], memberships=[gone])
    assert advice(history, [gone]).endswith("finds its work waiting") == (leader == "stays")
    waits = replace(history, rebalances=[left._replace(delay_ms=60_000)])
    assert advice(waits, [gone]).endswith("finds its work waiting"), "the leader announced a delay"
