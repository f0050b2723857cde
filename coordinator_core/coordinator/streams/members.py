"""The member that a heartbeat is about: found, made, or put in the place of the static member that it replaces."""

from dataclasses import replace

from coordinator_core.coordinator.epoch_group import empty_member
from coordinator_core.coordinator.lookup import check_released
from coordinator_core.coordinator.member_timers import cancel_all
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.record_templates import member_tombstones
from coordinator_core.coordinator.streams import records
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.groups.record_types import STREAMS_RECORDS
from coordinator_core.groups.streams.state import Endpoint, StreamsMember, StreamsMemberState
from coordinator_core.record_fields.coordinator_requests import (
    StreamsGroupHeartbeatKeyValue,
    StreamsGroupHeartbeatRequest,
)


def new_member(member_id: str) -> StreamsMember:
    """Return a member before anything is known about it."""
    return empty_member(StreamsMember, member_id, StreamsMemberState.STABLE, topology_epoch=-1, process_id="")


def joining_static(
    op: Operation, group: LiveStreamsGroup, member_id: str, instance_id: str, *, classic: bool
) -> StreamsMember:
    """Return a static member that joins: a new one, or one that takes the place and everything of the former holder of
    its instance id.

    Unless one of the two speaks the classic protocol, the former must have left (epoch -2) before; raises ApiError
    otherwise.
    """
    former = group.static_member(instance_id)
    if former is None:
        return group.log.members.get(member_id) or new_member(member_id)
    if former.member_id == member_id and former.member_epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        return former
    if not classic and former.member_id not in group.classic:
        check_released(former, member_id, instance_id)
    member = replace(former, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    op.write_all(member_tombstones(STREAMS_RECORDS, group.group_id, former.member_id))
    cancel_all(op, group.group_id, former.member_id)
    op.write(*records.member_metadata(group.group_id, member))
    op.write(*records.target_assignment(group.group_id, member_id, group.target(former.member_id)))
    op.write(*records.current_assignment(group.group_id, member))
    return member


def updated(member: StreamsMember, request: Request, data: StreamsGroupHeartbeatRequest) -> StreamsMember:
    """Return the member as its heartbeat describes it; what the heartbeat leaves out is kept."""
    endpoint, tags, timeout = data["userEndpoint"], data["clientTags"], data["rebalanceTimeoutMs"]
    return replace(
        member,
        instance_id=member.instance_id if data["instanceId"] is None else data["instanceId"],
        rack_id=member.rack_id if data["rackId"] is None else data["rackId"],
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        topology_epoch=member.topology_epoch if data["topology"] is None else data["topology"]["epoch"],
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=member.process_id if data["processId"] is None else data["processId"],
        client_tags=member.client_tags if tags is None else _by_key(tags),
        user_endpoint=member.user_endpoint if endpoint is None else Endpoint(endpoint["host"], endpoint["port"]),
    )


def _by_key(tags: list[StreamsGroupHeartbeatKeyValue]) -> dict[str, str]:
    """The values of tags; raises ApiError where Kafka fails: with two tags of one key."""
    values: dict[str, str] = {}
    for key, value in ((tag["key"], tag["value"]) for tag in tags):
        if key in values:
            message = f"Duplicate key {key} (attempted merging values {values[key]} and {value})"
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
        values[key] = value
    return values
