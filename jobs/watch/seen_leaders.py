"""Who leads the logs of coordinators, as brokers say when a watch asks them, which has no metadata log.

A partition has no leader while brokers say so, or while no broker answers. That no broker answers counts from the
second time on: one answer may be lost, or late.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordinator_core.cluster.broker_history import NO_LEADER, BrokerHistory
from coordinator_core.cluster.topic_lists import snapshot_position

Leaders = Mapping[tuple[str, int], int]
"""By topic and partition of a coordinator's log: the broker that leads it, or NO_LEADER."""


class SeenLeaders:
    """Notes in a history of brokers when leaders change; ``seen_ms`` is when they were asked last."""

    def __init__(self, brokers: BrokerHistory) -> None:
        self.seen_ms = -1
        self._brokers = brokers
        self._led: dict[tuple[str, int], int] = {}
        self._silent_since_ms: int | None = None

    def saw(self, time_ms: int, leaders: Leaders | None) -> None:
        """Take in an answer of the brokers to what was asked at a time (ms); None: no broker answered."""
        self.seen_ms = time_ms
        if leaders is None and self._silent_since_ms is None:
            self._silent_since_ms = time_ms
            return
        # From the first silence on, though it counts only now that there was a second one.
        since_ms = time_ms if leaders is not None else self._silent_since_ms or time_ms
        for place, leader in (dict.fromkeys(self._led, NO_LEADER) if leaders is None else leaders).items():
            if self._led.get(place) != leader:
                self._led[place] = leader
                self._brokers.note_leader(*place, leader, None, snapshot_position(since_ms))
        if leaders is not None:
            self._silent_since_ms = None
