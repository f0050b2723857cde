"""What the software finds in a simulated log is what happened."""

from __future__ import annotations

import pytest

from coordinator_core.audit.rows import Verdict
from tests.core.simulator.worlds import World, happened, replayed, told

TOPICS = {
    "orders": {"partitions": 12, "replicas": 3, "grows": {"5m": 18}},
    "late": {"partitions": 3, "created": "4m", "deleted": "10m"},
    "quiet": {"partitions": 2},
}
CLUSTER = {"partitions": 2, "racks": ["a", "b", "c"]}
MISFORTUNES = [
    {"at": "2m", "join": 1},
    {"at": "3m", "crash": 1},
    {"at": "6m", "deploy": {"away": "4s", "step": "15s"}},
    {"at": "9m", "leave": 1},
    {"at": "11m", "zombie": {"lasts": "2m"}},
    {"at": "14m", "scale": 5},
    {"at": "16m", "storm": {"lasts": "40s", "every": "4s"}},
    {"at": "18m", "scale": 0},
]
GROUPS = {
    "consumer": {"type": "consumer", "topics": ["orders", "late"], "members": 3},
    "by-regex": {"type": "consumer", "regex": "orders|late", "members": 2},
    "by-rack": {"type": "consumer", "topics": ["orders"], "assignor": "range", "members": 3, "by_rack": True},
    "static": {"type": "consumer", "topics": ["orders"], "members": 3, "static": True},
    "range": {"type": "classic", "topics": ["orders", "late"], "members": 3},
    "sticky": {"type": "classic", "topics": ["orders", "late"], "assignor": "sticky", "members": 3},
    "cooperative": {"type": "classic", "topics": ["orders"], "assignor": "cooperative-sticky", "members": 3},
    "static-classic": {"type": "classic", "topics": ["orders", "quiet"], "members": 2, "static": True},
}


@pytest.fixture(scope="module", params=sorted(GROUPS))
def world(request):
    group = GROUPS[request.param] | {"events": MISFORTUNES}
    return World.of(7, lasts="20m", cluster=CLUSTER, topics=TOPICS, groups={request.param: group})


def test_history_finds_every_rebalance_and_its_causes(world):
    found, true = world.rebalances(), world.true_rebalances()
    assert found.keys() == true.keys()
    assert len(true) > 5
    for at in true:
        assert told(found[at]) == happened(true[at])


def test_every_target_is_identical_and_no_rule_is_broken(world):
    assert [row for row in world.verdicts() if row.verdict != Verdict.IDENTICAL] == []
    assert world.violations() == []


def test_replaying_the_log_gives_the_state_of_the_coordinator(world):
    for shard in world.shards:
        state = replayed(world.logs[shard.memory.partition])
        groups = shard.memory.log.groups
        assert {name: group.state for name, group in state.groups.items() if group.state is not None} == {
            name: group.state for name, group in groups.items() if group.state is not None
        }


def test_the_truth_knows_the_offsets_committed_last(world):
    for row in world.truth:
        if row["kind"] == "ending":
            commits = {}
            for records in world.logs.values():
                commits |= replayed(records).offsets_of(row["group_id"]).committed
            assert row["offsets"] == {str(partition): commit.offset for partition, commit in commits.items()}
