"""The member that a request is about: found, made, or put in the place of the static member that it replaces."""

from dataclasses import replace

from coordinator_core.coordinator.consumer import records
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.epoch_group import empty_member
from coordinator_core.coordinator.lookup import check_released
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import Request
from coordinator_core.coordinator.record_templates import member_tombstones, target_assignment
from coordinator_core.coordinator.subscriptions import topic_names
from coordinator_core.groups.consumer.state import ConsumerMember, ConsumerMemberState
from coordinator_core.groups.record_types import CONSUMER_RECORDS
from coordinator_core.record_fields.coordinator_requests import ConsumerGroupHeartbeatRequest


def new_member(member_id: str) -> ConsumerMember:
    """Return a member before anything is known about it."""
    return empty_member(ConsumerMember, member_id, ConsumerMemberState.STABLE, subscribed_topic_regex="")


def joining_static(
    op: Operation, group: LiveConsumerGroup, member_id: str, instance_id: str, *, classic: bool
) -> ConsumerMember:
    """Return a static member that joins: a new one, or one that takes the place and everything of the former holder of
    its instance id.

    Between two consumers the former must have left (epoch -2) before; raises ApiError otherwise.
    """
    former = group.static_member(instance_id)
    if former is None:
        return group.log.members.get(member_id) or new_member(member_id)
    if not classic and former.classic is None:
        check_released(former, member_id, instance_id)
    member = replace(former, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    op.write_all(member_tombstones(CONSUMER_RECORDS, group.group_id, former.member_id))
    op.write(*records.member_metadata(group.group_id, member))
    target = group.view.targets.get(former.member_id, {})
    op.write(*target_assignment(CONSUMER_RECORDS, group.group_id, member_id, target))
    op.write(*records.current_assignment(group.group_id, member))
    return member


def updated(member: ConsumerMember, request: Request, data: ConsumerGroupHeartbeatRequest) -> ConsumerMember:
    """Return the member as its heartbeat describes it; what the heartbeat leaves out is kept."""
    names, regex, timeout = data["subscribedTopicNames"], data["subscribedTopicRegex"], data["rebalanceTimeoutMs"]
    return replace(
        member,
        instance_id=_given(data["instanceId"], member.instance_id),
        rack_id=_given(data["rackId"], member.rack_id),
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout == -1 else timeout,
        server_assignor=_given(data["serverAssignor"], member.server_assignor),
        subscribed_topic_names=member.subscribed_topic_names if names is None else topic_names(names),
        subscribed_topic_regex=_given(regex, member.subscribed_topic_regex),
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def write_changed(op: Operation, group_id: str, member: ConsumerMember, updated: ConsumerMember) -> bool:
    """Write the member if anything about it changed; return whether it subscribes to other topics by name."""
    if updated != member:
        op.write(*records.member_metadata(group_id, updated))
    return updated.subscribed_topic_names != member.subscribed_topic_names


def _given(value: str | None, present: str | None) -> str | None:
    return present if value is None else value
