"""``simple`` where subscriptions differ: each topic is balanced by itself among its own subscribers.

Reproduces the results of Kafka 4.3.1's SimpleHeterogeneousAssignmentBuilder, which leaves topics that nobody subscribes
to any more in the assignments. Members are numbered as presented.
"""

from __future__ import annotations

from coordinator_core.assignors.java_hash import INTEGER, UUID
from coordinator_core.assignors.java_order import HashMap, hash_order, int_order
from coordinator_core.assignors.profiles import Profile
from coordinator_core.assignors.server.copies import ADDED, REMOVED, Copies, Edits
from coordinator_core.assignors.server.sharing import assignable, hand_out, map_capacity, shares
from coordinator_core.assignors.spec import GroupSpec, Partitions
from coordinator_core.cluster.image import TopicImage


def assign_differing(spec: GroupSpec, image: TopicImage, profile: Profile) -> dict[str, Partitions]:
    """The members' partitions; empty when nobody subscribes to an existing topic."""
    members = list(spec.members.values())
    subscribers: dict[str, list[int]] = {}
    for index, member in enumerate(members):
        for topic in member.topics:
            subscribers.setdefault(topic, []).append(index)
    if not subscribers:
        return {}
    topics = hash_order(UUID, list(subscribers))
    targets = {topic: assignable(spec, image, topic) for topic in topics}
    turns = int_order(range(len(members)), map_capacity(len(members)))
    held: dict[str, dict[int, list[int]]] = {}
    for index in turns:
        for topic, partitions in members[index].previous.items():
            held.setdefault(topic, {})[index] = list(partitions)
    edits: dict[int, Edits] = {}
    for topic in topics:
        balance = _TopicBalance(topic, targets[topic], subscribers[topic], held.get(topic, {}), edits)
        balance.revoke_overfilled()
        balance.revoke_overshared()
        balance.hand_out(len(members))
    return Copies(profile.jdk, keep_empty=True).all(spec.members, edits)


class _TopicBalance:
    """One topic: ``by_member`` and ``by_partition`` say who has what as it stands, in the order of Kafka's maps."""

    def __init__(
        self,
        topic: str,
        targets: list[int],
        subscribers: list[int],
        held: dict[int, list[int]],
        edits: dict[int, Edits],
    ) -> None:
        self.topic = topic
        self.targets = targets
        self.subscribers = subscribers
        self.edits = edits
        self.sharing, desired = shares(len(subscribers), len(targets))
        self.desired = dict(zip(subscribers, desired, strict=True))
        self.by_partition: HashMap[int, HashMap[int, None]] = HashMap(INTEGER, map_capacity(len(targets)))
        self.by_member: HashMap[int, HashMap[int, None]] = HashMap(INTEGER, map_capacity(len(subscribers)))
        for index, partitions in held.items():
            for partition in partitions:
                self.by_partition.compute_if_absent(partition, lambda: HashMap(INTEGER))[index] = None
                self.by_member.compute_if_absent(index, lambda: HashMap(INTEGER))[partition] = None

    def revoke_overfilled(self) -> None:
        """Members with too many partitions, and those no longer subscribed, lose the first of their sets."""
        for index, partitions in self.by_member.items():
            excess = len(partitions) - self.desired.get(index, 0)
            for partition in list(partitions)[: max(excess, 0)]:
                del self.by_partition[partition][index]
                partitions.remove(partition, by_iterator=True)
                self._edit(index, REMOVED, partition)

    def revoke_overshared(self) -> None:
        """Partitions with too many members lose the first of their sets."""
        for partition, holders in self.by_partition.items():
            excess = len(holders) - self.sharing
            for index in list(holders)[: max(excess, 0)]:
                holders.remove(index, by_iterator=True)
                del self.by_member[index][partition]
                self._edit(index, REMOVED, partition)

    def hand_out(self, group_size: int) -> None:
        """Give the partitions that lack members to subscribers that lack partitions."""
        for partition in self.targets:
            self.by_partition.compute_if_absent(partition, lambda: HashMap(INTEGER))
        lacks = {index: self.desired[index] - len(self.by_member.get(index, ())) for index in self.subscribers}
        unfilled = [index for index in self.subscribers if lacks[index] > 0]
        room = {index: lacks[index] for index in int_order(unfilled, map_capacity(group_size))}
        for index, partition in zip(*hand_out(self.by_partition, self.by_partition, self.sharing, room), strict=True):
            self._edit(index, ADDED, partition)

    def _edit(self, index: int, added: bool, partition: int) -> None:
        self.edits.setdefault(index, []).append((self.topic, added, (partition,)))
