"""Connect groups as proposed on KIP-848: what their records make of the state."""

from typing import Any

from coordinator_core.groups.connect.describe import group_state
from coordinator_core.groups.connect.state import ConnectGroup, ConnectGroupState, ConnectorTaskId
from coordinator_core.groups.rules import Rule
from coordinator_core.records import ConnectRecordType, CoordinatorRecord
from tests.core.builders import GroupLog
from tests.core.groups.applied import apply

WORK = [{"connectors": ["sink"], "tasks": [{"connectorId": "sink", "taskId": 0}]}]


def worker(log: GroupLog, member_id: str) -> CoordinatorRecord:
    value = {
        "groupEpoch": 1,
        "instanceId": None,
        "clientId": f"client-{member_id}",
        "clientHost": "/10.0.0.1",
        "subscribedTopicNames": [],
        "subscribedTopicRegex": None,
        "assignors": [
            {
                "name": "compatible",
                "minimumVersion": 0,
                "maximumVersion": 2,
                "reason": 0,
                "version": 1,
                "metadata": b"\x01",
            }
        ],
    }
    return log.record(ConnectRecordType.MEMBER_METADATA, value, memberId=member_id)


def assignment(work: list[dict[str, Any]]) -> dict[str, Any]:
    return {"error": 0, "connectorsTasks": work, "version": 1, "metadata": b""}


def target(log: GroupLog, epoch: int, *member_ids: str) -> CoordinatorRecord:
    members = [{"memberId": member_id, **assignment(WORK)} for member_id in member_ids]
    return log.record(ConnectRecordType.TARGET_ASSIGNMENT, {"assignmentEpoch": epoch, "members": members})


def current(log: GroupLog, member_id: str, epoch: int, work: list[dict[str, Any]]) -> CoordinatorRecord:
    value = {"memberEpoch": epoch, **assignment(work)}
    return log.record(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, value, memberId=member_id)


def applied(group: ConnectGroup, *records: CoordinatorRecord) -> list[Rule]:
    return [seen.rule for record in records for seen in apply(group, record)]


def test_a_worker_joins_and_runs_its_target() -> None:
    log, group = GroupLog(), ConnectGroup()
    work = log.record(ConnectRecordType.CONNECTORS_TASKS_METADATA, {"epoch": 1, "connectorsTasks": WORK})
    epoch = log.record(ConnectRecordType.GROUP_METADATA, {"epoch": 1})
    assert applied(group, worker(log, "w"), work, epoch) == []
    assert group_state(group) is ConnectGroupState.ASSIGNING, "there is no target before the first one"
    assert group.members["w"].assignors[0].name == "compatible"
    assert group.work.tasks == [ConnectorTaskId("sink", 0)]
    assert applied(group, target(log, 1, "w"), current(log, "w", 1, [])) == []
    assert group_state(group) is ConnectGroupState.RECONCILING
    assert applied(group, current(log, "w", 1, WORK)) == []
    assert group_state(group) is ConnectGroupState.STABLE
    assert applied(group, log.record(ConnectRecordType.GROUP_METADATA, {"epoch": 2})) == []
    assert group_state(group) is ConnectGroupState.ASSIGNING


def test_a_group_ends() -> None:
    log, group = GroupLog(), ConnectGroup()
    epoch = log.record(ConnectRecordType.GROUP_METADATA, {"epoch": 1})
    configuration = log.record(
        ConnectRecordType.CONFIGURATION,
        {"configurations": [{"name": "scheduled.rebalance.max.delay.ms", "value": "1"}]},
    )
    applied(group, worker(log, "w"), epoch, target(log, 1, "w"), current(log, "w", 1, WORK), configuration)
    assert group.configuration == {"scheduled.rebalance.max.delay.ms": "1"}
    assert (
        applied(
            group,
            log.tombstone(ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT, memberId="w"),
            log.tombstone(ConnectRecordType.MEMBER_METADATA, memberId="w"),
            log.tombstone(ConnectRecordType.TARGET_ASSIGNMENT),
            log.tombstone(ConnectRecordType.CONFIGURATION),
            log.tombstone(ConnectRecordType.GROUP_METADATA),
        )
        == []
    )
    assert group == ConnectGroup(group_epoch=1), "it goes as a whole with its last record"
    assert group_state(group) is ConnectGroupState.EMPTY


def test_what_the_proposal_does_not_allow() -> None:
    log, group = GroupLog(), ConnectGroup()
    applied(group, worker(log, "w"), log.record(3, {"epoch": 5}), target(log, 5, "w"), current(log, "w", 5, WORK))
    cases = [
        (log.record(3, {"epoch": 4}), Rule.EPOCH_WENT_BACK),
        (target(log, 4), Rule.ASSIGNMENT_EPOCH_WENT_BACK),
        (target(log, 9), Rule.ASSIGNMENT_EPOCH_AHEAD),
        (target(log, 9, "x"), Rule.ASSIGNMENT_EPOCH_AHEAD),
        (current(log, "w", 3, []), Rule.MEMBER_EPOCH_WENT_BACK),
        (current(log, "w", 6, []), Rule.MEMBER_EPOCH_AHEAD),
        (current(log, "x", 1, []), Rule.ASSIGNMENT_WITHOUT_MEMBER),
        (log.tombstone(5, memberId="w"), Rule.MEMBER_REMOVED_WITH_ASSIGNMENT),
        (log.tombstone(5, memberId="y"), Rule.TOMBSTONE_WITHOUT_VALUE),
        (log.tombstone(7, memberId="y"), Rule.TOMBSTONE_WITHOUT_VALUE),
        (log.tombstone(4), Rule.TOMBSTONE_WITHOUT_VALUE),
        (log.tombstone(3), Rule.GROUP_REMOVED_WITH_MEMBERS),
    ]
    assert [applied(group, record) for record, _ in cases] == [[rule] for _, rule in cases]
    applied(group, log.tombstone(6))
    assert applied(group, target(log, 1, "z")) == [Rule.TARGET_WITHOUT_MEMBER]
