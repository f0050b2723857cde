"""Sticky assignment when all members subscribe to the same topics, as Kafka 2.6 to 2.8 has it: who has too few takes
partitions from those that have most.

Source: Kafka 2.8.2 ``AbstractStickyAssignor.constrainedAssign``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from coordinator_core.assignors.client.claimed_partitions import ClaimedPartitions
from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.assignors.client.racks import Racks
from coordinator_core.errors import AssignorError


class StealingAssignment:
    """Fills members up to the least share (``min_quota``), then gives one partition each to those that have it.

    ``work[m]`` are the partitions of member m. ``transfers`` holds partitions that another member may still own, with
    their new owners.
    """

    def __init__(self, view: LeaderView, racks: Racks, by_racks: bool, claims: ClaimedPartitions) -> None:
        if not view.members:
            raise AssignorError("ArithmeticException", "/ by zero")
        self.view = view
        self.claims = claims
        self.work: list[list[int]] = [[] for _ in view.members]
        self.transfers: dict[int, int] = {}
        self._revoked: set[int] = set()
        self._at_min: deque[int] = deque()
        self._at_max: deque[int] = deque()

    def build(self) -> None:
        """Assign everything; raises AssignorError where Kafka's class fails."""
        min_quota, more = divmod(self.view.partitions.total, len(self.view.members))
        below = sorted(self._keep_owned(min_quota, min_quota + (more > 0)))
        kept = {partition for held in self.work for partition in held}
        free = deque(partition for partition in range(self.view.partitions.total) if partition not in kept)
        while below and free:
            below = self._deal(below, free, min_quota)
        for m in below:
            self._steal(m, min_quota)
            self._at_min.append(m)
        for partition in free:
            if not self._at_min:
                raise AssignorError(
                    "IllegalStateException", "Some partitions are unassigned but all consumers are at maximum capacity"
                )
            self._give(partition, self._at_min.popleft())

    def _keep_owned(self, min_quota: int, max_quota: int) -> list[int]:
        """Let members keep up to the largest share; return those below the least one."""
        below = []
        for m in self.view.order:
            owned = [partition for partition in self.claims.owned[m] if partition not in self.claims.contested]
            self.work[m] = owned[:max_quota]
            self._revoked.update(owned[max_quota:])
            if len(owned) < min_quota:
                below.append(m)
                continue
            if len(self.work[m]) == min_quota:
                self._at_min.append(m)
            if len(self.work[m]) == max_quota:
                self._at_max.append(m)
        return below

    def _deal(self, below: Sequence[int], free: deque[int], min_quota: int) -> list[int]:
        """Give a partition each to the members below the least share; return those that still are."""
        left: list[int] = []
        for place, m in enumerate(below):
            if not free:
                return [*left, *below[place:]]
            self._give(free.popleft(), m)
            if len(self.work[m]) == min_quota:
                self._at_min.append(m)
            else:
                left.append(m)
        return left

    def _give(self, partition: int, m: int) -> None:
        self.work[m].append(partition)
        if partition in self._revoked or partition in self.claims.contested:
            self.transfers[partition] = m

    def _steal(self, m: int, min_quota: int) -> None:
        while len(self.work[m]) < min_quota:
            if not self._at_max:
                raise AssignorError(
                    "IllegalStateException", "Some consumers are under capacity but all partitions have been assigned"
                )
            stolen = self.work[self._at_max.popleft()].pop(0)
            self.work[m].append(stolen)
            self.transfers[stolen] = m
