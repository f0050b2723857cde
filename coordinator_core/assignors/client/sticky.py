"""The sticky and the cooperative sticky assignor of consumers.

Source: Kafka 4.3.1 ``StickyAssignor`` (KIP-54, KIP-341), ``CooperativeStickyAssignor`` (KIP-429, KIP-792) and
``AbstractStickyAssignor``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from coordinator_core.assignors.client.claimed_partitions import MemberData, former_owners, generation_or_none, settle
from coordinator_core.assignors.client.constrained import ConstrainedAssignment
from coordinator_core.assignors.client.general import GeneralAssignment
from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.client.racks import Racks
from coordinator_core.assignors.client.user_data import cooperative_data, sticky_data
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec, ClassicMemberSpec
from coordinator_core.assignors.profiles import Profile
from coordinator_core.cluster.image import TopicImage


def assign_sticky(spec: ClassicGroupSpec, image: TopicImage, profile: Profile) -> Assignment[Sequence[TopicPartition]]:
    """Assign by the members' user data; ``memory`` is the largest generation that the leader has seen."""
    stickiness = _Stickiness(spec, image, sticky_data)
    return Assignment(stickiness.view.result(stickiness.work), stickiness.max_generation)


def assign_cooperative_sticky(
    spec: ClassicGroupSpec, image: TopicImage, profile: Profile
) -> Assignment[Sequence[TopicPartition]]:
    """Assign by owned partitions, leaving out those that another member still has to revoke."""
    stickiness = _Stickiness(spec, image, cooperative_data)
    work = stickiness.work
    transfers = _transfers(stickiness.view, work) if stickiness.transfers is None else stickiness.transfers
    for partition, m in transfers.items():
        if partition in work[m]:
            work[m].remove(partition)
    return Assignment(stickiness.view.result(work), stickiness.max_generation)


MEMBER_DATA = {"sticky": sticky_data, "cooperative-sticky": cooperative_data}
"""How each assignor, by name, reads what members own."""


def remembered(name: str, spec: ClassicGroupSpec) -> int:
    """Return ``memory`` after a round of this group, even if the round itself fails: the largest generation seen."""
    return _largest(spec.memory, [MEMBER_DATA[name](member) for member in spec.members.values()])


def _largest(memory: int | None, data: Sequence[MemberData]) -> int:
    return max(map(generation_or_none, [memory, *(member.generation for member in data)]))


class _Stickiness:
    """A round of either assignor.

    ``transfers`` holds the partitions that change owner, with the new one; None where Kafka computes them afterwards.
    """

    def __init__(
        self, spec: ClassicGroupSpec, image: TopicImage, read: Callable[[ClassicMemberSpec], MemberData]
    ) -> None:
        self.view = view = LeaderView(spec.members, image)
        racks = Racks(view, image)
        by_racks = racks.matter(range(len(view.members)), range(view.partitions.total))
        data = [read(member) for member in view.specs]
        self.max_generation = _largest(spec.memory, data)
        claims = settle(view, data)
        self.transfers: dict[int, int] | None = None
        if claims.equal:
            constrained = ConstrainedAssignment(view, racks, by_racks, claims)
            constrained.build()
            self.work, self.transfers = constrained.work, constrained.transfers
        else:
            general = GeneralAssignment(view, racks, by_racks, claims, former_owners(view, data, self.max_generation))
            general.build()
            self.work = general.work


def _transfers(view: LeaderView, work: Sequence[Sequence[int]]) -> dict[int, int]:
    """Partitions given to a member that did not own them while one that did lost them."""
    given: dict[int, int] = {}
    lost: set[int] = set()
    index = view.partitions.index
    for m in view.order:
        owned = {
            view.partitions.of(index[topic], number) for topic, number in view.specs[m].owned or () if topic in index
        }
        given.update(dict.fromkeys((partition for partition in work[m] if partition not in owned), m))
        lost.update(owned.difference(work[m]))
    return {partition: m for partition, m in given.items() if partition in lost}
