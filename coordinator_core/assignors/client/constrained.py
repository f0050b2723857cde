"""Sticky assignment when all members subscribe to the same topics.

Source: Kafka ``AbstractStickyAssignor.ConstrainedAssignmentBuilder`` of 4.3.1, and of 3.6.2 (``BeforeNumbers``). Kafka
2.6 to 2.8 has another one, in which who has too few takes partitions from those that have most: 2.8.2
``AbstractStickyAssignor.constrainedAssign`` (``StealingAssignment``).
"""

from collections import deque
from collections.abc import Iterable, Sequence

from coordinator_core.assignors.client.claimed_partitions import ClaimedPartitions
from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.assignors.client.racks import Racks
from coordinator_core.errors import AssignorError


def unassigned(everything: Iterable[int], assigned: Iterable[int]) -> list[int]:
    """Return what is in the first sequence and not in the second, in the order of both.

    Kafka walks them side by side. An owned partition that does not exist is never reached, so that everything behind it
    counts as unassigned, owned or not.
    """
    rest = iter(assigned)
    expected = next(rest, None)
    result = []
    for partition in everything:
        if partition == expected:
            expected = next(rest, None)
        else:
            result.append(partition)
    return result


class ConstrainedAssignment:
    """Gives every member the least share (``min_quota``), and as many members as needed one partition more.

    ``work[m]`` are the partitions of member m. ``transfers`` holds partitions that another member may still own, with
    their new owners. ``by_number``: what members keep goes by number, and what returns to its owner is not withheld
    (Kafka 3.7 and later).
    """

    by_number = True

    def __init__(self, view: LeaderView, racks: Racks, by_racks: bool, claims: ClaimedPartitions) -> None:
        if not view.members:
            raise AssignorError("ArithmeticException", "/ by zero")
        self.view = view
        self.racks = racks
        self.by_racks = by_racks
        self.claims = claims
        self.min_quota, self.larger_expected = divmod(view.partitions.total, len(view.members))
        self.max_quota = self.min_quota + (self.larger_expected > 0)
        self.larger = 0
        """Members that have ``max_quota``, where that is more than ``min_quota``."""
        self.below: list[int] = []
        """Members that have less than ``min_quota``."""
        self.at_min: list[int] = []
        """Members that have ``min_quota`` and may get one more."""
        self.work: list[list[int]] = [[] for _ in view.members]
        self.revoked: dict[int, int] = {}
        """Owned partitions that their owners could not keep."""
        self.transfers: dict[int, int] = {}

    def build(self) -> None:
        """Assign everything; raises AssignorError where Kafka's class fails."""
        self._keep_owned()
        # Members are numbered by id: from here on Kafka goes through them by id, and no longer as they joined.
        self.below.sort()
        self.at_min.sort()
        free = self._free()
        if self.by_racks:
            free = self._fill_by_racks(free)
        self._fill(free)
        self._verify()

    def _keep_owned(self) -> None:
        topic_of, number_of = self.view.partitions.topic_of, self.view.partitions.number_of
        for m in self.view.order:
            if not self.claims.owned[m]:
                self._kept(m, 0)
                continue
            owned = []
            for partition in self.claims.owned[m]:
                if self.by_racks and self.racks.mismatch(m, partition):
                    if self.by_number:
                        self.revoked[partition] = m
                elif partition not in self.claims.contested:
                    owned.append(partition)
            if self.by_number:
                owned.sort(key=lambda partition: (number_of[partition], topic_of[partition]))
            keep = self._kept(m, len(owned))
            self.work[m] = owned[:keep]
            self.revoked.update(dict.fromkeys(owned[keep:], m))

    def _kept(self, m: int, owned: int) -> int:
        """How many of its owned partitions the member keeps."""
        if owned < self.min_quota:
            self.below.append(m)
            return owned
        if self.larger == self.larger_expected:
            return self.min_quota
        if owned < self.max_quota:
            self.at_min.append(m)
            return self.min_quota
        self._one_larger()
        return self.max_quota

    def _one_larger(self) -> None:
        self.larger += 1
        # All larger shares are taken: who has the least share can get no more.
        if self.larger == self.larger_expected:
            self.at_min.clear()

    def _free(self) -> list[int]:
        partitions = self.view.partitions
        kept = [partition for held in self.work for partition in held]
        if partitions.any_missing:
            # Partitions that do not exist have numbers behind all others, and Kafka sorts them in among those of their
            # topic.
            kept.sort(key=lambda partition: (partitions.topic_of[partition], partitions.number_of[partition]))
        else:
            kept.sort()
        free = unassigned(range(partitions.total), kept) if kept else list(range(partitions.total))
        if any(self.racks.of_member):
            # The partitions that fewest members are near choose first: later ones find more members left.
            free.sort(key=self.racks.members_near)
        return free

    def _fill_by_racks(self, free: list[int]) -> list[int]:
        """Give partitions to members in their racks; returns those that found none."""
        left = []
        turn = 0
        for partition in free:
            at = self.racks.next_near(partition, self.below, turn)
            if at is not None:
                m = self.below[at]
                if len(self.work[m]) + 1 < self.min_quota:
                    turn = (at + 1) % len(self.below)
                else:
                    del self.below[at]
                    turn = at % len(self.below) if self.below else 0
                    may_grow = self.larger < self.larger_expected or not self.by_number
                    if may_grow and len(self.work[m]) + 1 < self.max_quota:
                        self.at_min.append(m)
            else:
                at = self.racks.next_near(partition, self.at_min, 0)
                if at is None:
                    left.append(partition)
                    continue
                m = self.at_min.pop(at)
                if self.by_number:
                    self._one_larger()
            self._give(partition, m)
        return left

    def _fill(self, free: Sequence[int]) -> None:
        """Deal the partitions round to the members below their share, then to those that may get one more."""
        turn = 0
        for partition in free[self._deal_evenly(free) :]:
            if self.below:
                # A member that has its share leaves the list at its place: the next one stands there now.
                turn %= len(self.below)
                m = self.below[turn]
                turn += 1
            elif self.at_min:
                m = self.at_min.pop(0)
            else:
                raise AssignorError("IllegalStateException", "No more unfilled consumers to be assigned.")
            self._give(partition, m)
            size = len(self.work[m])
            if size == self.min_quota:
                turn -= 1
                del self.below[turn]
                self.at_min.append(m)
            elif size == self.max_quota:
                self.larger += 1

    def _deal_evenly(self, free: Sequence[int]) -> int:
        """Fill the members below their share at once where all have the same number of partitions, and no
        member owned a partition that is free; return how many partitions were given.
        """
        lacks = {self.min_quota - len(self.work[m]) for m in self.below}
        width = len(self.below)
        dealt = width * max(lacks, default=0)
        if len(lacks) != 1 or dealt > len(free) or self.revoked or self.claims.contested:
            return 0
        for place, m in enumerate(self.below):
            # Dealt in turns, the member at ``place`` gets every ``width``-th partition: one slice instead of a loop.
            self.work[m].extend(free[place:dealt:width])
        self.at_min += self.below
        self.below = []
        return dealt

    def _give(self, partition: int, m: int) -> None:
        self.work[m].append(partition)
        owner = self.revoked.get(partition)
        changes = owner is not None and (owner != m or not self.by_number)
        if changes or partition in self.claims.contested:
            self.transfers[partition] = m

    def _verify(self) -> None:
        if not self.below:
            return
        if self.larger != self.larger_expected:
            raise AssignorError(
                "IllegalStateException",
                "We haven't reached the expected number of members with more than the minQuota partitions, "
                "but no more partitions to be assigned",
            )
        for m in self.below:
            if len(self.work[m]) != self.min_quota:
                raise AssignorError(
                    "IllegalStateException",
                    f"Consumer: [{self.view.members[m]}] doesn't reach minQuota partitions, "
                    "and no more partitions to be assigned",
                )


class BeforeNumbers(ConstrainedAssignment):
    """The same in Kafka 3.0 to 3.6: members keep the first partitions of their lists."""

    by_number = False


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
            # From those with the most, each once and in turn: who has given one is no longer among the largest.
            stolen = self.work[self._at_max.popleft()].pop(0)
            self.work[m].append(stolen)
            self.transfers[stolen] = m
