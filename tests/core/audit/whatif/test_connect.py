"""What if, for Connect: rounds of workers again, with the rebalances that each change leads to."""

from dataclasses import replace

import pytest

from coordinator_core.assignors.inputs import AssignedGroupType
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.classic_connect import NO_TOPICS
from coordinator_core.audit.targets.rounds import Round, RoundMember, rounds
from coordinator_core.audit.whatif.connect import Following, waited_ms
from coordinator_core.audit.whatif.replay import WhatIf, WhatIfOutcome, what_if
from coordinator_core.errors import InputError
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.history_fold import GroupFold
from coordinator_core.history.holdings import WorkUnit
from coordinator_core.history.rows import RebalanceRow
from coordinator_core.records import AnyRecord, ConnectRecordType, Family, LogPosition
from tests.core.simulator.simulations import World

MINUTE = 60_000
EVERYTHING = frozenset(WorkUnit("", "sink", number) for number in (-1, 0, 1, 2))


def a_round(minute: int, *workers: str, asks_again: bool = False) -> Round:
    """All of the connector is with the first worker: what happened plays no part in what is supposed."""
    return Round(
        LogPosition(0, minute, minute * MINUTE),
        AssignedGroupType.CONNECT,
        "sessioned",
        {worker: RoundMember((worker, "host")) for worker in workers},
        NO_TOPICS,
        {worker: EVERYTHING if worker == workers[0] else frozenset() for worker in workers},
        leader=workers[0],
        connectors={"sink": 3},
        max_delay_ms=5 * MINUTE,
        asks_again=asks_again,
    )


def supposed(change: WhatIf, *happened: Round) -> WhatIfOutcome:
    return what_if(happened, change).hypothetical


def test_a_worker_that_comes_gets_work_once_others_stopped_it() -> None:
    alone, both = a_round(0, "a"), a_round(1, "a", "b", asks_again=True)
    found = supposed(WhatIf(), alone, both, a_round(1, "a", "b"))
    assert (found.rebalances, found.moved, found.stopped) == (3, 1, 1), (
        "assign; stop one of three tasks; start it elsewhere"
    )


def test_all_work_stops_in_an_eager_rebalance() -> None:
    found = supposed(WhatIf(assignor="default"), a_round(0, "a"), a_round(1, "a", "b"))
    assert (found.rebalances, found.stopped) == (2, 4)


def test_lost_work_waits_for_its_worker_as_long_as_the_delay() -> None:
    """The worker is back under another id after three minutes; in between its work is with nobody."""
    happened = (a_round(0, "a", "b"), a_round(10, "a"), a_round(13, "a", "c"))
    waited = supposed(WhatIf(), *happened)
    assert waited.moved == 1, "from b to c, who was without work when the delay ended"
    at_once = supposed(WhatIf(delay_ms=0), *happened)
    assert at_once.moved == 2, "from b to a, and then from a to c"


def test_a_rebalance_that_nothing_visible_led_to_counts() -> None:
    """A connector with another configuration has its workers join again."""
    assert supposed(WhatIf(), a_round(0, "a"), a_round(1, "a")).rebalances == 2
    assert supposed(WhatIf(), a_round(0, "a", asks_again=True), a_round(1, "a")).rebalances == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (WhatIf(static_timeout_ms=1), "cannot be static members"),
        (WhatIf(cooperative=True), "--assignor default or compatible"),
        (WhatIf(standbys=1), "only streams groups have standby tasks"),
        (WhatIf(assignor="range"), "no assignor 'range' for connect groups"),
    ],
)
def test_what_connect_does_not_have_is_refused(change: WhatIf, told: str) -> None:
    with pytest.raises(InputError, match=told):
        what_if([a_round(0, "a")], change)


def test_other_groups_have_no_delay() -> None:
    consumers = Round(LogPosition(0, 0, 0), AssignedGroupType.CLASSIC, "range", {}, NO_TOPICS, {})
    with pytest.raises(InputError, match="only Connect groups"):
        what_if([consumers], WhatIf(delay_ms=0))


