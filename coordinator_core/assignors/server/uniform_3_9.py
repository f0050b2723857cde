"""``uniform`` of Kafka 3.9 for different subscriptions: each partition goes to the least loaded member, then some move.

Reproduces the results of 3.9's UniformHeterogeneousAssignmentBuilder (replaced in 4.0), its failure included: it throws
if a partition has to move for the second time.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

from coordinator_core.assignors.inputs import GroupSpec, Partitions
from coordinator_core.assignors.server.topic_partitions import missing_topic, partition_count
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError
from coordinator_core.java.hash_codes import INTEGER, UUID, KeyType, int32, utf16, uuid_hash
from coordinator_core.java.order import HashMap, fill, hash_order

TopicIdPartition = tuple[str, int]

TOPIC_ID_PARTITION: KeyType[TopicIdPartition] = KeyType(
    "TopicIdPartition", lambda key: int32(31 * (31 + uuid_hash(key[0])) + key[1]), None
)
"""With the hash code that the class has in 3.9."""


def assign_differing_3_9(spec: GroupSpec, image: TopicImage) -> dict[str, Partitions]:
    """Return the members' partitions; empty if no member subscribes to an existing topic."""
    builder = _Builder(spec, image)
    if not builder.counts:
        return {}
    builder.keep()
    builder.hand_out()
    builder.balance()
    return {
        member: {topic: list(numbers) for topic, numbers in target.items()}
        for member, target in builder.targets.items()
    }


class _Ranking:
    """Members that have room, by load and then by id; ``sorted`` holds (load, id as Java compares it, id)."""

    def __init__(self, loads: dict[str, int], limits: dict[str, int]) -> None:
        self.loads = loads
        self.limits = limits
        self.sorted: list[tuple[int, bytes, str]] = []
        for member in loads:
            self.add(member)

    def add(self, member: str) -> None:
        if self.loads[member] < self.limits[member]:
            insort(self.sorted, (self.loads[member], utf16(member), member))

    def discard(self, member: str) -> None:
        entry = self.loads[member], utf16(member), member
        at = bisect_left(self.sorted, entry)
        if at < len(self.sorted) and self.sorted[at] == entry:
            del self.sorted[at]

    def change(self, member: str, by: int) -> None:
        """Another load; the member comes in if it has room now, whether it was in before or not."""
        self.discard(member)
        self.loads[member] += by
        self.add(member)


class _Movements:
    """Which partitions went from whom to whom; so that a partition going back the other way can stay instead."""

    def __init__(self) -> None:
        self.by_partition: dict[TopicIdPartition, tuple[str, str]] = {}
        self.by_pair: dict[tuple[str, str, str], HashMap[TopicIdPartition, None]] = {}

    def record(self, partition: TopicIdPartition, giver: str, taker: str) -> None:
        if partition in self.by_partition:
            message = "Mismatch in partition movement record with respect to partition ownership during a rebalance"
            raise AssignorError("PartitionAssignorException", message)
        self.by_partition[partition] = giver, taker
        self.by_pair.setdefault((partition[0], giver, taker), HashMap(TOPIC_ID_PARTITION))[partition] = None

    def instead(self, partition: TopicIdPartition, giver: str, taker: str) -> TopicIdPartition:
        """Return the partition to move: one of the topic that went from the taker to the giver before, if there
        is one.
        """
        giver = self.by_partition.get(partition, (giver, ""))[0]
        return next(iter(self.by_pair.get((partition[0], taker, giver), ())), partition)


