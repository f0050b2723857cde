"""The requests, timers and administration of Connect groups (Connect on KIP-848).

They are served by ``coordinator.handle`` and ``coordinator.expire`` with a ``ConnectMemory``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from coordinator_core.assignors.connect.work import Unit
from coordinator_core.groups.connect import heartbeat, records
from coordinator_core.groups.connect.assignment import install, prepare
from coordinator_core.groups.operation import Operation
from coordinator_core.groups.protocol import Request
from coordinator_core.records import Fields


def set_work(op: Operation, group_id: str, units: Iterable[Unit]) -> None:
    """Connectors or their tasks were configured: the group epoch is bumped."""
    group = heartbeat.memory_of(op).group(group_id)
    epoch = 1 if group is None else (group.group_epoch or 0) + 1
    op.write(*records.work(group_id, epoch, dict.fromkeys(units)))
    op.write(*records.group_epoch(group_id, epoch))


def set_configuration(op: Operation, group_id: str, settings: Mapping[str, str]) -> None:
    """Replace the group's configuration."""
    op.write(*records.configuration(group_id, settings))


REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {
    "ConnectGroupHeartbeat": heartbeat.heartbeat,
    "ConnectGroupPrepareAssignment": prepare,
    "ConnectGroupInstallAssignment": install,
}

TIMERS: dict[str, Callable[..., None]] = {
    heartbeat.FENCE: heartbeat.member_expired,
    heartbeat.DELAY_OVER: heartbeat.delay_over,
    heartbeat.COMPUTATION_EXPIRED: heartbeat.computation_expired,
}
