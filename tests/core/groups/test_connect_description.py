"""Connect groups as ``describe`` and ``owners`` show them, on KIP-848 and on the classic protocol."""

from typing import Any

import pytest

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.connect.records import (
    configuration,
    current,
    group_epoch,
    target,
    target_of_worker,
    work,
    worker,
)
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.classic.workers import classic_worker
from coordinator_core.groups.describe import Surroundings, describe
from coordinator_core.groups.group import Group
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.groups.owners import connector_tasks, owners
from coordinator_core.records import CoordinatorRecord, Family, LogPosition
from coordinator_core.wire.embedded import encode_blob

A: list[ConnectorOrTask] = ["A", ("A", 1)]
B: list[ConnectorOrTask] = ["B", ("B", 1)]
OFFERED = {"name": "sessioned", "minimumVersion": 0, "maximumVersion": 2, "reason": 0, "version": 0}


def written(*records: Any) -> Group:
    """A group of ``__worker_offsets`` after these records."""
    group = Group("sinks", from_start=True, family=Family.CONNECT)
    for offset, (record_type, key, value) in enumerate(records):
        group.apply(CoordinatorRecord(LogPosition(0, offset, 1_000 + offset), record_type, key, value, 0))
    return group


def joins(name: str, url: str | None) -> Any:
    fields = {"url": url, "configOffset": 1}
    metadata = b"" if url is None else encode_blob("ConnectProtocolMetadata", 0, fields)
    value = {
        "groupEpoch": 1,
        "instanceId": None,
        "clientId": f"client-{name}",
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": [],
        "subscribedTopicRegex": None,
        "assignors": [OFFERED | {"metadata": metadata}],
    }
    return worker("sinks", name, value)


def to_run(**shares: list[ConnectorOrTask]) -> Any:
    return target("sinks", 2, [target_of_worker(name, units) for name, units in shares.items()])


def reconciling() -> Group:
    """W1 has not stopped B yet; the connector C waits for a worker."""
    return written(
        configuration("sinks", {"scheduled.rebalance.max.delay.ms": "60000"}),
        work("sinks", 0, [*A, *B, "C"]),
        joins("W1", "http://w1:8083/"),
        joins("W2", None),
        group_epoch("sinks", 2),
        to_run(W1=A, W2=B),
        current("sinks", "W1", 1, [*A, *B]),
        current("sinks", "W2", 2, []),
    )


def test_a_group_on_kip_848_has_epochs_workers_urls_and_work() -> None:
    described = describe(reconciling(), GroupOffsets(), Surroundings())
    assert described["listing"]["type"] == "CONNECT"
    group = described["describe_connect"]
    members = group.pop("members")
    assert group == {
        "groupId": "sinks",
        "groupState": "RECONCILING",
        "groupEpoch": 2,
        "targetAssignmentEpoch": 2,
        "partitionAssignor": "sessioned",
        "assignmentError": 0,
        "work": {"connectors": ["A", "B", "C"], "tasks": ["A-1", "B-1"]},
        "unassigned": {"connectors": ["C"], "tasks": []},
        "scheduledRebalanceMaxDelayMs": 60_000,
    }
    assert [(each["memberId"], each["memberEpoch"], each["url"]) for each in members] == [
        ("W1", 1, "http://w1:8083/"),
        ("W2", 2, None),
    ]
    assert members[0]["assignment"] == {"connectors": ["A", "B"], "tasks": ["A-1", "B-1"]}
    assert members[0]["targetAssignment"] == {"connectors": ["A"], "tasks": ["A-1"]}
    assert members[1]["targetAssignment"] == {"connectors": ["B"], "tasks": ["B-1"]}


def test_what_the_log_has_not_shown_is_null() -> None:
    group = written(joins("W1", "http://w1/"))
    described = describe(group, GroupOffsets(), Surroundings())["describe_connect"]
    names = ("groupState", "groupEpoch", "work", "unassigned")
    assert [described[name] for name in names] == [None] * len(names)
    # The log is whole and has no target: the group has that of epoch 0.
    assert (described["targetAssignmentEpoch"], described["assignmentError"]) == (0, 0)
    (member,) = described["members"]
    assert (member["memberEpoch"], member["assignment"]) == (None, None)
    assert member["targetAssignment"] == {"connectors": [], "tasks": []}


