"""What is derived from a Connect group's records."""

from __future__ import annotations

from coordinator_core.groups.connect.state import ConnectGroup, ConnectGroupState, ConnectMember, Work


def group_state(group: ConnectGroup) -> ConnectGroupState | None:
    """Return the group's state; None if the log has not shown what it depends on."""
    if not group.members:
        return ConnectGroupState.EMPTY
    if group.group_epoch is None or group.assignment_epoch is None:
        return None
    if group.group_epoch > group.assignment_epoch:
        return ConnectGroupState.ASSIGNING
    if all(is_reconciled(group, member) for member in group.members.values()):
        return ConnectGroupState.STABLE
    return ConnectGroupState.RECONCILING


def is_reconciled(group: ConnectGroup, member: ConnectMember) -> bool:
    """Whether the worker is at the target epoch and runs exactly its target."""
    target = group.targets.get(member.member_id)
    if member.current is None or member.member_epoch != group.assignment_epoch:
        return False
    return _units(member.current.work) == _units(target.work if target else Work())


def _units(work: Work) -> tuple[set[str], set[tuple[str, int]]]:
    return set(work.connectors), set(work.tasks)
