"""The sticky and the cooperative sticky assignors of consumers.

Source: Kafka 4.3.1 ``StickyAssignor`` (KIP-54, KIP-341), ``CooperativeStickyAssignor`` (KIP-429, KIP-792) and
``AbstractStickyAssignor``. What older releases and other clients do otherwise is data: see ``clients``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from coordinator_core.assignors.client.claimed_partitions import (
    ClaimRule,
    Reader,
    before_a_difference,
    largest_generation,
    latest_of_two,
)
from coordinator_core.assignors.client.constrained import ConstrainedAssignment, StealingAssignment
from coordinator_core.assignors.client.general import GeneralAssignment, GeneralRules
from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.client.racks import Racks, writes_a_rack
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec
from coordinator_core.cluster.image import TopicImage

Plan = dict[str, list[TopicPartition]]
"""By member id, the partitions that it is to have."""
HandOver = Callable[[LeaderView, Plan, Mapping[TopicPartition, str] | None], Plan]
"""Group, plan, partitions that change their owner (None: not known) -> what is given now (KIP-429)."""


@dataclass(frozen=True, slots=True)
class Sticky:
    """A sticky assignor.

    ``read`` says what members own, ``claims`` which of that counts. ``equal`` assigns where all members subscribe to
    the same (None: the general algorithm does), ``general`` are the rules of the general one. ``hand_over``: what
    changes its owner is given in two rounds. ``by_racks``: racks count (KIP-881). ``empty_rack``: an empty name counts
    as one (librdkafka). ``reads_once``: where subscriptions differ, user data is lost that was read before that showed
    (Kafka 2.6 to 2.8).
    """

    read: Reader
    claims: ClaimRule = latest_of_two
    equal: type[ConstrainedAssignment | StealingAssignment] | None = ConstrainedAssignment
    general: GeneralRules = GeneralRules()  # noqa: RUF009 -- it is frozen
    hand_over: HandOver | None = None
    by_racks: bool = True
    empty_rack: bool = False
    reads_once: bool = False

    def __call__(self, spec: ClassicGroupSpec, image: TopicImage) -> Assignment[Sequence[TopicPartition]]:
        """Assign by what members own; ``memory`` is the largest generation that the leader has seen."""
        view = LeaderView(spec.members, image)
        knows_racks = self.by_racks and (not self.empty_rack or writes_a_rack(spec))
        racks = Racks(view, image if knows_racks else None, empty_is_one=self.empty_rack)
        by_racks = racks.matter(range(len(view.members)), range(view.partitions.total))
        data = [self.read(member) for member in view.specs]
        if self.reads_once and len(compared := before_a_difference(view)) < len(view.order):
            for m in compared:
                # Read before the difference showed: empty bytes take the place of user data, and None stays None.
                data[m] = self.read(replace(view.specs[m], user_data=view.specs[m].user_data and b""))
        claims = self.claims(view, data, spec.memory)
        transfers: dict[TopicPartition, str] | None = None
        work: Sequence[Sequence[int]]
        if claims.equal and self.equal is not None:
            constrained = self.equal(view, racks, by_racks, claims)
            constrained.build()
            work, moved = constrained.work, constrained.transfers
            transfers = {view.partitions.name(partition): view.members[m] for partition, m in moved.items()}
        else:
            order = self.general.order.of(view, claims, spec.topic_order) if self.general.order else None
            general = GeneralAssignment(view, racks, by_racks, claims, self.general)
            general.build(order)
            work = general.work
        plan: Plan = view.result(work)
        if self.hand_over is not None:
            plan = self.hand_over(view, plan, transfers)
        return Assignment(plan, largest_generation(spec.memory, data))

    def remembered(self, spec: ClassicGroupSpec) -> int:
        """Return ``memory`` after a round of this group, even if the round itself fails: the largest generation."""
        return largest_generation(spec.memory, [self.read(member) for member in spec.members.values()])


def without_transfers(view: LeaderView, plan: Plan, transfers: Mapping[TopicPartition, str] | None) -> Plan:
    """Leave out what one member loses and another gets (Kafka)."""
    # The last list of a client that does not say which partitions it moved is compared with what members owned.
    moved = _transfers(view, plan) if transfers is None else transfers
    given = {member: list(work) for member, work in plan.items()} if moved else plan
    for partition, member in moved.items():
        if partition in given[member]:
            given[member].remove(partition)
    return given


def _transfers(view: LeaderView, plan: Plan) -> dict[TopicPartition, str]:
    """Partitions given to a member that did not own them while one that did lost them."""
    given: dict[TopicPartition, str] = {}
    lost: set[TopicPartition] = set()
    for m in view.order:
        member = view.members[m]
        owned = {*(view.specs[m].owned or ())}
        given.update(dict.fromkeys((partition for partition in plan[member] if partition not in owned), member))
        lost.update(owned.difference(plan[member]))
    return {partition: member for partition, member in given.items() if partition in lost}


def owned_stays(view: LeaderView, plan: Plan, transfers: Mapping[TopicPartition, str] | None) -> Plan:
    """Leave out what another member owns (kafka-python)."""
    owner = _owner(view)
    return {
        member: [partition for partition in work if owner.get(partition, member) == member]
        for member, work in plan.items()
    }


def unplanned_returns(view: LeaderView, plan: Plan, transfers: Mapping[TopicPartition, str] | None) -> Plan:
    """The same; what is owned and not planned at all, as its topic is gone, goes back to its owner (librdkafka)."""
    owner = _owner(view)
    planned = {partition for work in plan.values() for partition in work}
    given = {
        member: [
            *(partition for partition in work if owner.get(partition) == member),
            *(partition for partition in work if partition not in owner),
        ]
        for member, work in plan.items()
    }
    for partition, member in owner.items():
        if partition not in planned:
            given[member].append(partition)
    return given


def _owner(view: LeaderView) -> dict[TopicPartition, str]:
    return {partition: view.members[m] for m in view.order for partition in view.specs[m].owned or ()}
