"""The consumer group protocol's requests, timers and background work (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable

from coordinator_core.coordinator.consumer import fence, regexes, timeouts
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.consumer.heartbeat import handle_heartbeat
from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import Request
from coordinator_core.groups.consumer.state import ConsumerMemberState
from coordinator_core.records import Fields


def take_over(op: Operation, group: LiveConsumerGroup) -> None:
    """Give every member a session, and time to revoke what it still has to, as a new coordinator does."""
    for member_id in group.view.members:
        timeouts.expect_heartbeat(op, group.group_id, member_id)
        member = group.log.members.get(member_id)
        if member is not None and member.state == ConsumerMemberState.UNREVOKED_PARTITIONS:
            timeouts.expect_revocation(op, group.group_id, member)


REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {"ConsumerGroupHeartbeat": handle_heartbeat}

TIMERS: dict[str, Callable[..., None]] = {
    timeouts.FENCE: fence.member_expired,
    timeouts.REVOCATION_EXPIRED: fence.revocation_expired,
}

TASKS: dict[str, Callable[..., None]] = {regexes.RESOLVE: regexes.resolve}
