"""Targets of Connect groups on KIP-848: identical as their workers computed them, noticed when changed."""

import random
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache

import pytest

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import ConnectRecordType, CoordinatorRecord, Family, Fields
from tests.core.compacted import compacted
from tests.core.coordinator.test_connect import GROUP, A, B, Cluster, Worker, first_worker
from tests.core.simulator.simulations import World
from tests.core.stored import next_auditor

Records = list[CoordinatorRecord]
Members = list[Fields]
EVERYTHING = Coverage({0: [(0, 10_000)]})
CHAOS = {"every": "12s", "of": ["join", "leave", "crash", "deploy", "zombie"], "most": 8}


@cache
def world() -> World:
    """Three assignors one after the other, workers that come and go, and three coordinators."""
    group = {
        "type": "connect-kip-848",
        "connectors": {"jdbc": 5, "s3": 2, "files": 1},
        "assignor": "sessioned",
        "members": 4,
        "delay": "30s",
        "chaos": CHAOS,
        "events": [{"at": "5m", "connectors": {"jdbc": 4, "s3": 3}}, {"at": "12m", "assignor": "default"}],
    }
    outages = [{"at": "3m", "broker": 0, "lasts": "1m"}, {"at": "8m", "broker": 1, "lasts": "90s"}]
    cluster = {"partitions": 1, "outages": outages}
    return World.of(5, Family.CONNECT, lasts="15m", cluster=cluster, groups={"some": group})


def audited(records: Records, coverage: Coverage = EVERYTHING, *, simulated: bool = False) -> list[TargetAuditRow]:
    """The verdicts on one group; the leader epochs are those of the simulated log, else one broker led all the time."""
    auditor = TargetAuditor(Group(GROUP, from_start=True, family=Family.CONNECT), coverage=coverage)
    return [row for each in records for row in auditor.feed(each, leaders()[each.at.offset] if simulated else 0)]


@cache
def leaders() -> list[int]:
    """The leader epoch of each record of the simulated log."""
    return [row.batch.leader_epoch for row in world().rows[0]]


def test_every_target_of_a_simulated_log_is_identical() -> None:
    rows = world().verdicts()
    assert {row.verdict for row in rows} == {Verdict.IDENTICAL}
    assert {row.assignor for row in rows} == {"sessioned", "default"}
    assert {(row.group_type, row.basis) for row in rows} == {("CONNECT", Basis.LEADER)}
    assert all(row.expected == row.recorded is not None for row in rows)
    targets = [each for each in world().logs[0] if each.type == ConnectRecordType.TARGET_ASSIGNMENT]
    assert [row.at for row in rows] == [each.at for each in targets]
    assert len(rows) > 20


# --- changed targets -------------------------------------------------------------------------------------------------


def drop(members: Members) -> None:
    """A task that its worker runs is given to no worker."""
    members[0]["connectorsTasks"][0]["tasks"].pop()


def give_twice(members: Members) -> None:
    members[1]["connectorsTasks"][0]["tasks"] += members[0]["connectorsTasks"][0]["tasks"][:1]


def give_what_is_not_configured(members: Members) -> None:
    members[0]["connectorsTasks"][0]["tasks"].append({"connectorId": "not configured", "taskId": 0})


def move(members: Members) -> None:
    tasks = members[0]["connectorsTasks"][0]["tasks"]
    members[1]["connectorsTasks"][0]["tasks"] += [tasks.pop() for _ in range(len(tasks))]


