"""The partitions that members of a sticky group say they own, and which of these claims count.

Source: Kafka 4.3.1 ``AbstractStickyAssignor.allSubscriptionsEqual`` and ``prepopulateCurrentAssignments``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition

NO_GENERATION = -1


def generation_or_none(generation: int | None) -> int:
    """Return the generation as a number that can be compared: -1 for None."""
    return NO_GENERATION if generation is None else generation


@dataclass(frozen=True, slots=True)
class MemberData:
    """The partitions that a member says it owns, and the generation in which it did (None: it does not say)."""

    partitions: Sequence[TopicPartition]
    generation: int | None


@dataclass(frozen=True, slots=True)
class ClaimedPartitions:
    """The owners of partitions by the members' claims.

    ``owned[m]`` holds the partitions that member m keeps a claim on; ``contested`` those that two members claimed in
    one generation. ``equal``: Kafka treats all subscriptions as equal.
    """

    owned: list[list[int]]
    contested: set[int]
    equal: bool


def settle(view: LeaderView, data: Sequence[MemberData]) -> ClaimedPartitions:
    """Return the owners by the members' claims: of two claims to a partition, the one of the later generation counts.

    The rival's generation is that of its subscription, even if the claims are from its user data: Kafka's sticky
    assignor compares these two.
    """
    owned: list[list[int]] = [[] for _ in view.members]
    contested: set[int] = set()
    holder: dict[int, int] = {}
    index, partition_of = view.partitions.index, view.partitions.of
    for m in view.order:
        generation = generation_or_none(data[m].generation)
        claims = owned[m]
        for name, number in data[m].partitions:
            topic = index.get(name)
            if topic is None:
                continue
            partition = partition_of(topic, number)
            rival = holder.get(partition)
            if rival is None:
                claims.append(partition)
                holder[partition] = m
                continue
            rival_generation = generation_or_none(view.specs[rival].generation)
            if generation < rival_generation:
                continue
            if generation == rival_generation:
                contested.add(partition)
            else:
                claims.append(partition)
            if partition in owned[rival]:
                owned[rival].remove(partition)
            holder[partition] = m
    return ClaimedPartitions(owned, contested, _all_equal(view))


def _all_equal(view: LeaderView) -> bool:
    """Whether all subscribe to the same topics, as Kafka judges: members that come first with no topic do not count."""
    same: set[str] = set()
    first: Sequence[str] = ()
    for m in view.order:
        topics = view.specs[m].topics
        if same and topics == first:
            continue
        if not same:
            first, same = topics, set(topics)
        elif len(topics) != len(same) or not same.issuperset(topics):
            return False
    return True


def former_owners(view: LeaderView, data: Sequence[MemberData], max_generation: int) -> dict[int, int]:
    """Return the owner of each partition in the latest generation before the current one, from members that fell
    behind.
    """
    owners: dict[int, tuple[int, int]] = {}
    index, partition_of = view.partitions.index, view.partitions.of
    for m in view.order:
        generation = generation_or_none(data[m].generation)
        if generation >= max_generation:
            continue
        for name, number in data[m].partitions:
            if name not in index:
                continue
            partition = partition_of(index[name], number)
            if partition not in owners or generation > owners[partition][1]:
                owners[partition] = m, generation
    return {partition: m for partition, (m, _) in owners.items()}
