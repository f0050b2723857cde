"""What server-side assignors ask about topics and partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from coordinator_core.assignors.inputs import GroupSpec
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError, InputError


def partition_count(image: TopicImage, topic_id: str, missing: str) -> int:
    """Return partitions of a topic.

    Raises AssignorError with the message ``missing`` when the image has no such topic.
    """
    topic = image.by_id.get(topic_id)
    if topic is None:
        raise AssignorError("PartitionAssignorException", missing)
    if topic.partitions < 0:
        raise InputError(f"topic {topic.name} has {topic.partitions} partitions")
    return topic.partitions


def missing_topic(topic_id: str) -> str:
    """Return what Kafka's uniform and simple assignors say of a subscribed topic that is not there."""
    return f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."


def assigned_partitions(spec: GroupSpec) -> Mapping[str, Collection[int]]:
    """Return the partitions that count as assigned: the inverted target assignment, or the previous ones of all
    members.
    """
    if spec.assigned is not None:
        return spec.assigned
    assigned: dict[str, set[int]] = {}
    for member in spec.members.values():
        for topic, partitions in member.previous.items():
            assigned.setdefault(topic, set()).update(partitions)
    return assigned