def test_an_error_of_the_assignor_is_shown() -> None:
    failed = target("sinks", 3, [target_of_worker("W1", A, error=4)])
    group = written(work("sinks", 1, A), joins("W1", None), group_epoch("sinks", 3), failed)
    assert describe(group, GroupOffsets(), Surroundings())["describe_connect"]["assignmentError"] == 4


# --- classic ---------------------------------------------------------------------------------------------------------


def told(version: int, gets: dict[str, list[int]], gives_up: dict[str, list[int]] | None = None) -> bytes:
    """An assignment; -1 stands for the connector itself."""
    fields: dict[str, Any] = {"error": 0, "leader": "w1", "leaderUrl": "http://w1/", "configOffset": 3}
    fields["assignment"] = [{"connector": name, "tasks": tasks} for name, tasks in gets.items()]
    if version:
        revoked = [{"connector": name, "tasks": tasks} for name, tasks in (gives_up or {}).items()]
        fields |= {"revoked": revoked, "delay": 0}
    return encode_blob("ConnectProtocolAssignment", version, fields)


def classic(protocol: str, metadata: bytes, assigned: bytes) -> tuple[Group, ClassicGroup]:
    member = ClassicMember("w1", "client-w1", "/10.0.0.1", 1, 1, None, metadata, assigned)
    state = ClassicGroup(protocol_type="connect", generation=4, protocol=protocol, leader="w1", members={"w1": member})
    return Group("sinks", state, from_start=True), state


def test_an_incremental_worker_runs_what_it_kept_and_what_it_was_given() -> None:
    running = told(1, {"jdbc": [-1, 0, 1], "s3": [0]})
    metadata = {"url": "http://w1/", "configOffset": 3, "allocation": running}
    given = told(1, {"s3": [1]}, {"jdbc": [1]})
    group, _ = classic("compatible", encode_blob("ConnectProtocolMetadata", 1, metadata), given)
    (member,) = describe(group, GroupOffsets(), Surroundings())["describe_connect"]["members"]
    assert member["url"] == "http://w1/"
    assert member["assignment"] == {"connectors": ["jdbc"], "tasks": ["jdbc-0", "s3-0", "s3-1"]}
    assert connector_tasks([group]) == {"jdbc": {0}, "s3": {0, 1}}
    assert [(each.type, each.partition, each.role) for each in owners([group], None, "jdbc")] == [
        (GroupType.CLASSIC, None, "connector"),
        (GroupType.CLASSIC, 0, "task"),
    ]


def test_an_eager_worker_runs_what_it_was_given() -> None:
    metadata = encode_blob("ConnectProtocolMetadata", 0, {"url": "http://w1/", "configOffset": 3})
    group, _ = classic("default", metadata, told(0, {"jdbc": [-1, 0]}))
    (member,) = describe(group, GroupOffsets(), Surroundings())["describe_connect"]["members"]
    assert member["assignment"] == {"connectors": ["jdbc"], "tasks": ["jdbc-0"]}


@pytest.mark.parametrize(("metadata", "assigned"), [(b"", b""), (b"\x00", b"\x00"), (b"", told(0, {}))])
def test_bytes_that_cannot_be_read_are_unknown(metadata: bytes, assigned: bytes) -> None:
    _, state = classic("default", metadata, assigned)
    assert classic_worker(state, state.members["w1"]) == (None, None)


# --- owners ----------------------------------------------------------------------------------------------------------


def test_owners_of_connectors_and_tasks() -> None:
    group = reconciling()
    assert connector_tasks([group]) == {"A": {1}, "B": {1}, "C": set()}
    assert [(each.member_id, each.partition, each.role) for each in owners([group], None, "A")] == [
        ("W1", None, "connector"),
        ("W1", 1, "task"),
    ]
    (task,) = owners([group], None, "B", 1)
    assert (task.member_id, task.role) == ("W1", "revoking task")
    assert owners([group], None, "C") == []


def test_work_of_workers_that_have_left_is_unassigned() -> None:
    """Without workers no target is made, so that the last one still names those that have gone."""
    group = reconciling()
    for name, work_left in (("W1", ["C"]), ("W2", [*A, *B, "C"])):
        del group.state.members[name]
        unassigned = describe(group, GroupOffsets(), Surroundings())["describe_connect"]["unassigned"]
        listed = {*unassigned["connectors"], *unassigned["tasks"]}
        assert listed == {unit if isinstance(unit, str) else "-".join(map(str, unit)) for unit in work_left}