@pytest.mark.parametrize("order", [1, -1])
def test_an_id_that_named_workers_and_consumers_is_refused(order: int) -> None:
    """The group was deleted, and another one has its name."""
    consumers = Round(LogPosition(0, 9, 9), AssignedGroupType.CONSUMER, "range", {}, NO_TOPICS, {})
    with pytest.raises(InputError, match="cannot be compared"):
        what_if([a_round(0, "a"), consumers][::order], WhatIf(partitions={}))


def test_share_groups_have_no_static_members() -> None:
    shared = Round(LogPosition(0, 0, 0), AssignedGroupType.SHARE, "simple", {}, NO_TOPICS, {})
    with pytest.raises(InputError, match="share groups cannot be static"):
        what_if([shared], WhatIf(static_timeout_ms=1))


def declared(minute: int, *workers: str, asks_again: bool = False) -> Round:
    return replace(a_round(minute, *workers, asks_again=asks_again), is_declared=True)


def test_on_kip_848_one_target_says_where_all_work_goes() -> None:
    found = supposed(WhatIf(), declared(0, "a"), declared(1, "a", "b"))
    assert (found.rebalances, found.moved, found.stopped) == (2, 1, 1), "not one to stop it and one to start it"


def test_on_kip_848_the_eager_assignor_stops_only_what_moves() -> None:
    found = supposed(WhatIf(assignor="default"), declared(0, "a"), declared(1, "a", "b"))
    assert (found.rebalances, found.stopped) == (2, 2)


def test_on_kip_848_work_of_a_worker_that_left_waits_as_long_as_the_delay() -> None:
    happened = (declared(0, "a", "b"), declared(10, "a", asks_again=True), declared(15, "a"))
    waited, at_once = supposed(WhatIf(), *happened), supposed(WhatIf(delay_ms=0), *happened)
    assert (waited.rebalances, waited.moved) == (3, 1), "it waits in the second, and goes to a in the third"
    assert (at_once.rebalances, at_once.moved) == (2, 1)


def test_rounds_of_a_simulated_group_are_its_targets() -> None:
    group = {"type": "connect-kip-848", "connectors": {"jdbc": 3}, "assignor": "sessioned", "members": 3}
    events = [{"at": "1m", "crash": 1}, {"at": "4m", "join": 1}]
    world = World.of(2, Family.CONNECT, lasts="6m", cluster={"partitions": 1}, groups={"g": group | {"events": events}})
    found = list(rounds(world.logs[0], world.group("g"), None, AuditSettings()))
    targets = [each for each in world.logs[0] if each.type == ConnectRecordType.TARGET_ASSIGNMENT]
    assert [each.at for each in found] == [each.at for each in targets]
    assert {(each.is_declared, each.assignor, each.max_delay_ms) for each in found} == {(True, "sessioned", 60_000)}
    assert [dict(each.connectors) for each in found] == [{"jdbc": 3}] * len(found)
    assert any(each.asks_again for each in found)
    outcome = what_if(found, WhatIf())
    assert outcome.actual.rebalances == len(found)
    assert outcome.hypothetical.rebalances == len(found)
    assert what_if(found, WhatIf(delay_ms=0)).hypothetical.rebalances < len(found)


def idle_ms(records: list[AnyRecord], group: Group) -> int:
    """The idle time of a group in its history."""
    fold = GroupFold(group, None, None, Coverage({0: [(0, records[-1].at.offset)]}))
    rows = []
    for record in records:
        known = fold.before(record)
        group.apply(record)
        rows += fold.after(record, known, None)
    return sum(row.idle_ms or 0 for row in [*rows, *fold.open_rows()] if isinstance(row, RebalanceRow))


