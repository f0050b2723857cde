"""ShareGroupHeartbeat, and how members leave a share group (KIP-932)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from coordinator_core.assignors.coordinator_view import Subscriber
from coordinator_core.coordinator.epoch_group import empty_member, heartbeat_response
from coordinator_core.coordinator.lookup import check_capacity, check_member_epoch, group_of, member_of, same_units
from coordinator_core.coordinator.member_timers import expect_heartbeat, session_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode, Request
from coordinator_core.coordinator.record_templates import listed, member_tombstones, target_assignment, target_epoch
from coordinator_core.coordinator.request_fields import checked, not_blank, require
from coordinator_core.coordinator.share import partitions, records
from coordinator_core.coordinator.share.group import LiveShareGroup, subscriber
from coordinator_core.coordinator.subscriptions import topic_names
from coordinator_core.coordinator.target_assignment import changed_targets, compute_target
from coordinator_core.groups.epochs import LEAVE_GROUP_MEMBER_EPOCH
from coordinator_core.groups.record_types import SHARE_RECORDS
from coordinator_core.groups.share.state import MEMBER_STATE_STABLE, ShareMember
from coordinator_core.record_fields.coordinator_requests import ShareGroupHeartbeatRequest
from coordinator_core.records import Fields

ASSIGNOR = "simple"


def handle_heartbeat(op: Operation, request: Request) -> Fields:
    """Serve a heartbeat: a member joins (epoch 0), leaves (-1) or stays, and learns which partitions it shares."""
    data = _checked(request)
    group_id, member_id = data["groupId"], data["memberId"]
    epoch, names = data["memberEpoch"], data["subscribedTopicNames"]
    if epoch == LEAVE_GROUP_MEMBER_EPOCH:
        group = group_of(op, group_id, LiveShareGroup)
        fence(op, group, [member_of(group.log.members, member_id, group_id)])
        return heartbeat_response(member_id, epoch, assignment=None)
    group = _group(op, group_id, joins=epoch == 0)
    check_capacity(group, op.memory.config.group_share_max_size, member_id)
    member = group.log.members.get(member_id) if epoch == 0 else member_of(group.log.members, member_id, group_id)
    if member is None:
        member = empty_member(ShareMember, member_id, MEMBER_STATE_STABLE)
    why = f", and it does not match the previous member epoch ({member.previous_member_epoch})"
    check_member_epoch("share", member, epoch, lambda: True, why)
    updated = _updated(member, request, data)
    changed = False
    if updated != member:
        op.write(*records.member_metadata(group_id, updated))
        changed = updated.subscribed_topic_names != member.subscribed_topic_names
    # Only share partitions that have state are assigned: those that got it since the last target need a new epoch.
    bump = changed or partitions.assignment_pending(group)
    group_epoch, bump, homogeneous, subscribed = _update_epoch(op, group, member, updated, bump=bump)
    presented = subscriber(updated if names is None else replace(updated, subscribed_topic_names=names))
    target_epoch, target = _update_target(op, group, group_epoch, member_id, presented, homogeneous=homogeneous)
    moved = _move(op, group, updated, target_epoch, target, restart=bump)
    expect_heartbeat(op, group, member_id)
    assignment = None
    if epoch == 0 or names is not None or not same_units(moved.assigned, member.assigned):
        assignment = {"topicPartitions": listed(moved.assigned)}
    # The group epoch becomes the state epoch: by it a share coordinator refuses what comes late from an older one.
    partitions.initialize(op, group, group_epoch, subscribed)
    interval = op.memory.group_config(group_id).share_heartbeat_interval_ms
    return heartbeat_response(member_id, moved.member_epoch or 0, heartbeatIntervalMs=interval, assignment=assignment)


def _checked(request: Request) -> ShareGroupHeartbeatRequest:
    data = checked(request, ShareGroupHeartbeatRequest)
    not_blank(data, "memberId", "groupId", "rackId")
    if data["memberEpoch"] == 0:
        require(bool(data["subscribedTopicNames"]), "SubscribedTopicNames must be set in first request.")
    require(data["memberEpoch"] >= LEAVE_GROUP_MEMBER_EPOCH, "MemberEpoch is invalid.")
    return data


def _group(op: Operation, group_id: str, *, joins: bool) -> LiveShareGroup:
    group = op.memory.live.get(group_id)
    if group is None and joins:
        return LiveShareGroup(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Share group {group_id} not found.")
    return group_of(op, group_id, LiveShareGroup)


def _updated(member: ShareMember, request: Request, data: ShareGroupHeartbeatRequest) -> ShareMember:
    """The member as its heartbeat describes it; what the heartbeat leaves out stays."""
    names, rack = data["subscribedTopicNames"], data["rackId"]
    return replace(
        member,
        rack_id=member.rack_id if rack is None else rack,
        subscribed_topic_names=member.subscribed_topic_names if names is None else topic_names(names),
        client_id=request.client_id,
        client_host=request.client_host,
    )


def _update_epoch(
    op: Operation, group: LiveShareGroup, old: ShareMember, new: ShareMember, *, bump: bool
) -> tuple[int, bool, bool, set[str]]:
    """The group epoch, whether it was bumped, whether all members subscribe to the same, and to what."""
    epoch = group.group_epoch
    if not bump and not group.metadata_expired(op.now):
        return epoch, False, group.view.homogeneous, group.subscriptions.topics
    # The group's own counts follow the records, which are applied only after the request.
    subscriptions = group.subscriptions.copy()
    subscriptions.count_names(old.subscribed_topic_names, -1)
    subscriptions.count_names(new.subscribed_topic_names, 1)
    metadata_hash = op.memory.metadata_hash(subscriptions.topics, op.topics)
    bump |= metadata_hash != group.metadata_hash
    if bump:
        epoch += 1
        op.write(*records.group_epoch(group.group_id, epoch, metadata_hash))
    group.metadata_seen(op.now, epoch)
    joins = new.member_id not in group.log.members
    homogeneous = subscriptions.are_homogeneous(len(group.log.members) + joins)
    return epoch, bump, homogeneous, subscriptions.topics


def _update_target(
    op: Operation, group: LiveShareGroup, epoch: int, member_id: str, member: Subscriber, *, homogeneous: bool
) -> tuple[int, Mapping[str, Sequence[int]]]:
    """The newest target's epoch and the member's part of it: of this epoch, unless the last one is too young.

    The assignor sees the ``member`` that sends the heartbeat with its topics in the order of the request.
    """
    interval = op.memory.group_config(group.group_id).share_assignment_interval_ms
    if group.assignment_epoch >= epoch or not group.may_compute_target(op.now, interval):
        return group.assignment_epoch, group.log.targets.get(member_id, {})
    assignable = {topic: share_topic.partitions for topic, share_topic in group.share_partitions.initialized.items()}
    spec = group.view.spec(
        op.topics,
        {member_id: member},
        homogeneous=homogeneous,
        assignable=assignable,
        entered=() if member_id in group.log.members else (member_id,),
    )
    targets = compute_target(ASSIGNOR, spec, op.topics, epoch)
    for changed_id, target in changed_targets(spec.members, group.log.targets, targets, {}, same_units):
        op.write(*target_assignment(SHARE_RECORDS, group.group_id, changed_id, target))
    op.write(*target_epoch(SHARE_RECORDS, group.group_id, epoch, op.now))
    return epoch, targets.get(member_id, {})


def _move(
    op: Operation,
    group: LiveShareGroup,
    member: ShareMember,
    epoch: int,
    target: Mapping[str, Sequence[int]],
    *,
    restart: bool,
) -> ShareMember:
    """The member goes to its target at once, as nothing has to be revoked; written if it changes anything.

    The target may be older than the subscription: topics that are not subscribed are left out.
    """
    moves = epoch != member.member_epoch
    if not moves and not restart:
        return member
    subscribed = {op.topics.by_name[name].id for name in member.subscribed_topic_names if name in op.topics.by_name}
    assigned = {topic: list(numbers) for topic, numbers in target.items() if topic in subscribed}
    moved = member
    if moves:
        moved = replace(member, member_epoch=epoch, previous_member_epoch=member.member_epoch or 0, assigned=assigned)
    elif not same_units(member.assigned, assigned):
        moved = replace(member, assigned=assigned)
    if moved is not member:
        op.write(*records.current_assignment(group.group_id, moved))
    return moved


def fence(op: Operation, group: LiveShareGroup, members: Sequence[ShareMember]) -> None:
    """Remove the members."""
    subscriptions = group.subscriptions.copy()
    for member in members:
        op.write_all(member_tombstones(SHARE_RECORDS, group.group_id, member.member_id))
        subscriptions.count_names(member.subscribed_topic_names, -1)
        op.cancel(session_key(group.group_id, member.member_id))
    metadata_hash = op.memory.metadata_hash(subscriptions.topics, op.topics)
    op.write(*records.group_epoch(group.group_id, group.group_epoch + 1, metadata_hash))
