"""The streams group protocol's requests and timers (KIP-1071)."""

from __future__ import annotations

from collections.abc import Callable

from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import Request
from coordinator_core.coordinator.streams import fence, rebalance, timeouts
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.coordinator.streams.heartbeat import handle_heartbeat
from coordinator_core.groups.streams.state import StreamsMemberState
from coordinator_core.records import Fields


def take_over(op: Operation, group: LiveStreamsGroup) -> None:
    """Give every member a session, and time to revoke what it still has to, as a new coordinator does."""
    for member_id, member in group.log.members.items():
        timeouts.expect_heartbeat(op, group.group_id, member_id)
        if member.state == StreamsMemberState.UNREVOKED_TASKS:
            rebalance.expect_revocation(op, group.group_id, member)


REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {"StreamsGroupHeartbeat": handle_heartbeat}

TIMERS: dict[str, Callable[..., None]] = {
    timeouts.FENCE: fence.member_expired,
    rebalance.REVOCATION_EXPIRED: fence.revocation_expired,
    rebalance.INITIAL_REBALANCE: rebalance.first_assignment,
}
