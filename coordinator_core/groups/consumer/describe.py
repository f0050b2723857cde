"""What follows from a consumer group's records."""

from __future__ import annotations

from coordinator_core.groups.consumer.state import ConsumerGroup, ConsumerGroupState, ConsumerMember, MemberState


def group_state(group: ConsumerGroup) -> ConsumerGroupState | None:
    """The group's state, by the rules of KIP-848; None where the log has not shown what they need."""
    if not group.members:
        return ConsumerGroupState.EMPTY
    if group.group_epoch is None or group.assignment_epoch is None:
        return None
    if group.group_epoch > group.assignment_epoch:
        return ConsumerGroupState.ASSIGNING
    if all(is_reconciled(member, group.assignment_epoch) for member in group.members.values()):
        return ConsumerGroupState.STABLE
    return ConsumerGroupState.RECONCILING


def is_reconciled(member: ConsumerMember, assignment_epoch: int) -> bool:
    """Whether the member has reached this target epoch with nothing left to revoke or to wait for."""
    return member.state == MemberState.STABLE and member.member_epoch == assignment_epoch
