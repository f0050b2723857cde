"""Kafka's server-side ``range`` assignor (KIP-848): consecutive partitions of each topic, static members first."""

from itertools import chain, pairwise

import numpy as np

from coordinator_core.assignors.inputs import Assignment, GroupSpec, MemberSpec, Partitions
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.copied_assignments import ints
from coordinator_core.assignors.server.topic_partitions import partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import UUID, spreads, utf16
from coordinator_core.java.order import Ints, grouped_order, hash_order

_MISSING = "Member is subscribed to a non-existent topic"


def assign(spec: GroupSpec, image: TopicImage, profile: Profile) -> Assignment[Partitions]:
    """Assign ranges of partitions; the first members get the larger ranges.

    Raises:
        AssignorError: a subscribed topic does not exist (PartitionAssignorException).
    """
    members = sorted(spec.members, key=lambda member: _rank(member, spec.members[member]))
    if not members:
        return Assignment({})
    ranges = _equal(spec, members, image) if spec.homogeneous else _differing(spec, members, image)
    return Assignment({member: ranges[member] for member in spec.members})


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, bytes]:
    """Static members by instance id before dynamic ones by member id."""
    if member.instance_id is not None:
        return False, utf16(member.instance_id)
    return True, utf16(member_id)


def _map_capacity(topics: int) -> int:
    return topics * 4 // 3 + 1


def _equal(spec: GroupSpec, members: list[str], image: TopicImage) -> dict[str, Partitions]:
    """Every member gets of each topic of the first member's subscription."""
    topics = spec.members[members[0]].topics
    counts = {topic: partition_count(image, topic, _MISSING) for topic in topics}
    ranges: dict[str, dict[str, range]] = {member: {} for member in members}
    # Topics with nothing for a member are not put into its map; they leave the order of the others as it is.
    for topic in hash_order(UUID, topics, _map_capacity(len(topics))):
        quota, extra = divmod(counts[topic], len(members))
        start = 0
        for index, member in enumerate(members if quota else members[:extra]):
            end = start + quota + (index < extra)
            ranges[member][topic] = range(start, end)
            start = end
    return dict(ranges)


def _differing(spec: GroupSpec, members: list[str], image: TopicImage) -> dict[str, Partitions]:
    """Every topic is divided among its own subscribers. One row stands for one topic of one member."""
    subscriptions = [spec.members[member] for member in members]
    sizes = ints(len(subscription.topics) for subscription in subscriptions)
    names = list(chain.from_iterable(subscription.topics for subscription in subscriptions))
    topics = {topic: number for number, topic in enumerate(dict.fromkeys(names))}
    counts = ints(partition_count(image, topic, _MISSING) for topic in topics)
    topic = ints(map(topics.__getitem__, names))
    place = _places(topic, len(topics))
    # ``quota`` and ``extra`` have one number for each topic. The first ``extra`` subscribers of a topic get one more,
    # so a range begins behind ``place`` quotas and as many of the extra ones as stand before it.
    quota, extra = np.divmod(counts, np.maximum(np.bincount(topic, minlength=len(topics)), 1))
    start = place * quota[topic] + np.minimum(place, extra[topic])
    end = start + quota[topic] + (place < extra[topic])

    group = np.repeat(np.arange(len(members)), sizes)
    hashes = spreads(UUID, list(topics))[topic]
    capacity = ints(_map_capacity(subscription.subscribed) for subscription in subscriptions)
    order, crowded = grouped_order(group, hashes, capacity, sizes)
    # The map is made for all subscribed topics: those without a range leave the order of the others as it is.
    order = order[start[order] < end[order]]
    ends = np.cumsum(np.bincount(group[order], minlength=len(members))).tolist()
    keys = [names[row] for row in order.tolist()]
    values = list(map(range, start[order].tolist(), end[order].tolist()))
    ranges: dict[str, Partitions] = {
        member: dict(zip(keys[first:last], values[first:last], strict=True))
        for member, (first, last) in zip(members, pairwise([0, *ends]), strict=True)
    }
    # A bucket of Java's map that became a tree is ordered otherwise: these maps are built key by key.
    for number in crowded:
        given = ranges[members[number]]
        subscription = subscriptions[number]
        in_order = hash_order(UUID, subscription.topics, int(capacity[number]))
        ranges[members[number]] = {name: given[name] for name in in_order if name in given}
    return ranges


def _places(topic: Ints, topics: int) -> Ints:
    """Return for each row how many rows before it have the same topic."""
    rows = np.argsort(topic, kind="stable")
    first = np.concatenate((ints((0,)), np.cumsum(np.bincount(topic, minlength=topics))))
    place = np.empty_like(topic)
    place[rows] = np.arange(len(topic)) - first[topic[rows]]
    return place
