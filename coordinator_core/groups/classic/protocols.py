"""The blobs inside a classic group, decoded on request: subscriptions and assignments of members."""

from typing import Final

from coordinator_core.errors import DecodeError
from coordinator_core.groups.classic.state import ClassicGroup, ClassicMember
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.wire.embedded import Blob, decode_assignment, decode_subscription

CONSUMER_PROTOCOL_TYPE: Final = "consumer"
"""The protocol type of consumers, and of Kafka Streams on classic groups."""
CONNECT_PROTOCOL_TYPE: Final = "connect"
"""The protocol type of Connect workers."""
CONNECT_EAGER: Final = "default"
"""The protocol of Connect workers that give up all their work before they join."""
STREAMS_PROTOCOL = "stream"
"""The protocol (assignor) of Kafka Streams on classic groups."""
COOPERATIVE_STICKY = "cooperative-sticky"
"""The protocol (assignor) of consumers that revokes partitions in one rebalance and assigns them in the next."""


def subscription(group: ClassicGroup, member: ClassicMember) -> Blob | None:
    """Return the member's metadata.

    None if it is empty, of a type that no schema knows, or not what its schema says.
    """
    try:
        return decode_subscription(group.protocol_type or "", group.protocol, member.subscription)
    except DecodeError:
        return None


def assignment(group: ClassicGroup, member: ClassicMember) -> Blob | None:
    """Return the member's assignment.

    None if it is empty, of a type that no schema knows, or not what its schema says.
    """
    try:
        return decode_assignment(group.protocol_type or "", group.protocol, member.assignment)
    except DecodeError:
        return None


def lists_again(data: bytes) -> bool:
    """Whether a consumer's assignment lists a topic several times."""
    partitions = assigned_partitions(data) or ()
    return len(partitions) > len(assigned_partitions(data, keeps_last=True) or ())


def assigned_partitions(data: bytes, *, keeps_last: bool = False) -> list[TopicPartition] | None:
    """Return a consumer's assignment in the order of the bytes, each partition once; None if it is not one.

    Some leaders repeat topics; a partition that is listed twice is in the Admin client's set once. ``keeps_last``: as a
    client reads it that keeps only the last entry of a topic.
    """
    if not data:
        return []
    try:
        blob = decode_assignment(CONSUMER_PROTOCOL_TYPE, None, data)
    except DecodeError:
        return None
    if blob is None:
        return None
    topics = blob.fields["assignedPartitions"]
    if keeps_last:
        topics = [*{topic["topic"]: topic for topic in topics}.values()]
    listed = (TopicPartition(topic["topic"], partition) for topic in topics for partition in topic["partitions"])
    return [*dict.fromkeys(listed)]
