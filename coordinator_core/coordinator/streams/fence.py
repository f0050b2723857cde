"""How members leave a streams group: by themselves, or because one of their timers ran out."""

from collections.abc import Sequence
from dataclasses import replace

from coordinator_core.coordinator.epoch_group import heartbeat_response
from coordinator_core.coordinator.lookup import group_of, named_member
from coordinator_core.coordinator.member_timers import cancel_all
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.record_templates import member_tombstones
from coordinator_core.coordinator.streams import records
from coordinator_core.coordinator.streams.conversion import downgrade_after_leave
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.groups.record_types import STREAMS_RECORDS
from coordinator_core.groups.streams.state import CurrentTasks, StreamsMember
from coordinator_core.record_fields.coordinator_requests import StreamsGroupHeartbeatRequest
from coordinator_core.records import Fields


def leave(op: Operation, data: StreamsGroupHeartbeatRequest) -> Fields:
    """Serve a heartbeat that leaves: with epoch -1 the member is removed; it may ask to shut down the whole
    application.

    With epoch -2 a static member leaves temporarily and keeps its place (KIP-1071).
    """
    group_id, member_id, instance_id = data["groupId"], data["memberId"], data["instanceId"]
    group = group_of(op, group_id, LiveStreamsGroup)
    if data["shutdownApplication"]:
        request_shutdown(group, member_id)
    member = named_member(group, member_id, instance_id)
    if data["memberEpoch"] == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        op.write(*records.current_assignment(group_id, _gone_for_a_while(member)))
    else:
        fence(op, group, [member])
    op.outcome.effects["creatable_topics"] = []
    return streams_response(member_id, data["memberEpoch"])


def _gone_for_a_while(member: StreamsMember) -> StreamsMember:
    """A member that comes back under the instance id has to count as owner from the beginning: its epochs are 0."""
    had = member.assigned
    kept = CurrentTasks({key: dict.fromkeys(tasks, 0) for key, tasks in had.active.items()}, had.standby, had.warmup)
    return replace(
        member, member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH, assigned=kept, pending_revocation=CurrentTasks()
    )


def request_shutdown(group: LiveStreamsGroup, member_id: str) -> None:
    """Note that a member asks to shut down the application; members are told about the first one that asks."""
    if group.shutdown_member is None:
        group.shutdown_member = member_id


def streams_response(member_id: str, epoch: int, **fields: object) -> Fields:
    """Return a StreamsGroupHeartbeat response; fields that are not given say that nothing changed."""
    nothing_new: Fields = {
        "acceptableRecoveryLag": 0,
        "taskOffsetIntervalMs": 0,
        "status": [],
        "activeTasks": None,
        "standbyTasks": None,
        "warmupTasks": None,
        "endpointInformationEpoch": 0,
        "partitionsByUserEndpoint": None,
    }
    return heartbeat_response(member_id, epoch, **nothing_new | fields)


def fence(op: Operation, group: LiveStreamsGroup, members: Sequence[StreamsMember]) -> None:
    """Remove the members. If only classic threads remain, the group becomes a classic one again (KIP-1071)."""
    if not members or downgrade_after_leave(op, group, {member.member_id for member in members}):
        return
    for member in members:
        op.write_all(member_tombstones(STREAMS_RECORDS, group.group_id, member.member_id))
    op.write(
        *records.group_epoch(
            group.group_id,
            group.group_epoch + 1,
            group.metadata_hash,
            group.validated_topology_epoch,
            group.log.last_assignment_configs,
        )
    )
    for member in members:
        cancel_all(op, group.group_id, member.member_id)
