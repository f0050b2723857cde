"""What follows from a streams group's records."""

from __future__ import annotations

from coordinator_core.groups.streams.state import MemberState, StreamsGroup, StreamsGroupState, StreamsMember


def group_state(group: StreamsGroup) -> StreamsGroupState | None:
    """The group's state, in the order in which Kafka 4.3 checks; None where the log has not shown what it needs."""
    if not group.members:
        return StreamsGroupState.EMPTY
    if group.topology is None or group.validated_topology_epoch != group.topology.epoch:
        return StreamsGroupState.NOT_READY
    if group.group_epoch is None or group.assignment_epoch is None:
        return None
    if group.group_epoch > group.assignment_epoch:
        return StreamsGroupState.ASSIGNING
    if all(is_reconciled(member, group.assignment_epoch) for member in group.members.values()):
        return StreamsGroupState.STABLE
    return StreamsGroupState.RECONCILING


def is_reconciled(member: StreamsMember, assignment_epoch: int) -> bool:
    """Whether the member has reached this target epoch with nothing left to revoke or to wait for."""
    return member.state == MemberState.STABLE and member.member_epoch == assignment_epoch
