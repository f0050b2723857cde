"""What the software finds in a simulated log is what happened."""

import pytest

from coordinator_core.audit.rows import Verdict
from coordinator_core.coordinator import coordinator
from coordinator_core.groups.connect.describe import group_state
from coordinator_core.groups.share.partition_offsets import describe_share_offsets
from coordinator_core.records import Family
from tests.core.simulator.simulations import World, compacted, happened, replayed, told

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
    "share": {"type": "share", "topics": ["orders", "late"], "members": 3},
    "streams": {"type": "streams", "topics": ["quiet"], "members": 3, "streams": {"stateful": True, "standbys": 1}},
    "repartition": {"type": "streams", "topics": ["orders"], "members": 2, "streams": {"repartition": 4}},
    "connect": {"type": "connect", "connectors": {"jdbc": 4, "s3": 2}, "assignor": "sessioned", "members": 3},
    "connect-eager": {"type": "connect", "connectors": {"files": 3}, "members": 2},
}


@pytest.fixture(scope="module", params=sorted(GROUPS))
def world(request):
    group = GROUPS[request.param] | {"events": MISFORTUNES}
    return World.of(7, lasts="20m", cluster=CLUSTER, topics=TOPICS, groups={request.param: group})


def check_history(world):
    """History finds just the rebalances of the truth, each with its causes."""
    found, true = world.rebalances(), world.true_rebalances()
    assert found.keys() == true.keys()
    for at in true:
        assert told(found[at]) == happened(true[at])


def check(world):
    """History finds just the rebalances of the truth, every target is identical and no rule is broken."""
    check_history(world)
    assert [row for row in world.verdicts() if row.verdict != Verdict.IDENTICAL] == []
    assert world.violations() == []


def test_what_is_found_is_what_happened(world):
    assert len(world.true_rebalances()) > 5
    check(world)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["consumer", "classic", "share", "streams", "connect"])
