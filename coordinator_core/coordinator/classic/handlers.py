"""The timers of classic groups, and what a new coordinator does with such a group."""

from __future__ import annotations

from collections.abc import Callable

from coordinator_core.coordinator.classic import leave as leaving
from coordinator_core.coordinator.classic import rebalance
from coordinator_core.coordinator.classic.group import LiveClassicGroup
from coordinator_core.coordinator.operation import Operation


def take_over(op: Operation, group: LiveClassicGroup) -> None:
    """Give every member a session, as a new coordinator does; a group over its maximum size has to rebalance to
    shrink.
    """
    for member in group.members.values():
        rebalance.expect_member(op, group, member)
    if len(group.members) > op.memory.config.group_max_size:
        rebalance.prepare(op, group)


TIMERS: dict[str, Callable[..., None]] = {
    rebalance.HEARTBEAT_EXPIRED: leaving.heartbeat_expired,
    rebalance.JOIN_EXPIRED: leaving.join_expired,
    rebalance.INITIAL_DELAY_EXPIRED: leaving.initial_delay_expired,
    rebalance.SYNC_EXPIRED: leaving.sync_expired,
}
