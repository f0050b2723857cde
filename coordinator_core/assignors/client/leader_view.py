"""A classic group as its leader sees it, with integers for names; and assignments as in its members' blobs.

Members and topics are numbered in the order of ``String.compareTo`` and partitions in the order (topic, partition), so
that every tie that Kafka breaks by a name is a comparison of integers.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, repeat
from typing import TypeVar

from coordinator_core.assignors.inputs import ClassicMemberSpec
from coordinator_core.cluster.image import TopicImage
from coordinator_core.java.hash_codes import STRING, utf16
from coordinator_core.java.order import hash_order
from coordinator_core.record_fields.embedded import ConsumerProtocolAssignment, ConsumerProtocolSubscription

TopicPartition = tuple[str, int]


class PartitionIds:
    """Numbers for partitions: ``0 .. total - 1`` are those of the topics, in order of (topic, partition).

    A member may claim a partition that its topic does not have (the topic was created again with fewer). Such a
    partition gets a number from ``total`` on, because Kafka's sticky assignors do not distinguish it from a real one.
    """

    def __init__(self, counts: Mapping[str, int]) -> None:
        # By UTF-16 units, as String.compareTo does: code points have another order beyond U+FFFF.
        self.topics: list[str] = sorted(counts, key=utf16)
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.topics)}
        self.counts: list[int] = [counts[name] for name in self.topics]
        self.first: list[int] = list(accumulate(self.counts, initial=0))
        self.total = self.first[-1]
        self.topic_of: list[int] = list(chain.from_iterable(repeat(t, n) for t, n in enumerate(self.counts)))
        self.number_of: list[int] = list(chain.from_iterable(range(n) for n in self.counts))
        self._missing: dict[tuple[int, int], int] = {}

    def of(self, topic: int, number: int) -> int:
        """Return the partition's number; a partition that its topic does not have gets a new one."""
        if 0 <= number < self.counts[topic]:
            return self.first[topic] + number
        partition = self._missing.get((topic, number))
        if partition is None:
            partition = self._missing[topic, number] = len(self.topic_of)
            self.topic_of.append(topic)
            self.number_of.append(number)
        return partition

    def of_topic(self, topic: int) -> range:
        """Return all partitions of a topic."""
        return range(self.first[topic], self.first[topic + 1])

    def name(self, partition: int) -> TopicPartition:
        """Return topic and number of a partition."""
        return self.topics[self.topic_of[partition]], self.number_of[partition]

    def names(self) -> list[TopicPartition]:
        """Return topic and number of every partition."""
        return list(zip(map(self.topics.__getitem__, self.topic_of), self.number_of, strict=True))

    @property
    def any_missing(self) -> bool:
        """Whether a member claimed a partition that does not exist."""
        return bool(self._missing)


class LeaderView:
    """Members with their subscriptions, and the partitions of every subscribed topic that exists.

    ``members[m]`` and ``specs[m]`` are the member numbered m; ``order`` lists the members as the leader iterates over
    them.
    """

    def __init__(self, members: Mapping[str, ClassicMemberSpec], image: TopicImage) -> None:
        self.members: list[str] = sorted(members, key=utf16)
        self.specs: list[ClassicMemberSpec] = [members[member] for member in self.members]
        numbers = {member: m for m, member in enumerate(self.members)}
        self.order: list[int] = [numbers[member] for member in members]
        wanted = set(chain.from_iterable(spec.topics for spec in self.specs))
        topics = (image.by_name[name] for name in wanted if name in image.by_name)
        self.partitions = PartitionIds({topic.name: topic.partitions for topic in topics if topic.partitions > 0})

    @cached_property
    def subscribed(self) -> list[list[int]]:
        """By member, the existing topics of its subscription, in its order."""
        index = self.partitions.index
        return [[index[t] for t in spec.topics if t in index] for spec in self.specs]

    def result(self, work: Sequence[Iterable[int]]) -> dict[str, list[TopicPartition]]:
        """Return partitions by member id, with topic names, in the leader's order of members."""
        names = self.partitions.names()
        return {self.members[m]: [names[partition] for partition in work[m]] for m in self.order}


M = TypeVar("M")

ASSIGNS_ALL = frozenset(("range", "roundrobin", "sticky"))
"""Assignors that assign each partition of a subscribed topic in every rebalance."""

Serialised = Mapping[str, Sequence[int]]
"""A member's partitions as its assignment blob holds them: topics as they first occur, partitions in order."""


def leader_order(joined: Mapping[str, M]) -> dict[str, M]:
    """Return members of a JoinGroup response in the order in which a Java leader iterates over them."""
    return {member: joined[member] for member in hash_order(STRING, list(joined))}


def subscribed_member(subscription: ConsumerProtocolSubscription, instance_id: str | None = None) -> ClassicMemberSpec:
    """Return a member from the decoded ``ConsumerProtocolSubscription`` in its group's record."""
    generation = subscription.get("generationId", -1)
    return ClassicMemberSpec(
        topics=subscription["topics"],
        owned=[
            (topic["topic"], number)
            for topic in subscription.get("ownedPartitions") or ()
            for number in topic["partitions"]
        ],
        generation=generation if generation >= 0 else None,
        user_data=subscription.get("userData"),
        instance_id=instance_id,
        rack_id=subscription.get("rackId"),
    )


def serialised(work: Sequence[TopicPartition]) -> Serialised:
    """Return partitions by topic in the order of the leader's list, as its member will read them."""
    topics: dict[str, list[int]] = {}
    for topic, number in work:
        topics.setdefault(topic, []).append(number)
    return topics


def recorded(assignment: ConsumerProtocolAssignment) -> Serialised:
    """Return the decoded ``ConsumerProtocolAssignment`` of a member, in the same form (some clients repeat topics)."""
    return serialised(
        [(topic["topic"], number) for topic in assignment["assignedPartitions"] for number in topic["partitions"]]
    )


def same_sets(one: Serialised, other: Serialised) -> bool:
    """Whether both hold the same partitions, each once."""
    return {(topic, *sorted(numbers)) for topic, numbers in one.items() if numbers} == {
        (topic, *sorted(numbers)) for topic, numbers in other.items() if numbers
    }
