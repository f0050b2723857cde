"""Streams groups that do what KIP-1071 defines: what the software finds in their simulated logs is what happened."""

from typing import Any

import pytest
from pydantic import ValidationError

from coordinator_core.audit.rows import Basis, Verdict
from coordinator_core.simulator.scenario import Scenario
from coordinator_core.simulator.state_directory import StateDirectory
from tests.core.simulator.simulations import World, happened, told

TOPICS = {"quiet": {"partitions": 4}, "orders-eu": {"partitions": 2}, "orders-us": {"partitions": 3, "created": "5m"}}
CLUSTER = {"partitions": 1, "profile": "kip-1071"}
BOUNCE = {"away": "4s", "step": "20s"}
GROUPS: dict[str, dict[str, Any]] = {
    "warm": {
        "topics": ["quiet"],
        "members": 2,
        "streams": {"stateful": True},
        "events": [{"at": "2m", "join": 1}, {"at": "4m", "crash": 1}, {"at": "6m", "deploy": BOUNCE}],
    },
    "topology": {"topics": ["quiet"], "members": 3, "events": [{"at": "2m", "topology": BOUNCE}]},
    "topology-with-state": {
        "topics": ["quiet"],
        "members": 3,
        "streams": {"stateful": True},
        "events": [{"at": "2m", "topology": BOUNCE}],
    },
    "static": {
        "topics": ["quiet"],
        "members": 3,
        "static": True,
        "streams": {"stateful": True, "standbys": 1},
        "events": [{"at": "2m", "deploy": BOUNCE}, {"at": "5m", "leave": 1}, {"at": "8m", "replace": 1}],
    },
    "regex": {"regex": "orders-.*", "members": 2, "events": [{"at": "2m", "join": 1}]},
    "shutdown": {"topics": ["quiet"], "members": 3, "events": [{"at": "3m", "shutdown": True}]},
    "migration": {
        "type": "classic-streams",
        "topics": ["quiet"],
        "members": 3,
        "streams": {"stateful": True, "standbys": 1},
        "events": [{"at": "2m", "migrate": "streams"}, {"at": "6m", "migrate": "classic-streams"}],
    },
}
CAUSES = {
    "warm": {"member_joined", "member_left_or_expired", "topic_created", "warmup_caught_up"},
    "topology": {"member_joined", "member_left_or_expired", "topology_changed"},
    "topology-with-state": {"member_joined", "member_left_or_expired", "topic_created", "topology_changed"},
    "static": {"member_joined", "static_member_left", "topic_created", "warmup_caught_up"},
    "regex": {"member_joined", "topic_created"},
    "shutdown": {"member_joined", "member_left_or_expired"},
    "migration": {"member_joined", "member_left_or_expired", "group_upgraded", "group_downgraded", "warmup_caught_up"},
}


