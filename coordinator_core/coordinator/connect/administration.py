"""The administration of Connect groups (Connect on KIP-848).

``coordinator.handle`` and ``coordinator.expire`` serve them with a ``ConnectCoordinatorState``.
"""

from collections.abc import Iterable, Mapping

from coordinator_core.assignors.connect.work import ConnectorOrTask
from coordinator_core.coordinator.connect import heartbeat, records
from coordinator_core.coordinator.member_timers import session_key
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import ApiError, ErrorCode
from coordinator_core.groups.connect.state import max_delay_ms, unassigned


def set_work(op: Operation, group_id: str, units: Iterable[ConnectorOrTask]) -> None:
    """Set the connectors and tasks of the group; the group epoch is bumped if there are workers to run them."""
    group = heartbeat.memory_of(op).group(group_id)
    known = None if group is None else group.group_epoch
    epoch = (known or 0) + bool(group is not None and group.members)
    op.write(*records.work(group_id, epoch, dict.fromkeys(units)))
    if epoch != known:
        op.write(*records.group_epoch(group_id, epoch))


def set_configuration(op: Operation, group_id: str, settings: Mapping[str, str]) -> None:
    """Replace the group's configuration."""
    op.write(*records.configuration(group_id, settings))


def delete(op: Operation, group_id: str) -> None:
    """Delete a group without workers (DeleteGroups)."""
    group = heartbeat.memory_of(op).group(group_id)
    if group is None:
        raise ApiError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if group.members:
        raise ApiError(ErrorCode.NON_EMPTY_GROUP)
    heartbeat.end_group(op, group_id, group)


def take_over(op: Operation) -> None:
    """Give every worker a session, and work that is in no target a new delay, as a new coordinator does."""
    memory = heartbeat.memory_of(op)
    for group_id in memory.log.groups:
        group = memory.group(group_id)
        if group is None or not group.members:
            continue
        for member_id in group.members:
            timeout = memory.session_timeout_ms
            op.arm(session_key(group_id, member_id), timeout, heartbeat.FENCE, group_id, member_id)
        delay = max_delay_ms(group)
        if delay and group.targets and unassigned(group):
            op.arm(heartbeat.delay_key(group_id), delay, heartbeat.DELAY_OVER, group_id)
