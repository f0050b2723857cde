"""Questions of server-side assignors about topics and partitions."""

from collections.abc import Collection, Mapping

from coordinator_core.assignors.inputs import GroupSpec
from coordinator_core.cluster.image import TopicImage
from coordinator_core.errors import AssignorError, InputError


def partition_count(image: TopicImage, topic_id: str, missing: str) -> int:
    """Return the number of partitions of a topic.

    Raises:
        AssignorError: the image has no such topic; its message is ``missing``.
    """
    topic = image.by_id.get(topic_id)
    if topic is None:
        raise AssignorError("PartitionAssignorException", missing)
    if topic.partitions < 0:
        raise InputError(f"topic {topic.name} has {topic.partitions} partitions")
    return topic.partitions


def missing_topic(topic_id: str) -> str:
    """Return the message of Kafka's uniform and simple assignors about a subscribed topic that does not exist."""
    return f"Members are subscribed to topic {topic_id} which doesn't exist in the topic metadata."


def assigned_partitions(spec: GroupSpec) -> Mapping[str, Collection[int]]:
    """Return the partitions that count as assigned: those of the inverted target assignment, or all members'
    previous ones.
    """
    if spec.assigned is not None:
        return spec.assigned
    assigned: dict[str, set[int]] = {}
    for member in spec.members.values():
        for topic, partitions in member.previous.items():
            assigned.setdefault(topic, set()).update(partitions)
    return assigned
