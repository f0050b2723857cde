"""The timers of consumer group members, and what happens when they run out."""

from __future__ import annotations

from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.timer_keys import rebalance_key, session_key
from coordinator_core.groups.consumer.state import ConsumerMember

FENCE = "consumer member fenced"
REVOCATION_EXPIRED = "consumer revocation expired"


def expect_heartbeat(op: Operation, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
    """Expect a heartbeat within the session timeout: the group's, or the one that a classic member sent."""
    if timeout_ms is None:
        timeout_ms = op.memory.group_config(group_id).consumer_session_timeout_ms
    op.arm(session_key(group_id, member_id), timeout_ms, FENCE, group_id, member_id)


def expect_revocation(op: Operation, group_id: str, member: ConsumerMember) -> None:
    """Expect the member to leave its epoch, by revoking partitions, within its rebalance timeout."""
    op.arm(
        rebalance_key(group_id, member.member_id),
        member.rebalance_timeout_ms,
        REVOCATION_EXPIRED,
        group_id,
        member.member_id,
        member.member_epoch,
    )


def cancel_rebalance_timeout(op: Operation, group_id: str, member_id: str) -> None:
    """Cancel the timer for revocation: the member has nothing to revoke."""
    op.cancel(rebalance_key(group_id, member_id))
