"""Topics as brokers recorded them with a group: of consumer groups before 4.1 (type 4), of KIP-1071 (type 18)."""

from collections.abc import Mapping
from typing import NamedTuple

from coordinator_core.cluster.image import Topic, TopicImage
from coordinator_core.record_fields.consumer_group import ConsumerGroupPartitionMetadataValue
from coordinator_core.record_fields.streams_group import StreamsGroupPartitionMetadataValue


class SubscribedTopic(NamedTuple):
    """A topic as a broker recorded it with the group; ``racks`` by partition."""

    topic_id: str
    partitions: int
    racks: dict[int, list[str]]


def subscribed_topics(
    value: ConsumerGroupPartitionMetadataValue | StreamsGroupPartitionMetadataValue,
) -> dict[str, SubscribedTopic]:
    """Return the topics of such a record, by name."""
    return {
        topic["topicName"]: SubscribedTopic(
            topic["topicId"],
            topic["numPartitions"],
            {partition["partition"]: partition["racks"] for partition in topic["partitionMetadata"]},
        )
        for topic in value["topics"]
    }


def image_of(recorded: Mapping[str, SubscribedTopic]) -> TopicImage:
    """Return an image with these topics and no other."""
    topics = []
    for name, topic in recorded.items():
        racks: tuple[tuple[str, ...], ...] = ()
        if any(topic.racks.values()):
            racks = tuple(tuple(topic.racks.get(partition, ())) for partition in range(topic.partitions))
        topics.append(Topic(name, topic.topic_id, topic.partitions, racks))
    return TopicImage.of(topics)
