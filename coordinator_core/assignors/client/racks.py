"""Racks of members and partitions as bit masks (KIP-881)."""

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import chain
from operator import or_

from coordinator_core.assignors.client.leader_view import LeaderView
from coordinator_core.assignors.inputs import ClassicGroupSpec
from coordinator_core.cluster.image import TopicImage


def writes_a_rack(spec: ClassicGroupSpec) -> bool:
    """Whether the leader's subscription has a rack, be it an empty one; that of librdkafka before 2.2 has not, which
    knows of none.
    """
    leader = spec.members.get(spec.leader)
    return leader is None or leader.rack_id is not None


class Racks:
    """One bit per rack: ``of_member[m]`` (0: the member has none) and ``of_partition[p]`` (0: none known)."""

    def __init__(self, view: LeaderView, image: TopicImage | None, *, empty_is_one: bool = False) -> None:
        """Take the racks of members and topics; without an image none counts, as for assignors that know of none.

        ``empty_is_one``: the empty name is that of a rack, in which no replica is (librdkafka).
        """
        bits: dict[str, int] = {}
        named = [spec.rack_id for spec in view.specs] if image is not None else [None] * len(view.specs)
        self.of_member: list[int] = [
            _bit(bits, name) if name or (empty_is_one and name is not None) else 0 for name in named
        ]
        self.of_partition: list[int] = [0] * view.partitions.total
        self._counts: dict[int, int] = {}
        if image is None or not any(self.of_member):
            return
        masks: dict[tuple[str, ...], int] = {}
        for topic, first in zip(view.partitions.topics, view.partitions.first, strict=False):
            for number, racks in enumerate(image.by_name[topic].racks):
                # Most partitions share few sets of racks: each mask is made once.
                mask = masks.get(racks)
                if mask is None:
                    mask = masks[racks] = reduce(or_, (_bit(bits, rack) for rack in racks), 0)
                self.of_partition[first + number] = mask

    def matter(self, members: Iterable[int], partitions: Sequence[int]) -> bool:
        """Whether Kafka uses racks here: members and partitions share a rack, and not every partition is on every
        rack.
        """
        on_members = reduce(or_, (self.of_member[m] for m in members), 0)
        if not on_members:
            return False
        everywhere = reduce(or_, (self.of_partition[p] for p in partitions), 0)
        return bool(on_members & everywhere) and any(self.of_partition[p] != everywhere for p in partitions)

    def mismatch(self, member: int, partition: int) -> bool:
        """Whether the member has a rack that none of the partition's replicas is in."""
        rack = self.of_member[member]
        return bool(rack) and not rack & self._near(partition)

    def members_near(self, partition: int) -> int:
        """Return how many members are in the racks of the partition's replicas."""
        mask = self._near(partition)
        count = self._counts.get(mask)
        if count is None:
            count = self._counts[mask] = sum(1 for rack in self.of_member if rack & mask)
        return count

    def next_near(self, partition: int, members: Sequence[int], start: int) -> int | None:
        """Return the place in the list of the first member in the partition's racks, searching from ``start`` and
        around.
        """
        mask = self._near(partition)
        if mask:
            for at in chain(range(start, len(members)), range(start)):
                if self.of_member[members[at]] & mask:
                    return at
        return None

    def _near(self, partition: int) -> int:
        """The racks of a partition; none if it does not exist."""
        return self.of_partition[partition] if partition < len(self.of_partition) else 0


def _bit(bits: dict[str, int], rack: str) -> int:
    return bits.setdefault(rack, 1 << len(bits))
