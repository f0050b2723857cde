"""The timers of members that all types of groups with epochs have, and their keys."""

from __future__ import annotations

from coordinator_core.coordinator.operation import Operation


def session_key(group_id: str, member_id: str) -> str:
    """Return the key of a member's session timer."""
    return f"session-timeout-{group_id}-{member_id}"


def rebalance_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer for partitions that a member has to revoke."""
    return f"rebalance-timeout-{group_id}-{member_id}"


def join_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer for a classic member that was asked to join."""
    return f"join-{group_id}-{member_id}"


def sync_key(group_id: str, member_id: str) -> str:
    """Return the key of the timer for a classic member that joined and has to sync."""
    return f"sync-{group_id}-{member_id}"


def expect_join(op: Operation, group_id: str, member_id: str, timeout_ms: int, fence: str) -> None:
    """Expect a classic member to join again within its rebalance timeout, unless that is already expected.

    ``fence`` is the action when the time runs out.
    """
    key = join_key(group_id, member_id)
    if key not in op.memory.timers:
        op.arm(key, timeout_ms, fence, group_id, member_id)


def expect_sync(op: Operation, group_id: str, member_id: str, timeout_ms: int, fence: str) -> None:
    """Expect a classic member to sync within its rebalance timeout; ``fence`` is the action when it does not."""
    op.arm(sync_key(group_id, member_id), timeout_ms, fence, group_id, member_id)


def cancel_all(op: Operation, group_id: str, member_id: str) -> None:
    """Cancel all timers of a member that left."""
    for key in (session_key, rebalance_key, join_key, sync_key):
        op.cancel(key(group_id, member_id))