WRONG = {Verdict.DIVERGENT, Verdict.INVALID}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (drop, WRONG),
        (give_twice, {Verdict.INVALID}),
        (give_what_is_not_configured, {Verdict.INVALID}),
        (move, {Verdict.DIVERGENT}),
    ],
)
def test_a_changed_target_is_noticed(change: Callable[[Members], None], expected: set[Verdict]) -> None:
    """At any time; and the targets after it are judged on their own."""
    records = world().logs[0]
    places = [i for i, each in enumerate(records) if each.type == ConnectRecordType.TARGET_ASSIGNMENT]
    noticed = 0
    for index in random.Random(3).sample(places, 12):
        value = deepcopy(records[index].value)
        assert value is not None
        full = [each for each in value["members"] if each["connectorsTasks"] and each["connectorsTasks"][0]["tasks"]]
        if len(full) < 2:
            continue
        change(full)
        log = [*records[:index], records[index]._replace(value=value), *records[index + 1 :]]
        verdicts = {row.at: row.verdict for row in audited(log, simulated=True)}
        assert verdicts.pop(records[index].at) in expected
        assert set(verdicts.values()) == {Verdict.IDENTICAL}
        noticed += 1
    assert noticed > 5


def two_workers() -> tuple[Cluster, Worker]:
    """W1 computes for itself, then for W1 and W2; what the document's example gives them."""
    cluster, one = first_worker()
    one.beat()
    one.install(W1=[*A, *B])
    one.beat()
    Worker(cluster, "W2").beat()
    one.beat()
    one.install(W1=A, W2=B)
    return cluster, one


def test_the_worked_example_is_worth_what_the_assignor_gives() -> None:
    """The document's tasks are counted from 1, and it gives away other work than Kafka's class: as evenly, as near."""
    cluster, _ = two_workers()
    first, second = audited(cluster.log)
    assert (first.verdict, first.members) == (Verdict.IDENTICAL, 1)
    assert (second.verdict, second.epoch, second.members) == (Verdict.EQUIVALENT, 2, 2)
    assert second.recorded is not None
    assert (second.recorded.imbalance, second.recorded.moved, second.recorded.kept) == (1, 2, 3)
    assert second.differences == (
        "connector A: W2 expected, W1 recorded",
        "connector B: W1 expected, W2 recorded",
        "task A-1: W2 expected, W1 recorded",
        "task B-1: W1 expected, W2 recorded",
    )


@pytest.mark.parametrize("first", [0, 1])
def test_of_a_target_without_first_tasks_the_others_keep_their_numbers(first: int) -> None:
    """Kafka counts tasks from 0, the document from 1."""
    cluster = Cluster()
    work = ["A", ("A", first), ("A", first + 1)]
    cluster.configure(*work)
    one = Worker(cluster, "W1")
    for _ in range(2):
        one.beat()
    one.install(W1=work)
    *before, target = cluster.log
    value = deepcopy(target.value)
    assert value is not None
    value["members"][0]["connectorsTasks"][0]["tasks"].pop(0)
    auditor = TargetAuditor(Group(GROUP, from_start=True, family=Family.CONNECT), coverage=EVERYTHING)
    rows = [row for each in (*before, target._replace(value=value)) for row in auditor.feed(each, 0)]
    assert [row.verdict for row in rows] == [Verdict.INVALID]
    assert list(auditor.memory.workers.memories[0].memory.assigned.tasks) == [("A", 1)]


def test_a_failed_assignor_leaves_everything_where_it_is() -> None:
    cluster, one = two_workers()
    cluster.configure(*A, *B, "C")
    one.beat()
    member = {"groupId": GROUP, "memberId": "W1", "memberEpoch": one.epoch}
    cluster.send("PrepareAssignment", member)
    cluster.send("InstallAssignment", member | {"groupEpoch": 3, "error": 1, "members": []})
    row = audited(cluster.log)[-1]
    assert (row.verdict, row.basis, row.epoch) == (Verdict.IDENTICAL, Basis.KEPT, 3)
    target = cluster.log[-1]
    assert target.value is not None
    value = deepcopy(target.value)
    value["members"][0]["connectorsTasks"][0]["tasks"].pop()
    row = audited([*cluster.log[:-1], target._replace(value=value)])[-1]
    assert (row.verdict, row.differences) == (Verdict.DIVERGENT, ("task B-1: W1 expected, no member recorded",))


