"""The timers of streams group members; their keys are those of consumer group members."""

from __future__ import annotations

from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.timer_keys import session_key

FENCE = "streams member fenced"


def expect_heartbeat(op: Operation, group_id: str, member_id: str, timeout_ms: int | None = None) -> None:
    """Expect a heartbeat within the session timeout: the group's, or the one that a classic thread sent."""
    if timeout_ms is None:
        timeout_ms = op.memory.group_config(group_id).streams_session_timeout_ms
    op.arm(session_key(group_id, member_id), timeout_ms, FENCE, group_id, member_id)
