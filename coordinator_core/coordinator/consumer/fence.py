"""How members leave a consumer group: by themselves, or because one of their timers ran out."""

from collections.abc import Sequence
from dataclasses import replace

from coordinator_core.coordinator.consumer import records
from coordinator_core.coordinator.consumer.conversion import downgrade_after_leave
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.epoch_group import heartbeat_response
from coordinator_core.coordinator.lookup import group_of, named_member
from coordinator_core.coordinator.member_timers import cancel_all
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.record_templates import member_tombstones
from coordinator_core.groups.consumer.state import ConsumerMember
from coordinator_core.groups.epochs import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from coordinator_core.groups.record_types import CONSUMER_RECORDS
from coordinator_core.record_fields.coordinator_requests import ConsumerGroupHeartbeatRequest
from coordinator_core.records import Fields


def leave(op: Operation, data: ConsumerGroupHeartbeatRequest) -> Fields:
    """Serve a heartbeat that leaves: with epoch -1 the member is removed, with -2 a static member leaves
    temporarily and keeps its place.
    """
    group_id, member_id, epoch = data["groupId"], data["memberId"], data["memberEpoch"]
    instance_id = data["instanceId"]
    group = group_of(op, group_id, LiveConsumerGroup)
    member = named_member(group, member_id, instance_id)
    if instance_id is not None and epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        op.write(*records.current_assignment(group_id, _gone_for_a_while(member)))
    else:
        fence(op, group, [member])
    return heartbeat_response(member_id, epoch, assignment=None)


def _gone_for_a_while(member: ConsumerMember) -> ConsumerMember:
    """A member that comes back under the instance id has to count as owner from the beginning: its epochs are 0."""
    return replace(
        member,
        member_epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH,
        assigned={topic: dict.fromkeys(epochs, 0) for topic, epochs in member.assigned.items()},
        pending_revocation={},
    )


def fence(op: Operation, group: LiveConsumerGroup, members: Sequence[ConsumerMember]) -> None:
    """Remove the members. If only classic members remain, the group becomes a classic one where that is allowed."""
    if not members or downgrade_after_leave(op, group, members):
        return
    for member in members:
        op.write_all(member_tombstones(CONSUMER_RECORDS, group.group_id, member.member_id))
    subscriptions = group.subscriptions.copy()
    for member in members:
        subscriptions.count_member(member, -1)
    for regex in dict.fromkeys(member.subscribed_topic_regex for member in members):
        if regex and regex not in subscriptions.regexes:
            op.write(*records.resolved_regex(group.group_id, regex, None))
            resolved = group.log.regexes.get(regex)
            subscriptions.count_resolution(() if resolved is None else resolved.topics, -1)
    metadata_hash = op.memory.metadata_hash(subscriptions.topics, op.topics)
    # The epoch alone: the target is made by the next heartbeat, which knows the assignor that members ask for.
    op.write(*records.group_epoch(group.group_id, group.group_epoch + 1, metadata_hash))
    for member in members:
        cancel_all(op, group.group_id, member.member_id)