def test_what_is_found_is_what_happened_by_chance(kind, seed):
    chaos = {"every": "40s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 6}
    group = {"type": kind, "members": 3, "topics": ["orders", "late"], "chaos": chaos}
    if kind in ("consumer", "classic"):
        group |= {"static": seed == 1, "assignor": {"classic": "cooperative-sticky", "consumer": "range"}[kind]}
        chaos["of"] += ["replace"] if seed == 1 else []
    elif kind == "streams":
        group["topics"] = ["quiet"]
    elif kind == "connect":
        group |= {"topics": [], "connectors": {"jdbc": 4, "s3": 2}, "assignor": "compatible"}
    check(World.of(seed, lasts="20m", cluster=CLUSTER, topics=TOPICS, groups={"some": group}))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_what_is_found_is_what_happened_when_protocols_change(assignor, static, seed):
    events = [{"at": "2m", "migrate": "consumer"}, {"at": "7m", "migrate": "classic"}, {"at": "12m", "crash": 1}]
    group = {"type": "classic", "assignor": assignor, "topics": ["orders"], "members": 3, "static": static}
    check(World.of(seed, lasts="15m", cluster=CLUSTER, topics=TOPICS, groups={"some": group | {"events": events}}))


OUTAGES = [
    {"at": "3m", "broker": 0, "lasts": "1m"},
    {"at": "5m", "broker": 1, "lasts": "90s"},
    {"at": "9m", "broker": 2, "lasts": "1m"},
    {"at": "12m", "broker": 0, "lasts": "1m"},
]


@pytest.mark.parametrize("seed", [2, 4])
@pytest.mark.parametrize("kind", ["consumer", "classic", "share", "streams", "connect", "connect-kip-848"])
def test_what_is_found_is_what_happened_when_coordinators_fail(kind, seed):
    chaos = {"every": "30s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 8}
    group = {"type": kind, "members": 4, "topics": ["orders", "late"], "chaos": chaos}
    if kind == "streams":
        group["topics"] = ["quiet"]
    elif kind.startswith("connect"):
        group |= {"topics": [], "connectors": {"jdbc": 4, "s3": 2}, "assignor": "compatible"}
    family = Family.CONNECT if kind == "connect-kip-848" else Family.GROUP
    cluster = CLUSTER | {"partitions": 1, "outages": OUTAGES}
    world = World.of(seed, family, lasts="15m", cluster=cluster, topics=TOPICS, groups={"some": group})
    moves = [row for row in world.truth if row["kind"] == "fail-over"]
    assert [row["leader_epoch"] for row in moves] == list(range(1, len(moves) + 1))
    assert len(moves) >= 2
    epochs = [row.batch.leader_epoch for row in world.rows[0]]
    assert epochs == sorted(epochs)
    assert set(epochs) == set(range(len(moves) + 1))
    check(world)
    check_state(world)


def test_a_coordinator_whose_broker_fails_while_it_loads_does_not_take_over(monkeypatch):
    outages = [{"at": f"{180 + 4 * turn}s", "broker": turn % 3, "lasts": "2s"} for turn in range(6)]
    cluster = CLUSTER | {"partitions": 1, "outages": outages, "loading": "25s"}
    taken_over = []
    take_over = coordinator.take_over

    def noted(memory, topics, now):
        taken_over.append(now)
        return take_over(memory, topics, now)

    monkeypatch.setattr(coordinator, "take_over", noted)
    groups = {kind: {"type": kind, "members": 4, "topics": ["orders"]} for kind in ("consumer", "classic", "share")}
    world = World.of(2, lasts="6m", cluster=cluster, topics=TOPICS, groups=groups)
    moves = [row["time_ms"] for row in world.truth if row["kind"] == "fail-over"]
    assert len(moves) >= 2
    assert taken_over == [moves[-1] + 25_000]
    check(world)
    check_state(world)


@pytest.mark.parametrize("assignor", ["range", "sticky", "cooperative-sticky"])
def test_a_leader_does_not_count_the_racks_of_brokers_that_are_down(assignor):
    group = {"type": "classic", "topics": ["orders"], "assignor": assignor, "members": 4, "by_rack": True}
    group["chaos"] = {"every": "15s", "of": ["join", "leave", "crash"], "most": 6}
    orders = {"partitions": 12, "replicas": 2}
    cluster = CLUSTER | {"partitions": 1, "outages": OUTAGES}
    world = World.of(5, lasts="15m", cluster=cluster, topics={"orders": orders}, groups={"some": group})
    verdicts = world.verdicts()
    assert any("without the racks of broker" in (row.fitted or "") for row in verdicts)
    assert [row for row in verdicts if row.verdict != Verdict.IDENTICAL] == []


def test_the_share_state_is_that_of_the_groups():
    topics = TOPICS | {"orders": TOPICS["orders"] | {"rate": 50}}
    chaos = {"every": "40s", "of": ["join", "leave", "crash", "deploy"], "most": 6}
    shared = {"type": "share", "topics": ["orders", "late"], "members": 2, "commits": {"every": "1s"}}
    groups = {
        "busy": shared | {"chaos": chaos},
        "gone": shared | {"events": [{"at": "6m", "scale": 0}, {"at": "7m", "delete": True}]},
        "idle": shared | {"events": [{"at": "2m", "scale": 0}]},
        "other": {"type": "consumer", "topics": ["orders"], "members": 2, "chaos": chaos},
    }
    cluster = CLUSTER | {"share_partitions": 3, "outages": OUTAGES}
    world = World.of(3, lasts="12m", cluster=cluster, topics=topics, groups=groups)
    state, truth = world.share_state()
    assert {row["partition"] for row in truth} == {f"orders-{number}" for number in range(18)}
    left = {}
    for shard in world.shards:
        for group_id in ("busy", "gone", "idle"):
            group = shard.memory.live.get(group_id)
            if group is not None:
                offsets = describe_share_offsets(group_id, group.log, state, shard.topics, None)
                left |= {(group_id, partition): each for partition, each in offsets.items()}
    assert left == {
        (row["group_id"], row["partition"]): {
            "lag": None,
            "leaderEpoch": row["leader_epoch"],
            "startOffset": row["start_offset"],
        }
        for row in truth
    }
    starts = {name: {row["start_offset"] for row in truth if row["group_id"] == name} for name in groups}
    assert max(starts["idle"]) < min(starts["busy"])
    assert not starts["gone"]


@pytest.mark.parametrize("seed", [3, 10, 21])
def test_what_cooperative_members_gave_up_is_given_out_whoever_left(seed):
    chaos = {"every": "25s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 6}
    group = {"type": "classic", "assignor": "cooperative-sticky", "topics": ["orders", "late"], "members": 3}
    group |= {"static": seed == 21, "revocation": ["200ms", "5s", "30s"][seed % 3], "chaos": chaos}
    check(World.of(seed, lasts="30m", cluster=CLUSTER, topics=TOPICS, groups={"some": group}))


@pytest.mark.parametrize("seed", [8, 36, 40])
def test_connect_waits_as_long_as_its_delay(seed):
    chaos = {"every": "25s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 6}
    events = [{"at": "4m", "connectors": {"jdbc": 4, "s3": 3}}, {"at": "15m", "connectors": {"jdbc": 3}}]
    group = {"type": "connect", "connectors": {"jdbc": 4, "s3": 2}, "assignor": "compatible", "members": 3}
    group |= {"delay": ["60s", "20s", "5s"][seed % 3], "chaos": chaos, "events": events}
    world = World.of(seed, lasts="30m", cluster=CLUSTER, topics=TOPICS, groups={"some": group})
    check_history(world)
    # Where a leader goes by a config topic, or by rounds, that the log does not hold, the audit cannot judge it.
    assert {row.verdict for row in world.verdicts()} <= {Verdict.IDENTICAL, Verdict.UNKNOWN}
    assert world.violations() == []


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["consumer", "classic", "streams"])
def test_transactions_end_as_the_truth_says(kind, seed):
    chaos = {"every": "30s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 5}
    transactions = {"lasts": "900ms", "aborts": 0.2, "left_open": 0.005}
    commits = {"every": "1s", "when_leaving": seed % 2 == 0, "transactions": transactions}
    group = {"type": kind, "topics": ["quiet"] if kind == "streams" else ["orders", "late"], "members": 3}
    group |= {"chaos": chaos, "commits": commits}
    if seed == 3:
        group["events"] = [{"at": "11m", "scale": 0}, {"at": "11.0015m", "delete": True}, {"at": "13m", "scale": 3}]
    world = World.of(seed, lasts="15m", cluster=CLUSTER, topics=TOPICS, groups={"some": group})
    check_history(world)
    (ending,) = (row for row in world.truth if row["kind"] == "ending")
    offsets, found = world.commits("some")
    assert {str(each): commit.offset for each, commit in offsets.committed.items()} == ending["offsets"]
    assert len(ending["offsets"]) > 1
    left_open = {
        each["producer_id"]: (each["since_ms"], set(each["partitions"])) for each in ending["open_transactions"]
    }
    pending = offsets.pending.items()
    assert left_open == {
        producer_id: (next(iter(commits.values())).commit_timestamp, set(map(str, commits)))
        for producer_id, commits in pending
        if commits
    }
    assert {each.producer_id: each.first.timestamp_ms for each in found.transactions()} == {
        producer_id: since for producer_id, (since, _) in left_open.items()
    }
    assert left_open
    for rows in world.rows.values():
        check_producers(rows)


def check_producers(rows):
    """Each transaction has an epoch of its own, one marker, and no other one of its producer within it."""
    ended, under_way = {}, {}
    for row in rows:
        batch = row.batch
        if batch.is_transactional and row.control is None:
            assert batch.base_sequence == 0
            assert ended.get(batch.producer_id, 0) <= batch.producer_epoch
            assert under_way.setdefault(batch.producer_id, batch.base_offset) == batch.base_offset
        elif row.control is not None:
            assert under_way.pop(batch.producer_id) < batch.base_offset
            ended[batch.producer_id] = batch.producer_epoch


WORKERS = {"type": "connect-kip-848", "connectors": {"jdbc": 4, "s3": 2}, "assignor": "sessioned", "members": 3}


@pytest.mark.parametrize("seed", range(4))
def test_workers_on_kip_848(seed):
    chaos = {"every": "25s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 6}
    events = [
        {"at": "4m", "connectors": {"jdbc": 4, "s3": 3}},
        {"at": "8m", "deploy": {"versions": [0, 3]}},
        {"at": "11m", "assignor": ["default", "compatible"][seed % 2]},
        {"at": "15m", "connectors": {"jdbc": 3}},
    ]
    group = WORKERS | {"delay": ["60s", "20s", "5s", "0s"][seed], "events": MISFORTUNES}
    if seed:
        group |= {"chaos": chaos, "events": events}
    world = World.of(seed, Family.CONNECT, lasts="25m", cluster=CLUSTER, groups={"some": group})
    causes = {cause["kind"] for row in world.true_rebalances().values() for cause in row["causes"]}
    assert causes >= {"member_joined", "member_left_or_expired"}
    # The connectors that a group begins with change before it has members: that is no rebalance.
    assert ("connectors_changed" in causes) == (seed > 0)
    assert ("delay_elapsed" in causes) == (seed < 3)
    check(world)
    check_state(world)


def test_a_worker_that_nobody_missed_comes_back_to_what_it_ran():
    events = [{"at": "1m", "crash": 1}, {"at": "70s", "join": 1}]
    world = World.of(1, Family.CONNECT, lasts="3m", cluster=CLUSTER, groups={"some": WORKERS | {"events": events}})
    (ending,) = (row for row in world.truth if row["kind"] == "ending")
    assert ending["members"] == ["some-0:8083", "some-1:8083", "some-2:8083"]
    assert ending["epoch"] == 3
    check_history(world)
    (group,) = (shard.memory.group("some") for shard in world.shards if shard.memory.group("some"))
    assert group_state(group) == "STABLE"


@pytest.mark.parametrize("kind", ["consumer", "classic", "share", "streams"])
def test_a_deleted_group_begins_anew(kind):
    events = [{"at": "2m", "scale": 0}, {"at": "3m", "delete": True}, {"at": "5m", "scale": 2}]
    group = {"type": kind, "topics": ["orders"], "members": 2, "events": events}
    check(World.of(3, lasts="8m", cluster=CLUSTER, topics=TOPICS, groups={"some": group}))


def test_a_group_that_was_migrated_and_deleted_begins_anew_as_it_began():
    """Its members join with the classic protocol again, which converts nothing."""
    events = [{"at": "1m", "migrate": "consumer"}, {"at": "3m", "scale": 0}]
    events += [{"at": "4m", "delete": True}, {"at": "5m", "join": 2}]
    group = {"type": "classic", "topics": ["orders"], "members": 2, "events": events}
    world = World.of(3, lasts="8m", cluster=CLUSTER, topics=TOPICS, groups={"some": group})
    causes = {cause["kind"] for row in world.true_rebalances().values() for cause in row["causes"]}
    assert "group_upgraded" in causes
    assert "group_downgraded" not in causes
    check(world)


def test_a_static_member_takes_the_place_of_one_that_may_have_been_away():
    """A member on the classic protocol does not say that it goes, as its process comes again with the other one."""
    events = [{"at": "1m", "migrate": "classic"}, {"at": "3m", "migrate": "consumer"}]
    group = {"type": "consumer", "regex": "orders", "members": 2, "static": True, "events": events}
    world = World.of(1, lasts="6m", cluster=CLUSTER, topics=TOPICS, groups={"some": group})
    kinds = {"static_member_replaced", "static_member_returned"}
    rows, found = world.true_rebalances(), world.rebalances()
    true = {at: {cause["kind"] for cause in row["causes"]} & kinds for at, row in rows.items()}
    assert true == {at: {cause.kind for cause in row.causes} & kinds for at, row in found.items()}
    assert set().union(*true.values()) == {"static_member_returned"}


@pytest.mark.parametrize("kind", ["classic", "consumer"])
def test_a_static_member_that_does_not_come_back_is_gone_after_its_session(kind):
    """Heartbeats that change nothing are not simulated: such a member has a session all the same."""
    group = {"type": kind, "topics": ["orders"], "members": 2, "static": True, "events": [{"at": "2m", "leave": 1}]}
    world = World.of(1, lasts="5m", cluster=CLUSTER, topics=TOPICS, groups={"some": group})
    (gone,) = (
        at for at, row in world.rebalances().items() if any(cause.kind == "static_member_left" for cause in row.causes)
    )
    times = {record.at: record.at.timestamp_ms for log in world.logs.values() for record in log}
    assert 120_000 < times[gone] - world.scenario.start_ms <= 120_000 + 45_000 + 5_000, "the others join again"
    check(world)


@pytest.mark.parametrize("kind", ["consumer", "share"])
def test_a_member_that_crashes_before_its_next_heartbeat_is_gone_after_its_session(kind):
    """A member that slept is woken by one that joins; its session is counted although it sends nothing any more."""
    for crash in ("120100ms", "121s", "123s"):
        events = [{"at": "2m", "join": 1}, {"at": crash, "crash": 4}]
        group = {"type": kind, "topics": ["orders"], "members": 3, "events": events}
        world = World.of(1, lasts="5m", cluster=CLUSTER, topics=TOPICS, groups={"some": group})
        (ending,) = (row for row in world.truth if row["kind"] == "ending")
        assert ending["members"] == []
        check(world)


def check_state(world):
    """Replaying the log, whole or compacted, gives the state of the coordinator."""
    for shard in world.shards:
        records, family = world.logs[shard.memory.partition], world.family
        expected = {name: group.state for name, group in shard.memory.log.groups.items() if group.state is not None}
        for log in (records, compacted(records, family)):
            groups = replayed(log, family).groups
            assert {name: group.state for name, group in groups.items() if group.state is not None} == expected


def test_replaying_the_log_gives_the_state_of_the_coordinator(world):
    check_state(world)
    for records in world.logs.values():
        whole, loaded = replayed(records), replayed(compacted(records))
        for group_id in whole.groups:
            assert loaded.offsets_of(group_id).committed == whole.offsets_of(group_id).committed


@pytest.mark.parametrize("kind", ["consumer", "classic", "share", "streams"])
def test_groups_that_are_left_alone_come_to_rest(kind):
    events = [{"at": "30s", "storm": {"lasts": "1m", "every": "2s"}}, {"at": "95s", "scale": 4}]
    group = {"type": kind, "topics": ["quiet", "orders"][: 1 if kind == "streams" else 2], "members": 3}
    world = World.of(5, lasts="4m", cluster=CLUSTER, topics=TOPICS, groups={"some": group | {"events": events}})
    last = list(world.true_rebalances().values())[-1]
    assert last["outcome"] == "converged"
    (ending,) = (row for row in world.truth if row["kind"] == "ending")
    assert len(ending["members"]) == 4


def test_the_truth_knows_the_offsets_committed_last(world):
    for row in world.truth:
        if row["kind"] == "ending":
            commits = {}
            for records in world.logs.values():
                commits |= replayed(records).offsets_of(row["group_id"]).committed
            assert row["offsets"] == {str(partition): commit.offset for partition, commit in commits.items()}


MOVES = [
    {"at": "2m", "migrate": "connect-kip-848"},
    {"at": "7m", "migrate": "connect"},
    {"at": "11m", "migrate": "connect-kip-848"},
]


def moving(seed, family, cluster=None, **more):
    group = {"type": "connect", "connectors": {"jdbc": 4, "s3": 2}, "assignor": "sessioned", "members": 3}
    group |= {"delay": "20s", "events": MOVES} | more
    cluster = CLUSTER | {"partitions": 1} | (cluster or {})
    return World.of(seed, family, lasts="15m", cluster=cluster, groups={"some": group})


@pytest.mark.parametrize("family", [Family.GROUP, Family.CONNECT])
@pytest.mark.parametrize("seed", range(3))
def test_workers_that_move_to_kip_848_and_back(seed, family):
    """Twice up and once down, each in both logs."""
    chaos = {"every": "40s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 6}
    events = [*MOVES, {"at": "5m", "connectors": {"jdbc": 4, "s3": 3}}]
    world = moving(seed, family, {"outages": OUTAGES[:seed]}, **({"chaos": chaos} if seed == 2 else {"events": events}))
    check(world)
    ends = [each for each in world.logs[0] if each.value is None and each.type == (2 if family is Family.GROUP else 3)]
    assert len(ends) >= (2 if family is Family.GROUP else 1)
    check_state(world)


@pytest.mark.parametrize("family", [Family.GROUP, Family.CONNECT])
def test_a_deleted_topic_takes_no_record_out_of_the_logs_of_workers_that_move(family):
    """Both simulations put their logs together then, of which one is written."""
    group = {"type": "connect", "connectors": {"jdbc": 4}, "members": 2}
    group["events"] = [{"at": "70s", "migrate": "connect-kip-848"}, {"at": "80s", "migrate": "connect"}]
    cluster = CLUSTER | {"partitions": 1}
    deleted = {"orders": {"partitions": 1, "deleted": "2m"}}
    worlds = [World.of(1, family, cluster=cluster, topics=topics, groups={"some": group}) for topics in ({}, deleted)]
    without, found = ([(row.offset, row.timestamp) for row in world.rows[0]] for world in worlds)
    assert found == without


def test_both_logs_of_a_group_that_moves_tell_of_one_group():
    """Each log is written by a simulation of its own; the other log is simulated in it, and is the same."""
    classic, connect = moving(1, Family.GROUP), moving(1, Family.CONNECT)
    (beside,) = (shard.peer for shard in classic.shards)
    rows = [row | {"at": None} for row in (*beside.take_truth(), *beside.last_truth()) if row["kind"] == "rebalance"]
    assert rows == [row | {"at": None} for row in connect.truth if row["kind"] == "rebalance"]
    assert len(rows) > 10
    generations = [None if each.value is None else each.value["generation"] for each in classic.logs[0]]
    end = generations.index(None)
    times = {each.at.timestamp_ms: each.value["epoch"] for each in connect.logs[0] if each.type == 3 and each.value}
    assert times[classic.logs[0][end].at.timestamp_ms] in (generations[end - 1], generations[end - 1] + 1)
