"""The partitions that a sticky assignor has moved, and between which members, so that moves of one topic do not cross.

Source: Kafka 4.3.1 ``AbstractStickyAssignor.PartitionMovements``; other clients keep them in lists.
"""

from __future__ import annotations

from collections.abc import MutableMapping

from coordinator_core.assignors.client.leader_view import PartitionIds, TopicPartition
from coordinator_core.java.hash_codes import TOPIC_PARTITION
from coordinator_core.java.order import HashMap

Pair = tuple[int, int]
"""The member that had the partition at first, and the one that has it now."""


class PartitionMovements:
    """Moves so far: by partition, and by topic and pair of members."""

    def __init__(self, partitions: PartitionIds, *, by_hash: bool = True) -> None:
        """Begin without moves; ``by_hash``: of several partitions the first of a HashSet counts, else the oldest."""
        self._partitions = partitions
        self._by_hash = by_hash
        self._moves: dict[int, Pair] = {}
        self._by_topic: dict[int, dict[Pair, MutableMapping[TopicPartition, None]]] = {}

    def instead_of(self, partition: int, owner: int, new_owner: int) -> int:
        """Return the partition to move instead: one of the topic that went from the new owner to the old one, if there
        is one.

        If the partition has moved before, its first owner counts as the old owner. The returned partition may thus
        belong to another member than ``owner``.
        """
        moved = self._by_topic.get(self._partitions.topic_of[partition])
        if moved is None:
            return partition
        first_owner = self._moves[partition][0] if partition in self._moves else owner
        back = moved.get((new_owner, first_owner))
        if back is None:
            return partition
        name, number = next(iter(back))
        return self._partitions.of(self._partitions.index[name], number)

    def record(self, partition: int, owner: int, new_owner: int) -> None:
        """Note that the partition moves."""
        earlier = self._moves.pop(partition, None)
        if earlier is None:
            self._add(partition, (owner, new_owner))
            return
        topic = self._partitions.topic_of[partition]
        moved = self._by_topic[topic]
        del moved[earlier][self._partitions.name(partition)]
        if not moved[earlier]:
            del moved[earlier]
        if not moved:
            del self._by_topic[topic]
        if earlier[0] != new_owner:
            self._add(partition, (earlier[0], new_owner))

    def _add(self, partition: int, pair: Pair) -> None:
        self._moves[partition] = pair
        moved = self._by_topic.setdefault(self._partitions.topic_of[partition], {})
        if pair not in moved:
            moved[pair] = HashMap(TOPIC_PARTITION) if self._by_hash else {}
        moved[pair][self._partitions.name(partition)] = None
