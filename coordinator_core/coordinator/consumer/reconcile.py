"""How a member moves from what it owns to its target, while no partition ever has two owners (KIP-848)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.groups.consumer.state import ConsumerMember, ConsumerMemberState
from coordinator_core.groups.epochs import NO_PREVIOUS_EPOCH, PartitionEpochs
from coordinator_core.record_fields.coordinator_requests import ConsumerGroupHeartbeatTopicPartitions

Owned = list[ConsumerGroupHeartbeatTopicPartitions] | None
"""The partitions that a heartbeat reports as owned; None: the heartbeat does not say."""


class Goal(NamedTuple):
    """Where a member has to go: the target's epoch and partitions, the ids of the topics that it subscribes to.

    ``subscribes``: it names a topic, existing or not. ``is_free`` says whether a partition has no owner.
    ``subscription_changed``: revoke at once what the member no longer subscribes to.
    """

    epoch: int
    target: Mapping[str, Collection[int]]
    subscribed: Collection[str]
    subscribes: bool
    is_free: Callable[[str, int], bool]
    subscription_changed: bool = False


def reconcile(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    """Return the member after this heartbeat's step towards the goal; the same object if nothing changes."""
    epoch = member.member_epoch or 0
    if member.state in (None, ConsumerMemberState.STABLE):
        if epoch != goal.epoch:
            return _next(member, epoch, goal, owned)
        return _without_unsubscribed(member, goal, owned) if goal.subscription_changed else member
    if member.state == ConsumerMemberState.UNREVOKED_PARTITIONS:
        if _owns_any(owned, member.pending_revocation):
            return _without_unsubscribed(member, goal, owned) if goal.subscription_changed else member
        return _next(member, epoch, goal, owned)
    if member.state == ConsumerMemberState.UNRELEASED_PARTITIONS:
        return _next(member, epoch, goal, owned)
    # A state of a newer version: the member has to come back with empty hands.
    if owned is None or owned:
        raise ApiError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    return _next(member, goal.epoch, goal, owned)


def _owns_any(owned: Owned, partitions: PartitionEpochs) -> bool:
    """Whether the member may still own any of the partitions: one that does not say may."""
    if owned is None:
        return True
    return any(
        partition in partitions.get(topic["topicId"], ()) for topic in owned for partition in topic["partitions"]
    )


def _moved(member: ConsumerMember, epoch: int, **changes: Any) -> ConsumerMember:
    return replace(member, member_epoch=epoch, previous_member_epoch=member.member_epoch or 0, **changes)


def _next(member: ConsumerMember, epoch: int, goal: Goal, owned: Owned) -> ConsumerMember:
    """First give up what is not in the target; then, at the target's epoch, take what is free of the rest."""
    kept: PartitionEpochs = {}
    revoked: PartitionEpochs = {}
    gained: dict[str, list[int]] = {}
    unreleased = False
    for topic in dict.fromkeys((*goal.target, *member.assigned)):
        target = goal.target.get(topic, ()) if topic in goal.subscribed else ()
        wanted = set(target)
        assigned = member.assigned.get(topic, {})
        keep = {partition: since for partition, since in assigned.items() if partition in wanted}
        if keep:
            kept[topic] = keep
        if len(keep) < len(assigned):
            revoked[topic] = {partition: since for partition, since in assigned.items() if partition not in wanted}
        # What the member itself has still to give up counts as free for it.
        own = member.pending_revocation.get(topic, {})
        missing = [partition for partition in target if partition not in assigned]
        free = [partition for partition in missing if partition in own or goal.is_free(topic, partition)]
        unreleased |= len(free) < len(missing)
        if free:
            gained[topic] = free
    if revoked and _owns_any(owned, revoked):
        return _moved(
            member, epoch, state=ConsumerMemberState.UNREVOKED_PARTITIONS, assigned=kept, pending_revocation=revoked
        )
    # Only now: a member that still has to give something up stays at its epoch, and gets nothing new.
    for topic, partitions in gained.items():
        kept.setdefault(topic, {}).update(dict.fromkeys(partitions, goal.epoch))
    state = ConsumerMemberState.UNRELEASED_PARTITIONS if unreleased else ConsumerMemberState.STABLE
    return _moved(member, goal.epoch, state=state, assigned=kept, pending_revocation={})


def _without_unsubscribed(member: ConsumerMember, goal: Goal, owned: Owned) -> ConsumerMember:
    """The member gives up topics that it no longer subscribes to, at the epoch it is at."""
    assigned: PartitionEpochs
    if not goal.subscribes and not member.pending_revocation:
        if member.previous_member_epoch in (None, NO_PREVIOUS_EPOCH):
            return member  # it was never assigned anything
        assigned, revoked = {}, member.assigned
    else:
        dropped = {topic: epochs for topic, epochs in member.assigned.items() if topic not in goal.subscribed}
        if not dropped:
            return member
        assigned = {topic: epochs for topic, epochs in member.assigned.items() if topic not in dropped}
        revoked = {topic: dict(epochs) for topic, epochs in member.pending_revocation.items()}
        for topic, epochs in dropped.items():
            revoked.setdefault(topic, {}).update(epochs)
    epoch = member.member_epoch or 0
    if revoked and _owns_any(owned, revoked):
        return _moved(
            member, epoch, state=ConsumerMemberState.UNREVOKED_PARTITIONS, assigned=assigned, pending_revocation=revoked
        )
    return _moved(member, epoch, assigned=assigned)
