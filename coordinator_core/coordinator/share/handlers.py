"""The share group protocol's requests and timers (KIP-932), and the responses of share coordinators."""

from __future__ import annotations

from collections.abc import Callable

from coordinator_core.coordinator.operation import Operation
from coordinator_core.coordinator.protocol import Request
from coordinator_core.coordinator.share import offset_requests
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.share.heartbeat import FENCE, expect_heartbeat, handle_heartbeat, member_expired
from coordinator_core.records import Fields


def take_over(op: Operation, group: LiveShareGroup) -> None:
    """Give every member a session, and wait for missing share state from now on, as a new coordinator does."""
    group.initializing_since_ms = op.now
    for member_id in group.view.members:
        expect_heartbeat(op, group.group_id, member_id)


REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {
    "ShareGroupHeartbeat": handle_heartbeat,
    "AlterShareGroupOffsets": offset_requests.handle_alter,
    "DeleteShareGroupOffsets": offset_requests.handle_delete,
}

TIMERS: dict[str, Callable[..., None]] = {FENCE: member_expired}
