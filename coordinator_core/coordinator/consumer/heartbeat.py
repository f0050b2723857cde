"""ConsumerGroupHeartbeat (KIP-848)."""

from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.consumer import members, validation
from coordinator_core.coordinator.consumer.conversion import upgrade
from coordinator_core.coordinator.consumer.fence import leave
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.consumer.rebalance import move, update_epoch, update_target
from coordinator_core.coordinator.consumer.regexes import RegexChange
from coordinator_core.coordinator.consumer.regexes import update as update_regex
from coordinator_core.coordinator.epoch_group import heartbeat_response
from coordinator_core.coordinator.lookup import check_capacity, named_member
from coordinator_core.coordinator.member_timers import expect_heartbeat
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.record_templates import listed
from coordinator_core.groups.consumer.state import ConsumerMember
from coordinator_core.record_fields.coordinator_requests import ConsumerGroupHeartbeatRequest
from coordinator_core.records import Fields


def handle_heartbeat(op: Operation, request: Request) -> Fields:
    """Serve a heartbeat: a member joins (epoch 0), leaves (-1, -2) or stays; it reports what it owns and learns
    what it is assigned.
    """
    data = validation.check_heartbeat(request, op.memory.config)
    if data["memberEpoch"] < 0:
        return leave(op, data)
    group_id, epoch, owned = data["groupId"], data["memberEpoch"], data["topicPartitions"]
    group = _group(op, group_id, joins=epoch == 0)
    check_capacity(group, op.memory.config.group_consumer_max_size, data["memberId"])
    member_id = data["memberId"] or op.next_text_id()
    member = _member(op, group, member_id, data)
    updated = members.updated(member, request, data)
    names_changed = members.write_changed(op, group_id, member, updated)
    regex_change = update_regex(op, group, member, updated)
    # The epoch waits for a regex to be resolved: the target would have to be computed again then.
    bump = names_changed or regex_change is RegexChange.RESOLVED
    group_epoch = update_epoch(op, group, member, updated, bump=bump)
    target = update_target(op, group, group_epoch, member, updated)
    moved = move(op, group, updated, target, owned, subscription_changed=names_changed or bool(regex_change))
    # After all that may be refused: a refused heartbeat does not keep a member alive.
    expect_heartbeat(op, group, member_id)
    # A full request is one that a member sends when it joins or after an error; it is to be told everything.
    full = (
        data["rebalanceTimeoutMs"] != -1
        and (data["subscribedTopicNames"] is not None or data["subscribedTopicRegex"] is not None)
        and owned is not None
    )
    assignment = None
    if epoch == 0 or full or moved.assigned != member.assigned:
        assignment = {"topicPartitions": listed(moved.assigned)}
    interval = op.memory.group_config(group_id).consumer_heartbeat_interval_ms
    return heartbeat_response(
        moved.member_id, moved.member_epoch or 0, heartbeatIntervalMs=interval, assignment=assignment
    )


def _group(op: Operation, group_id: str, *, joins: bool) -> LiveConsumerGroup:
    """The group; a member that joins makes a new one, or a classic one into a consumer group where that is allowed."""
    group = op.memory.live.get(group_id)
    if isinstance(group, LiveConsumerGroup):
        return group
    if group is None:
        if not joins:
            raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Consumer group {group_id} not found.")
        return LiveConsumerGroup(group_id)
    if not joins or not isinstance(group, LiveClassicGroup):
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group.")
    # A classic group without members is only offsets: nothing is converted, and the offsets stay.
    if group.is_empty:
        op.erase(group)
        return LiveConsumerGroup(group_id)
    return upgrade(op, group)


def _member(
    op: Operation, group: LiveConsumerGroup, member_id: str, data: ConsumerGroupHeartbeatRequest
) -> ConsumerMember:
    epoch, instance_id, owned = data["memberEpoch"], data["instanceId"], data["topicPartitions"]
    if epoch == 0:
        if instance_id is not None:
            return members.joining_static(op, group, member_id, instance_id, classic=False)
        return group.log.members.get(member_id) or members.new_member(member_id)
    member = named_member(group, member_id, instance_id)
    validation.check_member_epoch(member, epoch, owned)
    return member