@pytest.fixture(scope="module", params=sorted(GROUPS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def world(name: str) -> World:
    group = {"type": "streams", **GROUPS[name]}
    return World.of(2, lasts="10m", cluster=CLUSTER, topics=TOPICS, groups={name: group})


def test_history_finds_each_rebalance_with_its_causes(name: str, world: World) -> None:
    found, true = world.rebalances(), world.true_rebalances()
    assert found.keys() == true.keys()
    for at in true:
        assert told(found[at]) == happened(true[at])
    assert {cause["kind"] for row in true.values() for cause in row["causes"]} == CAUSES[name]


def test_no_target_is_called_wrong_and_no_rule_is_broken(world: World) -> None:
    verdicts = [row for row in world.verdicts() if row.basis is not Basis.LEADER]
    assert {row.verdict for row in verdicts} <= {Verdict.IDENTICAL, Verdict.UNKNOWN}
    assert all(row.missing is not None and row.missing.startswith("task offsets") for row in verdicts if row.missing)
    assert world.violations() == []


def test_the_copies_of_a_migration_are_right() -> None:
    world = World.of(2, lasts="10m", cluster=CLUSTER, topics=TOPICS, groups={"migration": GROUPS["migration"]})
    copies = [(row.basis, row.group_type, row.verdict) for row in world.verdicts() if row.assignor is None]
    copies += [(row.basis, row.group_type, row.verdict) for row in world.verdicts() if row.basis is Basis.DOWNGRADE]
    assert copies == [(Basis.UPGRADE, "STREAMS", Verdict.IDENTICAL), (Basis.DOWNGRADE, "CLASSIC", Verdict.IDENTICAL)]


def test_threads_on_the_classic_protocol_subscribe_to_the_topics_between_their_subtopologies() -> None:
    group = {**GROUPS["migration"], "streams": {"repartition": 3}}
    world = World.of(2, lasts="10m", cluster=CLUSTER, topics=TOPICS, groups={"between": group})
    of_leader = [row.verdict for row in world.verdicts() if row.basis is Basis.LEADER]
    assert of_leader
    assert Verdict.INVALID not in of_leader


def test_a_leader_that_cannot_assign_says_so_and_is_not_accused() -> None:
    """The changelog of a state store has the old number of partitions: no assignment is right."""
    group = {
        "type": "classic-streams",
        "topics": ["grown"],
        "members": 2,
        "streams": {"stateful": True},
        "events": [{"at": "3m", "join": 1}],
    }
    topics = {"grown": {"partitions": 2, "grows": {"2m": 4}}}
    world = World.of(2, lasts="5m", cluster=CLUSTER, topics=topics, groups={"stuck": group})
    verdicts = world.verdicts()
    assert {row.verdict for row in verdicts} == {Verdict.UNKNOWN}
    assert "error 3 (ASSIGNMENT_ERROR)" in (verdicts[-1].missing or "")
    assert "no invariant is broken" in (verdicts[0].missing or "")


def test_all_members_follow_a_shutdown() -> None:
    group = {"type": "streams", **GROUPS["shutdown"]}
    world = World.of(3, lasts="10m", cluster=CLUSTER, topics=TOPICS, groups={"shutdown": group})
    (ending,) = [row for row in world.truth if row["kind"] == "ending"]
    assert ending["members"] == []


def test_a_member_that_joins_late_warms_up_and_the_group_comes_to_rest() -> None:
    """Members report offsets in the interval; else the state of all would seem old, and tasks would go to and fro."""
    group = {
        "type": "streams",
        "topics": ["quiet"],
        "members": 2,
        "streams": {"stateful": True, "standbys": 1, "changes": 1_000, "restores": 5_000},
        "events": [{"at": "3m", "join": 1}],
    }
    world = World.of(2, lasts="30m", cluster=CLUSTER, topics=TOPICS, groups={"warm": group})
    rebalances = sorted(world.rebalances().values(), key=lambda row: row.at.timestamp_ms)
    begins = rebalances[0].at.timestamp_ms
    warmed = [row for row in rebalances if any(cause.kind == "warmup_caught_up" for cause in row.causes)]
    assert 1 <= len(warmed) <= 6
    assert rebalances[-1].at.timestamp_ms - begins < 15 * 60_000
    assert {row.outcome for row in rebalances[-1:]} == {"converged"}


@pytest.mark.parametrize(
    ("group", "what"),
    [
        ({"regex": "orders-.*"}, "a regex of a streams group"),
        ({"topics": ["quiet"], "static": True}, "a static member of a streams group"),
        ({"topics": ["quiet"], "events": [{"at": "2m", "topology": {}}]}, "a new topology"),
        ({"topics": ["quiet"], "events": [{"at": "2m", "migrate": "classic-streams"}]}, "a migration of Kafka Streams"),
    ],
)
def test_what_only_the_document_has_needs_its_profile(group: dict[str, Any], what: str) -> None:
    with pytest.raises(ValidationError, match=f"{what} needs the profile kip-1071"):
        Scenario.model_validate({"topics": TOPICS, "groups": {"some": {"type": "streams", **group}}})


@pytest.mark.parametrize(
    "group",
    [
        {"type": "connect-kip-848", "connectors": {"large": 129}},
        {"type": "connect", "connectors": {"large": 200}, "events": [{"at": "2m", "migrate": "connect-kip-848"}]},
        {"type": "connect-kip-848", "events": [{"at": "2m", "connectors": {"large": 129}}]},
    ],
)
def test_tasks_that_no_record_can_name_are_refused_first(group: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=r"connector large has \d+ tasks: records of Connect on KIP-848"):
        Scenario.model_validate({"groups": {"workers": group}})


def test_a_task_catches_up_while_it_is_open() -> None:
    disk = StateDirectory(0, changes=1_000, restores=11_000)
    task = ("0", 1)
    assert (disk.end(60_000), disk.offset(task, 60_000)) == (60_000, 0)
    disk.open([task], 60_000)
    assert disk.caught_up_in(task, 10_000, 60_000) == 5_002
    assert disk.end(65_002) - disk.offset(task, 65_002) <= 10_000
    disk.open([], 61_000)
    assert disk.offset(task, 90_000) == 11_000
    assert disk.report(90_000)["taskEndOffsets"] == []