def other_assignor(target: dict[str, list[object]]) -> TargetAuditRow:
    cluster = Cluster()
    cluster.configure(*A, *B)
    one = Worker(cluster, "W1")
    ours = [{"name": "ours", "minimumVersion": 0, "maximumVersion": 0, "version": 0}]
    one.beat(clientAssignors=ours)
    one.beat(clientAssignors=ours)
    one.install(W1=[*A, *B])
    record = cluster.log[-1]
    assert record.value is not None
    (mine,) = record.value["members"]
    members = [{**mine, "memberId": name, "connectorsTasks": work} for name, work in target.items()]
    changed = record._replace(value={**record.value, "members": members})
    (row,) = audited([*cluster.log[:-1], changed])
    return row


ALL = {"connectors": ["A", "B"], "tasks": [{"connectorId": c, "taskId": n} for c, n in (("A", 1), ("A", 2), ("B", 1))]}


def test_of_another_assignor_only_the_invariants_are_known() -> None:
    row = other_assignor({"W1": [ALL]})
    assert row.verdict == Verdict.UNKNOWN
    assert "what the assignor 'ours' does" in (row.missing or "")
    row = other_assignor({"W1": [{**ALL, "connectors": ["A"]}]})
    assert (row.verdict, row.differences) == (Verdict.INVALID, ("connector B: given to no worker",))
    row = other_assignor({"W1": [ALL], "W9": []})
    assert row.verdict == Verdict.UNKNOWN
    row = other_assignor({"W1": [{**ALL, "connectors": ["A", "B", "C"]}]})
    assert (row.verdict, row.differences) == (Verdict.INVALID, ("connector C: given to W1, which may not have it",))


# --- what was not seen -----------------------------------------------------------------------------------------------


def test_work_waits_only_while_a_delay_may_run() -> None:
    """A target without the work of a worker that left is right at once, and wrong when the delay is over."""
    cluster, one = two_workers()
    two = Worker(cluster, "W2", epoch=0)
    for _ in range(3):
        one.beat()
        two.beat()
    two.beat(memberEpoch=-1)
    one.beat()
    one.install(W1=A)
    assert audited(cluster.log)[-1].verdict == Verdict.IDENTICAL
    last = cluster.log[-1]
    for later, verdict in ((290_000, Verdict.IDENTICAL), (310_000, Verdict.INVALID)):
        late = last._replace(at=last.at._replace(timestamp_ms=last.at.timestamp_ms + later))
        row = audited([*cluster.log[:-1], late])[-1]
        assert row.verdict == verdict
    assert row.differences[:2] == ("connector B: given to no worker", "task B-1: given to no worker")


@pytest.mark.parametrize("tombstones", [True, False])
def test_a_verdict_on_a_compacted_log_is_that_of_the_whole_one_or_unknown(tombstones: bool) -> None:
    records = world().logs[0]
    truth = {row.at: row for row in audited(records, simulated=True)}
    seen: Counter[str] = Counter()
    for until in range(10, len(records), 19):
        left, coverage = compacted(records, until, tombstones=tombstones)
        for row in audited(left, coverage, simulated=True):
            seen[row.verdict] += 1
            if row.verdict == Verdict.UNKNOWN:
                assert row.missing is not None
                assert (row.expected, row.recorded, row.members) == (None, None, None)
            else:
                assert (row.verdict, row.recorded) == (truth[row.at].verdict, truth[row.at].recorded)
    assert seen[Verdict.IDENTICAL] > 5 * seen[Verdict.UNKNOWN] > 0


def test_in_any_two_pieces_it_is_the_same_audit() -> None:
    records, coverage = world().logs[0], world().coverage(0)
    for cut in random.Random(2).sample(range(len(records)), 5):
        evening = TargetAuditor(world().group("some"), coverage=coverage)
        rows = [row for each in records[:cut] for row in evening.feed(each, leaders()[each.at.offset])]
        morning = next_auditor(evening, None, coverage)
        rows += [row for each in records[cut:] for row in morning.feed(each, leaders()[each.at.offset])]
        assert rows == world().verdicts()
