"""Kafka's server-side ``range`` assignor (KIP-848): consecutive partitions of each topic, static members first."""

from __future__ import annotations

from coordinator_core.assignors.inputs import Assignment, GroupSpec, MemberSpec, Partitions
from coordinator_core.assignors.java_hash import UUID, utf16
from coordinator_core.assignors.java_order import hash_order
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.topics import partition_count
from coordinator_core.cluster.image import TopicImage

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
    """Every topic is divided among its own subscribers."""
    counts: dict[str, int] = {}
    subscribers: dict[str, int] = {}
    for member in members:
        for topic in spec.members[member].topics:
            if topic not in counts:
                counts[topic] = partition_count(image, topic, _MISSING)
            subscribers[topic] = subscribers.get(topic, 0) + 1
    shares = {topic: divmod(counts[topic], number) for topic, number in subscribers.items()}
    cursors = dict.fromkeys(counts, (0, 0))
    orders: dict[tuple[tuple[str, ...], int], list[str]] = {}
    ranges: dict[str, Partitions] = {}
    for member in members:
        subscription = spec.members[member]
        key = tuple(subscription.topics), subscription.subscribed
        if key not in orders:
            orders[key] = hash_order(UUID, subscription.topics, _map_capacity(subscription.subscribed))
        taken: dict[str, range] = {}
        for topic in orders[key]:
            start, index = cursors[topic]
            quota, extra = shares[topic]
            end = start + quota + (index < extra)
            cursors[topic] = end, index + 1
            if start < end:
                taken[topic] = range(start, end)
        ranges[member] = taken
    return ranges
