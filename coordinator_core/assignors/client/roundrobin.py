"""The round robin assignor of consumers: partitions and members in order, one each; members without the topic are
skipped.

Source: Kafka 4.3.1 ``RoundRobinAssignor``.
"""

from __future__ import annotations

from collections.abc import Sequence

from coordinator_core.assignors.client.leader_view import LeaderView, TopicPartition
from coordinator_core.assignors.client.range import static_first
from coordinator_core.assignors.inputs import Assignment, ClassicGroupSpec
from coordinator_core.assignors.profiles import Profile
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError


def assign_round_robin(
    spec: ClassicGroupSpec, image: TopicImage, profile: Profile
) -> Assignment[Sequence[TopicPartition]]:
    """Assign a classic group round robin; raises AssignorError for a group without members, as Kafka does."""
    if not spec.members:
        raise AssignorError("IllegalArgumentException", "CircularIterator can only be used on non-empty lists")
    view = LeaderView(spec.members, image)
    circle = sorted(view.order, key=lambda m: static_first(view.members[m], view.specs[m]))
    subscribed = [set(view.subscribed[m]) for m in circle]
    work: list[list[int]] = [[] for _ in circle]
    turn = 0
    for topic in range(len(view.partitions.topics)):
        for partition in view.partitions.of_topic(topic):
            while topic not in subscribed[turn]:
                turn = (turn + 1) % len(circle)
            work[circle[turn]].append(partition)
            turn = (turn + 1) % len(circle)
    return Assignment(view.result(work))
