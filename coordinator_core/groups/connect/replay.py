"""How records change a Connect group."""

from collections.abc import Callable, Mapping, Sequence

from coordinator_core.groups.connect.state import (
    Assignor,
    ConnectGroup,
    ConnectMember,
    ConnectorTaskId,
    Work,
    WorkerAssignment,
)
from coordinator_core.groups.epochs import check_member_epoch
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import NO_VIOLATIONS, Violations, tombstone, violation
from coordinator_core.record_fields.connect_group import (
    ConnectWorkerGroupConfigurationRecord,
    ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks,
    ConnectWorkerGroupConnectorsTasksMetadataRecord,
    ConnectWorkerGroupCurrentMemberAssignmentConnectorsTasks,
    ConnectWorkerGroupCurrentMemberAssignmentRecord,
    ConnectWorkerGroupCurrentMemberAssignmentValue,
    ConnectWorkerGroupMemberMetadataAssignor,
    ConnectWorkerGroupMemberMetadataRecord,
    ConnectWorkerGroupMetadataRecord,
    ConnectWorkerGroupTargetAssignmentConnectorsTasks,
    ConnectWorkerGroupTargetAssignmentMember,
    ConnectWorkerGroupTargetAssignmentRecord,
)
from coordinator_core.record_fields.coordinator_requests import ConnectGroupHeartbeatAssignor
from coordinator_core.records import AnyRecord, ConnectRecordType

_Assignment = ConnectWorkerGroupTargetAssignmentMember | ConnectWorkerGroupCurrentMemberAssignmentValue
_ConnectorsTasks = (
    ConnectWorkerGroupConnectorsTasksMetadataConnectorsTasks
    | ConnectWorkerGroupTargetAssignmentConnectorsTasks
    | ConnectWorkerGroupCurrentMemberAssignmentConnectorsTasks
)


def _group_metadata(state: ConnectGroup, record: ConnectWorkerGroupMetadataRecord) -> Violations:
    value = record.value
    before = state.group_epoch
    if value is None:
        if state.members:
            return violation(Rule.GROUP_REMOVED_WITH_MEMBERS, record, f"{len(state.members)} members were left")
        return tombstone(record, "no such group", existed=before is not None)
    epoch = state.group_epoch = value["epoch"]
    if before is not None and epoch < before:
        return violation(Rule.EPOCH_WENT_BACK, record, f"group epoch {epoch} after {before}")
    return NO_VIOLATIONS


def _connectors_tasks(state: ConnectGroup, record: ConnectWorkerGroupConnectorsTasksMetadataRecord) -> Violations:
    value = record.value
    if value is None:
        existed = state.work_epoch is not None
        state.work_epoch, state.work = None, Work()
        return tombstone(record, "no connectors and tasks", existed=existed)
    state.work_epoch, state.work = value["epoch"], _work(value["connectorsTasks"])
    return NO_VIOLATIONS


def _member_metadata(state: ConnectGroup, record: ConnectWorkerGroupMemberMetadataRecord) -> Violations:
    value = record.value
    member_id = record.key["memberId"]
    if value is None:
        member = state.members.pop(member_id, None)
        if member is None:
            return tombstone(record, "no such member", existed=False)
        if member.current is not None:
            return violation(Rule.MEMBER_REMOVED_WITH_ASSIGNMENT, record, "its assignment still stood")
        return NO_VIOLATIONS
    member = _member(state, member_id)
    member.client_id = value["clientId"]
    member.client_host = value["clientHost"]
    member.instance_id = value["instanceId"]
    member.group_epoch = value["groupEpoch"]
    member.assignors = [offered(assignor) for assignor in value["assignors"]]
    return NO_VIOLATIONS


def offered(fields: ConnectWorkerGroupMemberMetadataAssignor | ConnectGroupHeartbeatAssignor) -> Assignor:
    """Return an assignor that a worker offers, in a record or a heartbeat."""
    versions = fields["minimumVersion"], fields["maximumVersion"]
    return Assignor(fields["name"], *versions, fields["reason"], fields["version"], fields["metadata"])


def _target(state: ConnectGroup, record: ConnectWorkerGroupTargetAssignmentRecord) -> Violations:
    value = record.value
    before = state.assignment_epoch
    if value is None:
        state.assignment_epoch, state.targets = None, {}
        return tombstone(record, "no target assignment", existed=before is not None)
    epoch = state.assignment_epoch = value["assignmentEpoch"]
    state.targets = {member["memberId"]: _assignment(member) for member in value["members"]}
    if before is not None and epoch < before:
        return violation(Rule.ASSIGNMENT_EPOCH_WENT_BACK, record, f"assignment epoch {epoch} after {before}")
    if state.group_epoch is not None and epoch > state.group_epoch:
        return violation(Rule.ASSIGNMENT_EPOCH_AHEAD, record, f"assignment epoch {epoch}, group {state.group_epoch}")
    members = {member_id: state.members.get(member_id) for member_id in state.targets}
    unknown = [member_id for member_id, member in members.items() if member is None or member.client_id is None]
    if unknown:
        return violation(Rule.TARGET_WITHOUT_MEMBER, record, f"members without metadata: {', '.join(unknown)}")
    return NO_VIOLATIONS


def _current_member(state: ConnectGroup, record: ConnectWorkerGroupCurrentMemberAssignmentRecord) -> Violations:
    value = record.value
    member_id = record.key["memberId"]
    if value is None:
        gone = state.members.get(member_id)
        if gone is None or gone.current is None:
            return tombstone(record, "no such current assignment", existed=False)
        gone.member_epoch = gone.current = None
        if gone.client_id is None:
            del state.members[member_id]
        return NO_VIOLATIONS
    member = _member(state, member_id)
    before, epoch = member.member_epoch, value["memberEpoch"]
    member.member_epoch, member.current = epoch, _assignment(value)
    if member.client_id is None:
        return violation(Rule.ASSIGNMENT_WITHOUT_MEMBER, record, "current assignment of a member without metadata")
    return check_member_epoch(record, before, epoch, state.group_epoch)


def _configuration(state: ConnectGroup, record: ConnectWorkerGroupConfigurationRecord) -> Violations:
    value = record.value
    state.configuration = (
        {}
        if value is None
        else {configuration["name"]: configuration["value"] for configuration in value["configurations"]}
    )
    return NO_VIOLATIONS


def _member(state: ConnectGroup, member_id: str) -> ConnectMember:
    member = state.members.get(member_id)
    if member is None:
        member = state.members[member_id] = ConnectMember(member_id)
    return member


def _assignment(value: _Assignment) -> WorkerAssignment:
    return WorkerAssignment(_work(value["connectorsTasks"]), value["error"], value["version"], value["metadata"])


def _work(values: Sequence[_ConnectorsTasks]) -> Work:
    return Work(
        [connector for work in values for connector in work["connectors"]],
        [ConnectorTaskId(task["connectorId"], task["taskId"]) for work in values for task in work["tasks"]],
    )


HANDLERS: Mapping[int, Callable[[ConnectGroup, AnyRecord], Violations]] = {
    ConnectRecordType.GROUP_METADATA: _group_metadata,
    ConnectRecordType.CONNECTORS_TASKS_METADATA: _connectors_tasks,
    ConnectRecordType.MEMBER_METADATA: _member_metadata,
    ConnectRecordType.TARGET_ASSIGNMENT: _target,
    ConnectRecordType.CURRENT_MEMBER_ASSIGNMENT: _current_member,
    ConnectRecordType.CONFIGURATION: _configuration,
}
"""Record type to the function that changes the state."""
