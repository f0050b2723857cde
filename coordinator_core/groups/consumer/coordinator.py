"""The consumer group protocol's requests, timers and background work (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable

from coordinator_core.groups.consumer import fence, regexes, timeouts
from coordinator_core.groups.consumer.heartbeat import heartbeat
from coordinator_core.groups.operation import Operation
from coordinator_core.groups.protocol import Request
from coordinator_core.records import Fields

REQUESTS: dict[str, Callable[[Operation, Request], Fields | None]] = {"ConsumerGroupHeartbeat": heartbeat}

TIMERS: dict[str, Callable[..., None]] = {
    timeouts.FENCE: fence.member_expired,
    timeouts.REVOCATION_EXPIRED: fence.revocation_expired,
}

TASKS: dict[str, Callable[..., None]] = {regexes.RESOLVE: regexes.resolve}
