"""The subscriptions and assignments that classic consumers send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from coordinator_core.record_fields.embedded import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
    CooperativeStickyAssignorUserData,
    StickyAssignorUserData,
)
from coordinator_core.wire.embedded import encode_blob

PROTOCOL_VERSION = 3
"""The newest version of the consumer's subscription and assignment (KIP-881)."""

TopicPartitions = Mapping[str, Sequence[int]]
"""Partitions by topic name."""


def subscription(
    protocol: str, topics: Sequence[str], owned: TopicPartitions, generation: int, rack: str | None
) -> bytes:
    """Return a member's subscription for an assignor, with the user data that the assignor needs; without a
    generation it is -1.
    """
    cooperative = protocol == "cooperative-sticky"
    user_data = None
    if cooperative:
        user_data = encode_blob(CooperativeStickyAssignorUserData, 0, {"generation": generation})
    elif protocol == "sticky" and generation >= 0:
        memory: StickyAssignorUserData = {"previousAssignment": _listed(owned), "generation": generation}
        user_data = encode_blob(StickyAssignorUserData, 1, memory)
    fields: ConsumerProtocolSubscription = {
        "topics": list(topics),
        "userData": user_data,
        "ownedPartitions": _listed(owned) if cooperative else [],
        "generationId": generation,
        "rackId": rack,
    }
    return encode_blob(ConsumerProtocolSubscription, PROTOCOL_VERSION, fields)


def assignment(partitions: TopicPartitions) -> bytes:
    """Return a member's assignment."""
    fields: ConsumerProtocolAssignment = {"assignedPartitions": _listed(partitions), "userData": None}
    return encode_blob(ConsumerProtocolAssignment, PROTOCOL_VERSION, fields)


def partitions_of(
    entries: Iterable[ConsumerProtocolSubscriptionTopicPartition | ConsumerProtocolAssignmentTopicPartition],
) -> dict[str, list[int]]:
    """Return the partitions of a decoded assignment, by topic name."""
    return {entry["topic"]: list(entry["partitions"]) for entry in entries}


def _listed(partitions: TopicPartitions) -> list[ConsumerProtocolSubscriptionTopicPartition]:
    return [{"topic": topic, "partitions": list(numbers)} for topic, numbers in partitions.items() if numbers]
