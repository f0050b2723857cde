"""The timers of consumer group members, and what happens when they run out."""

from __future__ import annotations

from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.timer_keys import rebalance_key, session_key
from coordinator_core.groups.consumer.state import ConsumerMember

FENCE = "consumer member fenced"
REVOCATION_EXPIRED = "consumer revocation expired"


def expect_heartbeat(op: Operation, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
    """Expect a sign of life within the session timeout: the group's, unless a classic member brings its own."""
    if timeout_ms is None:
        timeout_ms = op.memory.group_config(group_id).consumer_session_timeout_ms
    op.arm(session_key(group_id, member_id), timeout_ms, FENCE, group_id, member_id)


def expect_revocation(op: Operation, group_id: str, member: ConsumerMember) -> None:
    """Expect the member to leave its epoch, by giving up partitions, within its rebalance timeout."""
    op.arm(
        rebalance_key(group_id, member.member_id),
        member.rebalance_timeout_ms,
        REVOCATION_EXPIRED,
        group_id,
        member.member_id,
        member.member_epoch,
    )


def cancel_rebalance_timeout(op: Operation, group_id: str, member_id: str) -> None:
    """The member has nothing to give up."""
    op.cancel(rebalance_key(group_id, member_id))