def test_idle_time_is_that_of_the_delay() -> None:
    """One world with three delays: from the log of each, the idle time of the other two."""
    events = [{"at": "1m", "crash": 1}, {"at": "6m", "crash": 1}]
    group = {"type": "connect-kip-848", "connectors": {"jdbc": 5}, "assignor": "sessioned", "members": 3}
    found, true = {}, {}
    delays = (0, 60_000, 180_000)
    for delay in delays:
        settings = group | {"delay": f"{delay // 1000}s", "events": events}
        world = World.of(2, Family.CONNECT, lasts="12m", cluster={"partitions": 1}, groups={"g": settings})
        true[delay] = idle_ms(world.logs[0], world.group("g"))
        happened = list(rounds(world.logs[0], world.group("g"), None, AuditSettings()))
        for other in delays:
            found[delay, other] = what_if(happened, WhatIf(delay_ms=other), true[delay]).hypothetical.idle_ms
    assert 0 < true[0] < true[60_000] < true[180_000]
    for (actual, other), idle in found.items():
        assert idle == pytest.approx(true[other], rel=0.2, abs=20_000), (actual, other, true)


def test_work_waits_until_it_runs_again_and_not_at_all_where_it_is_removed_before() -> None:
    one, two = WorkUnit("", "sink", 0), WorkUnit("", "sink", 1)
    steps = [
        Following(0, frozenset((one, two)), {"a": frozenset((one, two))}),
        Following(10, frozenset((one, two)), {"b": frozenset[WorkUnit]()}),
        Following(15, frozenset((one,)), {"b": frozenset[WorkUnit]()}),
        Following(40, frozenset((one, two)), {"b": frozenset((one, two))}),
    ]
    assert waited_ms(steps) == 30
    assert waited_ms(steps[:3]) == 0, "what still waits at the end"


def test_no_delay_ends_after_the_log() -> None:
    happened = [a_round(0, "a", "b"), a_round(10, "a", asks_again=True)]
    assert what_if(happened, WhatIf(), None, 12 * MINUTE).hypothetical.rebalances == 2
    assert what_if(happened, WhatIf(), None, 20 * MINUTE).hypothetical.rebalances == 3


TROUBLED = [
    {"at": "3m", "join": 1},
    {"at": "6m", "crash": 1},
    {"at": "12m", "connectors": {"jdbc": 6, "s3": 3, "es": 2, "hdfs": 1}},
    {"at": "16m", "deploy": {"away": "10s", "step": "40s"}},
    {"at": "24m", "zombie": {"lasts": "100s"}},
    {"at": "30m", "leave": 2},
    {"at": "36m", "connectors": {"jdbc": 2, "es": 2}},
    {"at": "40m", "deploy": {"away": "10s", "step": "40s", "versions": [0, 3]}},
    {"at": "46m", "assignor": "compatible"},
    {"at": "50m", "flap": {"lasts": "3m", "stay": "15s", "away": "5s"}},
    {"at": "56m", "crash": 2},
]
"""An hour in which each event has work wait, or ends its wait; no delay ends after the last one."""


def test_idle_time_of_a_troubled_hour_is_that_of_the_delay() -> None:
    """Delays that began before a worker came, deploys of wider versions, removed work, and a group without workers."""
    connectors = {"jdbc": 4, "s3": 3, "es": 2}
    group = {"type": "connect-kip-848", "assignor": "sessioned", "members": 4, "connectors": connectors}
    delays = (0, 3 * MINUTE, 10 * MINUTE)
    said, true = {}, {}
    for delay in delays:
        settings = group | {"delay": f"{delay // 1000}s", "events": TROUBLED}
        cluster = {"partitions": 1, "brokers": 3, "outages": [{"at": "33m", "broker": 1, "lasts": "2m"}]}
        world = World.of(1, Family.CONNECT, lasts="60m", cluster=cluster, groups={"sinks": settings})
        records = world.logs[0]
        true[delay] = idle_ms(records, world.group("sinks"))
        happened = list(rounds(records, world.group("sinks"), None, AuditSettings()))
        until_ms = records[-1].at.timestamp_ms
        for other in delays:
            said[delay, other] = what_if(happened, WhatIf(delay_ms=other), true[delay], until_ms).hypothetical.idle_ms
    assert true[0] < true[3 * MINUTE] < true[10 * MINUTE]
    for (actual, other), idle in said.items():
        assert idle == pytest.approx(true[other], rel=0.15, abs=5 * MINUTE), (actual, other, said, true)