class _Builder:
    def __init__(self, spec: GroupSpec, image: TopicImage) -> None:
        self.spec = spec
        self.counts: dict[str, int] = {}
        self.subscribers: dict[str, list[str]] = {}
        for member, had in spec.members.items():
            for topic in had.topics:
                self.counts[topic] = partition_count(image, topic, missing_topic(topic))
                self.subscribers.setdefault(topic, []).append(member)
        self.topics = hash_order(UUID, list(self.counts))
        limits = {member: sum(self.counts[topic] for topic in had.topics) for member, had in spec.members.items()}
        self.ranking = _Ranking(dict.fromkeys(spec.members, 0), limits)
        self.targets: dict[str, HashMap[str, HashMap[int, None]]] = {member: HashMap(UUID) for member in spec.members}
        self.owners: dict[TopicIdPartition, str] = {}
        self.unassigned = fill(TOPIC_ID_PARTITION, self._partitions())
        self.movements = _Movements()

    def keep(self) -> None:
        """Everything that members hold of topics to which they still subscribe."""
        for member, had in self.spec.members.items():
            for topic, partitions in had.previous.items():
                if topic in had.topics:
                    for partition in partitions:
                        self._add((topic, partition), member)

    def hand_out(self) -> None:
        """Each unassigned partition to the least loaded subscriber."""
        for partition in self._sorted():
            subscribers = self.subscribers[partition[0]]
            with_room = [
                subscriber for subscriber in subscribers if self._load(subscriber) < self.ranking.limits[subscriber]
            ]
            if with_room:
                self._add(partition, min(with_room, key=lambda subscriber: (self._load(subscriber), utf16(subscriber))))

    def balance(self) -> None:
        """Move partitions to less loaded subscribers until nothing improves."""
        if self.unassigned:
            raise AssignorError("PartitionAssignorException", "Some partitions were left unassigned")
        self.unassigned.update(dict.fromkeys(fill(TOPIC_ID_PARTITION, self._partitions())))
        for partition in list(self.unassigned):
            if len(self.subscribers[partition[0]]) < 2:
                del self.unassigned[partition]
        for member in self.spec.members:
            has_room = self._load(member) < self.ranking.limits[member]
            if not has_room and all(len(self.subscribers[topic]) < 2 for topic in self.targets[member]):
                self.ranking.discard(member)
        again = bool(self.unassigned)
        while again:
            again = False
            moved = False
            # A partition that was moved takes no part in the next rounds.
            for partition in self._sorted():
                if moved and self._is_balanced():
                    return
                moved = self._improve(partition)
                again = again or moved

    def _improve(self, partition: TopicIdPartition) -> bool:
        """Move the partition, or one that undoes an earlier move, if some subscriber has two partitions less."""
        topic = partition[0]
        owner = self.owners.get(partition)
        if owner is None:
            message = f"Expected topicIdPartition '{_text(partition)}' to be assigned to a member"
            raise AssignorError("PartitionAssignorException", message)
        if all(self._load(owner) <= self._load(other) + 1 for other in self.subscribers[topic]):
            return False
        taker = next(
            (member for _, _, member in self.ranking.sorted if topic in self.spec.members[member].topics), None
        )
        if taker is None:
            message = f"No suitable new owner was found for the partition{_text(partition)}"
            raise AssignorError("PartitionAssignorException", message)
        moving = self.movements.instead(partition, owner, taker)
        giver = self.owners[moving]
        self.movements.record(moving, giver, taker)
        self._remove(moving, giver)
        self._add(moving, taker)
        return True

    def _is_balanced(self) -> bool:
        ranked = self.ranking.sorted
        if not ranked:
            raise AssignorError("NoSuchElementException", "no member has room for more partitions")
        if ranked[0][0] >= ranked[-1][0] - 1:
            return True
        for load, _, member in ranked:
            for topic in self.spec.members[member].topics:
                held = self.targets[member].get(topic)
                for number in range(self.counts[topic]):
                    others = held is None or number not in held
                    if others and load + 1 < self._load(self.owners[topic, number]):
                        return False
        return True

    def _load(self, member: str) -> int:
        return self.ranking.loads[member]

    def _partitions(self) -> Iterator[TopicIdPartition]:
        return ((topic, number) for topic in self.topics for number in range(self.counts[topic]))

    def _sorted(self) -> list[TopicIdPartition]:
        """Unassigned partitions: most partitions a subscriber, fewest subscribers, partition number, then as met."""

        def rank(partition: TopicIdPartition) -> tuple[float, int, int]:
            subscribers = len(self.subscribers[partition[0]])
            return -(self.counts[partition[0]] / subscribers), subscribers, partition[1]

        return sorted(self.unassigned, key=rank)

    def _add(self, partition: TopicIdPartition, member: str) -> None:
        topic, number = partition
        self.targets[member].compute_if_absent(topic, lambda: HashMap(INTEGER))[number] = None
        self.owners[partition] = member
        self.ranking.change(member, 1)
        self.unassigned.pop(partition, None)

    def _remove(self, partition: TopicIdPartition, member: str) -> None:
        topic, number = partition
        del self.targets[member][topic][number]
        if not self.targets[member][topic]:
            del self.targets[member][topic]
        del self.owners[partition]
        self.ranking.change(member, -1)


def _text(partition: TopicIdPartition) -> str:
    return f"{partition[0]}:{partition[1]}"
