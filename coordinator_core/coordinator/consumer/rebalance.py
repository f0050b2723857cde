"""The steps of every join and heartbeat of a consumer group: epoch, target, then the member's own way to its target."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coordinator_core.assignors.coordinator_view import Subscriber
from coordinator_core.assignors.inputs import Partitions
from coordinator_core.coordinator.consumer import records
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup, is_reconciled_to, subscriber
from coordinator_core.coordinator.consumer.reconcile import Goal, Owned, reconcile
from coordinator_core.coordinator.lookup import same_units
from coordinator_core.coordinator.member_timers import expect_revocation
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.record_templates import target_assignment, target_epoch
from coordinator_core.coordinator.target_assignment import changed_targets, compute_target
from coordinator_core.groups.consumer.state import ConsumerMember, ResolvedRegex
from coordinator_core.groups.record_types import CONSUMER_RECORDS


class Epoch(NamedTuple):
    """The group epoch after this request, and whether all members subscribe to the same."""

    number: int
    homogeneous: bool


class MemberTarget(NamedTuple):
    """The newest target: its epoch, and the member's part of it."""

    epoch: int
    partitions: Mapping[str, Sequence[int]]


def update_epoch(
    op: Operation, group: LiveConsumerGroup, old: ConsumerMember, new: ConsumerMember, *, bump: bool
) -> Epoch:
    """Check the subscribed topics again; the group epoch is bumped if requested, or if the topics changed."""
    if not bump and not group.metadata_expired(op.now):
        return Epoch(group.group_epoch, group.homogeneous)
    # Records are applied at the end only: the group of after this heartbeat is counted in a copy.
    subscriptions = group.subscriptions.copy()
    subscriptions.count_member(old, -1)
    subscriptions.count_member(new, 1)
    lost = old.subscribed_topic_regex
    # The last member that gives up a regular expression takes its topics out of the hash.
    if lost and lost != new.subscribed_topic_regex and group.subscriptions.regexes.get(lost) == 1:
        resolved = group.log.regexes.get(lost)
        subscriptions.count_resolution(() if resolved is None else resolved.topics, -1)
    metadata_hash = op.memory.metadata_hash(subscriptions.topics, op.topics)
    joins = new.member_id not in group.log.members and new.instance_id not in group.view.static
    homogeneous = subscriptions.are_homogeneous(len(group.log.members) + joins)
    epoch = group.group_epoch
    if bump or metadata_hash != group.metadata_hash:
        epoch += 1
        op.write(*records.group_epoch(group.group_id, epoch, metadata_hash))
    group.metadata_seen(op.now, epoch)
    # Brokers before 4.1 wrote the topics down with the group: the hash takes their place.
    if group.log.subscription_metadata is not None:
        op.write(*records.partition_metadata_tombstone(group.group_id))
    return Epoch(epoch, homogeneous)


def update_target(
    op: Operation, group: LiveConsumerGroup, epoch: Epoch, old: ConsumerMember, new: ConsumerMember
) -> MemberTarget:
    """Compute the target of a newer epoch, unless the last one is too recent: then that one is kept for now."""
    interval = op.memory.group_config(group.group_id).consumer_assignment_interval_ms
    if group.assignment_epoch >= epoch.number or not group.may_compute_target(op.now, interval):
        return MemberTarget(group.assignment_epoch, current_target(group, new))
    updates: dict[str, Subscriber | None] = {new.member_id: subscriber(new)}
    former = None if new.instance_id is None else group.view.static.get(new.instance_id)
    # A static member comes in as its former self goes out: the assignor must not see both.
    if former is not None and former != new.member_id:
        updates[former] = None
    spec = group.view.spec(op.topics, updates, homogeneous=epoch.homogeneous)
    name = group.preferred_assignor(old, new) or op.memory.config.group_consumer_assignors[0]
    targets = compute_target(name, spec, op.topics, epoch.number)
    for member_id, target in changed_targets(spec.members, group.log.targets, targets, {}, same_units):
        op.write(*target_assignment(CONSUMER_RECORDS, group.group_id, member_id, target))
    op.write(*target_epoch(CONSUMER_RECORDS, group.group_id, epoch.number, op.now))
    return MemberTarget(epoch.number, targets.get(new.member_id, {}))


def current_target(group: LiveConsumerGroup, member: ConsumerMember) -> Partitions:
    """Return the member's part of the present target; a static member takes over that of the member it replaces."""
    if member.instance_id is None:
        return group.view.targets.get(member.member_id, {})
    former = group.view.static.get(member.instance_id)
    return {} if former is None else group.view.targets.get(former, {})


def move(
    op: Operation,
    group: LiveConsumerGroup,
    member: ConsumerMember,
    target: MemberTarget,
    owned: Owned,
    *,
    subscription_changed: bool,
) -> ConsumerMember:
    """Return the member after its step towards the target; the record is written if something changes."""
    # Nearly all heartbeats end here.
    if not subscription_changed and is_reconciled_to(member, target.epoch):
        return member
    names = _subscribed_names(group.log.regexes, member)
    ids = {op.topics.by_name[name].id for name in names if name in op.topics.by_name}
    goal = Goal(target.epoch, target.partitions, ids, bool(names), group.is_free, subscription_changed)
    moved = reconcile(member, goal, owned)
    if moved == member:
        return moved
    op.write(*records.current_assignment(group.group_id, moved))
    # A classic member is asked to join again, and the timer of that request fences it.
    if moved.classic is None:
        expect_revocation(op, group, moved)
    return moved


def _subscribed_names(regexes: Mapping[str, ResolvedRegex], member: ConsumerMember) -> set[str]:
    names = set(member.subscribed_topic_names)
    resolved = regexes.get(member.subscribed_topic_regex) if member.subscribed_topic_regex else None
    return names if resolved is None else names.union(resolved.topics)
